//! Conversions between integers and floats of all widths. Common cases are host instructions; all others use [`soft`].

use super::map::{map1, map2, put_wide, wide};
use super::product::extend;
use super::{ExecInput, Results, fp8, fp32, fp64, half, soft};
use crate::inst::{Inst, Mods, Round, Ty};

/// Returns the source as an integer of type `from`, sign-extended if signed.
fn integer(input: &ExecInput, lane: usize) -> i128 {
    let from = input.inst.mods.from;
    let bits = if from.words() == 2 {
        wide(input.pair(0), lane)
    } else {
        extend(from, input.a().0[lane])
    };
    if from.is_signed() {
        i128::from(bits as i64)
    } else {
        i128::from(bits)
    }
}

/// Writes one result per lane, in the number of words of the type.
fn put(inst: &Inst, results: &mut Results, f: impl Fn(usize) -> u64) {
    if inst.mods.ty.words() == 2 {
        put_wide(&mut results.words, f);
    } else {
        results.words[0].0 = std::array::from_fn(|lane| f(lane) as u32);
    }
}

/// Returns the smallest and largest value of an integer type.
fn range(ty: Ty) -> (i128, i128) {
    let bits = 8 * u32::from(ty.bytes());
    if ty.is_signed() {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        (0, (1 << bits) - 1)
    }
}

/// Returns the register bits of an integer. Narrow types are extended to a word.
fn encode(ty: Ty, value: i128) -> u64 {
    if ty.words() == 2 {
        value as u64
    } else {
        // A register holds a narrow signed value with its sign extended.
        extend(ty, value as u32) as u32 as u64
    }
}

pub(super) fn i2i(input: &ExecInput, results: &mut Results) {
    let Mods { ty, sat, .. } = input.inst.mods;
    let (least, greatest) = range(ty);
    put(input.inst, results, |lane| {
        let value = integer(input, lane);
        encode(ty, if sat { value.clamp(least, greatest) } else { value })
    });
}

pub(super) fn i2f(input: &ExecInput, results: &mut Results) {
    let Mods { ty, from, round, .. } = input.inst.mods;
    match (from, ty, round) {
        (Ty::S32, Ty::F32, Round::Nearest) => map1(&mut results.words[0], input.a(), |a| (a as i32 as f32).to_bits()),
        (Ty::U32, Ty::F32, Round::Nearest) => map1(&mut results.words[0], input.a(), |a| (a as f32).to_bits()),
        // An f64 holds every 32-bit integer, so nothing is rounded.
        (Ty::S32, Ty::F64, _) => put_wide(&mut results.words, |lane| f64::from(input.a().0[lane] as i32).to_bits()),
        (Ty::U32, Ty::F64, _) => put_wide(&mut results.words, |lane| f64::from(input.a().0[lane]).to_bits()),
        (_, Ty::F32, Round::Nearest) => put(input.inst, results, |lane| {
            (integer(input, lane) as f32).to_bits().into()
        }),
        (_, Ty::F64, Round::Nearest) => put_wide(&mut results.words, |lane| (integer(input, lane) as f64).to_bits()),
        _ => put(input.inst, results, |lane| {
            soft::from_integer(ty, integer(input, lane), round)
        }),
    }
    flush_and_saturate(input.inst, results);
}

/// Returns the source as a float of type `from`. An f64 holds every value of the narrower types.
fn float(input: &ExecInput, lane: usize) -> f64 {
    let from = input.inst.mods.from;
    match from {
        Ty::F64 => f64::from_bits(wide(input.pair(0), lane)),
        Ty::F16 | Ty::Bf16 => half::widen(half::is_bf16(from), input.a().0[lane] & 0xffff).into(),
        _ => f32::from_bits(input.a().0[lane]).into(),
    }
}

/// Float to integer. A value out of range becomes the nearest value of the type.
pub(super) fn f2i(input: &ExecInput, results: &mut Results) {
    let Mods { ty, from, round, .. } = input.inst.mods;
    match (from, ty, round) {
        // The host's cast truncates, clamps, and turns NaN into zero, as PTX does here.
        (Ty::F32, Ty::S32, Round::Zero) => map1(&mut results.words[0], input.a(), |a| f32::from_bits(a) as i32 as u32),
        (Ty::F32, Ty::U32, Round::Zero) => map1(&mut results.words[0], input.a(), |a| f32::from_bits(a) as u32),
        _ => put(input.inst, results, |lane| {
            encode(ty, to_integer(float(input, lane), ty, from, round))
        }),
    }
}

/// Converts by the rule of PTX. NaN becomes zero, or the top bit alone for an f64 source or a 64-bit result.
fn to_integer(value: f64, ty: Ty, from: Ty, round: Round) -> i128 {
    let (least, greatest) = range(ty);
    if value.is_nan() && (from == Ty::F64 || ty.words() == 2) {
        1 << (8 * u32::from(ty.bytes()) - 1)
    } else {
        // The cast turns NaN into zero, and clamps at the ends of i128.
        (whole(value, round) as i128).clamp(least, greatest)
    }
}

/// Rounds to an integral value and keeps the sign, also of zero.
fn whole(value: f64, round: Round) -> f64 {
    match round {
        Round::Nearest => value.round_ties_even(),
        Round::Zero => value.trunc(),
        Round::Down => value.floor(),
        Round::Up => value.ceil(),
    }
}

pub(super) fn f2f(input: &ExecInput, results: &mut Results) {
    let Mods {
        ty,
        from,
        round,
        integral,
        ..
    } = input.inst.mods;
    match (from, ty, round, integral) {
        // Exact, like f16 to f32 and f32 to f64 below. So the rounding mode has no effect.
        (pair, Ty::F16x2, ..) if fp8::is_pair(pair) => {
            map1(&mut results.words[0], input.a(), |a| fp8::widen_pair(pair, a));
        }
        (Ty::F16 | Ty::Bf16, Ty::F32, _, false) => {
            let bf16 = half::is_bf16(from);
            map1(&mut results.words[0], input.a(), |a| {
                fp32::bits(half::widen(bf16, a & 0xffff))
            });
        }
        (Ty::F32, Ty::F16 | Ty::Bf16, Round::Nearest, false) => {
            let bf16 = half::is_bf16(ty);
            map1(&mut results.words[0], input.a(), |a| {
                half::narrow(bf16, f32::from_bits(a))
            });
        }
        (Ty::F32, Ty::F64, _, false) => {
            put_wide(&mut results.words, |lane| {
                fp64::bits(f32::from_bits(input.a().0[lane]).into())
            });
        }
        (Ty::F64, Ty::F32, Round::Nearest, false) => {
            let pair = input.pair(0);
            results.words[0].0 = std::array::from_fn(|lane| fp32::bits(f64::from_bits(wide(pair, lane)) as f32));
        }
        _ => put(input.inst, results, |lane| {
            let value = float(input, lane);
            let value = if integral { whole(value, round) } else { value };
            narrow(ty, value, round)
        }),
    }
    flush_and_saturate(input.inst, results);
}

/// Rounds a value to the float type `ty` and returns its bits.
fn narrow(ty: Ty, value: f64, round: Round) -> u64 {
    match (ty, round) {
        (Ty::F64, _) => fp64::bits(value),
        // Through an f32 rounded to odd, so the value is not rounded to nearest twice.
        (Ty::F16 | Ty::Bf16, Round::Nearest) => half::narrow(half::is_bf16(ty), half::to_odd(value)).into(),
        // Directed rounding of halves has no host instruction.
        (Ty::F16 | Ty::Bf16, _) => soft::narrow_half(half::is_bf16(ty), value, round).into(),
        _ => fp32::narrow(value, round).into(),
    }
}

/// Flushes and saturates a result of any float type.
fn flush_and_saturate(inst: &Inst, results: &mut Results) {
    match inst.mods.ty {
        Ty::F32 => fp32::flush_and_saturate(inst, &mut results.words[0]),
        Ty::F64 if inst.mods.sat => {
            let [low, high, ..] = results.words;
            put_wide(&mut results.words, |lane| {
                let value = f64::from_bits(wide([&low, &high], lane));
                // NaN saturates to zero.
                if value > 0.0 { value.min(1.0).to_bits() } else { 0 }
            });
        }
        // In conversions `ftz` applies only to f32.
        Ty::F16 | Ty::Bf16 => half::saturate(&inst.mods, &mut results.words[0]),
        _ => {}
    }
}

/// Packs a into the upper half and b into the lower half.
pub(super) fn f2fp(input: &ExecInput, results: &mut Results) {
    let Mods { ty, round, .. } = input.inst.mods;
    let out = &mut results.words[0];
    match round {
        _ if fp8::is_pair(ty) => map2(out, input.a(), input.b(), |a, b| {
            soft::narrow_byte(ty, a) << 8 | soft::narrow_byte(ty, b)
        }),
        Round::Nearest => {
            let bf16 = half::is_bf16(ty);
            let one = |word: u32| half::narrow(bf16, f32::from_bits(word));
            map2(out, input.a(), input.b(), |a, b| one(a) << 16 | one(b));
        }
        round => {
            let one = |word: u32| soft::narrow_half(half::is_bf16(ty), f32::from_bits(word).into(), round);
            map2(out, input.a(), input.b(), |a, b| one(a) << 16 | one(b));
        }
    }
}
