//! Bulk copies between global and shared memory: what they move, piece by piece.
//!
//! A [`TensorMap`] describes a tensor in global memory, and the tiles that copies take of it. PTX leaves its 128 bytes open; here they are,
//! little-endian: address (8), dimensions, bytes of an element, swizzle (1 each, 1 free), five sizes (4 each), strides in bytes of the
//! second to the fifth dimension (8 each), five sizes of a tile (4 each). The first dimension is the contiguous one.

/// Bytes of a line: no piece crosses one, on either side.
const LINE: u64 = 128;

/// Bytes of a tensor map.
pub const MAP_BYTES: usize = 128;

/// A part of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// First byte in global memory; none outside the tensor, where zeros are read and nothing is written.
    pub global: Option<u64>,
    /// First byte in shared memory, before swizzling.
    pub shared: u32,
    /// Bytes.
    pub bytes: u32,
}

/// Takes a run of bytes apart.
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

/// Where a byte of a swizzled tile lies: the lowest `swizzle` bits of its line's number change its piece of 16 bytes.
pub fn swizzled(shared: u32, swizzle: u8) -> u32 {
    shared ^ (shared >> 7 & ((1 << swizzle) - 1)) << 4
}

/// A tensor in global memory and the shape of its tiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TensorMap {
    /// Its first byte.
    pub base: u64,
    /// Dimensions, 1 to 5.
    pub rank: u8,
    /// Bytes of an element: 1, 2, 4 or 8.
    pub element: u8,
    /// Bits of swizzling of a tile in shared memory: 0 none, 1 over 32 bytes, 2 over 64, 3 over 128.
    pub swizzle: u8,
    /// Elements in each dimension.
    pub sizes: [u32; 5],
    /// Bytes from an element to the next in each dimension.
    pub strides: [u64; 5],
    /// Elements of a tile in each dimension.
    pub tile: [u32; 5],
}

impl TensorMap {
    /// As a kernel's parameter holds it.
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

    /// From a parameter's bytes, if they are a map.
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

    /// Bytes of a tile in shared memory.
    pub fn tile_bytes(&self) -> u32 {
        self.tile.iter().product::<u32>() * u32::from(self.element)
    }

    /// Takes the tile at some coordinates apart.
    pub fn pieces(&self, at: [i32; 5], shared: u32, each: &mut impl FnMut(Piece)) {
        let rows = self.tile[1..].iter().product::<u32>();
        let row_bytes = self.tile[0] * u32::from(self.element);
        for row in 0..rows {
            let mut rest = row;
            let mut base = Some(self.base);
            for (n, &first) in at.iter().enumerate().skip(1) {
                let place = i64::from(first) + i64::from(rest % self.tile[n]);
                rest /= self.tile[n];
                let inside = (0..i64::from(self.sizes[n])).contains(&place);
                base = base
                    .filter(|_| inside)
                    .map(|base| base + place as u64 * self.strides[n]);
            }
            self.row(base, at[0], shared + row * row_bytes, each);
        }
    }

    /// A row of a tile, of which the middle may be inside the tensor.
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

    /// Bytes 0, 1, 2 ... of a tensor of 5 by 3 bytes, rows 16 apart; tiles of 4 by 2.
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
    fn tile_inside_comes_row_by_row() {
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
    fn map_survives_its_bytes_and_other_bytes_are_none() {
        assert_eq!(TensorMap::from_bytes(&MAP.to_bytes()), Some(MAP));
        assert_eq!(TensorMap::from_bytes(&[0; MAP_BYTES]), None);
    }

    #[test]
    fn swizzle_of_128_bytes_moves_pieces_by_their_line() {
        assert_eq!(swizzled(0x0080, 3), 0x0090);
        assert_eq!(swizzled(0x03f4, 3), 0x0384);
        assert_eq!(swizzled(0x03f4, 0), 0x03f4);
    }
}
