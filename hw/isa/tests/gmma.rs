//! Warp-group products against integer products. Operands are laid out element by element, by the published layouts (PTX ISA,
//! shared memory layouts of wgmma).

use warpwave_isa::exec::gmma::multiply;
use warpwave_isa::exec::{Operands, Results};
use warpwave_isa::inst::Inst;
use warpwave_isa::lane::{LaneMask, Lanes};
use warpwave_isa::program::Decoded;

/// Byte offset of an element, from its row or column and its index along k.
type ByteOffset = fn(usize, usize) -> usize;

/// A layout: byte offsets, and the descriptor fields that describe it.
struct Layout {
    offset: ByteOffset,
    leading: u64,
    stride: u64,
    mode: u64,
    /// True if the contiguous axis is not k.
    turned: bool,
}

/// Lines of 128 bytes along k. Line r holds its 16-byte chunks in the order p ^ (r mod 8).
const SWIZZLED_128: Layout = Layout {
    offset: |r, k| r * 128 + (((k / 8) ^ (r % 8)) * 16) + k % 8 * 2,
    leading: 16,
    stride: 1024,
    mode: 1,
    turned: false,
};

/// Lines of 64 bytes along k, two per 128 bytes. Line r holds its chunks in the order p ^ (r / 2 mod 4).
const SWIZZLED_64: Layout = Layout {
    offset: |r, k| r * 64 + (((k / 8) ^ (r / 2 % 4)) * 16) + k % 8 * 2,
    leading: 16,
    stride: 512,
    mode: 2,
    turned: false,
};

/// Blocks of 8 by 8, 128 bytes apart along k and 256 bytes along the other axis.
const PACKED: Layout = Layout {
    offset: |r, k| r / 8 * 256 + k / 8 * 128 + r % 8 * 16 + k % 8 * 2,
    leading: 128,
    stride: 256,
    mode: 0,
    turned: false,
};

/// Lines of 64 columns, one per k, swizzled like `SWIZZLED_128`. Eight lines are 1024 bytes.
const TURNED_128: Layout = Layout {
    offset: |c, k| k * 128 + (((c / 8) ^ (k % 8)) * 16) + c % 8 * 2,
    leading: 2048,
    stride: 1024,
    mode: 1,
    turned: true,
};

impl Layout {
    fn descriptor(&self, address: u64) -> u64 {
        address >> 4 | self.leading >> 4 << 16 | self.stride >> 4 << 32 | self.mode << 62
    }
}

/// Returns small integers without a pattern.
fn element(salt: usize, x: usize, k: usize) -> i64 {
    ((x * 31 + k * 17 + salt * 7) % 13) as i64 - 6
}

fn put(bytes: &mut [u8], at: usize, value: i64) {
    bytes[at..at + 2].copy_from_slice(&half::f16::from_f32(value as f32).to_le_bytes());
}

/// Checks one warp's rows and eight columns of a 64 by 64 by 16 product. With `counts`, sums start at 100.
fn check(a: &Layout, b: &Layout, warp: u32, piece: usize, counts: bool) {
    const B: usize = 0x4000;
    let mut shared = vec![0; 0x8000];
    for (x, k) in (0..64).flat_map(|x| (0..16).map(move |k| (x, k))) {
        put(&mut shared, (a.offset)(x, k), element(1, x, k));
        put(&mut shared, B + (b.offset)(x, k), element(2, x, k));
    }
    let text = format!(
        "HGMMA.16816F16.HI{}{}.N{piece} R0, R8, R10, R0, PT",
        if a.turned { ".R" } else { "" },
        if b.turned { ".T" } else { "" }
    );
    let inst: Inst = text.parse().expect("an instruction");
    let decoded = Decoded::of(&inst);
    let mut operands = Operands::default();
    operands.preds[0] = if counts { LaneMask::ALL } else { LaneMask::NONE };
    let descriptors = [a.descriptor(0), b.descriptor(B as u64)];
    for (slot, bits) in (0..).zip(descriptors) {
        let word = decoded.first_word[slot] as usize;
        operands.words[word] = Lanes::splat(bits as u32);
        operands.words[word + 1] = Lanes::splat((bits >> 32) as u32);
    }
    let sums = decoded.first_word[2] as usize;
    operands.words[sums..sums + 4].fill(Lanes::splat(100f32.to_bits()));
    let mut results = Results::default();
    let read = |at: usize| u16::from_le_bytes([shared[at], shared[at + 1]]);
    multiply(&inst, &decoded, &operands, warp, read, &mut results);
    for lane in 0..32 {
        for n in 0..4 {
            let row = 16 * warp as usize + lane / 4 + 8 * (n / 2);
            let column = 8 * piece + 2 * (lane % 4) + n % 2;
            let product: i64 = (0..16).map(|k| element(1, row, k) * element(2, column, k)).sum();
            let want = product + if counts { 100 } else { 0 };
            assert_eq!(
                f32::from_bits(results.words[n].0[lane]),
                want as f32,
                "{text}: {row}, {column}"
            );
        }
    }
}

#[test]
fn every_pair_of_layouts_gives_the_integer_product() {
    for a in [&SWIZZLED_128, &SWIZZLED_64, &PACKED, &TURNED_128] {
        for b in [&SWIZZLED_128, &SWIZZLED_64, &PACKED, &TURNED_128] {
            for (warp, piece) in [(0, 0), (3, 7), (1, 2)] {
                check(a, b, warp, piece, true);
            }
        }
    }
}

#[test]
fn sums_without_the_accumulate_flag_start_at_zero() {
    check(&SWIZZLED_128, &PACKED, 2, 1, false);
}

/// Elements of other sizes fill the same bytes: 1-byte elements have depth 32, 4-byte elements depth 8.
#[test]
fn elements_of_other_sizes_fill_the_same_bytes() {
    for layout in [&SWIZZLED_128, &SWIZZLED_64, &PACKED] {
        for (shape, bytes) in [("16832S8", 1), ("1688TF32", 4)] {
            const B: usize = 0x4000;
            let (mut shared, depth) = (vec![0; 0x8000], 32 / bytes);
            let code = |value: i64| match bytes {
                1 => vec![value as u8],
                _ => (value as f32).to_le_bytes().to_vec(),
            };
            for (x, k) in (0..64).flat_map(|x| (0..depth).map(move |k| (x, k))) {
                let at = (layout.offset)(x, k * bytes / 2) + k * bytes % 2;
                shared[at..at + bytes].copy_from_slice(&code(element(1, x, k)));
                shared[B + at..B + at + bytes].copy_from_slice(&code(element(2, x, k)));
            }
            let inst: Inst = format!("HGMMA.{shape}.HI.N2 R0, R8, R10, R0, PT")
                .parse()
                .expect("an instruction");
            let decoded = Decoded::of(&inst);
            let mut operands = Operands::default();
            for (slot, at) in [(0, 0), (1, B as u64)] {
                let word = decoded.first_word[slot] as usize;
                let bits = layout.descriptor(at);
                operands.words[word] = Lanes::splat(bits as u32);
                operands.words[word + 1] = Lanes::splat((bits >> 32) as u32);
            }
            let mut results = Results::default();
            let read = |at: usize| u16::from_le_bytes([shared[at], shared[at + 1]]);
            multiply(&inst, &decoded, &operands, 3, read, &mut results);
            for (lane, n) in (0..32).flat_map(|lane| (0..4).map(move |n| (lane, n))) {
                let (row, column) = (48 + lane / 4 + 8 * (n / 2), 16 + 2 * (lane % 4) + n % 2);
                let product: i64 = (0..depth).map(|k| element(1, row, k) * element(2, column, k)).sum();
                let word = results.words[n].0[lane];
                let got = if bytes == 1 {
                    i64::from(word as i32)
                } else {
                    f32::from_bits(word) as i64
                };
                assert_eq!(got, product, "{shape}: {row}, {column}");
            }
        }
    }
}

/// 1 + 2^-11 is half-way to the next f16, and 2^-25 more lies above it. An f32 does not hold the sum, so a second rounding would give 1.
#[test]
fn negated_product_with_half_accumulators_is_rounded_once() {
    let half = |value: f32| u32::from(half::f16::from_f32(value).to_bits());
    let [first, second] = [11f32, 13.0].map(|n| half(-(-n).exp2()));
    let inst: Inst = "HGMMA.16816F16.F16.NEG R0, R8, R12, R16, PT"
        .parse()
        .expect("an instruction");
    let decoded = Decoded::of(&inst);
    let [a, b, c] = [0, 1, 2].map(|slot| usize::from(decoded.first_word[slot]));
    let mut operands = Operands::default();
    operands.preds[0] = LaneMask::ALL;
    // Elements 0 and 1 of each row are in the first lane of its group.
    for lane in (0..32).step_by(4) {
        operands.words[a].0[lane] = first | second << 16;
        operands.words[a + 1].0[lane] = first | second << 16;
    }
    operands.words[b] = Lanes::splat(PACKED.descriptor(0) as u32);
    operands.words[b + 1] = Lanes::splat((PACKED.descriptor(0) >> 32) as u32);
    operands.words[c..c + 2].fill(Lanes::splat(half(1.0) * 0x1_0001));
    // B has 1 for element 0 and 2^-12 for element 1 of each column.
    let read = |at: usize| match at / 2 % 64 % 8 {
        0 => half(1.0) as u16,
        _ => half((-12f32).exp2()) as u16,
    };
    let mut results = Results::default();
    multiply(&inst, &decoded, &operands, 0, read, &mut results);
    assert_eq!(results.words[0], Lanes::splat(0x3c01_3c01));
    assert_eq!(results.words[1], Lanes::splat(0x3c01_3c01));
}
