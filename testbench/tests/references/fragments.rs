//! Matrix products on raw fragments: `mma.m16n8k32` (bytes), `mma.m16n8k8` (tf32) and `mma.m16n8k16` (bf16). The layout of the fragments is
//! from the PTX manual.
//!
//! A lane is `4 * group + thread`. Register `i` of the left factor holds row `group`, or `group + 8` where `i` is odd. It holds the
//! second half of the depth where `i` is 2 or 3. Register `i` of the right factor holds column `group` and half `i` of the depth.
//! In each register the depth runs over `thread`, then over the register's parts.

use super::matrix::{Extents, product};
use half::bf16;

/// Left factor's element at `row` and depth `k`; `parts` elements share a register.
fn left<T>(words: &[u32], parts: usize, row: usize, k: usize, part: impl Fn(u32, usize) -> T) -> T {
    let register = row / 8 + 2 * (k / (4 * parts));
    let lane = 4 * (row % 8) + k / parts % 4;
    part(words[4 * lane + register], k % parts)
}

/// Right factor's element at depth `k` and column `col`.
fn right<T>(words: &[u32], parts: usize, k: usize, col: usize, part: impl Fn(u32, usize) -> T) -> T {
    let lane = 4 * col + k / parts % 4;
    part(words[2 * lane + k / (4 * parts)], k % parts)
}

/// The product as the lanes hold it: rows `group` and `group + 8`, columns `2 * thread` and `2 * thread + 1`.
fn by_lane(c: &[f64]) -> Vec<f64> {
    let element = |lane: usize, i: usize| c[(lane / 4 + 8 * (i / 2)) * 8 + 2 * (lane % 4) + i % 2];
    (0..128).map(|at| element(at / 4, at % 4)).collect()
}

fn multiply(a: &[u32], b: &[u32], parts: usize, part: impl Fn(u32, usize) -> f64 + Copy) -> Vec<f64> {
    let size = Extents {
        m: 16,
        n: 8,
        k: 8 * parts,
    };
    by_lane(&product(
        size,
        |row, k| left(a, parts, row, k, part),
        |k, col| right(b, parts, k, col, part),
    ))
}

/// One product of signed bytes. Sums stay far below 2^31 and below 2^53, so f64 is exact and nothing saturates.
pub fn s8(a: &[u32], b: &[u32]) -> Vec<i32> {
    let byte = |word: u32, n: usize| f64::from((word >> (8 * n)) as i8);
    multiply(a, b, 4, byte).iter().map(|&v| v as i32).collect()
}

/// One product of tf32, plus one of pairs of bf16, on the same words.
pub fn tf32_bf16(a: &[u32], b: &[u32]) -> Vec<f32> {
    let tf32 = |word: u32, _: usize| f64::from(f32::from_bits(word));
    let halves = |word: u32, n: usize| f64::from(bf16::from_bits((word >> (16 * n)) as u16));
    multiply(a, b, 1, tf32)
        .iter()
        .zip(multiply(a, b, 2, halves))
        .map(|(x, y)| (x + y) as f32)
        .collect()
}

/// Words that are small numbers both as one tf32 and as two bf16: the high half `±(4 + k/2)`, the low half 0 or `±2`.
/// The tf32 reading sees the top of the low half as the end of its fraction; the 13 bits below are clear.
pub fn tf32_bf16_words(seed: u32, n: usize) -> Vec<u32> {
    let word = |n: u32| {
        let bits = n.wrapping_add(seed).wrapping_mul(0x9E37_79B9) >> 16;
        let sign = if bits & 1 == 0 { 1.0 } else { -1.0 };
        let high = bf16::from_f32(sign * (4.0 + (bits >> 1 & 7) as f32 / 2.0));
        let low = bf16::from_f32([0.0, 2.0, 0.0, -2.0][(bits >> 4 & 3) as usize]);
        u32::from(high.to_bits()) << 16 | u32::from(low.to_bits())
    };
    (0..n as u32).map(word).collect()
}
