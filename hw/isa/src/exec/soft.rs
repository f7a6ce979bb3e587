//! Software floating point, by [`rustc_apfloat`], for operations without a host instruction. These are directed rounding of f64 and of
//! 16-bit results, integers to 16-bit floats, and narrowing to 8-bit floats. Each operation rounds once.
//!
//! All f32 arithmetic, and all rounding to nearest of f64, stays with the host ([`super::fp32`], [`super::fp64`]). `fma.rm.f32` is in
//! every `expf`: 6 ns a lane there, 48 ns here.

use rustc_apfloat::ieee::{BFloat, Double, Float8E4M3FN, Float8E5M2, Half, Single};
use rustc_apfloat::{Float, FloatConvert};

use super::{fp64, half};
use crate::inst::{Round, Ty};
use crate::opcode::Opcode;

/// The NaN of an 8-bit float.
const BYTE_NAN: u64 = 0x7f;

fn mode(round: Round) -> rustc_apfloat::Round {
    match round {
        Round::Nearest => rustc_apfloat::Round::NearestTiesToEven,
        Round::Zero => rustc_apfloat::Round::TowardZero,
        Round::Down => rustc_apfloat::Round::TowardNegative,
        Round::Up => rustc_apfloat::Round::TowardPositive,
    }
}

/// The bits of a result, any NaN made the canonical one.
fn bits(value: impl Float, nan: u64) -> u64 {
    if value.is_nan() { nan } else { value.to_bits() as u64 }
}

fn convert<From: FloatConvert<To>, To: Float>(value: From, round: Round) -> To {
    value.convert_r(mode(round), &mut false).value
}

/// DADD, DMUL or DFMA of the bits of f64 operands.
pub(super) fn f64_arithmetic(op: Opcode, operands: [u64; 3], round: Round) -> u64 {
    let [a, b, c] = operands.map(|bits| Double::from_bits(bits.into()));
    let round = mode(round);
    let result = match op {
        Opcode::Dadd => a.add_r(b, round),
        Opcode::Dmul => a.mul_r(b, round),
        _ => a.mul_add_r(b, c, round),
    };
    bits(result.value, fp64::NAN)
}

/// a * b + c of the bits of bf16 numbers.
pub(super) fn bf16_fma(operands: [u32; 3], round: Round) -> u32 {
    let [a, b, c] = operands.map(|bits| BFloat::from_bits(bits.into()));
    bits(a.mul_add_r(b, c, mode(round)).value, half::NAN.into()) as u32
}

/// Converts an integer to the float type `ty`, or to one half if `ty` is packed.
pub(super) fn from_integer(ty: Ty, value: i128, round: Round) -> u64 {
    let round = mode(round);
    match ty {
        Ty::F16 | Ty::F16x2 => Half::from_i128_r(value, round).value.to_bits() as u64,
        Ty::Bf16 | Ty::Bf16x2 => BFloat::from_i128_r(value, round).value.to_bits() as u64,
        Ty::F64 => Double::from_i128_r(value, round).value.to_bits() as u64,
        _ => Single::from_i128_r(value, round).value.to_bits() as u64,
    }
}

/// The f16 of a value, or the bf16 if `brain`.
pub(super) fn narrow_half(brain: bool, value: f64, round: Round) -> u32 {
    let value = Double::from_bits(value.to_bits().into());
    let nan = half::NAN.into();
    let half = if brain {
        bits(convert::<_, BFloat>(value, round), nan)
    } else {
        bits(convert::<_, Half>(value, round), nan)
    };
    half as u32
}

/// The 8-bit float of type `ty` nearest to an f32, or the largest number if the value is out of range.
pub(super) fn narrow_byte(ty: Ty, word: u32) -> u32 {
    fn saturated<To: Float>(value: Single) -> u32
    where
        Single: FloatConvert<To>,
    {
        let narrow: To = convert(value, Round::Nearest);
        let greatest = if value.is_negative() {
            -To::largest()
        } else {
            To::largest()
        };
        // E4M3 has no infinity: an overflow is a NaN there, which the source was not.
        let result = if narrow.is_finite() || value.is_nan() {
            narrow
        } else {
            greatest
        };
        bits(result, BYTE_NAN) as u32
    }
    let value = Single::from_bits(word.into());
    match ty {
        Ty::E4m3x2 => saturated::<Float8E4M3FN>(value),
        _ => saturated::<Float8E5M2>(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(state: &mut u64) -> u64 {
        *state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let mixed = (*state ^ *state >> 33).wrapping_mul(0xff51afd7ed558ccd);
        mixed ^ mixed >> 33
    }

    fn same(got: u64, expected: f64) {
        assert_eq!(
            got,
            fp64::bits(expected),
            "got {:e}, expected {expected:e}",
            f64::from_bits(got)
        );
    }

    #[test]
    fn random_doubles_rounded_to_nearest_agree_with_the_host() {
        let mut state = 1;
        for n in 0..300_000 {
            let operands = [(); 3].map(|_| random(&mut state));
            // Half of the cases have exponents close together, where cancellation happens.
            let near = |bits: u64| {
                if n % 2 == 0 {
                    bits
                } else {
                    bits & 0x803f_ffff_ffff_ffff | 0x3fc0_0000_0000_0000
                }
            };
            let operands = operands.map(near);
            let [a, b, c] = operands.map(f64::from_bits);
            let soft = |op| f64_arithmetic(op, operands, Round::Nearest);
            same(soft(Opcode::Dadd), a + b);
            same(soft(Opcode::Dmul), a * b);
            same(soft(Opcode::Dfma), a.mul_add(b, c));
        }
    }

    #[test]
    fn more_than_half_a_unit_each_rounding_brackets_it() {
        let bits = |round| from_integer(Ty::F32, (1 << 25) + 3, round);
        assert_eq!(bits(Round::Zero), 0x4c00_0000);
        assert_eq!(bits(Round::Down), 0x4c00_0000);
        assert_eq!(bits(Round::Up), 0x4c00_0001);
        assert_eq!(bits(Round::Nearest), 0x4c00_0001);
    }

    #[test]
    fn cancelled_sum_sign_follows_the_rounding() {
        let sum = |round| f64_arithmetic(Opcode::Dadd, [1f64.to_bits(), (-1f64).to_bits(), 0], round);
        assert_eq!(sum(Round::Nearest), 0);
        assert_eq!(sum(Round::Down), (-0f64).to_bits());
    }

    #[test]
    fn half_too_large_directed_rounding_stays_finite() {
        assert_eq!(from_integer(Ty::F16, 65520, Round::Nearest), 0x7c00);
        assert_eq!(from_integer(Ty::F16, 65520, Round::Zero), 0x7bff);
        assert_eq!(from_integer(Ty::F16, -65536, Round::Up), 0xfbff);
        assert_eq!(narrow_half(false, 65520.0, Round::Nearest), 0x7c00);
        assert_eq!(narrow_half(false, 65520.0, Round::Zero), 0x7bff);
    }

    /// 1 is 0x3f80, and the next bf16 is 2^-7 above it. 2^-9 is 0x3b00. The largest number is 0x7f7f.
    #[test]
    fn fused_bf16_is_rounded_as_it_says() {
        use Round::{Down, Nearest, Up, Zero};
        let cases = [
            ([0x3f80, 0x3f80, 0x3b00], [0x3f80, 0x3f80, 0x3f80, 0x3f81]),
            ([0xbf80, 0x3f80, 0xbb00], [0xbf80, 0xbf80, 0xbf81, 0xbf80]),
            // An exact difference of zero.
            ([0x3f80, 0x3f80, 0xbf80], [0, 0, 0x8000, 0]),
            // An overflow.
            ([0x7f7f, 0x4000, 0], [0x7f80, 0x7f7f, 0x7f7f, 0x7f80]),
            // Infinity times zero.
            ([0x7f80, 0, 0x3f80], [0x7fff; 4]),
        ];
        for (operands, expected) in cases {
            let found = [Nearest, Zero, Down, Up].map(|round| bf16_fma(operands, round));
            assert_eq!(found, expected, "{operands:x?}");
        }
    }

    #[test]
    fn out_of_range_a_byte_is_the_largest_number() {
        let narrow = |ty, value: f32| narrow_byte(ty, value.to_bits());
        // 448 is the largest e4m3; 464 lies half-way to the next, which is the NaN.
        assert_eq!(
            [464.0, 465.0, f32::INFINITY].map(|value| narrow(Ty::E4m3x2, value)),
            [0x7e; 3]
        );
        assert_eq!(narrow(Ty::E4m3x2, -1e9), 0xfe);
        assert_eq!(
            [57344.0, 1e9, f32::INFINITY].map(|value| narrow(Ty::E5m2x2, value)),
            [0x7b; 3]
        );
        assert_eq!([Ty::E4m3x2, Ty::E5m2x2].map(|ty| narrow(ty, -f32::NAN)), [0x7f; 2]);
    }
}
