//! Integer sums, logic, bit counts.

use super::map::{lanes_where, map1, map2, map2_where, map3, ones};
use super::{Results, Step};
use crate::inst::{Operand, Ty};
use crate::lane::{Lanes, WARP_SIZE};

/// What an addend is exclusive-ored with: its negation is completed by the ones of [`completions`], inside the sum, so that the carry
/// of `a - b` says `a >= b`.
pub(super) fn flip(operand: Operand) -> u32 {
    if operand.neg != operand.not { u32::MAX } else { 0 }
}

/// How many of the addends are negated.
pub(super) fn completions(addends: &[Operand]) -> u32 {
    addends.iter().map(|operand| u32::from(operand.neg)).sum()
}

pub(super) fn iadd3(step: &Step, results: &mut Results) {
    let inst = step.inst;
    let [a, b, c] = [step.a(), step.b(), step.c()];
    let [fa, fb, fc] = [flip(inst.src[0]), flip(inst.src[1]), flip(inst.src[2])];
    let extra = completions(&inst.src[..3]);
    let out = &mut results.words[0];
    if !inst.mods.extended && inst.pdst[0].is_true() {
        map3(out, a, b, c, |a, b, c| {
            (a ^ fa).wrapping_add(b ^ fb).wrapping_add(c ^ fc).wrapping_add(extra)
        });
        return;
    }
    let carry = carry_in(step);
    map3(out, a, b, c, |a, b, c| {
        (a ^ fa).wrapping_add(b ^ fb).wrapping_add(c ^ fc)
    });
    let mut partial = *out;
    for lane in 0..WARP_SIZE {
        partial.0[lane] = (a.0[lane] ^ fa).wrapping_add(b.0[lane] ^ fb);
        out.0[lane] = out.0[lane].wrapping_add(extra + carry.0[lane]);
    }
    results.preds[0] = lanes_where(|lane| {
        let (two, sum) = (partial.0[lane], out.0[lane]);
        let three = two.wrapping_add(c.0[lane] ^ fc);
        (two < (a.0[lane] ^ fa)) | (three < two) | (sum < three)
    });
}

/// The carry that an extended addition takes, as a word.
fn carry_in(step: &Step) -> Lanes {
    if step.inst.mods.extended {
        ones(step.operands.preds[0])
    } else {
        Lanes::ZERO
    }
}

pub(super) fn lea(step: &Step, results: &mut Results) {
    let inst = step.inst;
    let [a, b, c] = [step.a(), step.b(), step.c()];
    let shift = u32::from(inst.mods.lut) & 31;
    let (fa, fb) = (flip(inst.src[0]), flip(inst.src[1]));
    let extra = completions(&inst.src[..2]);
    let carry = carry_in(step);
    let mut shifted = Lanes::ZERO;
    if inst.mods.high {
        map2(&mut shifted, a, c, |a, c| {
            ((u64::from(c) << 32 | u64::from(a)) << shift >> 32) as u32 ^ fa
        });
    } else {
        map1(&mut shifted, a, |a| a << shift ^ fa);
    }
    let out = &mut results.words[0];
    for lane in 0..WARP_SIZE {
        out.0[lane] = shifted.0[lane]
            .wrapping_add(b.0[lane] ^ fb)
            .wrapping_add(extra + carry.0[lane]);
    }
    if !inst.pdst[0].is_true() {
        results.preds[0] = lanes_where(|lane| {
            let two = shifted.0[lane].wrapping_add(b.0[lane] ^ fb);
            (two < shifted.0[lane]) | (out.0[lane] < two)
        });
    }
}

/// The usual tables have loops of their own; any other is evaluated as the exclusive or of the products of its inputs.
pub(super) fn lop3(step: &Step, results: &mut Results) {
    let [a, b, c] = [step.a(), step.b(), step.c()];
    let out = &mut results.words[0];
    match step.inst.mods.lut {
        0xc0 => map2(out, a, b, |a, b| a & b),
        0xfc => map2(out, a, b, |a, b| a | b),
        0x3c => map2(out, a, b, |a, b| a ^ b),
        0x33 => map1(out, b, |b| !b),
        0x0f => map1(out, a, |a| !a),
        0x96 => map3(out, a, b, c, |a, b, c| a ^ b ^ c),
        0xf8 => map3(out, a, b, c, |a, b, c| a | (b & c)),
        0xea => map3(out, a, b, c, |a, b, c| (a & b) | c),
        0xca => map3(out, a, b, c, |a, b, c| c ^ (a & (b ^ c))),
        lut => {
            let k = products(lut);
            map3(out, a, b, c, |a, b, c| {
                let without_c = (k[0] ^ (k[4] & a)) ^ (b & (k[2] ^ (k[6] & a)));
                let with_c = (k[1] ^ (k[5] & a)) ^ (b & (k[3] ^ (k[7] & a)));
                without_c ^ (c & with_c)
            });
        }
    }
}

/// Coefficients (all ones or zero) of the table as an exclusive or of products; bit 2 of an index stands for a, bit 1 for b, bit 0 for c.
fn products(lut: u8) -> [u32; 8] {
    let mut k = [0; 8];
    for (n, coefficient) in k.iter_mut().enumerate() {
        let inputs = (0..8).filter(|m| m & n == *m);
        let odd = inputs.fold(0, |parity, m| parity ^ (lut >> m & 1));
        *coefficient = 0u32.wrapping_sub(u32::from(odd));
    }
    k
}

pub(super) fn imnmx(step: &Step, results: &mut Results) {
    // Unsigned order is signed order with the top bit turned.
    let turn = if step.inst.mods.ty.is_signed() { 0 } else { 1 << 31 };
    map2_where(
        &mut results.words[0],
        step.operands.preds[0],
        step.a(),
        step.b(),
        |least, a, b| {
            let below = ((a ^ turn) as i32) < ((b ^ turn) as i32);
            if below == least { a } else { b }
        },
    );
}

pub(super) fn iabs(step: &Step, results: &mut Results) {
    map1(&mut results.words[0], step.a(), |a| (a as i32).unsigned_abs());
}

pub(super) fn popc(step: &Step, results: &mut Results) {
    map1(&mut results.words[0], step.a(), u32::count_ones);
}

pub(super) fn flo(step: &Step, results: &mut Results) {
    let signed = step.inst.mods.ty == Ty::S32;
    let as_shift = step.inst.mods.sat;
    map1(&mut results.words[0], step.a(), |a| {
        let bits = if signed && a >> 31 == 1 { !a } else { a };
        let zeros = bits.leading_zeros();
        match (bits, as_shift) {
            (0, _) => u32::MAX,
            (_, true) => zeros,
            (_, false) => 31 - zeros,
        }
    });
}

pub(super) fn brev(step: &Step, results: &mut Results) {
    map1(&mut results.words[0], step.a(), u32::reverse_bits);
}

pub(super) fn plop3(step: &Step, results: &mut Results) {
    let [p, q] = step.operands.preds.map(|lanes| lanes.0);
    let lut = step.inst.mods.lut;
    let term = |index: u8, lanes: u32| if lut >> index & 1 == 1 { lanes } else { 0 };
    let value = term(0, !p & !q) | term(1, !p & q) | term(2, p & !q) | term(3, p & q);
    results.preds[0].0 = value;
    results.preds[1].0 = !value;
}
