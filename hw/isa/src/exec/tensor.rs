//! Matrix products. Fragments have the layout of `mma.sync` in the PTX ISA.
//!
//! Let group g = lane / 4 and position p = lane % 4. A word of A holds elements of row g or g + 8, a word of B elements of column g.
//! The accumulators of a lane are columns 2p and 2p + 1 of rows g and g + 8.
//!
//! The sum, measured on an H100 (see `aligned`):
//! - Floats: C and all products are aligned to the largest exponent, cut off 25 bits below it, and added exactly. D is the sum without
//!   its excess bits.
//! - Half accumulators: the same sum, rounded once, to nearest f16.
//! - 8-bit floats: elements 0 and 1 of each word are added to zero, then elements 2 and 3 to that, and C comes last, rounded to
//!   nearest. An H100 makes two f16 products of such an instruction.
//! - 8-bit floats of a warp group: C and all products are cut off 13 bits below the largest exponent. An f32 D has 13 fraction bits.
//! - f64: D = ((C + a0*b0) + a1*b1) + ..., each step fused, and rounded as `round` says.
//! - M8n8k4 of f16: sums of f32, each rounded to nearest (see `quads`).
//! - A sum of zero is +0.
//! - Integers: exact, then wrapped, or clamped with `sat`. Floats with `sat` are clamped to finite numbers.

pub(super) mod aligned;

use self::aligned::{Rule, aligned_sum, to_odd, toward_zero};
use super::half::{is_bf16, narrow, widen};
use super::map::wide;
use super::{ExecInput, Results, fp8, fp32, fp64, soft};
use crate::inst::{MmaShape, Round, Ty};
use crate::lane::WARP_SIZE;
use crate::opcode::Opcode;

/// Rows of A and C, and columns of B and C, in all shapes other than M8n8k4.
pub(super) const M: usize = 16;
pub(super) const N: usize = 8;

/// Function that extracts element `n` of a word of A or B.
pub(super) type Element = fn(u32, usize) -> f32;

pub(super) fn mma(input: &ExecInput, results: &mut Results) {
    match input.inst.mods.mma {
        MmaShape::M16n8k16F16 => floats::<16>(input, results, 2, f16, f16),
        MmaShape::M16n8k8F16 => floats::<8>(input, results, 2, f16, f16),
        MmaShape::M16n8k16Bf16 => floats::<16>(input, results, 2, bf16, bf16),
        MmaShape::M16n8k8Bf16 => floats::<8>(input, results, 2, bf16, bf16),
        MmaShape::M16n8k8Tf32 => floats::<8>(input, results, 1, tf32, tf32),
        MmaShape::M16n8k4Tf32 => floats::<4>(input, results, 1, tf32, tf32),
        MmaShape::M16n8k32E4m3 => bytes(input, results, e4m3 as Element, e4m3 as Element),
        MmaShape::M16n8k32E5m2 => bytes(input, results, e5m2 as Element, e5m2 as Element),
        MmaShape::M16n8k32E4m3E5m2 => bytes(input, results, e4m3 as Element, e5m2 as Element),
        MmaShape::M16n8k32E5m2E4m3 => bytes(input, results, e5m2 as Element, e4m3 as Element),
        MmaShape::M16n8k32S8 => integers::<32>(input, results, 4, s8, s8),
        MmaShape::M16n8k32U8 => integers::<32>(input, results, 4, u8, u8),
        MmaShape::M16n8k32S8U8 => integers::<32>(input, results, 4, s8, u8),
        MmaShape::M16n8k32U8S8 => integers::<32>(input, results, 4, u8, s8),
        MmaShape::M16n8k16S8 => integers::<16>(input, results, 4, s8, s8),
        MmaShape::M16n8k16U8 => integers::<16>(input, results, 4, u8, u8),
        MmaShape::M16n8k16S8U8 => integers::<16>(input, results, 4, s8, u8),
        MmaShape::M16n8k16U8S8 => integers::<16>(input, results, 4, u8, s8),
        MmaShape::M16n8k32S4 => integers::<32>(input, results, 8, s4 as Element, s4 as Element),
        MmaShape::M16n8k32U4 => integers::<32>(input, results, 8, u4 as Element, u4 as Element),
        MmaShape::M16n8k32S4U4 => integers::<32>(input, results, 8, s4 as Element, u4 as Element),
        MmaShape::M16n8k32U4S4 => integers::<32>(input, results, 8, u4 as Element, s4 as Element),
        MmaShape::M16n8k64S4 => integers::<64>(input, results, 8, s4 as Element, s4 as Element),
        MmaShape::M16n8k64U4 => integers::<64>(input, results, 8, u4 as Element, u4 as Element),
        MmaShape::M16n8k64S4U4 => integers::<64>(input, results, 8, s4 as Element, u4 as Element),
        MmaShape::M16n8k64U4S4 => integers::<64>(input, results, 8, u4 as Element, s4 as Element),
        MmaShape::M16n8k128And => bits(input, results, 1, |a, b| a & b),
        MmaShape::M16n8k128Xor => bits(input, results, 1, |a, b| a ^ b),
        MmaShape::M16n8k256And => bits(input, results, 2, |a, b| a & b),
        MmaShape::M16n8k256Xor => bits(input, results, 2, |a, b| a ^ b),
        MmaShape::M8n8k4F64 => doubles(input, results),
        MmaShape::M8n8k4F16 => quads(input, results),
    }
}

#[inline(always)]
pub(super) fn f16(word: u32, n: usize) -> f32 {
    widen(is_bf16(Ty::F16), word >> (16 * n) & 0xffff)
}

#[inline(always)]
pub(super) fn bf16(word: u32, n: usize) -> f32 {
    widen(is_bf16(Ty::Bf16), word >> (16 * n) & 0xffff)
}

/// A tf32 ignores the 13 low bits.
#[inline(always)]
pub(super) fn tf32(word: u32, _: usize) -> f32 {
    f32::from_bits(word & 0xffff_e000)
}

#[inline(always)]
pub(super) fn s8(word: u32, n: usize) -> f32 {
    f32::from((word >> (8 * n)) as i8)
}

#[inline(always)]
pub(super) fn u8(word: u32, n: usize) -> f32 {
    f32::from((word >> (8 * n)) as u8)
}

/// The two shifts extend the sign of the low four bits.
pub(super) fn s4(word: u32, n: usize) -> f32 {
    f32::from(((word >> (4 * n)) as i8) << 4 >> 4)
}

pub(super) fn u4(word: u32, n: usize) -> f32 {
    f32::from((word >> (4 * n)) as u8 & 15)
}

pub(super) fn e4m3(word: u32, n: usize) -> f32 {
    fp8::value(Ty::E4m3x2, word >> (8 * n))
}

pub(super) fn e5m2(word: u32, n: usize) -> f32 {
    fp8::value(Ty::E5m2x2, word >> (8 * n))
}

/// Gathers A (16 x K) and B (K x 8) from the lanes' words. Each word holds `each` elements along K.
#[inline(always)]
fn gather<const K: usize>(
    input: &ExecInput,
    each: usize,
    a_element: impl Fn(u32, usize) -> f32,
    b_element: impl Fn(u32, usize) -> f32,
) -> ([[f32; K]; M], [[f32; N]; K]) {
    let mut a = [[0.0; K]; M];
    let mut b = [[0.0; N]; K];
    for word in 0..K / (4 * each) {
        for n in 0..each {
            // Words of A alternate between rows g and g + 8, then go on along k.
            let rows = |word| input.word(0, word).0.map(|bits| a_element(bits, n));
            let (upper, lower) = (rows(2 * word), rows(2 * word + 1));
            let right = input.word(1, word).0.map(|bits| b_element(bits, n));
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

/// Returns the row and column of accumulator `n` of a lane.
fn accumulator(lane: usize, n: usize) -> (usize, usize) {
    (lane / 4 + 8 * (n / 2), 2 * (lane % 4) + n % 2)
}

/// Reads each row of accumulators, gets its sums from `sum`, rounds them, and writes them.
#[inline(always)]
pub(super) fn add_floats(input: &ExecInput, results: &mut Results, sum: impl Fn(usize, &[f32; N]) -> [f64; N]) {
    let is_half = has_half_accumulators(input);
    let mut c = [[0.0; N]; M];
    for_each_accumulator(|lane, n, row, column| {
        c[row][column] = match is_half {
            true => half_accumulator(input, lane, n),
            false => f32::from_bits(input.word(2, n).0[lane]),
        };
    });
    let mut d = [[0.0; N]; M];
    for (row, (d, c)) in d.iter_mut().zip(&c).enumerate() {
        *d = sum(row, c);
    }
    let is_of_group = are_bytes(input.inst.mods.mma) && input.inst.mods.high;
    let excess = if is_of_group { GROUP_EXCESS } else { 0 };
    if input.inst.mods.sat {
        let greatest = if is_half { HALF_MAX } else { f32::MAX.into() };
        d = d.map(|row| row.map(|sum| finite(sum, greatest)));
    }
    // Toward zero, as measured. The half result is rounded once more, so its f32 is to odd.
    for_each_accumulator(|lane, n, row, column| match is_half {
        true => put_half(
            results,
            lane,
            n,
            positive_zero(narrow(false, to_odd(d[row][column])), 0x8000),
        ),
        false => {
            let bits = fp32::bits(toward_zero(d[row][column]));
            // A NaN keeps all its bits.
            let kept = if d[row][column].is_nan() { bits } else { bits & !excess };
            results.words[n].0[lane] = positive_zero(kept, 0x8000_0000);
        }
    });
}

/// The bits of a sum. A negative zero, as of a negative sum that underflows, is positive.
#[inline(always)]
fn positive_zero(bits: u32, negative_zero: u32) -> u32 {
    if bits == negative_zero { 0 } else { bits }
}

/// Fraction bits that an f32 result of 8-bit floats of a warp group lacks.
const GROUP_EXCESS: u32 = 0x3ff;

/// The largest f16.
const HALF_MAX: f64 = 65504.0;

/// Clamps a sum to finite numbers. A NaN becomes zero.
///
/// Source: CUDA C++ Programming Guide, `mma_sync` with `satf`. PTX ISA 6.5 removed the modifier from products of floats.
fn finite(sum: f64, greatest: f64) -> f64 {
    if sum.is_nan() {
        0.0
    } else {
        sum.clamp(-greatest, greatest)
    }
}

#[inline(always)]
fn floats<const K: usize>(
    input: &ExecInput,
    results: &mut Results,
    each: usize,
    a: impl Fn(u32, usize) -> f32,
    b: impl Fn(u32, usize) -> f32,
) {
    let (a, b) = gather::<K>(input, each, a, b);
    let rule = rule_of(input);
    let exponents = b.map(|row| rule.of_row(&row));
    add_floats(input, results, |row, c| {
        let columns = b.iter().zip(&exponents);
        aligned_sum(
            rule,
            c,
            a[row].iter().zip(columns).map(|(&a, (b, exponents))| (a, b, exponents)),
        )
    });
}

/// Products of 8-bit floats: one sum for a warp group, and two sums of half the depth for a warp.
fn bytes(input: &ExecInput, results: &mut Results, a: Element, b: Element) {
    if input.inst.mods.high {
        return floats::<32>(input, results, 4, a, b);
    }
    let (a, b) = gather::<32>(input, 4, a, b);
    let exponents = b.map(|row| Rule::HALF.of_row(&row));
    add_floats(input, results, |row, c| {
        in_two_halves(c, |half| {
            let columns = (0..32).filter(move |k| k % 4 / 2 == half);
            columns.map(|k| (a[row][k], &b[k], &exponents[k]))
        })
    });
}

/// The sums of the 8-bit floats of a warp: elements 0 and 1 of each word first, then 2 and 3. `terms` gives those of a half.
#[inline(always)]
pub(super) fn in_two_halves<'a, T>(c: &[f32; N], terms: impl Fn(usize) -> T) -> [f64; N]
where
    T: Iterator<Item = (f32, &'a [f32; N], &'a [i32; N])> + Clone,
{
    // Both halves are products of f16, which have subnormal e4m3 as normal numbers.
    let half = |c: &[f32; N], half: usize| aligned_sum(Rule::HALF, c, terms(half)).map(toward_zero);
    let sums = half(&half(&[0.0; N], 0), 1);
    std::array::from_fn(|n| f64::from(sums[n] + c[n]))
}

/// True for a shape of 8-bit floats.
pub(super) fn are_bytes(shape: MmaShape) -> bool {
    use MmaShape::*;
    matches!(shape, M16n8k32E4m3 | M16n8k32E5m2 | M16n8k32E4m3E5m2 | M16n8k32E5m2E4m3)
}

/// The rule of a product of floats.
pub(super) fn rule_of(input: &ExecInput) -> Rule {
    use MmaShape::*;
    let mods = &input.inst.mods;
    let rule = match mods.mma {
        M16n8k16Bf16 | M16n8k8Bf16 | M16n8k8Tf32 | M16n8k4Tf32 => Rule::WIDE,
        shape if are_bytes(shape) && mods.high => Rule::of_group(are_e4m3(shape)),
        _ => Rule::HALF,
    };
    rule.with_half_accumulators(has_half_accumulators(input))
}

/// True for e4m3 in A and in B of a shape of 8-bit floats. Otherwise they have e5m2.
fn are_e4m3(shape: MmaShape) -> [bool; 2] {
    match shape {
        MmaShape::M16n8k32E4m3 => [true, true],
        MmaShape::M16n8k32E4m3E5m2 => [true, false],
        MmaShape::M16n8k32E5m2E4m3 => [false, true],
        _ => [false, false],
    }
}

fn has_half_accumulators(input: &ExecInput) -> bool {
    input.inst.mods.mma.has_half_accumulators(input.inst.mods.ty)
}

/// Returns accumulator `n` of a lane, one half of a packed register.
fn half_accumulator(input: &ExecInput, lane: usize, n: usize) -> f32 {
    widen(false, input.word(2, n / 2).0[lane] >> (16 * (n % 2)) & 0xffff)
}

/// Writes the bits of an f16 as accumulator `n` of a lane.
fn put_half(results: &mut Results, lane: usize, n: usize, bits: u32) {
    let (word, shift) = (&mut results.words[n / 2].0[lane], 16 * (n % 2));
    *word = *word & !(0xffff << shift) | bits << shift;
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

/// Integer products in f32, which every host multiplies faster.
#[inline(always)]
fn integers<const K: usize>(
    input: &ExecInput,
    results: &mut Results,
    each: usize,
    a: impl Fn(u32, usize) -> f32,
    b: impl Fn(u32, usize) -> f32,
) {
    let (a, b) = gather::<K>(input, each, a, b);
    let mut sums = [[0.0; N]; M];
    accumulate(&a, &b, &mut sums);
    // Exact: a sum of 32 byte products, or of 64 smaller products, is below 2^24.
    add_integers(input, results, |row, column| sums[row][column] as i32);
}

/// Single-bit products: counts the bits set after a row and a column are combined.
fn bits(input: &ExecInput, results: &mut Results, words: usize, join: impl Fn(u32, u32) -> u32) {
    add_integers(input, results, |row, column| {
        // Lane 4g + p has the bits of row g (or column g) from 32 p on.
        let pair = |word: usize, p: usize| {
            let a = input.word(0, 2 * word + row / 8).0[row % 8 * 4 + p];
            join(a, input.word(1, word).0[column * 4 + p])
        };
        let all = (0..words).flat_map(|word| (0..4).map(move |p| (word, p)));
        all.map(|(word, p)| pair(word, p).count_ones() as i32).sum()
    });
}

/// Adds sums to the accumulators, wrapped or clamped.
#[inline(always)]
pub(super) fn add_integers(input: &ExecInput, results: &mut Results, sum: impl Fn(usize, usize) -> i32) {
    let clamped = input.inst.mods.sat;
    for_each_accumulator(|lane, n, row, column| {
        let (start, sum) = (input.word(2, n).0[lane] as i32, sum(row, column));
        let total = if clamped {
            start.saturating_add(sum)
        } else {
            start.wrapping_add(sum)
        };
        results.words[n].0[lane] = total as u32;
    });
}

fn doubles(input: &ExecInput, results: &mut Results) {
    let round = input.inst.mods.round;
    let a = |row: usize, k: usize| f64::from_bits(wide(input.pair(0), 4 * row + k));
    let b = |k: usize, column: usize| f64::from_bits(wide(input.pair(1), 4 * column + k));
    for lane in 0..WARP_SIZE {
        for n in 0..2 {
            let (row, column) = (lane / 4, 2 * (lane % 4) + n);
            let start = wide([input.word(2, 2 * n), input.word(2, 2 * n + 1)], lane);
            // In rising k, each step fused, as in the module doc.
            let sum = (0..4).fold(start, |sum, k| fused(a(row, k), b(k, column), sum, round));
            results.words[2 * n].0[lane] = sum as u32;
            results.words[2 * n + 1].0[lane] = (sum >> 32) as u32;
        }
    }
}

/// The bits of a * b + c, rounded once.
fn fused(a: f64, b: f64, c: u64, round: Round) -> u64 {
    match round {
        Round::Nearest => fp64::bits(a.mul_add(b, f64::from_bits(c))),
        _ => soft::f64_arithmetic(Opcode::Dfma, [a.to_bits(), b.to_bits(), c], round),
    }
}

/// Four products of 8 by 8 by 4, each by eight lanes.
///
/// Product q has lanes 4q to 4q + 3. The lanes 16 above hold its upper four rows or columns.
/// Lane t holds line t % 4: a row of A (column with `right`), a column of B (row with `trans`).
/// It computes the four accumulators from 4 * `count` on. Half accumulators of a lane lie in one row.
/// If `from` is F16, C has halves and D has f32. C is then all eight halves of a lane.
///
/// Each sum is rounded to nearest f32. With products p0 to p3, D is C + (((p0 + p1) + p2) + p3). With half accumulators it is
/// (C + (p0 + p1)) + (p2 + p3), rounded to f16. Source: an H100, which has no such instruction of its own.
fn quads(input: &ExecInput, results: &mut Results) {
    let mods = &input.inst.mods;
    let has_halves = has_half_accumulators(input);
    let half =
        |slot: usize, lane: usize, n: usize| widen(false, input.word(slot, n / 2).0[lane] >> (16 * (n % 2)) & 0xffff);
    // An element along the operand's own line, or across the lines of four lanes.
    let element = |slot: usize, turned: bool, first: usize, line: usize, k: usize| match turned {
        false => half(slot, first + line % 4 + line / 4 * 16, k),
        true => half(slot, first + k + line / 4 * 16, line % 4),
    };
    for lane in 0..WARP_SIZE {
        let first = lane % 16 / 4 * 4;
        let lower = lane / 16 * 4;
        for n in 0..4 {
            let i = 4 * (mods.count as usize % 2) + n;
            let (row, column) = match has_halves {
                true => (lane % 4 + lower, i),
                // PTX ISA, accumulators of mma.m8n8k4 in f32. With halves, a lane has one row.
                false => ((lane & 1) + (i & 2) + lower, (i & 4) + (lane & 2) + (i & 1)),
            };
            let start = match () {
                () if has_halves => half_accumulator(input, lane, n),
                // C has the layout of halves: a row in each lane.
                () if mods.from == Ty::F16 => half(2, first + row % 4 + row / 4 * 16, column),
                () => f32::from_bits(input.word(2, n).0[lane]),
            };
            // Exact: the product of two f16 fits an f32.
            let [p0, p1, p2, p3]: [f32; 4] = std::array::from_fn(|k| {
                element(0, mods.right, first, row, k) * element(1, mods.trans, first, column, k)
            });
            match has_halves {
                true => put_half(results, lane, n, narrow(false, (start + (p0 + p1)) + (p2 + p3))),
                false => results.words[n].0[lane] = fp32::bits(start + (((p0 + p1) + p2) + p3)),
            }
        }
    }
}
