//! Special functions (MUFU), within the error bounds of PTX's `.approx` forms. Angles are in radians.
//!
//! They are computed in f64 and rounded to f32, so they are mostly more accurate than the hardware tables. Quotients and square
//! roots use host arithmetic (IEEE 754), the rest uses [`elementary`], so every host gets the same bits.

use super::map::map1;
use super::{ExecInput, Results, elementary, fp32, fp64, half};
use crate::inst::{Mufu, Ty};

pub(super) fn mufu(input: &ExecInput, results: &mut Results) {
    let function = input.inst.mods.mufu;
    match input.inst.mods.ty {
        Ty::F64 => upper_word(input, function, results),
        Ty::F16 | Ty::F16x2 | Ty::Bf16 | Ty::Bf16x2 => half::by_halves(input, results, |x| value(function, x.into())),
        _ => {
            let out = &mut results.words[0];
            match function {
                // One host operation in f32, without the detour over f64.
                Mufu::Rcp => map1(out, input.a(), |a| fp32::bits(1.0 / f32::from_bits(a))),
                Mufu::Sqrt => map1(out, input.a(), |a| fp32::bits(f32::from_bits(a).sqrt())),
                _ => map1(out, input.a(), |a| {
                    fp32::bits(value(function, f32::from_bits(a).into()) as f32)
                }),
            }
            fp32::flush_and_saturate(input.inst, out);
        }
    }
}

/// MUFU on the upper word of an f64 (RCP64H, RSQ64H). Lower words and denormals count as zero.
fn upper_word(input: &ExecInput, function: Mufu, results: &mut Results) {
    const SIGN: u64 = 1 << 63;
    let flush = |bits: u64| if bits & !SIGN < 1 << 52 { bits & SIGN } else { bits };
    map1(&mut results.words[0], input.a(), |a| {
        // The register has the upper word alone. The compiled division refines the result with DFMAs.
        let x = f64::from_bits(flush(u64::from(a) << 32));
        (flush(fp64::bits(value(function, x))) >> 32) as u32
    });
}

fn value(function: Mufu, x: f64) -> f64 {
    match function {
        Mufu::Rcp => 1.0 / x,
        Mufu::Rsq => 1.0 / x.sqrt(),
        Mufu::Sqrt => x.sqrt(),
        Mufu::Ex2 => elementary::exp2(x),
        Mufu::Lg2 => elementary::log2(x),
        Mufu::Sin => elementary::sin(x as f32),
        Mufu::Cos => elementary::cos(x as f32),
        Mufu::Tanh => elementary::tanh(x),
    }
}
