//! FP32 addition, multiplication, fused multiply-add, minimum and maximum.
//!
//! FFMA rounds once. Host FMA instructions are not everywhere, and a C library call per lane is slow. So there are two paths:
//! - Fast: the exact product in f64, then two roundings, of the sum to f64 and then to f32.
//! - Slow: the f64 sum is rounded to odd (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
//!
//! The fast path can be wrong if the f64 sum is half-way between two f32, or the result is denormal. A warp with such a lane
//! takes the slow path.
//!
//! Directed rounding also starts from the f64 sum rounded to odd.

use super::map::{map2, map2_where, map3, update};
use super::{ExecInput, Results};
use crate::inst::{Inst, Round};
use crate::lane::{Lanes, WARP_SIZE};

/// The canonical NaN of f32 results.
pub(super) const NAN: u32 = 0x7fff_ffff;

const SIGN: u32 = 0x8000_0000;
/// The smallest normal f32, 2^-126.
const LEAST_NORMAL: u32 = 0x0080_0000;

/// Returns the bits of a result, with the canonical NaN.
#[inline(always)]
pub(super) fn bits(value: f32) -> u32 {
    if value.is_nan() { NAN } else { value.to_bits() }
}

#[inline(always)]
fn number(bits: u32) -> f32 {
    f32::from_bits(bits)
}

/// Returns a number, or a zero of its sign for a denormal.
#[inline(always)]
pub(super) fn flushed(word: u32) -> u32 {
    if word & !SIGN < LEAST_NORMAL { word & SIGN } else { word }
}

/// Flushes denormals to zeros of the same sign.
pub(super) fn flush_denormals(words: &mut Lanes) {
    update(words, flushed);
}

/// Flushes and saturates a result if the modifiers say so. NaN saturates to zero.
pub(super) fn flush_and_saturate(inst: &Inst, out: &mut Lanes) {
    if inst.mods.ftz {
        flush_denormals(out);
    }
    if inst.mods.sat {
        update(out, |word| {
            let value = number(word);
            // A NaN fails both comparisons.
            if value >= 1.0 {
                1.0f32.to_bits()
            } else if value > 0.0 {
                word
            } else {
                0
            }
        });
    }
}

pub(super) fn fadd(input: &ExecInput, results: &mut Results) {
    let out = &mut results.words[0];
    match input.inst.mods.round {
        Round::Nearest => map2(out, input.a(), input.b(), |a, b| bits(number(a) + number(b))),
        round => map2(out, input.a(), input.b(), |a, b| {
            directed(number(a), 1.0, number(b), round)
        }),
    }
    flush_and_saturate(input.inst, out);
}

pub(super) fn fmul(input: &ExecInput, results: &mut Results) {
    let out = &mut results.words[0];
    match input.inst.mods.round {
        Round::Nearest => map2(out, input.a(), input.b(), |a, b| bits(number(a) * number(b))),
        round => map2(out, input.a(), input.b(), |a, b| {
            // The product is exact.
            narrow(f64::from(number(a)) * f64::from(number(b)), round)
        }),
    }
    flush_and_saturate(input.inst, out);
}

pub(super) fn ffma(input: &ExecInput, results: &mut Results) {
    let out = &mut results.words[0];
    let [a, b, c] = [input.a(), input.b(), input.c()];
    match input.inst.mods.round {
        Round::Nearest => {
            if !fma_by_f64(out, a, b, c) {
                map3(out, a, b, c, |a, b, c| {
                    bits(fma_to_odd(number(a), number(b), number(c)) as f32)
                });
            }
        }
        round => map3(out, a, b, c, |a, b, c| directed(number(a), number(b), number(c), round)),
    }
    flush_and_saturate(input.inst, out);
}

/// Computes a * b + c with two roundings. False if a lane may differ from a single rounding.
#[inline(always)]
fn fma_by_f64(out: &mut Lanes, a: &Lanes, b: &Lanes, c: &Lanes) -> bool {
    /// Bits of an f64 that an f32 lacks, and their half-way pattern.
    const LOST: u64 = 0x1fff_ffff;
    const HALF_WAY: u64 = 0x1000_0000;
    let mut unsafe_lanes = 0u32;
    for lane in 0..WARP_SIZE {
        // The product of two f32 has at most 48 bits, so it is exact in f64.
        let sum = f64::from(number(a.0[lane])) * f64::from(number(b.0[lane])) + f64::from(number(c.0[lane]));
        let rounded = bits(sum as f32);
        let half_way = sum.to_bits() & LOST == HALF_WAY;
        // Zero wraps around and is safe. The smallest normal number may have been a denormal before rounding.
        let tiny = (rounded & !SIGN).wrapping_sub(1) < LEAST_NORMAL;
        unsafe_lanes |= u32::from(half_way | tiny);
        out.0[lane] = rounded;
    }
    unsafe_lanes == 0
}

/// Returns a * b + c rounded to odd: if the sum is inexact, its last bit is one. The product must be exact in f64.
///
/// The value rounds to any format that is at least two bits shorter as the exact sum does.
#[inline(always)]
pub(super) fn fma_to_odd(a: f32, b: f32, c: f32) -> f64 {
    let (x, y) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = x + y;
    // Knuth's TwoSum: the exact error of the sum.
    let back = sum - x;
    let error = (x - (sum - back)) + (y - back);
    // The error of an infinite sum is NaN, so it is not above zero.
    let inexact = error.abs() > 0.0;
    let bits = sum.to_bits();
    let to_odd = if inexact { !bits & 1 } else { 0 };
    // An even last bit makes way for the odd neighbour on the side of the exact sum: bits + 1, or bits - 1.
    let toward_zero = (error.to_bits() ^ bits) >> 63;
    f64::from_bits(bits.wrapping_add(to_odd).wrapping_sub(2 * (to_odd & toward_zero)))
}

/// Computes a * b + c, rounded once in direction `round`.
#[inline(always)]
fn directed(a: f32, b: f32, c: f32, round: Round) -> u32 {
    let sum = fma_to_odd(a, b, c);
    // An exact zero sum is -0 when rounded down, unless both terms are +0.
    let has_negative = c.is_sign_negative() || a.is_sign_negative() != b.is_sign_negative();
    if sum == 0.0 && round == Round::Down && has_negative {
        return SIGN;
    }
    narrow(sum, round)
}

/// Rounds a value to f32. An inexact value must be rounded to odd.
#[inline(always)]
pub(super) fn narrow(value: f64, round: Round) -> u32 {
    let nearest = value as f32;
    let back = f64::from(nearest);
    // A nearest value on the wrong side of the exact one moves by one f32.
    let down = round == Round::Down || round == Round::Zero && value > 0.0;
    let up = round == Round::Up || round == Round::Zero && value < 0.0;
    bits(if down && back > value {
        nearest.next_down()
    } else if up && back < value {
        nearest.next_up()
    } else {
        nearest
    })
}

pub(super) fn fmnmx(input: &ExecInput, results: &mut Results) {
    let nan_wins = input.inst.mods.unordered;
    map2_where(
        &mut results.words[0],
        input.operands.preds[0],
        input.a(),
        input.b(),
        |least, a, b| min_or_max(least, nan_wins, a, b),
    );
    flush_and_saturate(input.inst, &mut results.words[0]);
}

/// Returns the minimum (`least`) or maximum of two f32. Minus zero is below zero. A NaN loses, or wins with `nan_wins`.
#[inline(always)]
pub(super) fn min_or_max(least: bool, nan_wins: bool, a: u32, b: u32) -> u32 {
    // Flipping all but the sign bit of negative floats makes integer order equal to float order.
    let key = |word: u32| (word ^ (((word as i32) >> 31) as u32 >> 1)) as i32;
    let (a_is_nan, b_is_nan) = (number(a).is_nan(), number(b).is_nan());
    let chosen = if (key(a) < key(b)) == least { a } else { b };
    if a_is_nan && b_is_nan || nan_wins && (a_is_nan || b_is_nan) {
        NAN
    } else if a_is_nan {
        b
    } else if b_is_nan {
        a
    } else {
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustc_apfloat::{Float, ieee::Single};

    const EDGES: [u32; 22] = [
        0,
        SIGN,
        1,
        0x8000_0001,
        0x007f_ffff,
        0x0080_0000,
        0x8080_0000,
        0x0080_0001,
        0x3f80_0000,
        0xbf80_0000,
        0x3f80_0001,
        0x3f7f_ffff,
        0x7f7f_ffff,
        0xff7f_ffff,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0x7f80_0001,
        0x3380_0000,
        0x4b80_0000,
        0x1f80_0000,
        0x2000_0001,
    ];

    fn check(a: u32, b: u32, c: u32) {
        check_nearest(a, b, c);
        check_directed(a, b, c);
    }

    fn check_directed(a: u32, b: u32, c: u32) {
        use rustc_apfloat::Round as Mode;
        let [x, y, z] = [a, b, c].map(|word| Single::from_bits(word.into()));
        let expected = |value: Single| if value.is_nan() { NAN } else { value.to_bits() as u32 };
        for (round, mode) in [
            (Round::Zero, Mode::TowardZero),
            (Round::Down, Mode::TowardNegative),
            (Round::Up, Mode::TowardPositive),
        ] {
            let what = || format!("{a:#x}, {b:#x}, {c:#x} rounded {round:?}");
            let fused = directed(number(a), number(b), number(c), round);
            assert_eq!(fused, expected(x.mul_add_r(y, z, mode).value), "fused: {}", what());
            let sum = directed(number(a), 1.0, number(c), round);
            assert_eq!(sum, expected(x.add_r(z, mode).value), "sum: {}", what());
            let product = narrow(f64::from(number(a)) * f64::from(number(b)), round);
            assert_eq!(product, expected(x.mul_r(y, mode).value), "product: {}", what());
        }
    }

    fn check_nearest(a: u32, b: u32, c: u32) {
        let expected = bits(number(a).mul_add(number(b), number(c)));
        let slow = bits(fma_to_odd(number(a), number(b), number(c)) as f32);
        assert_eq!(slow, expected, "{a:#x} * {b:#x} + {c:#x}, rounded to odd");
        let mut out = Lanes::ZERO;
        if fma_by_f64(&mut out, &Lanes::splat(a), &Lanes::splat(b), &Lanes::splat(c)) {
            assert_eq!(out.0[0], expected, "{a:#x} * {b:#x} + {c:#x}, rounded twice");
        }
    }

    #[test]
    fn fused_product_of_edge_values_equals_the_c_library() {
        for a in EDGES {
            for b in EDGES {
                EDGES.iter().for_each(|&c| check(a, b, c));
            }
        }
    }

    #[test]
    fn fused_product_of_two_million_random_values_equals_the_c_library() {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 16) as u32
        };
        for n in 0..2_000_000 {
            let [a, b, c] = [next(), next(), next()];
            match n % 4 {
                0 => check(a, b, c),
                // Few significant bits: exact and half-way sums are common.
                1 => check(
                    a & 0xc1ff_0000 | 0x3e00_0000,
                    b & 0xc1f8_0000 | 0x3e00_0000,
                    c & 0xc1ff_f003 | 0x3e00_0000,
                ),
                // Products near the smallest normal number.
                2 => check(
                    a & 0x81ff_ffff | 0x1e00_0000,
                    b & 0x81ff_ffff | 0x1e00_0000,
                    c & 0x81ff_ffff,
                ),
                // The addend cancels the product.
                _ => check(
                    a & 0x807f_ffff | 0x3f80_0000,
                    0x3f80_0000 | b & 0xf,
                    a & 0x807f_ffff | 0xbf80_0000 & !(a & SIGN),
                ),
            }
        }
    }
}
