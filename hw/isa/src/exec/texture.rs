//! Textures and surfaces without a memory: texel addresses of a fetch, and results from texel bytes.
//!
//! Coordinates, addressing and filtering follow the CUDA programming guide (texture fetching). A linear filter sums in f64
//! and rounds once to f32.

mod sampler;

pub use sampler::Sampler;

use super::half::widen;
use crate::inst::{Mods, Ty};

/// Rule for coordinates beyond the edge of a texture.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum AddressMode {
    /// The texel at the edge.
    #[default]
    Clamp,
    /// The texture repeats. Only for normalized coordinates.
    Wrap,
    /// The texture repeats, mirrored every other time. Only for normalized coordinates.
    Mirror,
    /// Zero.
    Border,
}

/// Order of an image's texels in device memory. Slices follow each other in both.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum TexelOrder {
    /// Row after row.
    #[default]
    Rows,
    /// Blocks of 64 bytes by 8 rows, row of blocks after row of blocks. A block has 16 sectors of 16 bytes by 2 rows.
    ///
    /// It is the order of a vendor's arrays, with a block of one GOB: `DRM_FORMAT_MOD_NVIDIA_16BX2_BLOCK(0)` of the Linux kernel. A row
    /// has whole 64 bytes, and a slice a multiple of 8 rows.
    Blocks,
}

/// Bytes of a row of a block.
pub const BLOCK_BYTES: u64 = 64;
/// Rows of a block.
pub const BLOCK_ROWS: u64 = 8;

/// A texture or surface in device memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Texture {
    /// Address of the first texel.
    pub base: u64,
    /// Texels per row.
    pub width: u32,
    /// Number of rows, 1 for a one-dimensional texture.
    pub height: u32,
    /// Number of slices or layers, 1 for a flat texture.
    pub depth: u32,
    /// Type of a channel: an integer of 8 to 32 bits, F16 or F32.
    pub channel: Ty,
    /// Channels per texel: 1, 2 or 4.
    pub channels: u8,
    /// Rule for coordinates beyond the edge.
    pub address_mode: AddressMode,
    /// True if coordinates go from 0 to 1.
    pub normalized_coords: bool,
    /// True if a fetch with float coordinates interpolates between neighbours.
    pub linear_filter: bool,
    /// True if integers are read as floats from 0 or -1 to 1.
    pub normalized_values: bool,
    /// Order of the texels in memory.
    pub order: TexelOrder,
}

impl Texture {
    /// Returns the image of a handle. The low word of a handle is the image's number in `images`, from 1. The high word is the number of
    /// the image that gives the sampler, the word of a [`Sampler`], or 0 for the same image. The sampler of an image is address mode,
    /// filter, and normalized coordinates.
    pub fn of_handle(images: &[Texture], handle: u64) -> Option<Texture> {
        let image = |number: u32| images.get(number.checked_sub(1)? as usize);
        let found = image(handle as u32)?;
        let word = (handle >> 32) as u32;
        if let Some(sampler) = Sampler::of_word(word) {
            return Some(Texture {
                address_mode: sampler.address_mode,
                normalized_coords: found.normalized_coords && !sampler.unnormalized,
                linear_filter: sampler.linear_filter,
                ..*found
            });
        }
        let sampler = match word {
            0 => found,
            number => image(number)?,
        };
        Some(Texture {
            address_mode: sampler.address_mode,
            normalized_coords: sampler.normalized_coords,
            linear_filter: sampler.linear_filter,
            ..*found
        })
    }

    /// Returns the bytes of a texel.
    pub fn texel_bytes(&self) -> u32 {
        u32::from(self.channel.bytes()) * u32::from(self.channels)
    }

    /// Returns the bytes of a row.
    pub fn pitch(&self) -> u64 {
        u64::from(self.width) * u64::from(self.texel_bytes())
    }

    /// Returns the bytes of a slice.
    fn slice(&self) -> u64 {
        u64::from(self.height) * self.pitch()
    }

    fn address_of(&self, [x, y, z]: [u32; 3]) -> u64 {
        self.address_of_byte([u64::from(x) * u64::from(self.texel_bytes()), y.into(), z.into()])
    }

    /// Address of byte `x` of row `y` of slice `z`.
    fn address_of_byte(&self, [x, y, z]: [u64; 3]) -> u64 {
        let in_slice = match self.order {
            TexelOrder::Rows => y * self.pitch() + x,
            TexelOrder::Blocks => {
                let block = y / BLOCK_ROWS * BLOCK_ROWS * self.pitch() + x / BLOCK_BYTES * BLOCK_BYTES * BLOCK_ROWS;
                // 2 columns of sectors, each of 4 rows of 2 sectors.
                let sector = x % 64 / 32 * 8 + y % 8 / 2 * 2 + x % 32 / 16;
                block + sector * 32 + y % 2 * 16 + x % 16
            }
        };
        self.base + z * self.slice() + in_slice
    }
}

/// Coordinates of one lane's texture or surface access.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TexCoord {
    /// Number of coordinates, 1 to 3.
    pub dimensions: u8,
    /// True if a layer follows the coordinates.
    pub layered: bool,
    /// Coordinates x, y, z, then the layer.
    pub at: [u32; 3],
    /// The face of a cube, 0 to 5. The coordinates are those on the face, from 0 to 1, and a layer is a cube.
    pub face: Option<u32>,
}

impl TexCoord {
    /// Reads the coordinates of an instruction with these modifiers. `word` returns its coordinate words.
    pub fn of(mods: &Mods, word: impl Fn(usize) -> u32) -> TexCoord {
        if mods.trans {
            let direction = [0, 1, 2].map(|n| f32::from_bits(word(n)));
            return TexCoord::on_cube(direction, if mods.high { word(3) } else { 0 });
        }
        let n = usize::from(mods.count) + usize::from(mods.high);
        TexCoord {
            dimensions: mods.count,
            layered: mods.high,
            at: [0, 1, 2].map(|at| if at < n { word(at) } else { 0 }),
            face: None,
        }
    }

    /// Returns the place on the surface of a cube in a direction from its centre (CUDA programming guide, cubemap textures).
    /// Of equal coordinates, x decides before y before z (assumed).
    fn on_cube([x, y, z]: [f32; 3], layer: u32) -> TexCoord {
        let [width, height, depth] = [x, y, z].map(f32::abs);
        let (face, major, s, t) = match () {
            () if width >= height && width >= depth && x >= 0.0 => (0, width, -z, -y),
            () if width >= height && width >= depth => (1, width, z, -y),
            () if height >= depth && y >= 0.0 => (2, height, x, z),
            () if height >= depth => (3, height, x, -z),
            () if z >= 0.0 => (4, depth, x, -y),
            () => (5, depth, -x, -y),
        };
        let on_face = |at: f32| ((at / major + 1.0) / 2.0).to_bits();
        TexCoord {
            dimensions: 2,
            layered: true,
            at: [on_face(s), on_face(t), layer],
            face: Some(face),
        }
    }

    /// Returns the layer, at most the last one. A cube has six layers, one per face.
    fn layer(&self, texture: &Texture) -> u32 {
        let at = self.at[usize::from(self.dimensions).min(2)];
        let last = texture.depth.saturating_sub(1);
        match self.face {
            // A cube has six slices, in the order of its faces.
            Some(face) => (6 * at.min((texture.depth / 6).saturating_sub(1)) + face).min(last),
            None => at.min(last),
        }
    }
}

/// Kind of a texture fetch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FetchMode {
    /// Samples: the filtered texel.
    Sample,
    /// Gathers one channel of the four texels around a point (PTX `tld4`).
    Gather(u8),
    /// Reads a property of the texture, in the numbering of [`query`].
    Query(u8),
}

impl FetchMode {
    /// Decodes the modifier `lut`: 0 sample, 1 to 4 gather, from 16 on query.
    pub fn of(lut: u8) -> FetchMode {
        match lut {
            0 => FetchMode::Sample,
            1..16 => FetchMode::Gather((lut - 1) % 4),
            _ => FetchMode::Query(lut - 16),
        }
    }
}

/// Maximum texels of a fetch: the eight around a point in space.
pub const MAX_TEXELS: usize = 8;

/// One texel of a fetch.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Texel {
    /// Address, or `None` beyond a border, where the texel is zero.
    pub address: Option<u64>,
    /// Weight in the result.
    pub weight: f32,
}

/// One axis of a fetch: up to two positions, with weights.
type Axis = [(Option<u32>, f32); 2];

/// Returns the texels of a fetch and their number. `integers` is true if coordinates count texels.
///
/// ```
/// use warpwave_isa::exec::texture::{AddressMode, FetchMode, TexCoord, TexelOrder, Texture, texels};
/// use warpwave_isa::inst::Ty;
/// let image = Texture {
///     base: 0x1000, width: 8, height: 4, depth: 1, channel: Ty::F32, channels: 1,
///     address_mode: AddressMode::Clamp, normalized_coords: false, linear_filter: true, normalized_values: false,
///     order: TexelOrder::Rows,
/// };
/// let coord = TexCoord { dimensions: 2, layered: false, at: [2.75f32.to_bits(), 1.5f32.to_bits(), 0], face: None };
/// let (found, n) = texels(&image, &coord, false, FetchMode::Sample);
/// assert_eq!(n, 4);
/// assert_eq!((found[0].address, found[0].weight), (Some(0x1028), 0.75)); // x 2, y 1
/// assert_eq!((found[1].address, found[1].weight), (Some(0x102c), 0.25)); // x 3, y 1
/// ```
pub fn texels(texture: &Texture, coord: &TexCoord, integers: bool, mode: FetchMode) -> ([Texel; MAX_TEXELS], usize) {
    let mut found = [Texel::default(); MAX_TEXELS];
    if let FetchMode::Query(_) = mode {
        return (found, 0);
    }
    let linear = matches!(mode, FetchMode::Gather(_)) || texture.linear_filter && !integers;
    // Coordinates on the face of a cube are normalized.
    let texture = &Texture {
        normalized_coords: texture.normalized_coords || coord.face.is_some(),
        ..*texture
    };
    let sizes = [texture.width, texture.height, texture.depth];
    let axes: [Axis; 3] = [0, 1, 2].map(|n| {
        let at = coord.at[n];
        match integers {
            _ if n == 2 && coord.layered => [(Some(coord.layer(texture)), 1.0), (None, 0.0)],
            _ if n >= usize::from(coord.dimensions) => [(Some(0), 1.0), (None, 0.0)],
            // Integer coordinates are texel indices: no filter, and zero beyond the edge.
            true => [(Some(at).filter(|&index| index < sizes[n]), 1.0), (None, 0.0)],
            false => float_axis(texture, linear, f32::from_bits(at), sizes[n]),
        }
    });
    // Positions per axis: two if the filter interpolates there.
    let many = |n: u8| if linear && n < coord.dimensions { 2 } else { 1 };
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
            // Every other copy of the texture is mirrored.
            let odd = at.floor().rem_euclid(2.0) == 1.0;
            (if odd { 1.0 - part } else { part }) * scale
        }
        (true, _) => at * scale,
        (false, _) => at,
    };
    // The center of texel n is at n + 0.5.
    let point = if linear { turned - 0.5 } else { turned };
    // A NaN coordinate counts as zero.
    let first = if point.is_nan() { 0.0 } else { point.floor() };
    let index = |position: f64| {
        let last = scale - 1.0;
        let inside = (0.0..=last).contains(&position);
        match (texture.address_mode, texture.normalized_coords) {
            (AddressMode::Border, _) => inside.then_some(position as u32),
            (AddressMode::Wrap, true) => Some(position.rem_euclid(scale) as u32),
            _ => Some(position.clamp(0.0, last) as u32),
        }
    };
    if !linear {
        return [(index(first), 1.0), (None, 0.0)];
    }
    // 8 bits of fraction, as the programming guide says.
    let fraction = ((point - first) * 256.0).round() / 256.0;
    let fraction = if fraction.is_nan() { 0.0 } else { fraction };
    [
        (index(first), (1.0 - fraction) as f32),
        (index(first + 1.0), fraction as f32),
    ]
}

/// Returns the four result words of a fetch from its texels and their bytes. `is_float` is true for float results.
///
/// Missing channels are 0, 0 and 1.
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
        // Counter-clockwise from the lower left texel.
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

/// Returns a property of a texture:
///
/// | `what` | property |
/// |---|---|
/// | 0, 1, 2 | width, height, depth |
/// | 3, 4 | type and order of channels (numbers of OpenCL's `cl_channel_type` and `cl_channel_order`) |
/// | 5, 6, 7, 8 | normalized coordinates, layers, mipmap levels, samples |
/// | 9 | linear filter |
/// | 10, 11, 12 | address mode of each axis: wrap, mirror, clamp as in OpenGL, clamp to the edge, border |
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

/// Returns the register bits of a channel.
fn channel_bits(texture: &Texture, bytes: &[u8; 16], channel: usize, is_float: bool) -> u32 {
    let size = usize::from(texture.channel.bytes());
    let mut word = [0; 4];
    word[..size].copy_from_slice(&bytes[channel * size..][..size]);
    let bits = u32::from_le_bytes(word);
    // Two shifts extend the sign of a narrow channel.
    let spare = 32 - 8 * size as u32;
    let signed = ((bits << spare) as i32) >> spare;
    let greatest = (u64::from(u32::MAX) >> spare) as f32;
    match texture.channel {
        Ty::F32 => bits,
        Ty::F16 => widen(false, bits).to_bits(),
        Ty::S8 | Ty::S16 | Ty::S32 if texture.normalized_values && is_float => {
            // Divides by 127 or 32767. The least integer would be below -1.
            (signed as f32 / ((greatest - 1.0) / 2.0).floor()).max(-1.0).to_bits()
        }
        _ if texture.normalized_values && is_float => (bits as f32 / greatest).to_bits(),
        Ty::S8 | Ty::S16 => signed as u32,
        _ => bits,
    }
}

/// Rule for surface coordinates beyond the edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BoundaryMode {
    /// The access traps.
    Trap,
    /// The access moves to the nearest position on the surface.
    Clamp,
    /// Reads return zero, writes are dropped.
    Zero,
}

impl BoundaryMode {
    /// Decodes the modifier `lut`: 0, 1, 2 in this order.
    pub fn of(lut: u8) -> BoundaryMode {
        match lut {
            0 => BoundaryMode::Trap,
            1 => BoundaryMode::Clamp,
            _ => BoundaryMode::Zero,
        }
    }
}

/// Returns the address of a surface access of `bytes` bytes. x counts bytes, y rows, z slices.
///
/// `None` means no access: reads return zero, writes are dropped.
///
/// # Errors
/// The coordinates are beyond the edge and the boundary mode is [`BoundaryMode::Trap`].
pub fn surface_address(
    surface: &Texture,
    coord: &TexCoord,
    bytes: u32,
    boundary: BoundaryMode,
) -> Result<Option<u64>, OutOfBounds> {
    let last = surface.pitch().saturating_sub(u64::from(bytes)) as i64;
    let ends = [last, i64::from(surface.height) - 1, i64::from(surface.depth) - 1];
    let mut at = coord.at.map(|at| i64::from(at as i32));
    if coord.layered {
        // A layer is a slice, also of a one-dimensional surface.
        at[usize::from(coord.dimensions).min(2)] = 0;
        at[2] = coord.layer(surface).into();
    }
    let inside = at.iter().zip(ends).all(|(&at, end)| (0..=end).contains(&at));
    let [x, y, z] = match boundary {
        _ if inside => at,
        BoundaryMode::Trap => return Err(OutOfBounds),
        BoundaryMode::Zero => return Ok(None),
        BoundaryMode::Clamp => [0, 1, 2].map(|n| at[n].clamp(0, ends[n])),
    };
    Ok(Some(surface.address_of_byte([x as u64, y as u64, z as u64])))
}

/// Error: coordinates beyond the edge of a surface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfBounds;

#[cfg(test)]
mod tests {
    use super::*;

    /// An image of 4-byte texels in blocks: 2 blocks of 16 x 8 texels side by side, 3 below each other, in 2 slices.
    const IMAGE: Texture = Texture {
        base: 0x1000,
        width: 32,
        height: 24,
        depth: 2,
        channel: Ty::U32,
        channels: 1,
        address_mode: AddressMode::Clamp,
        normalized_coords: false,
        linear_filter: false,
        normalized_values: false,
        order: TexelOrder::Blocks,
    };

    #[test]
    fn sector_of_an_image_in_blocks_has_16_bytes_of_two_rows() {
        let offset = |x, y, z| IMAGE.address_of([x, y, z]) - IMAGE.base;
        let sector = |x, y| offset(x, y, 0) / 32;
        for (at, wanted) in [
            ((0, 0, 0), 0),
            ((3, 1, 0), 16 + 12),     // the last texel of the first sector
            ((4, 0, 0), 32),          // the sector to the right
            ((0, 2, 0), 64),          // the sector below
            ((8, 0, 0), 256),         // the right half of the block
            ((16, 0, 0), 512),        // the next block
            ((0, 8, 0), 1024),        // the next row of blocks
            ((0, 0, 1), 32 * 24 * 4), // the next slice
        ] {
            let (x, y, z) = at;
            assert_eq!(offset(x, y, z), wanted, "{at:?}");
        }
        let mut column: Vec<_> = (0..8).map(|y| sector(5, y)).collect();
        column.dedup();
        assert_eq!(column.len(), 4, "8 texels of a column lie in 4 sectors");
    }

    #[test]
    fn every_texel_of_an_image_in_blocks_has_its_own_bytes_and_none_is_left() {
        let all = (0..2).flat_map(|z| (0..24).flat_map(move |y| (0..32).map(move |x| [x, y, z])));
        let mut found: Vec<_> = all.map(|at| IMAGE.address_of(at)).collect();
        found.sort_unstable();
        let wanted: Vec<_> = (0..32 * 24 * 2).map(|n| IMAGE.base + 4 * n).collect();
        assert_eq!(found, wanted);
    }

    #[test]
    fn surface_and_texture_have_the_same_addresses_in_blocks() {
        let at = |x: u32, y: u32| TexCoord {
            dimensions: 2,
            layered: false,
            at: [x, y, 0],
            face: None,
        };
        for (x, y) in [(0, 0), (7, 3), (31, 23)] {
            let (found, _) = texels(&IMAGE, &at(x, y), true, FetchMode::Sample);
            let surface = surface_address(&IMAGE, &at(4 * x, y), 4, BoundaryMode::Trap);
            assert_eq!(surface, Ok(found[0].address));
        }
    }
}
