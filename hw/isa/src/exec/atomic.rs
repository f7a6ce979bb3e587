//! Arithmetic of atomics: the new value of a word. The L2, shared memory and the untimed reference all use [`atomic`].

use super::half::{is_bf16, narrow, widen};
use super::{fp32, fp64, mbarrier};
use crate::inst::{AtomOp, Ty};

/// The unit that performs an atomic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtomicUnit {
    /// The L2, for global memory. Its f32 addition flushes subnormal operands and results to zeros of the same sign (PTX ISA, `atom`).
    L2,
    /// Shared memory, which keeps subnormal numbers.
    Shared,
}

/// Returns the new value, in the low bits of the type's width. CAS stores `operand` if the old value equals `compare`.
///
/// - Float addition rounds to nearest. Only f32 addition in the L2 flushes denormals. EXCH and CAS treat floats as bits.
/// - Min and max of halves: a NaN loses.
/// - INC and DEC wrap at `operand`, as in PTX.
/// - Words of 128 bits have EXCH and CAS only.
///
/// ```
/// use warpwave_isa::exec::atomic::{AtomicUnit, atomic};
/// use warpwave_isa::inst::{AtomOp, Ty};
/// let atomic = |op, ty, old, operand, compare| atomic(AtomicUnit::L2, op, ty, old, operand, compare);
/// assert_eq!(atomic(AtomOp::Add, Ty::U32, 0xffff_ffff, 2, 0), 1);
/// assert_eq!(atomic(AtomOp::Min, Ty::S32, 5, 0xffff_ffff, 0), 0xffff_ffff);
/// assert_eq!(atomic(AtomOp::Cas, Ty::U32, 7, 9, 7), 9);
/// ```
pub fn atomic(unit: AtomicUnit, op: AtomOp, ty: Ty, old: u128, operand: u128, compare: u128) -> u128 {
    let (old, operand, compare) = (value(ty, old), value(ty, operand), value(ty, compare));
    match op {
        AtomOp::Exch => operand,
        AtomOp::Cas if old == compare => operand,
        AtomOp::Cas => old,
        _ => value(ty, arithmetic(unit, op, ty, old as u64, operand as u64).into()),
    }
}

/// Returns the new value of a word of up to 64 bits.
fn arithmetic(unit: AtomicUnit, op: AtomOp, ty: Ty, old: u64, operand: u64) -> u64 {
    match op {
        AtomOp::Add => add(unit, ty, old, operand),
        AtomOp::Min | AtomOp::Max if ty.is_float() => extreme(ty, op == AtomOp::Min, old, operand),
        AtomOp::Min if less(ty, operand, old) => operand,
        AtomOp::Max if less(ty, old, operand) => operand,
        AtomOp::Min | AtomOp::Max | AtomOp::Exch | AtomOp::Cas => old,
        // PTX: 0 if old >= b, else old + 1. DEC: b if old is 0 or above b, else old - 1.
        AtomOp::Inc => {
            if old >= operand {
                0
            } else {
                old + 1
            }
        }
        AtomOp::Dec => {
            if old == 0 || old > operand {
                operand
            } else {
                old - 1
            }
        }
        AtomOp::And => old & operand,
        AtomOp::Or => old | operand,
        AtomOp::Xor => old ^ operand,
        AtomOp::Arrive => mbarrier::arrive(old, operand, false),
        AtomOp::ArriveDrop => mbarrier::arrive(old, operand, true),
    }
}

/// Masks the bits of the type.
fn value(ty: Ty, bits: u128) -> u128 {
    bits & (u128::MAX >> (128 - 8 * u32::from(ty.bytes())))
}

fn less(ty: Ty, a: u64, b: u64) -> bool {
    let signed = |bits: u64| {
        // Shifted to the top of the word, so that the shift back extends the sign.
        let spare = 64 - 8 * u32::from(ty.bytes().min(8));
        (bits << spare) as i64 >> spare
    };
    if ty.is_signed() { signed(a) < signed(b) } else { a < b }
}

fn add(unit: AtomicUnit, ty: Ty, a: u64, b: u64) -> u64 {
    match ty {
        Ty::F32 => {
            let flush = |word: u32| match unit {
                AtomicUnit::L2 => fp32::flushed(word),
                AtomicUnit::Shared => word,
            };
            let [a, b] = [a, b].map(|word| f32::from_bits(flush(word as u32)));
            flush(fp32::bits(a + b)).into()
        }
        Ty::F64 => fp64::bits(f64::from_bits(a) + f64::from_bits(b)),
        // f32 has more than twice the bits of a half, so the second rounding is harmless.
        Ty::F16 | Ty::Bf16 | Ty::F16x2 | Ty::Bf16x2 => by_halves(ty, a, b, |a, b| a + b),
        _ => a.wrapping_add(b),
    }
}

fn extreme(ty: Ty, least: bool, a: u64, b: u64) -> u64 {
    by_halves(ty, a, b, |a, b| {
        f32::from_bits(fp32::min_or_max(least, false, a.to_bits(), b.to_bits()))
    })
}

/// Applies `f` to each half. The caller drops the upper half of a single number.
fn by_halves(ty: Ty, a: u64, b: u64, f: impl Fn(f32, f32) -> f32) -> u64 {
    let bf16 = is_bf16(ty);
    let half = |shift: u32| {
        let number = |bits: u64| widen(bf16, (bits >> shift) as u32 & 0xffff);
        u64::from(narrow(bf16, f(number(a), number(b)))) << shift
    };
    half(0) | half(16)
}
