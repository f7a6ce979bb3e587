//! FP8: 8-bit floats, two in 16 bits of a register.
//!
//! The format e4m3 has one NaN per sign and no infinity. The format e5m2 is the upper half of an f16.
//!
//! Both formats widen to f16 exactly. Narrowing rounds once to nearest, and saturates to the largest number (PTX `.satfinite`):
//! see [`soft::narrow_byte`](super::soft::narrow_byte).

use super::half;
use crate::inst::Ty;

/// True for a pair of 8-bit floats.
pub(super) fn is_pair(ty: Ty) -> bool {
    matches!(ty, Ty::E4m3x2 | Ty::E5m2x2)
}

/// Returns the value of the low 8 bits.
#[inline(always)]
pub(super) fn value(ty: Ty, bits: u32) -> f32 {
    match ty {
        Ty::E4m3x2 => value_e4m3(bits),
        _ => half::widen(false, bits << 8 & 0xff00),
    }
}

/// Returns the value of the low 8 bits in e4m3.
#[inline(always)]
fn value_e4m3(bits: u32) -> f32 {
    let (sign, magnitude) = (bits << 8 & 0x8000, bits & 0x7f);
    if magnitude == 0x7f {
        f32::NAN
    } else {
        // Shifted into place, the bits are an f16 that is 2^8 times smaller: the exponent biases are 7 and 15.
        half::widen(false, sign | magnitude << 7) * 256.0
    }
}

/// Returns the f16 of the low 8 bits.
fn widen(ty: Ty, bits: u32) -> u32 {
    half::narrow(false, value(ty, bits))
}

/// Returns two f16 from two 8-bit floats.
pub(super) fn widen_pair(ty: Ty, pair: u32) -> u32 {
    widen(ty, pair >> 8) << 16 | widen(ty, pair)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::soft;

    #[test]
    fn every_byte_widened_and_narrowed_is_unchanged() {
        for (ty, n_numbers) in [(Ty::E4m3x2, 254), (Ty::E5m2x2, 248)] {
            let is_number = |byte: &u32| half::widen(false, widen(ty, *byte)).is_finite();
            let numbers: Vec<u32> = (0..256).filter(is_number).collect();
            assert_eq!(numbers.len(), n_numbers);
            for byte in numbers {
                let word = half::widen(false, widen(ty, byte)).to_bits();
                assert_eq!(soft::narrow_byte(ty, word), byte, "{ty:?} of {byte:#x}");
            }
        }
    }
}
