//! Comparisons with predicate results.

use super::half::widen;
use super::map::{lanes_where, wide};
use super::{ExecInput, Results};
use crate::inst::{Cmp, Join, Ty};
use crate::lane::{LaneMask, Lanes};

fn join(join: Join, value: LaneMask, with: LaneMask) -> LaneMask {
    match join {
        Join::And => value & with,
        Join::Or => value | with,
        Join::Xor => LaneMask(value.0 ^ with.0),
    }
}

/// Writes the comparison and its complement, each combined with psrc0.
fn write(input: &ExecInput, value: LaneMask, results: &mut Results) {
    let with = input.operands.preds[0];
    results.preds[0] = join(input.inst.mods.join, value, with);
    results.preds[1] = join(input.inst.mods.join, !value, with);
}

pub(super) fn isetp(input: &ExecInput, results: &mut Results) {
    let mods = &input.inst.mods;
    // Flipping the top bit turns unsigned order into signed order.
    let sign_flip = if mods.ty.is_signed() { 0 } else { 1 << 31 };
    let (a, b) = (input.a(), input.b());
    let mut value = match mods.cmp {
        Cmp::Eq => equal(a, b),
        Cmp::Ne => !equal(a, b),
        Cmp::Lt => below(a, b, sign_flip),
        Cmp::Ge => !below(a, b, sign_flip),
        Cmp::Gt => below(b, a, sign_flip),
        Cmp::Le => !below(b, a, sign_flip),
        // Every integer is a number.
        Cmp::Num => LaneMask::ALL,
        Cmp::Nan => LaneMask::NONE,
    };
    if mods.extended {
        // For equal upper words, the comparison of the low words decides.
        let equal = equal(a, b);
        value = (value & !equal) | (input.operands.preds[1] & equal);
    }
    write(input, value, results);
}

#[inline(always)]
fn equal(a: &Lanes, b: &Lanes) -> LaneMask {
    lanes_where(|lane| a.0[lane] == b.0[lane])
}

#[inline(always)]
fn below(a: &Lanes, b: &Lanes, sign_flip: u32) -> LaneMask {
    lanes_where(|lane| ((a.0[lane] ^ sign_flip) as i32) < ((b.0[lane] ^ sign_flip) as i32))
}

pub(super) fn fsetp(input: &ExecInput, results: &mut Results) {
    let (a, b) = (input.a(), input.b());
    let value = floats(
        input,
        |lane| f32::from_bits(a.0[lane]),
        |lane| f32::from_bits(b.0[lane]),
    );
    write(input, value, results);
}

pub(super) fn dsetp(input: &ExecInput, results: &mut Results) {
    let (a, b) = (input.pair(0), input.pair(1));
    let value = floats(
        input,
        |lane| f64::from_bits(wide(a, lane)),
        |lane| f64::from_bits(wide(b, lane)),
    );
    write(input, value, results);
}

pub(super) fn hsetp2(input: &ExecInput, results: &mut Results) {
    let (a, b) = (input.a(), input.b());
    let bf16 = matches!(input.inst.mods.ty, Ty::Bf16 | Ty::Bf16x2);
    let half = |shift: u32| {
        let number = move |lanes: &Lanes, lane: usize| widen(bf16, lanes.0[lane] >> shift & 0xffff);
        floats(input, |lane| number(a, lane), |lane| number(b, lane))
    };
    let (low, high) = (half(0), half(16));
    let with = input.operands.preds[0];
    results.preds[0] = join(input.inst.mods.join, low, with);
    results.preds[1] = join(input.inst.mods.join, high, with);
}

/// Compares floats, ordered or unordered.
///
/// An unordered comparison is the complement of the opposite ordered one.
#[inline(always)]
fn floats<T: PartialOrd>(input: &ExecInput, a: impl Fn(usize) -> T + Copy, b: impl Fn(usize) -> T + Copy) -> LaneMask {
    let equal = || lanes_where(|lane| a(lane) == b(lane));
    let numbers = || lanes_where(|lane| a(lane).partial_cmp(&b(lane)).is_some());
    match (input.inst.mods.cmp, input.inst.mods.unordered) {
        (Cmp::Eq, false) => equal(),
        (Cmp::Eq, true) => equal() | !numbers(),
        (Cmp::Ne, false) => !equal() & numbers(),
        (Cmp::Ne, true) => !equal(),
        (Cmp::Lt, false) => lanes_where(|lane| a(lane) < b(lane)),
        (Cmp::Lt, true) => !lanes_where(|lane| a(lane) >= b(lane)),
        (Cmp::Le, false) => lanes_where(|lane| a(lane) <= b(lane)),
        (Cmp::Le, true) => !lanes_where(|lane| a(lane) > b(lane)),
        (Cmp::Gt, false) => lanes_where(|lane| a(lane) > b(lane)),
        (Cmp::Gt, true) => !lanes_where(|lane| a(lane) <= b(lane)),
        (Cmp::Ge, false) => lanes_where(|lane| a(lane) >= b(lane)),
        (Cmp::Ge, true) => !lanes_where(|lane| a(lane) < b(lane)),
        // `unordered` has no effect on a test for NaN.
        (Cmp::Num, _) => numbers(),
        (Cmp::Nan, _) => !numbers(),
    }
}

/// Finds the lanes with a quotient for the slow path: the reciprocal or the quotient may not be normal, or the remainder not exact.
pub(super) fn fchk(input: &ExecInput, results: &mut Results) {
    let exponent = |word: u32| (word >> 23 & 0xff) as i32 - 127;
    let (a, b) = (input.a(), input.b());
    // The remainder's last bit is 47 places below the exponent of a. From -102 on it is at least 2^-149, the least denormal. An exponent of
    // 128 is an infinity or a NaN, one of -127 a zero or a denormal.
    let near = lanes_where(|lane| {
        let (a, b) = (exponent(a.0[lane]), exponent(b.0[lane]));
        (-102..128).contains(&a) & (-126..126).contains(&b) & (-125..127).contains(&(a - b))
    });
    results.preds[0] = !near;
}
