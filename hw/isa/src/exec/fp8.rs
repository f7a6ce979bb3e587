//! Floats of eight bits, two to 16 bits of a register: e4m3, which has no infinity and one NaN, and e5m2, the upper half of an f16.
//!
//! Both widen to f16 without loss. Narrowing rounds once to nearest; a value out of range becomes the largest number
//! (PTX `.satfinite`), see [`soft::narrow_byte`](super::soft::narrow_byte).

use super::half;
use crate::inst::Ty;

/// Whether the type is a pair of these.
pub(super) fn is_pair(ty: Ty) -> bool {
    matches!(ty, Ty::E4m3x2 | Ty::E5m2x2)
}

/// The value of eight bits; those above are ignored.
#[inline(always)]
pub(super) fn value(ty: Ty, bits: u32) -> f32 {
    match ty {
        Ty::E4m3x2 => value_e4m3(bits),
        _ => half::widen(false, bits << 8 & 0xff00),
    }
}

/// In place, the bits are those of an f16 that is 2^8 times smaller, since the biases are 7 and 15.
#[inline(always)]
fn value_e4m3(bits: u32) -> f32 {
    let (sign, magnitude) = (bits << 8 & 0x8000, bits & 0x7f);
    if magnitude == 0x7f {
        f32::NAN
    } else {
        half::widen(false, sign | magnitude << 7) * 256.0
    }
}

/// The f16 of eight bits; those above are ignored.
fn widen(ty: Ty, bits: u32) -> u32 {
    half::narrow(false, value(ty, bits))
}

/// Two f16 of two times eight bits.
pub(super) fn widen_pair(ty: Ty, pair: u32) -> u32 {
    widen(ty, pair >> 8) << 16 | widen(ty, pair)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::soft;

    #[test]
    fn every_byte_survives_the_way_through_f32() {
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
