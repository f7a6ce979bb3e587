//! Half precision, one or two numbers per word: f16 (11-bit significand) and bf16 (8-bit).
//!
//! Both formats widen to f32 exactly. Sums and products are rounded to odd in f64, to odd in f32, then to nearest in the half
//! format. So every result is rounded once. A directed rounding of bf16 is made in software.

use super::fp32::{self, fma_to_odd};
use super::map::{map1, map2_where, update};
use super::{ExecInput, Results, soft};
use crate::inst::{Mods, Round, Ty};
use crate::lane::{Lanes, WARP_SIZE};
use crate::opcode::Opcode;

/// The canonical NaN of half results, in both formats.
pub(super) const NAN: u32 = 0x7fff;

/// True for bf16, packed or single.
pub(super) fn is_bf16(ty: Ty) -> bool {
    matches!(ty, Ty::Bf16 | Ty::Bf16x2)
}

/// True if the type fills both halves of a word.
fn is_packed(ty: Ty) -> bool {
    matches!(ty, Ty::F16x2 | Ty::Bf16x2)
}

/// Returns the value of the low 16 bits.
#[inline(always)]
pub(super) fn widen(bf16: bool, half: u32) -> f32 {
    if bf16 {
        f32::from_bits(half << 16)
    } else {
        widen_f16(half)
    }
}

/// Moves exponent and fraction into place and corrects the bias. A denormal gets a hidden bit, which is then subtracted.
#[inline(always)]
fn widen_f16(half: u32) -> f32 {
    const BIAS: u32 = (127 - 15) << 23;
    const HIDDEN: u32 = BIAS + (1 << 23);
    let magnitude = (half & 0x7fff) << 13;
    let denormal = (f32::from_bits(magnitude | HIDDEN) - f32::from_bits(HIDDEN)).to_bits();
    let normal = magnitude + BIAS;
    let finite = if magnitude < 1 << 23 { denormal } else { normal };
    // Infinity and NaN: all exponent bits, the fraction stays.
    let special = if magnitude >= 0x7c00 << 13 { 0x7f80_0000 } else { 0 };
    f32::from_bits(finite | special | (half & 0x8000) << 16)
}

/// Rounds an f32 to the nearest half, ties to even.
#[inline(always)]
pub(super) fn narrow(bf16: bool, value: f32) -> u32 {
    if bf16 { narrow_bf16(value) } else { narrow_f16(value) }
}

#[inline(always)]
fn narrow_bf16(value: f32) -> u32 {
    let word = value.to_bits();
    // To nearest, ties to even: the lowest kept bit decides a tie.
    let rounded = word.wrapping_add(0x7fff + (word >> 16 & 1)) >> 16;
    if value.is_nan() { NAN } else { rounded }
}

#[inline(always)]
fn narrow_f16(value: f32) -> u32 {
    /// The last place of this number is the last place of a denormal f16, so adding it rounds there.
    const HALF: f32 = 0.5;
    let word = value.to_bits();
    let magnitude = word & 0x7fff_ffff;
    let denormal = (f32::from_bits(magnitude) + HALF)
        .to_bits()
        .wrapping_sub(HALF.to_bits());
    let normal = magnitude
        .wrapping_sub((127 - 15) << 23)
        .wrapping_add(0xfff + (magnitude >> 13 & 1))
        >> 13;
    // 2^-14, the least normal f16.
    let finite = if magnitude < 0x3880_0000 { denormal } else { normal };
    // 2^16. Numbers from 65520 up to it reach the infinity by the carry of their rounding.
    let bounded = if magnitude >= 0x4780_0000 { 0x7c00 } else { finite };
    if value.is_nan() {
        NAN
    } else {
        bounded | (word >> 16 & 0x8000)
    }
}

/// Rounds an f64 to an f32 with an odd last bit if the value is inexact.
#[inline(always)]
pub(super) fn to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let back = f64::from(nearest);
    let bits = nearest.to_bits();
    // NaN for an infinite value, so not above zero.
    let inexact = (back - value).abs() > 0.0;
    let to_odd = if inexact { !bits & 1 } else { 0 };
    // An even last bit makes way for the odd neighbour on the side of `value`: bits + 1, or bits - 1.
    let beyond = u32::from(back.abs() > value.abs());
    f32::from_bits(bits.wrapping_add(to_odd).wrapping_sub(2 * (to_odd & beyond)))
}

/// Flushes and saturates 16 result bits if the modifiers say so.
#[inline(always)]
fn flush_and_saturate(mods: &Mods, bf16: bool, half: u32) -> u32 {
    let exponent = if bf16 { 0x7f80 } else { 0x7c00 };
    let half = if mods.ftz && half & exponent == 0 {
        half & 0x8000
    } else {
        half
    };
    if !mods.sat {
        return half;
    }
    let value = widen(bf16, half);
    let one = if bf16 { 0x3f80 } else { 0x3c00 };
    if value >= 1.0 {
        one
    } else if value > 0.0 {
        half
    } else {
        0
    }
}

/// Saturates words of one half each, after a conversion. Their `ftz` applies only to f32.
pub(super) fn saturate(mods: &Mods, out: &mut Lanes) {
    let kept = Mods { ftz: false, ..*mods };
    update(out, |half| flush_and_saturate(&kept, is_bf16(mods.ty), half));
}

/// Executes HADD2, HMUL2 and HFMA2.
pub(super) fn arithmetic(input: &ExecInput, results: &mut Results) {
    let mods = &input.inst.mods;
    let out = &mut results.words[0];
    if mods.round != Round::Nearest && input.inst.op == Opcode::Hfma2 && is_bf16(mods.ty) {
        directed_fma(input, out);
    } else if is_bf16(mods.ty) {
        arithmetic_in::<true>(input, out);
    } else {
        arithmetic_in::<false>(input, out);
    }
    if mods.ftz || mods.sat {
        let bf16 = is_bf16(mods.ty);
        update(out, |word| {
            flush_and_saturate(mods, bf16, word >> 16) << 16 | flush_and_saturate(mods, bf16, word & 0xffff)
        });
    }
}

/// Executes HFMA2 of bf16 in a directed rounding. PTX has no other half arithmetic with one.
#[cold]
fn directed_fma(input: &ExecInput, out: &mut Lanes) {
    let mods = &input.inst.mods;
    for lane in 0..WARP_SIZE {
        let words = [input.a(), input.b(), input.c()].map(|word| word.0[lane]);
        let fused = |shift: u32| soft::bf16_fma(words.map(|word| word >> shift & 0xffff), mods.round) << shift;
        out.0[lane] = fused(0) | if is_packed(mods.ty) { fused(16) } else { 0 };
    }
}

/// Executes half arithmetic in one format.
fn arithmetic_in<const BF16: bool>(input: &ExecInput, out: &mut Lanes) {
    let packed = is_packed(input.inst.mods.ty);
    let (a, b) = (input.a(), input.b());
    match input.inst.op {
        // f32 has more than twice the bits of a half, so the second rounding of a sum is harmless. An f16 product is exact in f32.
        Opcode::Hadd2 => by_half::<BF16>(packed, out, [a, b, a], |[a, b, _]| a + b),
        Opcode::Hmul2 if BF16 => {
            by_half::<BF16>(packed, out, [a, b, a], |[a, b, _]| to_odd(f64::from(a) * f64::from(b)))
        }
        Opcode::Hmul2 => by_half::<BF16>(packed, out, [a, b, a], |[a, b, _]| a * b),
        _ => by_half::<BF16>(packed, out, [a, b, input.c()], |[a, b, c]| to_odd(fma_to_odd(a, b, c))),
    }
}

#[inline(always)]
fn by_half<const BF16: bool>(packed: bool, out: &mut Lanes, words: [&Lanes; 3], f: impl Fn([f32; 3]) -> f32) {
    for lane in 0..WARP_SIZE {
        out.0[lane] = narrow(BF16, f(words.map(|word| widen(BF16, word.0[lane] & 0xffff))));
    }
    if packed {
        for lane in 0..WARP_SIZE {
            out.0[lane] |= narrow(BF16, f(words.map(|word| widen(BF16, word.0[lane] >> 16)))) << 16;
        }
    }
}

pub(super) fn hmnmx2(input: &ExecInput, results: &mut Results) {
    let mods = &input.inst.mods;
    let bf16 = is_bf16(mods.ty);
    let one = |least: bool, a: u32, b: u32| {
        let word = |half: u32| widen(bf16, half).to_bits();
        // Exact: widened halves are in the same order, and narrow back without rounding.
        let chosen = fp32::min_or_max(least, mods.unordered, word(a), word(b));
        flush_and_saturate(mods, bf16, narrow(bf16, f32::from_bits(chosen)))
    };
    map2_where(
        &mut results.words[0],
        input.operands.preds[0],
        input.a(),
        input.b(),
        |least, a, b| {
            let low = one(least, a & 0xffff, b & 0xffff);
            let high = if is_packed(mods.ty) {
                one(least, a >> 16, b >> 16)
            } else {
                0
            };
            high << 16 | low
        },
    );
}

/// Applies a function of f32 to each half of a word.
pub(super) fn by_halves(input: &ExecInput, results: &mut Results, f: impl Fn(f32) -> f64) {
    let mods = &input.inst.mods;
    let bf16 = is_bf16(mods.ty);
    let one = |half: u32| flush_and_saturate(mods, bf16, narrow(bf16, to_odd(f(widen(bf16, half)))));
    map1(&mut results.words[0], input.a(), |a| {
        let high = if is_packed(mods.ty) { one(a >> 16) } else { 0 };
        high << 16 | one(a & 0xffff)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustc_apfloat::Float;
    use rustc_apfloat::ieee::{BFloat, Half};

    #[test]
    fn every_f16_widened_and_narrowed_is_unchanged() {
        for half in 0..0x1_0000u32 {
            let value = widen(false, half);
            let expected = ::half::f16::from_bits(half as u16).to_f32();
            assert!(
                value.to_bits() == expected.to_bits() || value.is_nan() && expected.is_nan(),
                "{half:#x}"
            );
            assert_eq!(narrow(false, value), if value.is_nan() { NAN } else { half });
            let bf16 = widen(true, half);
            assert_eq!(narrow(true, bf16), if bf16.is_nan() { NAN } else { half });
        }
    }

    #[test]
    fn random_halves_fused_agree_with_exact_arithmetic() {
        let mut state = 88_172_645_463_325_252u64;
        for _ in 0..200_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let halves = [
                state as u32 & 0xffff,
                (state >> 16) as u32 & 0xffff,
                (state >> 32) as u32 & 0xffff,
            ];
            for bf16 in [false, true] {
                let [a, b, c] = halves.map(|half| widen(bf16, half));
                let got = narrow(bf16, to_odd(fma_to_odd(a, b, c)));
                let expected = if bf16 { exact::<BFloat> } else { exact::<Half> }(halves);
                assert_eq!(got, expected, "{halves:x?}, bf16: {bf16}");
            }
        }
    }

    fn exact<F: Float>(halves: [u32; 3]) -> u32 {
        let [a, b, c] = halves.map(|half| F::from_bits(half.into()));
        let sum = a.mul_add(b, c).value;
        if sum.is_nan() { NAN } else { sum.to_bits() as u32 }
    }
}
