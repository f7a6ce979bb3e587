//! Textures and surfaces without a memory: which texels a fetch wants, and what their bytes become.
//!
//! Coordinates, addressing and filtering are those of the CUDA programming guide (texture fetching). A linear filter's fractions have
//! 8 bits; its sum is taken in f64 and rounded once to f32.

use super::half::widen;
use crate::inst::{Mods, Ty};

/// What lies beyond the edge.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum AddressMode {
    /// The texel at the edge.
    #[default]
    Clamp,
    /// The image again (normalized coordinates).
    Wrap,
    /// The image again, every other time turned round (normalized coordinates).
    Mirror,
    /// Zeros.
    Border,
}

/// An image in device memory, row by row and slice by slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Texture {
    /// Address of the first texel.
    pub base: u64,
    /// Texels of a row.
    pub width: u32,
    /// Rows; 1 for an image of one dimension.
    pub height: u32,
    /// Slices of an image of three dimensions, or layers; 1 for a flat one.
    pub depth: u32,
    /// Type of a channel: an integer of 8 to 32 bits, F16 or F32.
    pub channel: Ty,
    /// Channels of a texel: 1, 2 or 4.
    pub channels: u8,
    /// What lies beyond the edge.
    pub address_mode: AddressMode,
    /// Whether coordinates go from 0 to 1.
    pub normalized_coords: bool,
    /// Whether neighbours are mixed (float coordinates).
    pub linear_filter: bool,
    /// Whether integers are read as numbers from 0 or -1 to 1.
    pub normalized_values: bool,
}

impl Texture {
    /// Bytes of a texel.
    pub fn texel_bytes(&self) -> u32 {
        u32::from(self.channel.bytes()) * u32::from(self.channels)
    }

    /// Bytes of a row.
    pub fn pitch(&self) -> u64 {
        u64::from(self.width) * u64::from(self.texel_bytes())
    }

    /// Bytes of a slice.
    fn slice(&self) -> u64 {
        u64::from(self.height) * self.pitch()
    }

    fn address_of(&self, [x, y, z]: [u32; 3]) -> u64 {
        let row = u64::from(z) * self.slice() + u64::from(y) * self.pitch();
        self.base + row + u64::from(x) * u64::from(self.texel_bytes())
    }
}

/// Where an instruction looks: so many coordinates, and perhaps a layer behind them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TexCoord {
    /// 1 to 3.
    pub dimensions: u8,
    /// Whether the word behind the coordinates is a layer.
    pub layered: bool,
    /// Coordinates x, y, z, and the layer.
    pub at: [u32; 3],
}

impl TexCoord {
    /// As an instruction's modifiers say; `word` gives its words one by one.
    pub fn of(mods: &Mods, word: impl Fn(usize) -> u32) -> TexCoord {
        let n = usize::from(mods.count) + usize::from(mods.high);
        TexCoord {
            dimensions: mods.count,
            layered: mods.high,
            at: [0, 1, 2].map(|at| if at < n { word(at) } else { 0 }),
        }
    }

    /// The layer, the last one if there are not so many.
    fn layer(&self, texture: &Texture) -> u32 {
        self.at[usize::from(self.dimensions).min(2)].min(texture.depth.saturating_sub(1))
    }
}

/// What a fetch makes of its texels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FetchMode {
    /// Their mix.
    Sample,
    /// This channel of the four around a point (PTX `tld4`).
    Gather(u8),
    /// No texel: what the image is, as [`query`] counts.
    Query(u8),
}

impl FetchMode {
    /// As the modifier `lut` says: 0, 1 to 4, and from 16 on.
    pub fn of(lut: u8) -> FetchMode {
        match lut {
            0 => FetchMode::Sample,
            1..16 => FetchMode::Gather((lut - 1) % 4),
            _ => FetchMode::Query(lut - 16),
        }
    }
}

/// Most texels of a fetch: the eight around a point in space.
pub const MAX_TEXELS: usize = 8;

/// One texel of a fetch.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Texel {
    /// Where it is; nowhere beyond a border, where it is zero.
    pub address: Option<u64>,
    /// Its part of the result.
    pub weight: f32,
}

/// One axis of a fetch: up to two places, with their weights.
type Axis = [(Option<u32>, f32); 2];

/// The texels that a fetch wants, and how many they are; `integers`: the coordinates count texels.
///
/// ```
/// use warpwave_isa::exec::texture::{AddressMode, FetchMode, TexCoord, Texture, texels};
/// use warpwave_isa::inst::Ty;
/// let image = Texture {
///     base: 0x1000, width: 8, height: 4, depth: 1, channel: Ty::F32, channels: 1,
///     address_mode: AddressMode::Clamp, normalized_coords: false, linear_filter: true, normalized_values: false,
/// };
/// let place = TexCoord { dimensions: 2, layered: false, at: [2.75f32.to_bits(), 1.5f32.to_bits(), 0] };
/// let (found, n) = texels(&image, &place, false, FetchMode::Sample);
/// assert_eq!(n, 4);
/// assert_eq!((found[0].address, found[0].weight), (Some(0x1028), 0.75)); // x 2, y 1
/// assert_eq!((found[1].address, found[1].weight), (Some(0x102c), 0.25)); // x 3, y 1
/// ```
pub fn texels(texture: &Texture, place: &TexCoord, integers: bool, mode: FetchMode) -> ([Texel; MAX_TEXELS], usize) {
    let mut found = [Texel::default(); MAX_TEXELS];
    if let FetchMode::Query(_) = mode {
        return (found, 0);
    }
    let linear = matches!(mode, FetchMode::Gather(_)) || texture.linear_filter && !integers;
    let sizes = [texture.width, texture.height, texture.depth];
    let axes: [Axis; 3] = [0, 1, 2].map(|n| {
        let at = place.at[n];
        match integers {
            _ if n == 2 && place.layered => [(Some(place.layer(texture)), 1.0), (None, 0.0)],
            _ if n >= usize::from(place.dimensions) => [(Some(0), 1.0), (None, 0.0)],
            true => [(Some(at).filter(|&place| place < sizes[n]), 1.0), (None, 0.0)],
            false => float_axis(texture, linear, f32::from_bits(at), sizes[n]),
        }
    });
    // Places of an axis: two where neighbours are mixed.
    let many = |n: u8| if linear && n < place.dimensions { 2 } else { 1 };
    let [columns, rows, slices] = [0, 1, 2].map(many);
    let n = columns * rows * slices;
    for (at, texel) in found.iter_mut().enumerate().take(n) {
        let ((x, a), (y, b)) = (axes[0][at % columns], axes[1][at / columns % rows]);
        let (z, c) = axes[2][at / (columns * rows)];
        *texel = Texel {
            address: x.zip(y).zip(z).map(|((x, y), z)| texture.address_of([x, y, z])),
            weight: a * b * c,
        };
    }
    (found, n)
}

fn float_axis(texture: &Texture, linear: bool, at: f32, size: u32) -> Axis {
    let scale = f64::from(size);
    let at = f64::from(at);
    let turned = match (texture.normalized_coords, texture.address_mode) {
        (true, AddressMode::Wrap) => (at - at.floor()) * scale,
        (true, AddressMode::Mirror) => {
            let part = at - at.floor();
            let odd = at.floor().rem_euclid(2.0) == 1.0;
            (if odd { 1.0 - part } else { part }) * scale
        }
        (true, _) => at * scale,
        (false, _) => at,
    };
    let point = if linear { turned - 0.5 } else { turned };
    // A coordinate that is no number counts as zero.
    let first = if point.is_nan() { 0.0 } else { point.floor() };
    let place = |place: f64| {
        let last = scale - 1.0;
        let inside = (0.0..=last).contains(&place);
        match (texture.address_mode, texture.normalized_coords) {
            (AddressMode::Border, _) => inside.then_some(place as u32),
            (AddressMode::Wrap, true) => Some(place.rem_euclid(scale) as u32),
            _ => Some(place.clamp(0.0, last) as u32),
        }
    };
    if !linear {
        return [(place(first), 1.0), (None, 0.0)];
    }
    let fraction = ((point - first) * 256.0).round() / 256.0;
    let fraction = if fraction.is_nan() { 0.0 } else { fraction };
    [
        (place(first), (1.0 - fraction) as f32),
        (place(first + 1.0), fraction as f32),
    ]
}

/// The result of a fetch, four words, from its texels and their bytes; `is_float`: the instruction wants floats.
/// Channels that the image has not are 0, 0 and 1.
pub fn fetch_result(
    texture: &Texture,
    texels: &[Texel],
    bytes: &[[u8; 16]],
    is_float: bool,
    mode: FetchMode,
) -> [u32; 4] {
    let one = if is_float { 1f32.to_bits() } else { 1 };
    let value = |n: usize, channel: usize| match texels[n].address {
        _ if channel >= usize::from(texture.channels) => [0, 0, 0, one][channel],
        Some(_) => channel_bits(texture, &bytes[n], channel, is_float),
        None => 0,
    };
    match mode {
        FetchMode::Query(what) => [query(texture, what); 4],
        // From the lower left one on, against the clock.
        FetchMode::Gather(channel) => [2, 3, 1, 0].map(|n| if n < texels.len() { value(n, channel.into()) } else { 0 }),
        FetchMode::Sample => [0, 1, 2, 3].map(|channel| match texels {
            [_] => value(0, channel),
            _ if channel >= usize::from(texture.channels) => value(0, channel),
            _ => {
                let part = |n: usize| f64::from(texels[n].weight) * f64::from(f32::from_bits(value(n, channel)));
                ((0..texels.len()).map(part).sum::<f64>() as f32).to_bits()
            }
        }),
    }
}

/// What an image is: 0 to 12 for its width, height, depth, type and order of channels (numbers of OpenCL's `cl_channel_type` and
/// `cl_channel_order`), whether its coordinates are normalized, layers, mipmaps, samples, whether it is filtered, and the address
/// mode of each axis (wrap, mirror, clamp as OpenGL does, clamp to the edge, to the border).
pub fn query(texture: &Texture, what: u8) -> u32 {
    match what {
        0 => texture.width,
        1 => texture.height,
        2 | 6 => texture.depth,
        3 => match (texture.channel, texture.normalized_values) {
            (Ty::S8, true) => 0x10d0,
            (Ty::S16, true) => 0x10d1,
            (Ty::U8, true) => 0x10d2,
            (Ty::U16, true) => 0x10d3,
            (Ty::S8, _) => 0x10d7,
            (Ty::S16, _) => 0x10d8,
            (Ty::S32, _) => 0x10d9,
            (Ty::U8, _) => 0x10da,
            (Ty::U16, _) => 0x10db,
            (Ty::F16, _) => 0x10dd,
            (Ty::F32, _) => 0x10de,
            _ => 0x10dc,
        },
        4 => match texture.channels {
            1 => 0x10b0,
            2 => 0x10b2,
            _ => 0x10b5,
        },
        5 => texture.normalized_coords.into(),
        7 | 8 => 1,
        9 => texture.linear_filter.into(),
        _ => match texture.address_mode {
            AddressMode::Wrap => 0,
            AddressMode::Mirror => 1,
            AddressMode::Clamp => 3,
            AddressMode::Border => 4,
        },
    }
}

/// A channel's bits as a register holds them.
fn channel_bits(texture: &Texture, bytes: &[u8; 16], channel: usize, is_float: bool) -> u32 {
    let size = usize::from(texture.channel.bytes());
    let mut word = [0; 4];
    word[..size].copy_from_slice(&bytes[channel * size..][..size]);
    let bits = u32::from_le_bytes(word);
    let spare = 32 - 8 * size as u32;
    let signed = ((bits << spare) as i32) >> spare;
    let greatest = (u64::from(u32::MAX) >> spare) as f32;
    match texture.channel {
        Ty::F32 => bits,
        Ty::F16 => widen(false, bits).to_bits(),
        Ty::S8 | Ty::S16 | Ty::S32 if texture.normalized_values && is_float => {
            (signed as f32 / ((greatest - 1.0) / 2.0).floor()).max(-1.0).to_bits()
        }
        _ if texture.normalized_values && is_float => (bits as f32 / greatest).to_bits(),
        Ty::S8 | Ty::S16 => signed as u32,
        _ => bits,
    }
}

/// What a surface access does with a place that is not on the surface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BoundaryMode {
    /// The program traps.
    Trap,
    /// The nearest place on the surface.
    Clamp,
    /// Reads give zero, writes vanish.
    Zero,
}

impl BoundaryMode {
    /// As the modifier `lut` says: 0, 1, 2 in this order.
    pub fn of(lut: u8) -> BoundaryMode {
        match lut {
            0 => BoundaryMode::Trap,
            1 => BoundaryMode::Clamp,
            _ => BoundaryMode::Zero,
        }
    }
}

/// The address of a surface access of so many bytes: x counts bytes, y rows, z slices. `Err` where it traps, `None` where nothing is
/// accessed.
///
/// # Errors
/// A place beyond the edge of a surface whose accesses trap there.
pub fn surface_address(
    surface: &Texture,
    place: &TexCoord,
    bytes: u32,
    outside: BoundaryMode,
) -> Result<Option<u64>, OutOfBounds> {
    let last = surface.pitch().saturating_sub(u64::from(bytes)) as i64;
    let ends = [last, i64::from(surface.height) - 1, i64::from(surface.depth) - 1];
    let mut at = place.at.map(|at| i64::from(at as i32));
    if place.layered {
        at[usize::from(place.dimensions).min(2)] = 0;
        at[2] = place.layer(surface).into();
    }
    let inside = at.iter().zip(ends).all(|(&at, end)| (0..=end).contains(&at));
    let [x, y, z] = match outside {
        _ if inside => at,
        BoundaryMode::Trap => return Err(OutOfBounds),
        BoundaryMode::Zero => return Ok(None),
        BoundaryMode::Clamp => [0, 1, 2].map(|n| at[n].clamp(0, ends[n])),
    };
    Ok(Some(
        surface.base + z as u64 * surface.slice() + y as u64 * surface.pitch() + x as u64,
    ))
}

/// A place that is not on the surface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfBounds;
