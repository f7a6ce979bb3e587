//! Products of a warp group (wgmma): four warps, 64 rows of A, operands in shared memory as matrix descriptors say.
//!
//! A descriptor (PTX ISA, matrix-descriptor format of wgmma):
//!
//! | bits | field |
//! |---|---|
//! | 0-13 | first byte, in 16 bytes |
//! | 16-29 | leading byte offset, in 16 bytes |
//! | 32-45 | stride byte offset, in 16 bytes |
//! | 62-63 | swizzle: 0 none, 1 of 128 bytes, 2 of 64, 3 of 32 |
//!
//! A matrix is made of rows of 16 bytes, eight elements. Those that follow each other along the contiguous axis lie side by side, as
//! many as the swizzle has; eight such lines are one above the other. The stride leads to the next eight lines, the leading offset to
//! the next rows along the contiguous axis beyond the swizzle's width. Where the contiguous axis is not k and nothing is swizzled, the
//! two change places. A swizzle of 2^n rows adds the n bits of the address above bit 6 (in GF(2)) to the n above bit 3.

use super::{Operands, Results, execute};
use crate::inst::{Inst, Mods};
use crate::lane::{LaneMask, Lanes, WARP_SIZE};
use crate::opcode::Opcode;
use crate::program::Decoded;

/// Bytes of a row of eight elements.
const ROW: usize = 16;

/// A matrix in shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Descriptor {
    first: usize,
    leading: usize,
    stride: usize,
    /// Bits of an address that are changed: the logarithm of the rows side by side.
    swizzle: u32,
}

impl Descriptor {
    /// From its 64 bits.
    pub fn new(bits: u64) -> Self {
        let field = |at: u32| (bits >> at & 0x3fff) as usize * ROW;
        Descriptor {
            first: field(0),
            leading: field(16),
            stride: field(32),
            swizzle: match bits >> 62 {
                0 => 0,
                mode => 4 - mode as u32,
            },
        }
    }

    /// The address of an element of two bytes: `outer` counts rows of A or columns of B, `k` is the inner index of the product.
    ///
    /// ```
    /// use warpwave_isa::exec::gmma::Descriptor;
    /// // At 0x400, blocks of 8 by 8 elements, 128 bytes apart along k and 256 along the other axis.
    /// let packed = Descriptor::new(0x40 | 8 << 16 | 16 << 32);
    /// assert_eq!(packed.address(9, 10, false), 0x400 + 256 + 16 + 128 + 4);
    /// // Lines of 128 bytes, swizzled: in line 3 the rows of 16 bytes change places with those whose number differs by 3.
    /// let swizzled = Descriptor::new(0x40 | 64 << 32 | 1 << 62);
    /// assert_eq!(swizzled.address(3, 8, false), 0x400 + 3 * 128 + (1 ^ 3) * 16);
    /// ```
    pub fn address(&self, outer: usize, k: usize, is_outer_contiguous: bool) -> usize {
        let width = 1 << self.swizzle;
        let (along, across) = if is_outer_contiguous { (outer, k) } else { (k, outer) };
        let (row, element) = (along / 8, along % 8);
        let (line, lines) = (across % 8, across / 8);
        let (beside, above) = if is_outer_contiguous && self.swizzle == 0 {
            (self.stride, self.leading)
        } else {
            (self.leading, self.stride)
        };
        let plain =
            self.first + row / width * beside + row % width * ROW + line * width * ROW + lines * above + 2 * element;
        plain ^ (plain >> 7 & (width - 1)) << 4
    }
}

/// Carries out an HGMMA of the warp with this index in its CTA. `read` gives the 16 bits at an address in the CTA's shared memory.
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
        let [low, high] = [0, 1].map(|n| u64::from(operands.words[word + n].0[0]));
        Descriptor::new(high << 32 | low)
    };
    let mut fragments = Operands::default();
    if mods.high {
        let (matrix, first_row) = (descriptor(a), 16 * (warp as usize % 4));
        for n in 0..4 {
            fragments.words[n] =
                pairs(|group, k| read(matrix.address(first_row + group + 8 * (n % 2), k + 8 * (n / 2), mods.right)));
        }
    } else {
        fragments.words[..4].copy_from_slice(&operands.words[a..a + 4]);
    }
    let (matrix, first_column) = (descriptor(b), 8 * mods.count as usize);
    for n in 0..2 {
        fragments.words[4 + n] = pairs(|group, k| read(matrix.address(first_column + group, k + 8 * n, mods.trans)));
    }
    if !operands.preds[0].is_empty() {
        fragments.words[6..10].copy_from_slice(&operands.words[c..c + 4]);
    }
    let product = mma(mods);
    execute(&product, &Decoded::of(&product), LaneMask::ALL, &fragments, results);
}

/// A word of a fragment: each lane holds the elements of its group at its two places along k (see `tensor`).
fn pairs(element: impl Fn(usize, usize) -> u16) -> Lanes {
    let mut word = Lanes::ZERO;
    for lane in 0..WARP_SIZE {
        let (group, k) = (lane / 4, 2 * (lane % 4));
        word.0[lane] = u32::from(element(group, k)) | u32::from(element(group, k + 1)) << 16;
    }
    word
}

/// The product of fragments.
fn mma(mods: &Mods) -> Inst {
    let mut inst = Inst::new(Opcode::Mma);
    (inst.mods.mma, inst.mods.sat) = (mods.mma, mods.sat);
    inst
}
