//! Integer products.

use super::map::map3;
use super::{ExecInput, Results};
use crate::inst::Ty;
use crate::lane::WARP_SIZE;

pub(super) fn imad(input: &ExecInput, results: &mut Results) {
    let mods = &input.inst.mods;
    let [a, b, c] = [input.a(), input.b(), input.c()];
    let out = &mut results.words[0];
    match (mods.high, mods.ty.is_signed()) {
        (false, _) => map3(out, a, b, c, |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        (true, false) => map3(out, a, b, c, |a, b, c| high(a, b).wrapping_add(c)),
        // PTX mad.hi.sat.s32. It exists for signed numbers only.
        (true, true) if mods.sat => map3(out, a, b, c, |a, b, c| {
            (high_signed(a, b) as i32).saturating_add(c as i32) as u32
        }),
        (true, true) => map3(out, a, b, c, |a, b, c| high_signed(a, b).wrapping_add(c)),
    }
}

#[inline(always)]
fn high(a: u32, b: u32) -> u32 {
    ((u64::from(a) * u64::from(b)) >> 32) as u32
}

/// High word of a signed product: the unsigned one, corrected for the signs. Hosts without a signed vector product vectorize it too.
#[inline(always)]
fn high_signed(a: u32, b: u32) -> u32 {
    let sign = |v: u32| ((v as i32) >> 31) as u32;
    high(a, b).wrapping_sub(sign(a) & b).wrapping_sub(sign(b) & a)
}

pub(super) fn imad_wide(input: &ExecInput, results: &mut Results) {
    let [a, b] = [input.a(), input.b()];
    let [c_low, c_high] = input.pair(2);
    let [low, top, ..] = &mut results.words;
    // All ones for signed types, so that the correction of `high_signed` applies.
    let signed = if input.inst.mods.ty.is_signed() { u32::MAX } else { 0 };
    let sign = |v: u32| ((v as i32) >> 31) as u32 & signed;
    for lane in 0..WARP_SIZE {
        let (x, y) = (a.0[lane], b.0[lane]);
        let product = u64::from(x) * u64::from(y);
        low.0[lane] = product as u32;
        top.0[lane] = ((product >> 32) as u32)
            .wrapping_sub(sign(x) & y)
            .wrapping_sub(sign(y) & x);
    }
    for lane in 0..WARP_SIZE {
        let sum = low.0[lane].wrapping_add(c_low.0[lane]);
        // A wrapped sum is below its addend.
        let carry = u32::from(sum < low.0[lane]);
        low.0[lane] = sum;
        top.0[lane] = top.0[lane].wrapping_add(c_high.0[lane]).wrapping_add(carry);
    }
}

/// Returns byte `n` of a word.
#[inline(always)]
fn byte(word: u32, n: u32, signed: bool) -> i32 {
    let byte = (word >> (8 * n)) as u8;
    if signed { i32::from(byte as i8) } else { i32::from(byte) }
}

/// Absolute differences of bytes, packed or summed onto c.
pub(super) fn vabsdiff4(input: &ExecInput, results: &mut Results) {
    let mods = &input.inst.mods;
    let (a_signed, b_signed, sums) = (mods.from.is_signed(), mods.ty.is_signed(), mods.count == 1);
    let difference = |a, b, n| byte(a, n, a_signed).abs_diff(byte(b, n, b_signed));
    map3(&mut results.words[0], input.a(), input.b(), input.c(), |a, b, c| {
        (0..4).fold(if sums { c } else { 0 }, |whole, n| match sums {
            true => whole.wrapping_add(difference(a, b, n)),
            false => whole | (difference(a, b, n) & 0xff) << (8 * n),
        })
    });
}

pub(super) fn idp4a(input: &ExecInput, results: &mut Results) {
    let (a_signed, b_signed) = (input.inst.mods.from.is_signed(), input.inst.mods.ty.is_signed());
    map3(&mut results.words[0], input.a(), input.b(), input.c(), |a, b, c| {
        (0..4).fold(c, |sum, n| {
            sum.wrapping_add((byte(a, n, a_signed) * byte(b, n, b_signed)) as u32)
        })
    });
}

/// Extends the low bits of a word to a 64-bit value of the type.
#[inline]
pub(super) fn extend(ty: Ty, word: u32) -> u64 {
    match ty {
        Ty::U8 => u64::from(word as u8),
        Ty::S8 => word as i8 as u64,
        Ty::U16 => u64::from(word as u16),
        Ty::S16 => word as i16 as u64,
        Ty::S32 => word as i32 as u64,
        _ => u64::from(word),
    }
}
