//! FP64 arithmetic.

use super::map::{put_wide, wide};
use super::soft;
use super::{ExecInput, Results};
use crate::inst::Round;
use crate::opcode::Opcode;

/// The canonical NaN of f64 results.
pub(super) const NAN: u64 = 0xfff8_0000_0000_0000;

/// Returns the bits of a result, with the canonical NaN.
#[inline(always)]
pub(super) fn bits(value: f64) -> u64 {
    if value.is_nan() { NAN } else { value.to_bits() }
}

pub(super) fn arithmetic(input: &ExecInput, results: &mut Results) {
    let (a, b) = (input.pair(0), input.pair(1));
    let out = &mut results.words;
    let number = |pair, lane| f64::from_bits(wide(pair, lane));
    match (input.inst.op, input.inst.mods.round) {
        (Opcode::Dadd, Round::Nearest) => put_wide(out, |lane| bits(number(a, lane) + number(b, lane))),
        (Opcode::Dmul, Round::Nearest) => put_wide(out, |lane| bits(number(a, lane) * number(b, lane))),
        (Opcode::Dfma, Round::Nearest) => {
            let c = input.pair(2);
            put_wide(out, |lane| {
                // One rounding. A host without FMA instructions calls its C library.
                bits(number(a, lane).mul_add(number(b, lane), number(c, lane)))
            });
        }
        (op, round) => directed(input, op, round, results),
    }
}

#[cold]
fn directed(input: &ExecInput, op: Opcode, round: Round, results: &mut Results) {
    // DADD and DMUL have no third operand: `f64_arithmetic` ignores it.
    let slots = if op == Opcode::Dfma { [0, 1, 2] } else { [0, 1, 1] };
    let operands = slots.map(|slot| input.pair(slot));
    put_wide(&mut results.words, |lane| {
        soft::f64_arithmetic(op, operands.map(|pair| wide(pair, lane)), round)
    });
}

pub(super) fn dmnmx(input: &ExecInput, results: &mut Results) {
    let (a, b) = (input.pair(0), input.pair(1));
    let least = input.operands.preds[0];
    put_wide(&mut results.words, |lane| {
        min_or_max(least.contains(lane), wide(a, lane), wide(b, lane))
    });
}

/// Returns the minimum (`least`) or maximum of two f64. Minus zero is below zero. A NaN loses.
fn min_or_max(least: bool, a: u64, b: u64) -> u64 {
    // Flipping all bits below the sign of a negative float makes integer order equal to float order.
    let key = |word: u64| (word ^ (((word as i64) >> 63) as u64 >> 1)) as i64;
    match (f64::from_bits(a).is_nan(), f64::from_bits(b).is_nan()) {
        (true, true) => NAN,
        (true, false) => b,
        (false, true) => a,
        (false, false) if (key(a) < key(b)) == least => a,
        (false, false) => b,
    }
}
