//! Matrix products. Which element a lane's registers hold is the fragment layout of `mma.sync` in the PTX ISA.
//!
//! With group g = lane / 4 and position p = lane % 4, a word of A holds elements of row g or g + 8, one of B elements of column g,
//! and the accumulators of a lane are those of columns 2p and 2p + 1 in rows g and g + 8.
//!
//! Order of the sum: D = ((C + a0*b0) + a1*b1) + ..., in rising k, each sum rounded to f32 to nearest. The products of f16, bf16 and
//! tf32 are exact in f32 (22 bits at most; a bf16 or tf32 product outside the range of f32 is rounded like any f32 product).
//! f64 is fused, in the same order. Integers are exact, wrapped or (`sat`) clamped at the end. tf32 ignores the 13 low bits.

use super::half::{is_brain, widen};
use super::map::wide;
use super::{Results, Step, fp32, fp64};
use crate::inst::{MmaShape, Ty};
use crate::lane::WARP_SIZE;

/// Rows of A and C, and columns of B and C, of all shapes but the f64 one.
const M: usize = 16;
const N: usize = 8;

pub(super) fn mma(step: &Step, results: &mut Results) {
    let half = |brain| move |word: u32, n: usize| widen(brain, word >> (16 * n) & 0xffff);
    let tf32 = |word: u32, _| f32::from_bits(word & 0xffff_e000);
    let signed = |word: u32, n: usize| f32::from((word >> (8 * n)) as i8);
    let unsigned = |word: u32, n: usize| f32::from((word >> (8 * n)) as u8);
    match step.inst.mods.mma {
        MmaShape::M16n8k16F16 => floats::<16>(step, results, 2, half(is_brain(Ty::F16))),
        MmaShape::M16n8k8F16 => floats::<8>(step, results, 2, half(is_brain(Ty::F16))),
        MmaShape::M16n8k16Bf16 => floats::<16>(step, results, 2, half(is_brain(Ty::Bf16))),
        MmaShape::M16n8k8Tf32 => floats::<8>(step, results, 1, tf32),
        MmaShape::M16n8k4Tf32 => floats::<4>(step, results, 1, tf32),
        MmaShape::M16n8k32S8 => integers::<32>(step, results, signed),
        MmaShape::M16n8k32U8 => integers::<32>(step, results, unsigned),
        MmaShape::M16n8k16S8 => integers::<16>(step, results, signed),
        MmaShape::M16n8k16U8 => integers::<16>(step, results, unsigned),
        MmaShape::M8n8k4F64 => doubles(step, results),
    }
}

/// A (16 x K) and B (K x 8) from the lanes' words, each of which holds `each` elements along K.
#[inline(always)]
fn gather<const K: usize>(
    step: &Step,
    each: usize,
    element: impl Fn(u32, usize) -> f32,
) -> ([[f32; K]; M], [[f32; N]; K]) {
    let mut a = [[0.0; K]; M];
    let mut b = [[0.0; N]; K];
    for word in 0..K / (4 * each) {
        for n in 0..each {
            let elements = |slot, word| step.word(slot, word).0.map(|bits| element(bits, n));
            let (upper, lower, right) = (elements(0, 2 * word), elements(0, 2 * word + 1), elements(1, word));
            for lane in 0..WARP_SIZE {
                let (group, k) = (lane / 4, lane % 4 * each + n + word * 4 * each);
                a[group][k] = upper[lane];
                a[group + 8][k] = lower[lane];
                b[k][group] = right[lane];
            }
        }
    }
    (a, b)
}

/// Adds the products to the sums, in rising k.
#[inline(always)]
fn accumulate<const K: usize>(a: &[[f32; K]; M], b: &[[f32; N]; K], sums: &mut [[f32; N]; M]) {
    for (sums, a) in sums.iter_mut().zip(a) {
        let mut row = *sums;
        for (a, b) in a.iter().zip(b) {
            for (sum, b) in row.iter_mut().zip(b) {
                *sum += *a * *b;
            }
        }
        *sums = row;
    }
}

/// Row and column of accumulator `n` of a lane.
fn accumulator(lane: usize, n: usize) -> (usize, usize) {
    (lane / 4 + 8 * (n / 2), 2 * (lane % 4) + n % 2)
}

#[inline(always)]
fn floats<const K: usize>(step: &Step, results: &mut Results, each: usize, element: impl Fn(u32, usize) -> f32) {
    let (a, b) = gather::<K>(step, each, element);
    let mut sums = [[0.0; N]; M];
    for_each_accumulator(|lane, n, row, column| sums[row][column] = f32::from_bits(step.word(2, n).0[lane]));
    accumulate(&a, &b, &mut sums);
    for_each_accumulator(|lane, n, row, column| results.words[n].0[lane] = fp32::bits(sums[row][column]));
}

#[inline(always)]
fn for_each_accumulator(mut f: impl FnMut(usize, usize, usize, usize)) {
    for lane in 0..WARP_SIZE {
        for n in 0..4 {
            let (row, column) = accumulator(lane, n);
            f(lane, n, row, column);
        }
    }
}

/// The sum of 32 products of bytes, or fewer, is below 2^24, and so exact in f32, which every host multiplies faster.
#[inline(always)]
fn integers<const K: usize>(step: &Step, results: &mut Results, element: impl Fn(u32, usize) -> f32) {
    let (a, b) = gather::<K>(step, 4, element);
    let mut sums = [[0.0; N]; M];
    accumulate(&a, &b, &mut sums);
    let clamped = step.inst.mods.sat;
    for_each_accumulator(|lane, n, row, column| {
        let (start, sum) = (step.word(2, n).0[lane] as i32, sums[row][column] as i32);
        let total = if clamped {
            start.saturating_add(sum)
        } else {
            start.wrapping_add(sum)
        };
        results.words[n].0[lane] = total as u32;
    });
}

fn doubles(step: &Step, results: &mut Results) {
    let a = |row: usize, k: usize| f64::from_bits(wide(step.pair(0), 4 * row + k));
    let b = |k: usize, column: usize| f64::from_bits(wide(step.pair(1), 4 * column + k));
    for lane in 0..WARP_SIZE {
        for n in 0..2 {
            let (row, column) = (lane / 4, 2 * (lane % 4) + n);
            let start = f64::from_bits(wide([step.word(2, 2 * n), step.word(2, 2 * n + 1)], lane));
            let sum = fp64::bits((0..4).fold(start, |sum, k| a(row, k).mul_add(b(k, column), sum)));
            results.words[2 * n].0[lane] = sum as u32;
            results.words[2 * n + 1].0[lane] = (sum >> 32) as u32;
        }
    }
}
