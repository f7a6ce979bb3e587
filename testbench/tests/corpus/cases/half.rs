//! 16-bit and 8-bit floats: f16, bf16 and e4m3, packed and single. Each operation rounds once.

use half::{bf16, f16};

use crate::case::{Case, ceil, input, int, output, scalar};
use crate::draw::{floats, whole};

/// Number of pairs: no multiple of a block size in this file.
const N: usize = 201;

/// The cases.
pub fn cases() -> Vec<Case> {
    vec![
        half2_axpy(),
        half_relu_scale(),
        half2_dot(),
        bf16_add(),
        bf16x2_fma(),
        fp8_quant(),
    ]
}

/// Numbers with four fractional bits. Products and short sums are exact in f64, and mostly not in f16.
fn sixteenths(seed: u64, n: usize) -> Vec<f16> {
    whole(seed, n, -999, 999)
        .into_iter()
        .map(|v| f16::from_f32(v / 16.0))
        .collect()
}

/// Fused: product and sum are rounded once.
fn half2_axpy() -> Case {
    let (x, y, a) = (sixteenths(1, 2 * N), sixteenths(2, 2 * N), f16::from_f32(1.4375));
    let fused = |(x, y): (&f16, &f16)| f16::from_f64(a.to_f64() * x.to_f64() + y.to_f64());
    let after: Vec<_> = x.iter().zip(&y).map(fused).collect();
    Case::cuda("half2_math", "half2_axpy").launch(ceil(N, 128), 128).args([
        input(&x),
        output(&y, &after),
        scalar(a),
        int(N),
    ])
}

fn half_relu_scale() -> Case {
    let x = sixteenths(3, N);
    let scaled = |x: &f16| {
        let positive = x.to_f64().max(0.0);
        f16::from_f64(positive * positive).to_f32() * 0.3
    };
    let y: Vec<_> = x.iter().map(scaled).collect();
    Case::cuda("half2_math", "half_relu_scale")
        .launch(ceil(N, 128), 128)
        .args([input(&x), output(&[0.0; N], &y), scalar(0.3f32), int(N)])
}

/// Small integers: no sum is rounded.
fn half2_dot() -> Case {
    let small = |seed| -> Vec<f16> { whole(seed, 2 * N, -3, 3).into_iter().map(f16::from_f32).collect() };
    let (a, b) = (small(4), small(5));
    let sum = a.iter().zip(&b).map(|(a, b)| a.to_f32() * b.to_f32()).sum::<f32>();
    Case::cuda("half2_math", "half2_dot")
        .launch(1, 96)
        .args([input(&a), input(&b), output(&[0.0], &[sum]), int(N)])
}

fn brain(seed: u64, n: usize) -> Vec<bf16> {
    whole(seed, n, -127, 127)
        .into_iter()
        .map(|v| bf16::from_f32(v / 16.0))
        .collect()
}

fn bf16_add() -> Case {
    let (a, b) = (brain(6, N), brain(7, N));
    let c: Vec<_> = a
        .iter()
        .zip(&b)
        .map(|(a, b)| bf16::from_f32(a.to_f32() + b.to_f32()))
        .collect();
    Case::cuda("half2_math", "bf16_add").launch(ceil(N, 128), 128).args([
        input(&a),
        input(&b),
        output(&[bf16::ZERO; N], &c),
        int(N),
    ])
}

/// a * b + max(old, a), rounded once. The f32 sum is exact, so only the conversion to bf16 rounds.
fn bf16x2_fma() -> Case {
    let (a, b, before) = (brain(8, 2 * N), brain(9, 2 * N), brain(10, 2 * N));
    let fused = |i: usize| bf16::from_f32(a[i].to_f32() * b[i].to_f32() + before[i].to_f32().max(a[i].to_f32()));
    let after: Vec<_> = (0..2 * N).map(fused).collect();
    Case::cuda("fp8_quant", "bf16x2_fma").launch(ceil(N, 128), 128).args([
        input(&a),
        input(&b),
        output(&before, &after),
        int(N),
    ])
}

/// The nearest e4m3 of a number: four exponent bits with bias 7, three fraction bits, no infinity. Large numbers become 448.
fn e4m3(v: f32) -> u8 {
    let (sign, size) = (u8::from(v.is_sign_negative()) << 7, f64::from(v.abs()));
    if v.is_nan() {
        return 0x7f;
    }
    if size >= 448.0 {
        return sign | 0x7e;
    }
    let exponent = (size.log2().floor() as i32).max(-6);
    let steps = (size * f64::from(3 - exponent).exp2()).round_ties_even() as u8;
    // A denormal has fewer than 8 steps. 16 steps carry into the exponent.
    sign | ((exponent + 6) as u8 * 8 + steps)
}

fn fp8_quant() -> Case {
    let mut values = floats(11, 2 * N, -300.0, 300.0);
    values[..8].copy_from_slice(&[0.0, -0.0, 0.001, -0.004, 1e9, -1e9, f32::NAN, 0.0137]);
    let quantised: Vec<_> = values.iter().map(|v| e4m3(v * 1.5)).collect();
    Case::cuda("fp8_quant", "fp8_quant").launch(ceil(N, 128), 128).args([
        input(&values),
        output(&[0u8; 2 * N], &quantised),
        scalar(1.5f32),
        int(N),
    ])
}
