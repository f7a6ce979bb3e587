//! A plain sampler: coordinates to texels, as the CUDA programming guide describes texture fetching. It shares no code with the machine.

use arbitrary::Arbitrary;
use warpwave_components::storage::BASE;
use warpwave_isa::exec::texture::{AddressMode, TexelOrder, Texture};
use warpwave_isa::inst::{Mods, Ty};

use crate::draw::one_of;

/// A small image.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct ImageSpec {
    #[arbitrary(with = one_of(&[[8, 4, 2], [1, 1, 1], [7, 3, 3], [16, 8, 4], [33, 5, 1]]))]
    size: [u32; 3],
    #[arbitrary(with = one_of(&[Ty::F32, Ty::U8, Ty::S8, Ty::U16, Ty::S16, Ty::F16, Ty::U32, Ty::S32]))]
    channel: Ty,
    #[arbitrary(with = one_of(&[1, 2, 4]))]
    channels: u8,
    #[arbitrary(with = one_of(&[AddressMode::Clamp, AddressMode::Border, AddressMode::Wrap, AddressMode::Mirror]))]
    address_mode: AddressMode,
    normalized_coords: bool,
    linear_filter: bool,
    normalized_values: bool,
    in_blocks: bool,
}

impl ImageSpec {
    /// The texture at `base`. Only floats are filtered. An image in blocks has whole blocks.
    pub fn texture(&self, base: u64) -> Texture {
        let mut texture = Texture {
            base,
            width: self.size[0],
            height: self.size[1],
            depth: self.size[2],
            channel: self.channel,
            channels: self.channels,
            address_mode: self.address_mode,
            normalized_coords: self.normalized_coords,
            linear_filter: false,
            normalized_values: self.normalized_values && matches!(self.channel, Ty::U8 | Ty::S8 | Ty::U16 | Ty::S16),
            order: TexelOrder::Rows,
        };
        texture.linear_filter = self.linear_filter && (texture.normalized_values || self.channel.is_float());
        if self.in_blocks {
            texture.width = texture.width.next_multiple_of(64 / texture_bytes(&texture) as u32);
            texture.height = texture.height.next_multiple_of(8);
            texture.depth = texture.depth.min(2);
            texture.order = TexelOrder::Blocks;
        }
        texture
    }

    /// The surface at `base`: 64 bytes by 8 rows.
    pub fn surface(base: u64) -> Texture {
        Texture {
            base,
            width: 16,
            height: 8,
            depth: 1,
            channel: Ty::U32,
            channels: 1,
            address_mode: AddressMode::Clamp,
            normalized_coords: false,
            linear_filter: false,
            normalized_values: false,
            order: TexelOrder::Blocks,
        }
    }

    /// Makes every float in the bytes of the image finite: the sum of a filter has no order for infinities and NaN.
    pub fn fix_floats(&self, bytes: &mut [u8]) {
        let size = match self.channel {
            Ty::F32 => 4,
            Ty::F16 => 2,
            _ => return,
        };
        for float in bytes.chunks_exact_mut(size) {
            // Clears the highest bit of the exponent, so that no float is infinite or NaN.
            float[size - 1] &= 0xbb;
        }
    }
}

fn texture_bytes(image: &Texture) -> usize {
    let channel = match image.channel {
        Ty::U8 | Ty::S8 => 1,
        Ty::U16 | Ty::S16 | Ty::F16 => 2,
        _ => 4,
    };
    channel * usize::from(image.channels)
}

/// Offset from `BASE` of byte `x` of row `y` of slice `z`.
fn offset(image: &Texture, [x, y, z]: [usize; 3]) -> usize {
    let pitch = image.width as usize * texture_bytes(image);
    let slice = z * image.height as usize * pitch;
    let inside = match image.order {
        TexelOrder::Rows => y * pitch + x,
        // Blocks of 512 bytes, row after row. Inside a block, the bits of x are x5 x4 x3..x0 and those of y are y2 y1 y0. The offset
        // has the bits x5 y2 y1 x4 y0 x3 x2 x1 x0 (Linux, drm_fourcc.h; a GOB of the vendor).
        TexelOrder::Blocks => {
            let block = y / 8 * (pitch / 64) + x / 64;
            let bit = |value: usize, n: usize| value >> n & 1;
            let high = [bit(x, 5), bit(y, 2), bit(y, 1), bit(x, 4), bit(y, 0)];
            512 * block + 16 * high.into_iter().fold(0, |all, bit| all << 1 | bit) + x % 16
        }
    };
    (image.base - BASE) as usize + slice + inside
}

/// The texel at a position, or `None` outside the image.
type Position = Option<[usize; 3]>;

/// The four words of a fetch of `mods` at coordinates `at`.
pub fn sample(image: &Texture, mods: &Mods, at: [u32; 3], memory: &[u8]) -> [u32; 4] {
    match mods.lut {
        0 => {}
        // A query of the width.
        16 => return [image.width; 4],
        channel => {
            let (texels, _) = neighbours(image, mods, at, true);
            // Counter-clockwise from the lower left texel.
            return [2, 3, 1, 0].map(|n: usize| value(image, mods, texels[n].0, usize::from(channel - 1), memory));
        }
    }
    let (texels, is_filtered) = neighbours(image, mods, at, image.linear_filter && mods.from == Ty::F32);
    [0, 1, 2, 3].map(|channel| {
        if !is_filtered || channel >= usize::from(image.channels) {
            return value(image, mods, texels[0].0, channel, memory);
        }
        let part = |&(texel, weight): &(Position, f64)| {
            weight * f64::from(f32::from_bits(value(image, mods, texel, channel, memory)))
        };
        (texels.iter().map(part).sum::<f64>() as f32).to_bits()
    })
}

/// The texels around a point with their weights, x first, and whether there are several.
fn neighbours(image: &Texture, mods: &Mods, at: [u32; 3], linear: bool) -> (Vec<(Position, f64)>, bool) {
    let sizes = [image.width, image.height, image.depth];
    let dimensions = usize::from(mods.count);
    let axis = |n: usize| -> Vec<(Option<usize>, f64)> {
        if mods.high && n == dimensions {
            // The layer.
            return vec![(Some(at[n].min(image.depth - 1) as usize), 1.0)];
        }
        if n >= dimensions {
            return vec![(Some(0), 1.0)];
        }
        if mods.from != Ty::F32 {
            return vec![((at[n] < sizes[n]).then_some(at[n] as usize), 1.0)];
        }
        float_axis(image, f64::from(f32::from_bits(at[n])), f64::from(sizes[n]), linear)
    };
    let axes = [axis(0), axis(1), axis(2)];
    let mut all = Vec::new();
    for &(z, c) in &axes[2] {
        for &(y, b) in &axes[1] {
            for &(x, a) in &axes[0] {
                let position = x.zip(y).zip(z).map(|((x, y), z)| [x, y, z]);
                all.push((position, a * b * c));
            }
        }
    }
    let is_filtered = all.len() > 1;
    (all, is_filtered)
}

/// Positions on an axis of `size` texels, with weights.
fn float_axis(image: &Texture, at: f64, size: f64, linear: bool) -> Vec<(Option<usize>, f64)> {
    let whole = at.floor();
    let point = match (image.normalized_coords, image.address_mode) {
        (true, AddressMode::Wrap) => (at - whole) * size,
        (true, AddressMode::Mirror) if whole % 2.0 == 0.0 => (at - whole) * size,
        (true, AddressMode::Mirror) => (1.0 - (at - whole)) * size,
        (true, _) => at * size,
        (false, _) => at,
    };
    let index = |position: f64| match image.address_mode {
        AddressMode::Border => (position >= 0.0 && position < size).then_some(position as usize),
        AddressMode::Wrap if image.normalized_coords => Some(((position + size) % size) as usize),
        _ => Some(position.max(0.0).min(size - 1.0) as usize),
    };
    if !linear {
        return vec![(index(point.floor()), 1.0)];
    }
    let first = (point - 0.5).floor();
    // The fraction has 8 bits.
    let fraction = ((point - 0.5 - first) * 256.0).round() / 256.0;
    vec![(index(first), 1.0 - fraction), (index(first + 1.0), fraction)]
}

/// A channel of a texel, as the instruction returns it.
fn value(image: &Texture, mods: &Mods, texel: Position, channel: usize, memory: &[u8]) -> u32 {
    let is_float = mods.ty == Ty::F32;
    if channel >= usize::from(image.channels) {
        let one = if is_float { 0x3f80_0000 } else { 1 };
        return if channel == 3 { one } else { 0 };
    }
    let Some([x, y, z]) = texel else { return 0 };
    let size = texture_bytes(image) / usize::from(image.channels);
    let place = offset(image, [x * texture_bytes(image), y, z]) + channel * size;
    let raw = memory[place..place + size]
        .iter()
        .rev()
        .fold(0u32, |word, byte| word << 8 | u32::from(*byte));
    let normalized = image.normalized_values && is_float;
    match image.channel {
        Ty::U8 if normalized => (raw as f32 / 255.0).to_bits(),
        Ty::U16 if normalized => (raw as f32 / 65535.0).to_bits(),
        Ty::S8 if normalized => (f32::from(raw as u8 as i8) / 127.0).max(-1.0).to_bits(),
        Ty::S16 if normalized => (f32::from(raw as u16 as i16) / 32767.0).max(-1.0).to_bits(),
        Ty::S8 => i32::from(raw as u8 as i8) as u32,
        Ty::S16 => i32::from(raw as u16 as i16) as u32,
        Ty::F16 => half(raw).to_bits(),
        _ => raw,
    }
}

/// The value of a finite half.
fn half(bits: u32) -> f32 {
    let (exponent, fraction) = ((bits >> 10 & 31) as i32, (bits & 0x3ff) as f32);
    let magnitude = match exponent {
        0 => fraction * 2f32.powi(-24),
        _ => (1024.0 + fraction) * 2f32.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

/// Offset from `BASE` of a surface access. `None` if it is dropped. `lut` 1 clamps, 2 drops.
pub fn surface(image: &Texture, mods: &Mods, at: [u32; 3]) -> Option<usize> {
    let last = (image.width as usize * texture_bytes(image)) as i32 - mods.access.total() as i32;
    let [x, y] = [at[0] as i32, at[1] as i32];
    let rows = image.height as i32;
    let is_inside = (0..=last).contains(&x) && (0..rows).contains(&y);
    if mods.lut == 2 && !is_inside {
        return None;
    }
    Some(offset(
        image,
        [x.clamp(0, last) as usize, y.clamp(0, rows - 1) as usize, 0],
    ))
}
