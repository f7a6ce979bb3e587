//! Warp-group products (wgmma): four warps, 64 rows of A. Matrix descriptors locate operands in shared memory.
//!
//! A descriptor (PTX ISA, matrix-descriptor format of wgmma):
//!
//! | bits | field |
//! |---|---|
//! | 0-13 | first byte, in units of 16 bytes |
//! | 16-29 | leading byte offset, in units of 16 bytes |
//! | 32-45 | stride byte offset, in units of 16 bytes |
//! | 49-51 | base offset: bits 7-9 of the address where the swizzle pattern begins |
//! | 62-63 | swizzle: 0 none, 1 of 128 bytes, 2 of 64, 3 of 32 |
//!
//! Layout of a matrix:
//! - A chunk is 16 bytes: eight 2-byte elements along the contiguous axis.
//! - A line is 2^n neighbouring chunks, with n swizzle bits. Eight lines form a block, one above the other.
//! - The stride leads to the next block of eight lines. The leading offset leads to the next chunks beyond the line.
//! - Without swizzle, if the contiguous axis is not k, stride and leading offset change places.
//! - A swizzle of n bits adds (xor) address bits 7 and up, less the base offset, to bits 4 and up.

use super::map::update;
use super::{Operands, Results, execute};
use crate::inst::{Inst, MmaShape, Mods};
use crate::lane::{LaneMask, Lanes, WARP_SIZE};
use crate::opcode::Opcode;
use crate::program::Decoded;

/// Bytes of a chunk of eight elements.
const CHUNK: usize = 16;

/// Matrix in shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Descriptor {
    first: usize,
    leading: usize,
    stride: usize,
    /// Address of the swizzle pattern, in units of 128 bytes (modulo 8).
    base: usize,
    /// Swizzle bits: the logarithm of the chunks per line.
    swizzle: u32,
}

impl Descriptor {
    /// Decodes a descriptor.
    pub fn new(bits: u64) -> Self {
        let field = |at: u32| (bits >> at & 0x3fff) as usize * CHUNK;
        Descriptor {
            first: field(0),
            leading: field(16),
            stride: field(32),
            base: (bits >> 49 & 7) as usize,
            swizzle: match bits >> 62 {
                0 => 0,
                // 128 bytes are 8 chunks (3 bits), 64 are 4, 32 are 2.
                mode => 4 - mode as u32,
            },
        }
    }

    /// Returns the address of a 2-byte element. `outer` is the row of A or column of B, `k` the inner index.
    ///
    /// ```
    /// use warpwave_isa::exec::gmma::Descriptor;
    /// // At 0x400, blocks of 8 by 8 elements, 128 bytes apart along k and 256 along the other axis.
    /// let packed = Descriptor::new(0x40 | 8 << 16 | 16 << 32);
    /// assert_eq!(packed.address(9, 10, false), 0x400 + 256 + 16 + 128 + 4);
    /// // Lines of 128 bytes, swizzled: in line 3, chunk n moves to n ^ 3.
    /// let swizzled = Descriptor::new(0x40 | 64 << 32 | 1 << 62);
    /// assert_eq!(swizzled.address(3, 8, false), 0x400 + 3 * 128 + (1 ^ 3) * 16);
    /// // The same matrix, and its pattern, one line further: a base offset of 1.
    /// let moved = Descriptor::new(0x48 | 64 << 32 | 1 << 49 | 1 << 62);
    /// assert_eq!(moved.address(3, 8, false), 0x480 + 3 * 128 + (1 ^ 3) * 16);
    /// ```
    pub fn address(&self, outer: usize, k: usize, is_outer_contiguous: bool) -> usize {
        let width = 1 << self.swizzle;
        let (along, across) = if is_outer_contiguous { (outer, k) } else { (k, outer) };
        let (chunk, element) = (along / 8, along % 8);
        let (line, lines) = (across % 8, across / 8);
        let (beside, above) = if is_outer_contiguous && self.swizzle == 0 {
            (self.stride, self.leading)
        } else {
            (self.leading, self.stride)
        };
        let plain = self.first
            + chunk / width * beside
            + chunk % width * CHUNK
            + line * width * CHUNK
            + lines * above
            + 2 * element;
        // Of the address, not of the line number: the pattern is fixed in shared memory, wherever the matrix begins. The base
        // offset moves it.
        plain ^ ((plain >> 7).wrapping_sub(self.base) & (width - 1)) << 4
    }
}

/// Executes an HGMMA or HGMMA.SP of warp `warp` of its CTA. The depth of a sparse A is that of its stored half.
/// `read` returns the 16 bits at a shared address.
pub fn multiply(
    inst: &Inst,
    decoded: &Decoded,
    operands: &Operands,
    warp: u32,
    read: impl Fn(usize) -> u16,
    results: &mut Results,
) {
    let [a, b, c] = [0, 1, 2].map(|slot| decoded.first_word[slot] as usize);
    let mods = &inst.mods;
    let descriptor = |word: usize| {
        // A descriptor is equal in all lanes of the warp group (PTX), so lane 0 has it.
        let [low, high] = [0, 1].map(|n| u64::from(operands.words[word + n].0[0]));
        Descriptor::new(high << 32 | low)
    };
    let mut fragments = Operands::default();
    if mods.high {
        // Each warp of the group has 16 of the 64 rows.
        let (matrix, first_row) = (descriptor(a), 16 * (warp as usize % 4));
        for n in 0..4 {
            fragments.words[n] =
                pairs(|group, k| read(matrix.address(first_row + group + 8 * (n % 2), k + 8 * (n / 2), mods.right)));
        }
    } else {
        fragments.words[..4].copy_from_slice(&operands.words[a..a + 4]);
    }
    if mods.neg {
        for word in &mut fragments.words[..4] {
            update(word, |bits| bits ^ signs(mods.mma));
        }
    }
    let (matrix, first_column) = (descriptor(b), 8 * mods.count as usize);
    let is_sparse = inst.op == Opcode::HgmmaSp;
    // B is as deep as the whole A, twice as deep as the stored half.
    for n in 0..if is_sparse { 4 } else { 2 } {
        fragments.words[4 + n] = pairs(|group, k| read(matrix.address(first_column + group, k + 8 * n, mods.trans)));
    }
    let product = mma(inst);
    let decoded_product = Decoded::of(&product);
    let [_, _, sums, metadata] = decoded_product.first_word.map(usize::from);
    // Without the predicate (`scale-d` of PTX) the sum starts at zero.
    if !operands.preds[0].is_empty() {
        let words = mods.mma.accumulator_words(mods.ty) as usize;
        fragments.words[sums..sums + words].copy_from_slice(&operands.words[c..c + words]);
    }
    if is_sparse {
        fragments.words[metadata] = operands.words[decoded.first_word[3] as usize];
    }
    // The fragments are in registers now, as for a warp's own MMA.
    execute(&product, &decoded_product, LaneMask::ALL, &fragments, results);
}

/// Returns a fragment word: in each lane, two elements of its group along k (see `tensor`).
fn pairs(element: impl Fn(usize, usize) -> u16) -> Lanes {
    let mut word = Lanes::ZERO;
    for lane in 0..WARP_SIZE {
        let (group, k) = (lane / 4, 2 * (lane % 4));
        word.0[lane] = u32::from(element(group, k)) | u32::from(element(group, k + 1)) << 16;
    }
    word
}

/// Returns the sign bits of a word of A.
fn signs(shape: MmaShape) -> u32 {
    use MmaShape::*;
    match shape {
        M16n8k8Tf32 | M16n8k4Tf32 => 0x8000_0000,
        M16n8k16F16 | M16n8k8F16 | M16n8k16Bf16 | M16n8k8Bf16 => 0x8000_8000,
        _ => 0x8080_8080,
    }
}

/// Returns the MMA or MMA.SP instruction for the gathered fragments.
fn mma(inst: &Inst) -> Inst {
    let op = match inst.op {
        Opcode::HgmmaSp => Opcode::MmaSp,
        _ => Opcode::Mma,
    };
    let mut product = Inst::new(op);
    let Mods { mma, ty, sat, lut, .. } = inst.mods;
    product.mods = Mods {
        mma,
        ty,
        sat,
        lut,
        high: true,
        ..Mods::default()
    };
    product
}
