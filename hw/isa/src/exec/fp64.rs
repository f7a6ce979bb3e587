//! FP64 arithmetic, and the rows that stand for whole sequences: exact division, square root and reciprocal, of f32 or f64.

use super::map::{map1, map2, put_wide, wide};
use super::soft::{self, Format, Value};
use super::{Results, Step, fp32};
use crate::inst::{Round, Ty};
use crate::opcode::Opcode;

/// The NaN of every f64 result.
pub(super) const NAN: u64 = 0xfff8_0000_0000_0000;

/// The bits of a result, any NaN made the canonical one.
#[inline(always)]
pub(super) fn bits(value: f64) -> u64 {
    if value.is_nan() { NAN } else { value.to_bits() }
}

pub(super) fn arithmetic(step: &Step, results: &mut Results) {
    let (a, b) = (step.pair(0), step.pair(1));
    let out = &mut results.words;
    let number = |pair, lane| f64::from_bits(wide(pair, lane));
    match (step.inst.op, step.inst.mods.round) {
        (Opcode::Dadd, Round::Nearest) => put_wide(out, |lane| bits(number(a, lane) + number(b, lane))),
        (Opcode::Dmul, Round::Nearest) => put_wide(out, |lane| bits(number(a, lane) * number(b, lane))),
        (Opcode::Dfma, Round::Nearest) => {
            let c = step.pair(2);
            put_wide(out, |lane| {
                bits(number(a, lane).mul_add(number(b, lane), number(c, lane)))
            });
        }
        (op, round) => directed(step, op, round, results),
    }
}

#[cold]
fn directed(step: &Step, op: Opcode, round: Round, results: &mut Results) {
    let value = |slot, lane| soft::F64.unpack(wide(step.pair(slot), lane));
    put_wide(&mut results.words, |lane| {
        let result = match op {
            Opcode::Dadd => soft::add(value(0, lane), value(1, lane), round),
            Opcode::Dmul => soft::multiply(value(0, lane), value(1, lane)),
            _ => soft::add(soft::multiply(value(0, lane), value(1, lane)), value(2, lane), round),
        };
        soft::F64.pack(result, round)
    });
}

pub(super) fn dmnmx(step: &Step, results: &mut Results) {
    let (a, b) = (step.pair(0), step.pair(1));
    let least = step.operands.preds[0];
    put_wide(&mut results.words, |lane| {
        choose(least.contains(lane), wide(a, lane), wide(b, lane))
    });
}

/// The lesser or greater; minus zero is below zero, a NaN loses.
fn choose(least: bool, a: u64, b: u64) -> u64 {
    let key = |word: u64| (word ^ (((word as i64) >> 63) as u64 >> 1)) as i64;
    match (f64::from_bits(a).is_nan(), f64::from_bits(b).is_nan()) {
        (true, true) => NAN,
        (true, false) => b,
        (false, true) => a,
        (false, false) if (key(a) < key(b)) == least => a,
        (false, false) => b,
    }
}

/// FDIV, FSQRT and FRCP.
pub(super) fn exact(step: &Step, results: &mut Results) {
    let inst = step.inst;
    match (inst.mods.ty == Ty::F64, inst.mods.round) {
        (true, Round::Nearest) => exact_f64(step, results),
        (false, Round::Nearest) => exact_f32(step, results),
        (is_double, round) => exact_directed(step, is_double, round, results),
    }
    if inst.mods.ty != Ty::F64 {
        fp32::finish(inst, &mut results.words[0]);
    }
}

fn exact_f64(step: &Step, results: &mut Results) {
    let a = step.pair(0);
    let number = |pair, lane| f64::from_bits(wide(pair, lane));
    let out = &mut results.words;
    match step.inst.op {
        Opcode::Fdiv => {
            let b = step.pair(1);
            put_wide(out, |lane| bits(number(a, lane) / number(b, lane)));
        }
        Opcode::Fsqrt => put_wide(out, |lane| bits(number(a, lane).sqrt())),
        _ => put_wide(out, |lane| bits(1.0 / number(a, lane))),
    }
}

fn exact_f32(step: &Step, results: &mut Results) {
    let number = f32::from_bits;
    let (a, out) = (step.a(), &mut results.words[0]);
    match step.inst.op {
        Opcode::Fdiv => map2(out, a, step.b(), |a, b| fp32::bits(number(a) / number(b))),
        Opcode::Fsqrt => map1(out, a, |a| fp32::bits(number(a).sqrt())),
        _ => map1(out, a, |a| fp32::bits(1.0 / number(a))),
    }
}

#[cold]
fn exact_directed(step: &Step, is_double: bool, round: Round, results: &mut Results) {
    let format = Format::of(step.inst.mods.ty);
    let value = |slot, lane: usize| {
        let bits = if is_double {
            wide(step.pair(slot), lane)
        } else {
            step.word(slot, 0).0[lane].into()
        };
        format.unpack(bits)
    };
    let result = |lane| {
        let exact = match step.inst.op {
            Opcode::Fdiv => soft::divide(value(0, lane), value(1, lane)),
            Opcode::Fsqrt => soft::square_root(value(0, lane)),
            _ => soft::divide(Value::integer(1), value(0, lane)),
        };
        format.pack(exact, round)
    };
    if is_double {
        put_wide(&mut results.words, result);
    } else {
        results.words[0].0 = std::array::from_fn(|lane| result(lane) as u32);
    }
}
