//! Shifts and bit fields.

use super::map::{map2, map3};
use super::{ExecInput, Results};
use crate::inst::{Mods, Source, Ty};
use crate::lane::WARP_SIZE;

/// Funnel shift. The count clamps or wraps at the width of `ty`, 32 or 64.
pub(super) fn shf(input: &ExecInput, results: &mut Results) {
    let mods = &input.inst.mods;
    let (count, signed) = (counter(mods), mods.ty.is_signed());
    match (mods.right, mods.high, signed) {
        (false, false, _) => funnel(input, results, |v, b| left(v, count(b)) as u32),
        (false, true, _) => funnel(input, results, |v, b| (left(v, count(b)) >> 32) as u32),
        (true, false, false) => funnel(input, results, |v, b| right(v, count(b)) as u32),
        (true, true, false) => funnel(input, results, |v, b| (right(v, count(b)) >> 32) as u32),
        (true, false, true) => funnel(input, results, |v, b| right_signed(v, count(b)) as u32),
        (true, true, true) => funnel(input, results, |v, b| (right_signed(v, count(b)) >> 32) as u32),
    }
}

/// Returns the function from operand b to the shift count.
#[inline(always)]
fn counter(mods: &Mods) -> impl Fn(u32) -> u32 + use<> {
    let width = if matches!(mods.ty, Ty::U64 | Ty::S64) { 64 } else { 32 };
    let wrap = mods.wrap;
    move |b| if wrap { b & (width - 1) } else { b.min(width) }
}

/// Applies `f` to (c:a) and b in every lane.
#[inline(always)]
fn funnel(input: &ExecInput, results: &mut Results, f: impl Fn(u64, u32) -> u32) {
    let (a, b, c) = (input.a(), input.b(), input.c());
    let out = &mut results.words[0];
    // A uniform count gives a vector loop on hosts without per-lane shifts.
    if matches!(input.inst.src[1].source, Source::Imm(_) | Source::Const { .. }) {
        let count = b.0[0];
        map2(out, a, c, |a, c| f(u64::from(c) << 32 | u64::from(a), count));
    } else {
        map3(out, a, b, c, |a, b, c| f(u64::from(c) << 32 | u64::from(a), b));
    }
}

#[inline(always)]
fn left(value: u64, count: u32) -> u64 {
    // Rust refuses a shift by 64, and a clamped count may be 64.
    if count < 64 { value << count } else { 0 }
}

#[inline(always)]
fn right(value: u64, count: u32) -> u64 {
    if count < 64 { value >> count } else { 0 }
}

#[inline(always)]
fn right_signed(value: u64, count: u32) -> u64 {
    (value as i64 >> count.min(63)) as u64
}

/// Bit field extract (PTX bfe). Position and length are the low bytes of b and c. Bits past the word repeat the sign or are zero.
pub(super) fn bfe(input: &ExecInput, results: &mut Results) {
    let signed = input.inst.mods.ty.is_signed();
    map3(&mut results.words[0], input.a(), input.b(), input.c(), |a, b, c| {
        let (position, length) = (b & 0xff, c & 0xff);
        if length == 0 {
            return 0;
        }
        let extended = if signed { i64::from(a as i32) } else { i64::from(a) };
        let field = extended >> position.min(63);
        let spare = 64 - length.min(64);
        // The sign is the top bit of the field, or of the word if the field reaches beyond it (PTX bfe).
        let top = (position + length - 1).min(31);
        let sign = signed && a >> top & 1 == 1;
        let low = ((field as u64) << spare >> spare) as u32;
        if sign && length < 32 {
            low | u32::MAX << length
        } else {
            low
        }
    });
}

/// Bit field insert (PTX bfi). Position and length are the low bytes of c and d.
///
/// A length of 0, or a position past the word, changes nothing.
pub(super) fn bfi(input: &ExecInput, results: &mut Results) {
    let (a, b, c, d) = (input.a(), input.b(), input.c(), input.word(3, 0));
    for lane in 0..WARP_SIZE {
        let (position, length) = (c.0[lane] & 0xff, (d.0[lane] & 0xff).min(32));
        let mask = (((1u64 << length) - 1) << position.min(32)) as u32;
        // In 64 bits, so that a position of 32 moves the field out of the word.
        let field = (u64::from(a.0[lane]) << position.min(32)) as u32;
        results.words[0].0[lane] = (field & mask) | (b.0[lane] & !mask);
    }
}
