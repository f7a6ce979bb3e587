//! Elementary functions of f32 values, computed in f64 from basic arithmetic, so that every host gets the same bits.
//!
//! Error: at most 2^-40 of the result, far below half a unit in the last place of an f32. For sine and cosine near their zeros at
//! large angles, 2^-40 of one. Each series ends where its next term is below the error. Angles are reduced exactly, in integers.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_PI_4, LN_2, LOG2_E, TAU};

/// 1.5 * 2^52. Adding it rounds to an integer.
const TO_INTEGER: f64 = 6_755_399_441_055_744.0;

/// Evaluates c[0] + x (c[1] + x (c[2] + ...)).
fn polynomial<const N: usize>(x: f64, c: &[f64; N]) -> f64 {
    c.iter().rev().fold(0.0, |sum, c| sum * x + c)
}

/// Returns the reciprocals of the factorials of `first`, `first + step`, and so on. With `alternate`, every other one is negative.
const fn reciprocal_factorials<const N: usize>(first: u32, step: u32, alternate: bool) -> [f64; N] {
    let mut c = [0.0; N];
    let (mut n, mut of) = (0, 1.0);
    let (mut k, mut sign) = (0, 1.0);
    while n < N {
        while k < first + step * n as u32 {
            k += 1;
            of *= k as f64;
        }
        c[n] = sign / of;
        sign = if alternate { -sign } else { sign };
        n += 1;
    }
    c
}

/// Returns 2^x.
pub(super) fn exp2(x: f64) -> f64 {
    const SERIES: [f64; 14] = reciprocal_factorials(0, 1, false);
    match x {
        // Far beyond the range of f32 on both sides.
        _ if x > 1000.0 => f64::INFINITY,
        _ if x < -1000.0 => 0.0,
        _ if x.is_nan() => x,
        _ => {
            let whole = (x + TO_INTEGER) - TO_INTEGER;
            // 2^whole, from its exponent bits.
            let power = f64::from_bits(((1023 + whole as i64) as u64) << 52);
            polynomial((x - whole) * LN_2, &SERIES) * power
        }
    }
}

/// Returns the logarithm to base 2, from the series of the inverse hyperbolic tangent around one.
pub(super) fn log2(x: f64) -> f64 {
    const SERIES: [f64; 12] = {
        let mut c = [0.0; 12];
        let mut n = 0;
        while n < 12 {
            // ln m = 2 (t + t^3 / 3 + t^5 / 5 + ...).
            c[n] = 2.0 / (2 * n + 1) as f64;
            n += 1;
        }
        c
    };
    match x {
        0.0 => f64::NEG_INFINITY,
        _ if x < 0.0 || x.is_nan() => f64::NAN,
        f64::INFINITY => x,
        _ => {
            let bits = x.to_bits();
            // An f32 or a half is a normal f64, even if it is denormal itself.
            let exponent = (bits >> 52) as i64 - 1022;
            let half = f64::from_bits(bits & ((1 << 52) - 1) | 1022 << 52);
            // m lies between sqrt(1/2) and sqrt(2), where the series converges fast.
            let (m, exponent) = if half < FRAC_1_SQRT_2 {
                (2.0 * half, exponent - 1)
            } else {
                (half, exponent)
            };
            let t = (m - 1.0) / (m + 1.0);
            exponent as f64 + t * polynomial(t * t, &SERIES) * LOG2_E
        }
    }
}

/// Returns the hyperbolic tangent.
pub(super) fn tanh(x: f64) -> f64 {
    let size = x.abs();
    // The difference below would cancel.
    if size < 1.0 / 1024.0 {
        return x * (1.0 - x * x / 3.0);
    }
    let e = exp2(-2.0 * LOG2_E * size);
    let tanh = (1.0 - e) / (1.0 + e);
    if x < 0.0 { -tanh } else { tanh }
}

/// Returns the sine of an angle in radians.
pub(super) fn sin(x: f32) -> f64 {
    let (quarters, rest) = reduce_angle(x);
    sin_from_quarter(quarters, rest)
}

/// Returns the cosine of an angle in radians.
pub(super) fn cos(x: f32) -> f64 {
    let (quarters, rest) = reduce_angle(x);
    // cos x = sin (x + a quarter turn).
    sin_from_quarter(quarters + 1, rest)
}

/// Returns the sine of `quarters` quarter turns plus `rest`, at most an eighth of a turn.
fn sin_from_quarter(quarters: u32, rest: f64) -> f64 {
    const SINE: [f64; 9] = reciprocal_factorials(1, 2, true);
    const COSINE: [f64; 9] = reciprocal_factorials(0, 2, true);
    let square = rest * rest;
    let value = match quarters % 2 {
        0 => rest * polynomial(square, &SINE),
        _ => polynomial(square, &COSINE),
    };
    if quarters % 4 >= 2 { -value } else { value }
}

/// 1 / (2 pi), as 320 bits after the binary point.
const INV_TWO_PI: [u64; 5] = [
    0x28be_60db_9391_054a,
    0x7f09_d5f4_7d4d_3770,
    0x36d8_a566_4f10_e410,
    0x7f94_58ea_f7ae_f158,
    0x6dc9_1b8e_9093_74b8,
];

/// Returns the nearest quarter turn and the rest in radians, or NaN for infinity.
fn reduce_angle(x: f32) -> (u32, f64) {
    if f64::from(x.abs()) <= FRAC_PI_4 || x.is_nan() {
        return (0, x.into());
    }
    if x.is_infinite() {
        return (0, f64::NAN);
    }
    let bits = x.to_bits();
    let (exponent, mantissa) = ((bits >> 23 & 0xff) as i32 - 150, bits & 0x7f_ffff | 0x80_0000);
    // The fraction of a turn in units of 2^-128. Whole turns overflow and vanish.
    let turn = u128::from(mantissa).wrapping_mul(inv_two_pi_bits(exponent));
    let turn = if x < 0.0 { turn.wrapping_neg() } else { turn };
    let quarters = (turn.wrapping_add(1 << 125) >> 126) as u32;
    // As a signed number: the nearest quarter may be above the angle.
    let rest = turn.wrapping_sub(u128::from(quarters) << 126) as i128;
    let unit = f64::from_bits((1023 - 128) << 52);
    (quarters, rest as f64 * unit * TAU)
}

/// Returns 128 bits of 1 / (2 pi) * 2^exponent after the binary point. An f32 above pi / 4 has an exponent of at least -24.
fn inv_two_pi_bits(exponent: i32) -> u128 {
    let pair = |n: usize| u128::from(INV_TWO_PI[n]) << 64 | u128::from(INV_TWO_PI[n + 1]);
    let Ok(exponent) = usize::try_from(exponent) else {
        return pair(0) >> -exponent;
    };
    let (word, bit) = (exponent / 64, exponent % 64);
    match bit {
        0 => pair(word),
        _ => pair(word) << bit | u128::from(INV_TWO_PI[word + 2] >> (64 - bit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Iterates over every 4099th f32, of both signs.
    fn numbers() -> impl Iterator<Item = f32> {
        (0..0x7f80_0000u32).step_by(4099).flat_map(|bits| {
            let x = f32::from_bits(bits);
            [x, -x]
        })
    }

    /// Compares with the host's library, which differs between hosts but is accurate enough here.
    fn check(name: &str, near: f64, ours: impl Fn(f32) -> f64, hosts: impl Fn(f64) -> f64, floor: f64) {
        for x in numbers() {
            let (got, expected) = (ours(x), hosts(x.into()));
            let apart = (got - expected).abs();
            // Values beyond the range of f32 may be zero or infinity.
            let same = got == expected || got.is_nan() && expected.is_nan() || got as f32 == expected as f32;
            assert!(
                same || apart <= near * expected.abs().max(floor),
                "{name} of {x:e}: {got:e}, not {expected:e}"
            );
        }
    }

    #[test]
    fn functions_of_numbers_of_every_size_agree_with_the_library() {
        let near = 1.0 / (1u64 << 40) as f64;
        check("exp2", near, |x| exp2(x.into()), f64::exp2, 0.0);
        check("log2", near, |x| log2(x.into()), f64::log2, 0.0);
        check("tanh", near, |x| tanh(x.into()), f64::tanh, 0.0);
        check("sin", near, sin, f64::sin, f64::MIN_POSITIVE);
        check("cos", near, cos, f64::cos, f64::MIN_POSITIVE);
    }

    #[test]
    fn cosine_near_a_multiple_of_half_pi_keeps_its_digits() {
        // 16367173 * 2^72 is an f32 very near a multiple of pi / 2. The remainder is from 140-digit decimal arithmetic.
        let x = 16_367_173.0 * 4_722_366_482_869_645_213_696.0f32;
        let expected = -1.614_769_798_247_621_2e-9;
        assert!((cos(x) / expected - 1.0).abs() < 1e-12, "{:e}", cos(x));
    }
}
