//! Integer addition, logic and bit counts.

use super::map::{lanes_where, map1, map2, map2_where, map3, ones};
use super::{ExecInput, Results};
use crate::inst::{Operand, Ty};
use crate::lane::{Lanes, WARP_SIZE};

/// Returns the mask that inverts a negated or inverted addend.
///
/// A negation also needs plus one. [`n_negated`] adds it inside the sum, so the carry of `a - b` means `a >= b`.
pub(super) fn xor_mask(operand: Operand) -> u32 {
    if operand.neg != operand.not { u32::MAX } else { 0 }
}

/// Returns the number of negated addends.
pub(super) fn n_negated(addends: &[Operand]) -> u32 {
    addends.iter().map(|operand| u32::from(operand.neg)).sum()
}

pub(super) fn iadd3(input: &ExecInput, results: &mut Results) {
    let inst = input.inst;
    let [a, b, c] = [input.a(), input.b(), input.c()];
    let [fa, fb, fc] = [xor_mask(inst.src[0]), xor_mask(inst.src[1]), xor_mask(inst.src[2])];
    let extra = n_negated(&inst.src[..3]);
    let out = &mut results.words[0];
    // No carry in or out, as in most additions: one loop without predicates.
    if !inst.mods.extended && inst.pdst[0].is_true() {
        map3(out, a, b, c, |a, b, c| {
            (a ^ fa).wrapping_add(b ^ fb).wrapping_add(c ^ fc).wrapping_add(extra)
        });
        return;
    }
    let carry = carry_in(input);
    map3(out, a, b, c, |a, b, c| {
        (a ^ fa).wrapping_add(b ^ fb).wrapping_add(c ^ fc)
    });
    // The carry out needs the sum of the first two addends, so the sum is built in steps.
    let mut partial = *out;
    for lane in 0..WARP_SIZE {
        partial.0[lane] = (a.0[lane] ^ fa).wrapping_add(b.0[lane] ^ fb);
        out.0[lane] = out.0[lane].wrapping_add(extra + carry.0[lane]);
    }
    results.preds[0] = lanes_where(|lane| {
        let (two, sum) = (partial.0[lane], out.0[lane]);
        let three = two.wrapping_add(c.0[lane] ^ fc);
        // A wrapped sum is below its addend. The carries of the three steps are joined.
        (two < (a.0[lane] ^ fa)) | (three < two) | (sum < three)
    });
}

/// Returns the carry-in of an extended addition, as a word.
fn carry_in(input: &ExecInput) -> Lanes {
    if input.inst.mods.extended {
        ones(input.operands.preds[0])
    } else {
        Lanes::ZERO
    }
}

pub(super) fn lea(input: &ExecInput, results: &mut Results) {
    let inst = input.inst;
    let [a, b, c] = [input.a(), input.b(), input.c()];
    let shift = u32::from(inst.mods.lut) & 31;
    let (fa, fb) = (xor_mask(inst.src[0]), xor_mask(inst.src[1]));
    let extra = n_negated(&inst.src[..2]);
    let carry = carry_in(input);
    let mut shifted = Lanes::ZERO;
    if inst.mods.high {
        map2(&mut shifted, a, c, |a, c| {
            // The modifiers of a apply after the shift.
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

/// Truth table of three inputs.
///
/// Common tables have loops of their own. Any other is the exclusive or of products of its inputs (algebraic normal form).
pub(super) fn lop3(input: &ExecInput, results: &mut Results) {
    let [a, b, c] = [input.a(), input.b(), input.c()];
    let out = &mut results.words[0];
    match input.inst.mods.lut {
        // With a = 0xf0, b = 0xcc and c = 0xaa each formula gives its table.
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

/// Returns the coefficients of the algebraic normal form, all ones or zero. Bits 2, 1, 0 of an index stand for a, b, c.
fn products(lut: u8) -> [u32; 8] {
    let mut k = [0; 8];
    for (n, coefficient) in k.iter_mut().enumerate() {
        // Moebius transform: the coefficient is the parity of the table over all subsets of the inputs.
        let inputs = (0..8).filter(|m| m & n == *m);
        let odd = inputs.fold(0, |parity, m| parity ^ (lut >> m & 1));
        *coefficient = 0u32.wrapping_sub(u32::from(odd));
    }
    k
}

pub(super) fn imnmx(input: &ExecInput, results: &mut Results) {
    extreme(input, &mut results.words[0], input.a(), input.b());
}

pub(super) fn viaddmnmx(input: &ExecInput, results: &mut Results) {
    let mut sums = Lanes::ZERO;
    map2(&mut sums, input.a(), input.b(), u32::wrapping_add);
    extreme(input, &mut results.words[0], &sums, input.c());
}

pub(super) fn vimnmx3(input: &ExecInput, results: &mut Results) {
    let mut first = Lanes::ZERO;
    extreme(input, &mut first, input.a(), input.b());
    extreme(input, &mut results.words[0], &first, input.c());
}

/// Computes the minimum where the instruction's predicate holds, elsewhere the maximum.
#[inline(always)]
fn extreme(input: &ExecInput, out: &mut Lanes, a: &Lanes, b: &Lanes) {
    // Flipping the top bit turns unsigned order into signed order.
    let sign_flip = if input.inst.mods.ty.is_signed() { 0 } else { 1 << 31 };
    map2_where(out, input.operands.preds[0], a, b, |least, a, b| {
        let below = ((a ^ sign_flip) as i32) < ((b ^ sign_flip) as i32);
        if below == least { a } else { b }
    });
}

pub(super) fn iabs(input: &ExecInput, results: &mut Results) {
    map1(&mut results.words[0], input.a(), |a| (a as i32).unsigned_abs());
}

pub(super) fn popc(input: &ExecInput, results: &mut Results) {
    map1(&mut results.words[0], input.a(), u32::count_ones);
}

pub(super) fn flo(input: &ExecInput, results: &mut Results) {
    let signed = input.inst.mods.ty == Ty::S32;
    let as_shift = input.inst.mods.sat;
    map1(&mut results.words[0], input.a(), |a| {
        // A negative number has its leading bit at the highest zero (PTX bfind).
        let bits = if signed && a >> 31 == 1 { !a } else { a };
        let zeros = bits.leading_zeros();
        match (bits, as_shift) {
            (0, _) => u32::MAX,
            (_, true) => zeros,
            (_, false) => 31 - zeros,
        }
    });
}

pub(super) fn brev(input: &ExecInput, results: &mut Results) {
    map1(&mut results.words[0], input.a(), u32::reverse_bits);
}

pub(super) fn plop3(input: &ExecInput, results: &mut Results) {
    let [p, q] = input.operands.preds.map(|lanes| lanes.0);
    let lut = input.inst.mods.lut;
    let term = |index: u8, lanes: u32| if lut >> index & 1 == 1 { lanes } else { 0 };
    let value = term(0, !p & !q) | term(1, !p & q) | term(2, p & !q) | term(3, p & q);
    results.preds[0].0 = value;
    results.preds[1].0 = !value;
}
