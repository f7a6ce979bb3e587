//! Textures and surfaces without a memory: which texels a fetch wants, and what their bytes become.
//!
//! Coordinates, addressing and filtering are those of the CUDA programming guide (texture fetching). A linear filter's fractions have
//! 8 bits; its sum is taken in f64 and rounded once to f32.

use super::half::widen;
use crate::inst::Ty;

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

/// An image in device memory, row by row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Texture {
    /// Address of the first texel.
    pub base: u64,
    /// Texels of a row.
    pub width: u32,
    /// Rows; 1 for an image of one dimension.
    pub height: u32,
    /// Type of a channel: an integer of 8 to 32 bits, F16 or F32.
    pub channel: Ty,
    /// Channels of a texel: 1, 2 or 4.
    pub channels: u8,
    /// What lies beyond the edge.
    pub address: AddressMode,
    /// Whether coordinates go from 0 to 1.
    pub normalized: bool,
    /// Whether neighbours are mixed (float coordinates).
    pub linear: bool,
    /// Whether integers are read as numbers from 0 or -1 to 1.
    pub unit: bool,
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

    fn address_of(&self, x: u32, y: u32) -> u64 {
        self.base + u64::from(y) * self.pitch() + u64::from(x) * u64::from(self.texel_bytes())
    }
}

/// Most texels of a fetch: the four around a point.
pub const MAX_TEXELS: usize = 4;

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

/// The texels that a fetch at coordinates wants, and how many they are; `integers`: the coordinates count texels.
///
/// ```
/// use warpwave_isa::exec::texture::{AddressMode, Texture, texels};
/// use warpwave_isa::inst::Ty;
/// let image = Texture {
///     base: 0x1000, width: 8, height: 4, channel: Ty::F32, channels: 1,
///     address: AddressMode::Clamp, normalized: false, linear: true, unit: false,
/// };
/// let (found, n) = texels(&image, 2, [2.75f32.to_bits(), 1.5f32.to_bits()], false);
/// assert_eq!(n, 4);
/// assert_eq!((found[0].address, found[0].weight), (Some(0x1028), 0.75)); // x 2, y 1
/// assert_eq!((found[1].address, found[1].weight), (Some(0x102c), 0.25)); // x 3, y 1
/// ```
pub fn texels(texture: &Texture, dimensions: u8, at: [u32; 2], integers: bool) -> ([Texel; MAX_TEXELS], usize) {
    let linear = texture.linear && !integers;
    let axis = |n: usize, size: u32| match integers {
        true => [(Some(at[n]).filter(|&place| place < size), 1.0), (None, 0.0)],
        false => float_axis(texture, f32::from_bits(at[n]), size),
    };
    let x = axis(0, texture.width);
    let y: Axis = if dimensions > 1 {
        axis(1, texture.height)
    } else {
        [(Some(0), 1.0), (None, 0.0)]
    };
    let rows = if linear && dimensions > 1 { 2 } else { 1 };
    let columns = if linear { 2 } else { 1 };
    let mut found = [Texel::default(); MAX_TEXELS];
    for (n, texel) in found.iter_mut().enumerate().take(rows * columns) {
        let ((x, a), (y, b)) = (x[n % columns], y[n / columns]);
        *texel = Texel {
            address: x.zip(y).map(|(x, y)| texture.address_of(x, y)),
            weight: a * b,
        };
    }
    (found, rows * columns)
}

fn float_axis(texture: &Texture, at: f32, size: u32) -> Axis {
    let scale = f64::from(size);
    let at = f64::from(at);
    let turned = match (texture.normalized, texture.address) {
        (true, AddressMode::Wrap) => (at - at.floor()) * scale,
        (true, AddressMode::Mirror) => {
            let part = at - at.floor();
            let odd = at.floor().rem_euclid(2.0) == 1.0;
            (if odd { 1.0 - part } else { part }) * scale
        }
        (true, _) => at * scale,
        (false, _) => at,
    };
    let point = if texture.linear { turned - 0.5 } else { turned };
    // A coordinate that is no number counts as zero.
    let first = if point.is_nan() { 0.0 } else { point.floor() };
    let place = |place: f64| {
        let last = scale - 1.0;
        let inside = (0.0..=last).contains(&place);
        match (texture.address, texture.normalized) {
            (AddressMode::Border, _) => inside.then_some(place as u32),
            (AddressMode::Wrap, true) => Some(place.rem_euclid(scale) as u32),
            _ => Some(place.clamp(0.0, last) as u32),
        }
    };
    if !texture.linear {
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
pub fn sampled(texture: &Texture, texels: &[Texel], bytes: &[[u8; 16]], is_float: bool) -> [u32; 4] {
    let one = if is_float { 1f32.to_bits() } else { 1 };
    let mut words = [0, 0, 0, one];
    for (channel, word) in words.iter_mut().enumerate().take(usize::from(texture.channels)) {
        let value = |n: usize| match texels[n].address {
            Some(_) => channel_bits(texture, &bytes[n], channel, is_float),
            None => 0,
        };
        *word = match texels {
            [_] => value(0),
            _ => {
                let part = |n: usize| f64::from(texels[n].weight) * f64::from(f32::from_bits(value(n)));
                ((0..texels.len()).map(part).sum::<f64>() as f32).to_bits()
            }
        };
    }
    words
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
        Ty::S8 | Ty::S16 | Ty::S32 if texture.unit && is_float => {
            (signed as f32 / ((greatest - 1.0) / 2.0).floor()).max(-1.0).to_bits()
        }
        _ if texture.unit && is_float => (bits as f32 / greatest).to_bits(),
        Ty::S8 | Ty::S16 => signed as u32,
        _ => bits,
    }
}

/// What a surface access does with a place that is not on the surface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outside {
    /// The program traps.
    Trap,
    /// The nearest place on the surface.
    Clamp,
    /// Reads give zero, writes vanish.
    Zero,
}

impl Outside {
    /// As the modifier `lut` says: 0, 1, 2 in this order.
    pub fn of(lut: u8) -> Outside {
        match lut {
            0 => Outside::Trap,
            1 => Outside::Clamp,
            _ => Outside::Zero,
        }
    }
}

/// The address of a surface access of so many bytes: x counts bytes, y rows. `Err` where it traps, `None` where nothing is accessed.
///
/// # Errors
/// A place beyond the edge of a surface whose accesses trap there.
pub fn surface_address(surface: &Texture, at: [u32; 2], bytes: u32, outside: Outside) -> Result<Option<u64>, Beyond> {
    let last = surface.pitch().saturating_sub(u64::from(bytes));
    let [x, y] = at.map(|place| i64::from(place as i32));
    let inside = (0..=last as i64).contains(&x) && (0..i64::from(surface.height)).contains(&y);
    let (x, y) = match outside {
        _ if inside => (x, y),
        Outside::Trap => return Err(Beyond),
        Outside::Zero => return Ok(None),
        Outside::Clamp => (x.clamp(0, last as i64), y.clamp(0, i64::from(surface.height) - 1)),
    };
    Ok(Some(surface.base + y as u64 * surface.pitch() + x as u64))
}

/// A place that is not on the surface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Beyond;
