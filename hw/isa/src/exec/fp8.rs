//! Floats of eight bits, two to 16 bits of a register: e4m3, which has no infinity and one NaN, and e5m2, the upper half of an f16.
//!
//! Both widen to f16 without loss. Narrowing rounds once to nearest; what is out of range becomes the largest number (PTX `.satfinite`).

use super::half;
use super::soft::{E4M3, E5M2, F16, F32, Value};
use crate::inst::{Round, Ty};

/// Whether the type is a pair of these.
pub(super) fn is_pair(ty: Ty) -> bool {
    matches!(ty, Ty::E4m3x2 | Ty::E5m2x2)
}

/// The eight bits nearest to an f32.
pub(super) fn narrow(ty: Ty, word: u32) -> u32 {
    let value = F32.unpack(word.into());
    let bits = match ty {
        Ty::E4m3x2 => E4M3.pack_saturated(value, 0x7e),
        _ => E5M2.pack_saturated(value, 0x7b),
    };
    bits as u32
}

/// The f16 of eight bits; those above are ignored.
fn widen(ty: Ty, bits: u32) -> u32 {
    let magnitude = u64::from(bits & 0x7f);
    let value = match ty {
        Ty::E4m3x2 if magnitude == 0x7f => Value::Nan,
        Ty::E4m3x2 => Value::Finite(E4M3.unpack_finite(bits & 0x80 != 0, magnitude)),
        _ => E5M2.unpack(u64::from(bits & 0xff)),
    };
    F16.pack(value, Round::Nearest) as u32
}

/// The value of eight bits; those above are ignored.
pub(super) fn value(ty: Ty, bits: u32) -> f32 {
    half::widen(false, widen(ty, bits))
}

/// Two f16 of two times eight bits.
pub(super) fn widen_pair(ty: Ty, pair: u32) -> u32 {
    widen(ty, pair >> 8) << 16 | widen(ty, pair)
}

#[test]
fn every_byte_survives_the_way_through_f32() {
    for (ty, n_numbers) in [(Ty::E4m3x2, 254), (Ty::E5m2x2, 248)] {
        let is_number = |byte: &u32| half::widen(false, widen(ty, *byte)).is_finite();
        let numbers: Vec<u32> = (0..256).filter(is_number).collect();
        assert_eq!(numbers.len(), n_numbers);
        for byte in numbers {
            let word = half::widen(false, widen(ty, byte)).to_bits();
            assert_eq!(narrow(ty, word), byte, "{ty:?} of {byte:#x}");
        }
    }
}
