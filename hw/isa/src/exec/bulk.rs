//! Bulk copies between global and shared memory, split into pieces of at most one line.
//!
//! A [`TensorMap`] describes a tensor in global memory and the tiles that copies take from it. PTX does not define the layout of
//! its 128 bytes. Layout here, little-endian; dimension 0 is contiguous:
//!
//! | bytes | field |
//! |---|---|
//! | 0-7 | address of the first element |
//! | 8, 9, 10 | number of dimensions, bytes per element, swizzle; byte 11 is unused |
//! | 12-31 | five sizes of the tensor, in elements |
//! | 32-63 | strides of dimensions 1 to 4, in bytes |
//! | 64-83 | five sizes of a tile, in elements |

/// Bytes of a line. A piece crosses no line, in global or in shared memory.
const LINE: u64 = 128;

/// Bytes of a tensor map.
pub const MAP_BYTES: usize = 128;

/// Part of a bulk copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// First byte in global memory. `None` outside of the tensor: reads are zero, writes are dropped.
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

/// A tensor in global memory and the shape of its tiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TensorMap {
    /// Address of the first element.
    pub base: u64,
    /// Number of dimensions, 1 to 5.
    pub rank: u8,
    /// Bytes per element: 1, 2, 4 or 8.
    pub element: u8,
    /// Swizzle of a tile in shared memory: 0 none, 1 over 32 bytes, 2 over 64, 3 over 128.
    pub swizzle: u8,
    /// Size of each dimension, in elements.
    pub sizes: [u32; 5],
    /// Distance between neighbours in each dimension, in bytes.
    pub strides: [u64; 5],
    /// Size of a tile in each dimension, in elements.
    pub tile: [u32; 5],
}

impl TensorMap {
    /// Encodes the map as bytes of a kernel parameter.
    pub fn to_bytes(self) -> [u8; MAP_BYTES] {
        let mut bytes = [0; MAP_BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &self.base.to_le_bytes());
        put(8, &[self.rank, self.element, self.swizzle]);
        for n in 0..5 {
            put(12 + 4 * n, &self.sizes[n].to_le_bytes());
            put(64 + 4 * n, &self.tile[n].to_le_bytes());
        }
        for n in 1..5 {
            put(24 + 8 * n, &self.strides[n].to_le_bytes());
        }
        bytes
    }

    /// Decodes the bytes of a kernel parameter. `None` if they are not a valid map.
    pub fn from_bytes(bytes: &[u8; MAP_BYTES]) -> Option<Self> {
        let word = |at: usize| {
            bytes[at..at + 4]
                .iter()
                .rev()
                .fold(0, |word, &byte| word << 8 | u32::from(byte))
        };
        let wide = |at: usize| u64::from(word(at + 4)) << 32 | u64::from(word(at));
        let [rank, element, swizzle] = [bytes[8], bytes[9], bytes[10]];
        let map = TensorMap {
            base: wide(0),
            rank,
            element,
            swizzle,
            sizes: std::array::from_fn(|n| word(12 + 4 * n)),
            strides: std::array::from_fn(|n| if n == 0 { element.into() } else { wide(24 + 8 * n) }),
            tile: std::array::from_fn(|n| word(64 + 4 * n)),
        };
        let sound = (1..=5).contains(&rank) && matches!(element, 1 | 2 | 4 | 8) && swizzle <= 3;
        (sound && map.tile.iter().all(|n| (1..=256).contains(n))).then_some(map)
    }

    /// Returns the bytes of a tile in shared memory.
    pub fn tile_bytes(&self) -> u32 {
        self.tile.iter().product::<u32>() * u32::from(self.element)
    }

    /// Splits the tile at coordinates `at` into pieces.
    pub fn pieces(&self, at: [i32; 5], shared: u32, each: &mut impl FnMut(Piece)) {
        let rows = self.tile[1..].iter().product::<u32>();
        let row_bytes = self.tile[0] * u32::from(self.element);
        for row in 0..rows {
            let mut rest = row;
            let mut base = Some(self.base);
            for (n, &first) in at.iter().enumerate().skip(1) {
                let index = i64::from(first) + i64::from(rest % self.tile[n]);
                rest /= self.tile[n];
                let inside = (0..i64::from(self.sizes[n])).contains(&index);
                base = base
                    .filter(|_| inside)
                    .map(|base| base + index as u64 * self.strides[n]);
            }
            self.row(base, at[0], shared + row * row_bytes, each);
        }
    }

    /// Splits a row of a tile. Only its middle part may be inside the tensor.
    fn row(&self, base: Option<u64>, x: i32, shared: u32, each: &mut impl FnMut(Piece)) {
        let (x, tile) = (i64::from(x), i64::from(self.tile[0]));
        let first = (-x).clamp(0, tile);
        let last = (i64::from(self.sizes[0]) - x).clamp(first, tile);
        let element = i64::from(self.element);
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
        element: 1,
        swizzle: 0,
        sizes: [5, 3, 1, 1, 1],
        strides: [1, 16, 48, 48, 48],
        tile: [4, 2, 1, 1, 1],
    };

    fn pieces(at: [i32; 5]) -> Vec<(Option<u64>, u32, u32)> {
        let mut all = Vec::new();
        MAP.pieces(at, 0x100, &mut |piece| {
            all.push((piece.global, piece.shared, piece.bytes))
        });
        all
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
    fn map_round_trips_and_other_bytes_are_refused() {
        assert_eq!(TensorMap::from_bytes(&MAP.to_bytes()), Some(MAP));
        assert_eq!(TensorMap::from_bytes(&[0; MAP_BYTES]), None);
    }

    #[test]
    fn swizzle_of_128_bytes_moves_chunks_by_line_number() {
        assert_eq!(swizzled(0x0080, 3), 0x0090);
        assert_eq!(swizzled(0x03f4, 3), 0x0384);
        assert_eq!(swizzled(0x03f4, 0), 0x03f4);
    }
}
