//! The sum of a row of products and C, as the tensor cores of an H100 add it.

use super::N;

/// How addends are aligned.
#[derive(Clone, Copy)]
pub(in crate::exec) struct Rule {
    /// Fraction bits of an addend, below the largest exponent.
    fraction: i32,
    /// The exponent of subnormal elements of A.
    least_a: i32,
    /// The exponent of subnormal elements of B.
    least_b: i32,
    /// The exponent of a subnormal C.
    least_c: i32,
}

impl Rule {
    /// Elements of f16, and of 8-bit floats as f16.
    pub(in crate::exec) const HALF: Rule = Rule {
        fraction: 25,
        least_a: -14,
        least_b: -14,
        least_c: -126,
    };
    /// Elements of bf16 and tf32.
    pub(super) const WIDE: Rule = Rule {
        fraction: 25,
        least_a: -126,
        least_b: -126,
        least_c: -126,
    };

    /// The rule of 8-bit floats: `[A, B]` are true for e4m3.
    pub(super) fn of_group(is_e4m3: [bool; 2]) -> Rule {
        let [least_a, least_b] = is_e4m3.map(|is_e4m3| if is_e4m3 { -6 } else { -14 });
        Rule {
            fraction: 13,
            least_a,
            least_b,
            least_c: -126,
        }
    }

    /// The rule for accumulators of f16.
    pub(super) fn with_half_accumulators(self, is_half: bool) -> Rule {
        let least_c = if is_half { -14 } else { self.least_c };
        Rule { least_c, ..self }
    }

    /// The exponents of a row of B.
    #[inline(always)]
    pub(in crate::exec) fn of_row(self, row: &[f32; N]) -> [i32; N] {
        row.map(|value| exponent(value, self.least_b))
    }
}

/// The exponent of a number: the field of its type, so all subnormals have the `least` one. A product with a zero has -896 at most, and
/// any other product -252 at least, so zeros take no part.
#[inline(always)]
fn exponent(value: f32, least: i32) -> i32 {
    let normal = (f64::from(value).to_bits() >> 52 & 0x7ff) as i32 - 1023;
    if value == 0.0 { normal } else { normal.max(least) }
}

/// The exponent of infinities and NaNs.
const SPECIAL: i32 = 1024;

/// A row of sums as an H100 makes them. A term is an element of A, and a row of B with its exponents.
///
/// - The exponent of a product is the sum of the exponents of its factors. Products of zeros have none.
/// - C and the products are cut off, toward zero, `fraction` bits below the largest exponent. Their sum is exact.
/// - An infinity or a NaN makes the sum one.
///
/// Source: outputs of `mma.sync`, `mma.sp` and `wgmma` of all float types on an H100, `tests/mma.rs` of the crate.
#[inline(always)]
pub(in crate::exec) fn aligned_sum<'a>(
    rule: Rule,
    c: &[f32; N],
    terms: impl Iterator<Item = (f32, &'a [f32; N], &'a [i32; N])> + Clone,
) -> [f64; N] {
    let mut largest = c.map(|value| exponent(value, rule.least_c));
    let mut special = largest.map(|exponent| exponent == SPECIAL);
    for (a, _, exponents) in terms.clone() {
        let of_a = exponent(a, rule.least_a);
        for n in 0..N {
            largest[n] = largest[n].max(of_a + exponents[n]);
            special[n] |= of_a == SPECIAL || exponents[n] == SPECIAL;
        }
    }
    let scale = largest.map(|exponent| power_of_two(rule.fraction - exponent));
    // A cast truncates. A product is below 2^(e + 2) for the exponent sum e, so it has at most 27 bits here.
    let cut = |value: f64| f64::from(value as i32);
    let mut sums = [0.0; N];
    for n in 0..N {
        sums[n] = cut(f64::from(c[n]) * scale[n]);
    }
    for (a, b, _) in terms.clone() {
        for n in 0..N {
            sums[n] += cut(f64::from(a) * f64::from(b[n]) * scale[n]);
        }
    }
    for n in 0..N {
        sums[n] *= power_of_two(largest[n] - rule.fraction);
        if special[n] {
            // The fixed point has no infinity or NaN. A plain sum gives the right one.
            let products = terms.clone().map(|(a, b, _)| f64::from(a) * f64::from(b[n]));
            sums[n] = products.fold(f64::from(c[n]), |sum, product| sum + product);
        }
    }
    sums
}

/// 2^n, with n limited to the normal exponents of f64. Only sums of zeros, and sums with an infinity or a NaN, have exponents beyond them.
/// The former stay zero, and the latter are replaced.
#[inline(always)]
fn power_of_two(n: i32) -> f64 {
    f64::from_bits((n.clamp(-1022, 1023) + 1023) as u64 * (1 << 52))
}

/// 2^128, the least number beyond the range of f32.
const BEYOND: f64 = 2.0 * (1u128 << 127) as f64;

/// Cuts off the bits that f32 does not hold. A number from [`BEYOND`] on is an infinity.
#[inline(always)]
pub(super) fn toward_zero(value: f64) -> f32 {
    let nearest = value as f32;
    // The cast rounds a number between the largest f32 and `BEYOND` up to an infinity, one step above the largest f32.
    let is_above = f64::from(nearest).abs() > value.abs() && value.abs() < BEYOND;
    f32::from_bits(nearest.to_bits() - u32::from(is_above))
}

/// As [`toward_zero`], with the last bit set if bits are lost: a later rounding to nearest is then that of `value`.
pub(super) fn to_odd(value: f64) -> f32 {
    let cut = toward_zero(value);
    let is_inexact = cut.is_finite() && f64::from(cut) != value;
    f32::from_bits(cut.to_bits() | u32::from(is_inexact))
}
