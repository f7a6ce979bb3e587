//! Bulk copies between global and shared memory, split into pieces of at most one line.
//!
//! A [`TensorMap`] describes a tensor in global memory and the tiles that copies take from it. PTX does not define the layout of
//! its 128 bytes. Layout here, little-endian; dimension 0 is contiguous:
//!
//! | bytes | field |
//! |---|---|
//! | 0-7 | address of the first element |
//! | 8, 9, 10 | number of dimensions, [`Element`] by its number, swizzle; byte 11 is unused |
//! | 12-31 | five sizes of the tensor, in elements |
//! | 32-63 | strides of dimensions 1 to 4, in bytes |
//! | 64-83 | five sizes of a tile, in elements |
//! | 84-88 | steps between the elements of a tile in each dimension |
//! | 89, 90, 91 | interleaved layout (0: none), fill (1: NaN), mode (1: im2col) |
//! | 92-97, 98-103 | im2col: lower and upper corner of the bounding box, three numbers of 16 bits each |
//!
//! The fields of dimensions that a tensor does not have are not read. `tensormap.replace` writes single fields.

use crate::inst::{AtomOp, Mods, Ty};

/// Bytes of a line. A piece crosses no line, in global or in shared memory.
const LINE: u64 = 128;

/// Bytes of a tensor map.
pub const MAP_BYTES: usize = 128;

/// Alignment of a tensor map in memory, in bytes (CUDA driver API, `CUtensorMap`).
pub const MAP_ALIGNMENT: u64 = 64;

/// Where the operand with the extent of a bulk copy has its parts: each begins at this word.
///
/// First come the bytes of a plain copy, or the coordinates of a tile. Then come the offsets of an im2col copy, two in a word. The last
/// word is the mask of a multicast.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Number of coordinates of a tile; 0 for a plain copy.
    pub coordinates: usize,
    /// First of the two words with im2col offsets.
    offsets: Option<usize>,
    /// Word with the ranks of the CTAs that receive the bytes, one bit each.
    mask: Option<usize>,
}

impl Extent {
    /// Returns the parts for an instruction with these modifiers.
    pub fn of(mods: &Mods) -> Extent {
        // A plain copy has no coordinates, but one word with its size.
        let first = usize::from(mods.count.max(1));
        let behind = first + 2 * usize::from(mods.trans);
        Extent {
            coordinates: mods.count.into(),
            offsets: mods.trans.then_some(first),
            mask: mods.wrap.then_some(behind),
        }
    }

    /// Reads the coordinates. `word` returns a word of the operand.
    pub fn coordinates(self, word: impl Fn(usize) -> u32) -> [i32; 5] {
        std::array::from_fn(|n| if n < self.coordinates { word(n) as i32 } else { 0 })
    }

    /// Reads the im2col offsets: width, height, depth.
    pub fn offsets(self, word: impl Fn(usize) -> u32) -> [u16; 3] {
        let pair = |at: usize| [word(at) as u16, (word(at) >> 16) as u16];
        self.offsets.map_or([0; 3], |at| {
            let ([width, height], [depth, _]) = (pair(at), pair(at + 1));
            [width, height, depth]
        })
    }

    /// Reads the mask of a multicast. `None` for a copy to one CTA.
    pub fn mask(self, word: impl Fn(usize) -> u32) -> Option<u16> {
        self.mask.map(|at| word(at) as u16)
    }
}

/// Part of a bulk copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// First byte in global memory. `None` outside of the tensor: reads give the fill value, writes are dropped.
    pub global: Option<u64>,
    /// First byte in shared memory, before swizzling.
    pub shared: u32,
    /// Size in bytes.
    pub bytes: u32,
}

/// Splits a contiguous copy into pieces.
///
/// ```
/// use warpwave_isa::exec::bulk::split_run;
/// let mut sizes = Vec::new();
/// split_run(Some(0x1070), 0, 200, &mut |piece| sizes.push(piece.bytes));
/// assert_eq!(sizes, [16, 112, 16, 56]); // to 0x1080, to 128 in shared memory, to 0x1100, to the end
/// ```
pub fn split_run(mut global: Option<u64>, mut shared: u32, mut bytes: u32, each: &mut impl FnMut(Piece)) {
    while bytes > 0 {
        let left = |at: u64| (LINE - at % LINE) as u32;
        // A piece ends at the next line boundary of either side.
        let n = bytes.min(left(shared.into())).min(global.map_or(u32::MAX, left));
        each(Piece {
            global,
            shared,
            bytes: n,
        });
        global = global.map(|at| at + u64::from(n));
        shared += n;
        bytes -= n;
    }
}

/// Swizzles a shared address: adds (xor) the lowest `swizzle` bits of its line number to its 16-byte chunk number.
pub fn swizzled(shared: u32, swizzle: u8) -> u32 {
    shared ^ (shared >> 7 & ((1 << swizzle) - 1)) << 4
}

/// Type of a tensor's elements. The numbers are those of `tensormap.replace`, field `.elemtype`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the PTX type of the same name")]
pub enum Element {
    U8,
    U16,
    U32,
    S32,
    U64,
    S64,
    F16,
    F32,
    F32Ftz,
    F64,
    Bf16,
    Tf32,
    Tf32Ftz,
}

impl Element {
    /// Every type, by its number.
    pub const ALL: [Element; 13] = [
        Element::U8,
        Element::U16,
        Element::U32,
        Element::S32,
        Element::U64,
        Element::S64,
        Element::F16,
        Element::F32,
        Element::F32Ftz,
        Element::F64,
        Element::Bf16,
        Element::Tf32,
        Element::Tf32Ftz,
    ];

    /// Size in bytes.
    pub fn bytes(self) -> u8 {
        self.ty().bytes()
    }

    /// The type of its numbers. Copies do not round TF32 and do not flush denormals (assumed).
    fn ty(self) -> Ty {
        match self {
            Element::U8 => Ty::U8,
            Element::U16 => Ty::U16,
            Element::U32 => Ty::U32,
            Element::S32 => Ty::S32,
            Element::U64 => Ty::U64,
            Element::S64 => Ty::S64,
            Element::F16 => Ty::F16,
            Element::Bf16 => Ty::Bf16,
            Element::F64 => Ty::F64,
            Element::F32 | Element::F32Ftz | Element::Tf32 | Element::Tf32Ftz => Ty::F32,
        }
    }

    /// The type of the atomic of a reduction. `None` if the type has no such reduction (PTX ISA, `cp.reduce.async.bulk`).
    pub fn reduction(self, op: AtomOp) -> Option<Ty> {
        let ty = self.ty();
        let is_whole = !ty.is_float() && ty.bytes() >= 4;
        let is_half = matches!(ty, Ty::F16 | Ty::Bf16);
        let exists = match op {
            AtomOp::Add => is_half || matches!(ty, Ty::F32 | Ty::F64) || is_whole && ty != Ty::S64,
            AtomOp::Min | AtomOp::Max => is_whole || is_half,
            AtomOp::Inc | AtomOp::Dec => ty == Ty::U32,
            AtomOp::And | AtomOp::Or | AtomOp::Xor => is_whole,
            _ => false,
        };
        exists.then_some(ty)
    }

    /// The quiet NaN that fills elements outside the tensor, on request. Its bits are assumed: all ones but the sign.
    fn nan(self) -> Option<u64> {
        let ty = self.ty();
        ty.is_float().then(|| u64::MAX >> (65 - 8 * u32::from(ty.bytes())))
    }
}

/// The bounding box of an im2col copy: its pixels lie between the corners, relative to the first and to the last pixel of the tensor.
/// Entry n belongs to dimension n + 1 (width, height, depth).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Im2col {
    /// The lower corner, relative to pixel 0.
    pub lower: [i16; 3],
    /// The upper corner, relative to the last pixel.
    pub upper: [i16; 3],
}

/// A tensor in global memory and the shape of its tiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TensorMap {
    /// Address of the first element.
    pub base: u64,
    /// Number of dimensions, 1 to 5.
    pub rank: u8,
    /// Type of the elements.
    pub element: Element,
    /// Swizzle of a tile in shared memory: 0 none, 1 over 32 bytes, 2 over 64, 3 over 128.
    pub swizzle: u8,
    /// Size of each dimension, in elements.
    pub sizes: [u32; 5],
    /// Distance between neighbours in each dimension, in bytes.
    pub strides: [u64; 5],
    /// Size of a tile in each dimension, in elements. With `im2col`: channels per pixel, pixels per column.
    pub tile: [u32; 5],
    /// Distance between neighbours of a tile in each dimension, in elements. Dimension 0 has no steps.
    pub steps: [u8; 5],
    /// True if elements outside the tensor read as NaN. Otherwise they read as zero.
    pub nan_fill: bool,
    /// The bounding box of an im2col map. `None` for a map of tiles.
    pub im2col: Option<Im2col>,
}

impl TensorMap {
    /// Encodes the map as bytes of memory.
    pub fn to_bytes(self) -> [u8; MAP_BYTES] {
        let mut bytes = [0; MAP_BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &self.base.to_le_bytes());
        put(8, &[self.rank, self.element as u8, self.swizzle]);
        for n in 0..5 {
            put(12 + 4 * n, &self.sizes[n].to_le_bytes());
            put(64 + 4 * n, &self.tile[n].to_le_bytes());
            put(84 + n, &[self.steps[n]]);
        }
        for n in 1..5 {
            put(24 + 8 * n, &self.strides[n].to_le_bytes());
        }
        put(90, &[self.nan_fill.into(), self.im2col.is_some().into()]);
        let Im2col { lower, upper } = self.im2col.unwrap_or_default();
        for (n, corner) in lower.into_iter().chain(upper).enumerate() {
            put(92 + 2 * n, &corner.to_le_bytes());
        }
        bytes
    }

    /// Decodes the bytes of a map. `None` if they are not a valid map, or if its layout is interleaved.
    pub fn from_bytes(bytes: &[u8; MAP_BYTES]) -> Option<Self> {
        let half = |at: usize| i16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u32::from(half(at + 2) as u16) << 16 | u32::from(half(at) as u16);
        let wide = |at: usize| u64::from(word(at + 4)) << 32 | u64::from(word(at));
        let [rank, element, swizzle] = [bytes[8], bytes[9], bytes[10]];
        let element = *Element::ALL.get(usize::from(element))?;
        let [interleave, fill, mode] = [bytes[89], bytes[90], bytes[91]];
        let corner = |at: usize| std::array::from_fn(|n| half(at + 2 * n));
        // A dimension that the tensor does not have is one element.
        let has = |n: usize| n < usize::from(rank);
        let map = TensorMap {
            base: wide(0),
            rank,
            element,
            swizzle,
            sizes: std::array::from_fn(|n| if has(n) { word(12 + 4 * n) } else { 1 }),
            strides: std::array::from_fn(|n| {
                if n == 0 {
                    element.bytes().into()
                } else {
                    wide(24 + 8 * n)
                }
            }),
            tile: std::array::from_fn(|n| if has(n) { word(64 + 4 * n) } else { 1 }),
            steps: std::array::from_fn(|n| if has(n) { bytes[84 + n] } else { 1 }),
            nan_fill: fill == 1,
            im2col: (mode == 1).then(|| Im2col {
                lower: corner(92),
                upper: corner(98),
            }),
        };
        // Memory may hold anything, so every field is checked.
        let is_known = (1..=5).contains(&rank) && swizzle <= 3 && interleave == 0 && fill <= 1 && mode <= 1;
        (is_known && map.is_sound()).then_some(map)
    }

    /// True if the sizes of a tile are within the limits of `cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col`, and
    /// every element is aligned to its size. The API asks for multiples of 16.
    fn is_sound(&self) -> bool {
        let size = u64::from(self.element.bytes());
        let strides = &self.strides[1..usize::from(self.rank)];
        let is_aligned = strides.iter().chain([&self.base]).all(|at| at.is_multiple_of(size));
        let fits = match self.im2col {
            None => self.tile.iter().all(|n| (1..=256).contains(n)),
            Some(_) => {
                let [channels, pixels, ..] = self.tile;
                self.rank >= 3 && (1..=256).contains(&channels) && (1..=1024).contains(&pixels)
            }
        };
        is_aligned
            && fits
            && self.steps.iter().all(|n| (1..=8).contains(n))
            && (!self.nan_fill || self.element.nan().is_some())
    }

    /// Elements of a tile along a dimension.
    fn count(&self, n: usize) -> u32 {
        match self.im2col {
            Some(_) if n > 1 => 1,
            Some(_) => self.tile[n],
            None if n == 0 => self.tile[0],
            // Steps skip elements of the tile: a tile of 5 with steps of 2 has 3.
            None => self.tile[n].div_ceil(self.steps[n].into()),
        }
    }

    /// Returns the bytes of a tile in shared memory, at most `u32::MAX`.
    pub fn tile_bytes(&self) -> u32 {
        let element = u32::from(self.element.bytes());
        (0..5).fold(element, |bytes, n| bytes.saturating_mul(self.count(n)))
    }

    /// Returns byte `n` of an element outside the tensor.
    pub fn fill_byte(&self, n: u32) -> u8 {
        let fill = self.element.nan().filter(|_| self.nan_fill).unwrap_or(0);
        fill.to_le_bytes()[(n % u32::from(self.element.bytes())) as usize]
    }

    /// Splits the tile at coordinates `at` into pieces. `offsets` are those of an im2col copy: width, height, depth.
    pub fn pieces(&self, at: [i32; 5], offsets: [u16; 3], shared: u32, each: &mut impl FnMut(Piece)) {
        match self.im2col {
            None => self.tiled_pieces(at, shared, each),
            Some(bounds) => self.im2col_pieces(bounds, at, offsets, shared, each),
        }
    }

    fn tiled_pieces(&self, at: [i32; 5], shared: u32, each: &mut impl FnMut(Piece)) {
        // Dimension 0 is contiguous in both memories, so a tile is copied row by row.
        let rows = (1..5).map(|n| self.count(n)).product::<u32>();
        let row_bytes = self.tile[0] * u32::from(self.element.bytes());
        for row in 0..rows {
            // The digits of the row number are the positions in dimensions 1 to 4.
            let mut rest = row;
            let mut position = at.map(i64::from);
            for (n, position) in position.iter_mut().enumerate().skip(1) {
                *position += i64::from(rest % self.count(n)) * i64::from(self.steps[n]);
                rest /= self.count(n);
            }
            self.row(self.row_base(position), at[0], shared + row * row_bytes, each);
        }
    }

    /// Walks through the pixels of the bounding box, width first, from `at` on. Each pixel is read at its position plus `offsets`.
    /// The last dimension counts images. (CUDA driver API, `cuTensorMapEncodeIm2col`; PTX ISA, "im2col mode".)
    fn im2col_pieces(
        &self,
        bounds: Im2col,
        at: [i32; 5],
        offsets: [u16; 3],
        shared: u32,
        each: &mut impl FnMut(Piece),
    ) {
        let image = usize::from(self.rank) - 1;
        let row_bytes = self.tile[0] * u32::from(self.element.bytes());
        let mut position = at.map(i64::from);
        for pixel in 0..self.tile[1] {
            let mut moved = position;
            for n in 1..image {
                moved[n] += i64::from(offsets[n - 1]);
            }
            self.row(self.row_base(moved), at[0], shared + pixel * row_bytes, each);
            // Counts like an odometer. The image stays, unless every dimension before it wraps.
            position[image] += 1;
            for n in 1..image {
                position[n] += i64::from(self.steps[n]);
                if position[n] < i64::from(self.sizes[n]) + i64::from(bounds.upper[n - 1]) {
                    position[image] -= 1;
                    break;
                }
                position[n] = bounds.lower[n - 1].into();
            }
        }
    }

    /// Address of the row of elements at a position. `None` if it is outside the tensor.
    fn row_base(&self, position: [i64; 5]) -> Option<u64> {
        (1..5).try_fold(self.base, |base, n| {
            let is_inside = (0..i64::from(self.sizes[n])).contains(&position[n]);
            is_inside.then(|| base.wrapping_add((position[n] as u64).wrapping_mul(self.strides[n])))
        })
    }

    /// Splits a row of a tile. Only its middle part may be inside the tensor.
    fn row(&self, base: Option<u64>, x: i32, shared: u32, each: &mut impl FnMut(Piece)) {
        let (x, tile) = (i64::from(x), i64::from(self.tile[0]));
        // Elements before the tensor, inside it, and behind it. A part may be empty.
        let first = (-x).clamp(0, tile);
        let last = (i64::from(self.sizes[0]) - x).clamp(first, tile);
        let element = i64::from(self.element.bytes());
        let mut part = |base: Option<u64>, from: i64, to: i64| {
            let global = base.map(|base| base.wrapping_add_signed((x + from) * element));
            split_run(
                global,
                shared + (from * element) as u32,
                ((to - from) * element) as u32,
                each,
            );
        };
        match base {
            None => part(None, 0, tile),
            Some(_) => {
                part(None, 0, first);
                part(base, first, last);
                part(None, last, tile);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tensor of 5 by 3 bytes, with rows 16 bytes apart and tiles of 4 by 2.
    const MAP: TensorMap = TensorMap {
        base: 0x1000,
        rank: 2,
        element: Element::U8,
        swizzle: 0,
        sizes: [5, 3, 1, 1, 1],
        strides: [1, 16, 48, 48, 48],
        tile: [4, 2, 1, 1, 1],
        steps: [1; 5],
        nan_fill: false,
        im2col: None,
    };

    fn pieces_of(map: TensorMap, at: [i32; 5], offsets: [u16; 3]) -> Vec<(Option<u64>, u32, u32)> {
        let mut all = Vec::new();
        map.pieces(at, offsets, 0x100, &mut |piece| {
            all.push((piece.global, piece.shared, piece.bytes))
        });
        all
    }

    fn pieces(at: [i32; 5]) -> Vec<(Option<u64>, u32, u32)> {
        pieces_of(MAP, at, [0; 3])
    }

    #[test]
    fn tile_inside_the_tensor_splits_into_rows() {
        assert_eq!(
            pieces([1, 1, 0, 0, 0]),
            [(Some(0x1011), 0x100, 4), (Some(0x1021), 0x104, 4)]
        );
    }

    #[test]
    fn tile_across_the_edges_is_zero_outside() {
        let beyond = [(Some(0x1023), 0x100, 2), (None, 0x102, 2), (None, 0x104, 4)];
        assert_eq!(pieces([3, 2, 0, 0, 0]), beyond);
        let before = [(None, 0x100, 4), (None, 0x104, 1), (Some(0x1000), 0x105, 3)];
        assert_eq!(pieces([-1, -1, 0, 0, 0]), before);
    }

    #[test]
    fn steps_leave_out_rows_of_the_tensor() {
        let map = TensorMap {
            tile: [4, 3, 1, 1, 1],
            steps: [1, 2, 1, 1, 1],
            ..MAP
        };
        // Of three rows every second one: rows 0 and 2.
        assert_eq!(map.tile_bytes(), 8);
        let rows = [(Some(0x1000), 0x100, 4), (Some(0x1020), 0x104, 4)];
        assert_eq!(pieces_of(map, [0; 5], [0; 3]), rows);
    }

    /// Two images of 3 by 2 pixels with 4 channels of a byte: 4 bytes a pixel, 16 a row, 32 an image.
    #[test]
    fn im2col_walks_through_the_bounding_box_and_on_to_the_next_image() {
        let map = TensorMap {
            base: 0x1000,
            rank: 4,
            sizes: [4, 3, 2, 2, 1],
            strides: [1, 4, 16, 32, 0],
            tile: [4, 5, 1, 1, 1],
            im2col: Some(Im2col {
                lower: [-1, 0, 0],
                upper: [-1, 0, 0],
            }),
            ..MAP
        };
        assert_eq!(map.tile_bytes(), 20);
        // Columns -1 to 1 of rows 0 to 1. From column 0 of row 1: (0, 1), (1, 1), then image 1: (-1, 0), (0, 0), (1, 0).
        let place =
            |x: i64, y: u64, image: u64| (0..3).contains(&x).then(|| 0x1000 + 4 * x as u64 + 16 * y + 32 * image);
        let expected = |offset: i64| {
            let places = [(0, 1, 0), (1, 1, 0), (-1, 0, 1), (0, 0, 1), (1, 0, 1)];
            let each = places.into_iter().enumerate();
            let piece = |(n, (x, y, image))| (place(x + offset, y, image), 0x100 + 4 * n as u32, 4);
            each.map(piece).collect::<Vec<_>>()
        };
        for offset in [0, 1, 2] {
            assert_eq!(
                pieces_of(map, [0, 0, 1, 0, 0], [offset, 0, 0]),
                expected(offset.into()),
                "{offset}"
            );
        }
        let strided = TensorMap {
            steps: [1, 2, 1, 1, 1],
            tile: [4, 3, 1, 1, 1],
            ..map
        };
        let found: Vec<_> = pieces_of(strided, [0, -1, 0, 0, 0], [0; 3])
            .into_iter()
            .map(|piece| piece.0)
            .collect();
        assert_eq!(
            found,
            [None, place(1, 0, 0), None],
            "columns -1 and 1 of row 0, column -1 of row 1"
        );
    }

    #[test]
    fn map_round_trips_and_other_bytes_are_refused() {
        assert_eq!(TensorMap::from_bytes(&MAP.to_bytes()), Some(MAP));
        assert_eq!(TensorMap::from_bytes(&[0; MAP_BYTES]), None);
        let image = TensorMap {
            rank: 4,
            element: Element::Bf16,
            sizes: [64, 3, 2, 2, 1],
            strides: [2, 128, 384, 768, 0],
            tile: [64, 500, 1, 1, 1],
            steps: [1, 2, 2, 1, 1],
            nan_fill: true,
            im2col: Some(Im2col {
                lower: [-1, -2, 0],
                upper: [1, -300, 0],
            }),
            ..MAP
        };
        assert_eq!(TensorMap::from_bytes(&image.to_bytes()), Some(image));
        assert_eq!([0, 1, 2].map(|n| image.fill_byte(n)), [0xff, 0x7f, 0xff]);
        let integers = TensorMap { nan_fill: true, ..MAP };
        assert_eq!(
            TensorMap::from_bytes(&integers.to_bytes()),
            None,
            "an integer has no NaN"
        );
        let halves = TensorMap {
            element: Element::U16,
            strides: [2, 16, 48, 48, 48],
            ..MAP
        };
        assert_eq!(TensorMap::from_bytes(&halves.to_bytes()), Some(halves));
        let (mut odd_base, mut odd_stride) = (halves, halves);
        odd_base.base += 1;
        odd_stride.strides[1] += 1;
        for odd in [odd_base, odd_stride] {
            assert_eq!(TensorMap::from_bytes(&odd.to_bytes()), None);
        }
    }

    #[test]
    fn tile_of_more_than_4_gib_has_the_largest_number_of_bytes() {
        let tile = [256; 5];
        let map = TensorMap {
            rank: 5,
            tile,
            sizes: tile,
            ..MAP
        };
        assert_eq!(map.tile_bytes(), u32::MAX);
    }

    #[test]
    fn reductions_exist_for_the_types_that_ptx_lists() {
        let of = |op| {
            Element::ALL
                .iter()
                .filter(|element| element.reduction(op).is_some())
                .count()
        };
        // u32, s32, u64, f16, bf16, f64 and four kinds of f32; u32, s32, u64, s64, f16, bf16; u32; four of 32 and 64 bits.
        assert_eq!(
            [AtomOp::Add, AtomOp::Max, AtomOp::Inc, AtomOp::And].map(of),
            [10, 6, 1, 4]
        );
    }

    #[test]
    fn swizzle_of_128_bytes_moves_chunks_by_line_number() {
        assert_eq!(swizzled(0x0080, 3), 0x0090);
        assert_eq!(swizzled(0x03f4, 3), 0x0384);
        assert_eq!(swizzled(0x03f4, 0), 0x03f4);
    }
}
