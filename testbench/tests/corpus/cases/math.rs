//! Transcendental functions and long float sums. References are in f64. A tolerance is the sum of two parts. The CUDA C Programming Guide
//! and the PTX manual give the error of each function and approximate operation. Each rounding adds half a unit in the last place (ulp).

use std::f64::consts::FRAC_1_SQRT_2;

use half::{bf16, f16};

use super::bits::philox;
use super::triton_scratch;
use crate::case::{Case, Param, Source, ceil, input, int, near, output, scalar};
use crate::draw::{doubles, floats, ints, whole};

/// The cases.
pub fn cases() -> Vec<Case> {
    vec![
        gelu("gelu_erf", gelu_erf, 5e-7),
        gelu("gelu_tanh", gelu_tanh, 6e-7),
        cuda_softmax(),
        triton_softmax(),
        layernorm(),
        math_f32(),
        math_fast(),
        math_f64(),
        daxpy(),
        ddot(),
        dslow(),
        nbody(),
        opencl_blur(),
        embed_gelu(),
        dropout(),
        flash_attention(),
    ]
}

/// The error function by its series of positive terms (Abramowitz and Stegun 7.1.6), to about 1e-15 for |x| < 5.
fn erf(x: f64) -> f64 {
    let term = |term: &f64, n: i32| term * 2.0 * x * x / f64::from(2 * n + 1);
    let terms = (1..200).scan(x, |last, n| {
        *last = term(last, n);
        Some(*last)
    });
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * (x + terms.sum::<f64>())
}

fn gelu_erf(v: f64) -> f64 {
    0.5 * v * (1.0 + erf(v * FRAC_1_SQRT_2))
}

fn gelu_tanh(v: f64) -> f64 {
    let u = 0.7978845608 * (v + 0.044715 * v * v * v);
    0.5 * v * (1.0 + u.tanh())
}

/// Applies a function to each element, in f64.
fn each(values: &[f32], function: impl Fn(f64) -> f64) -> Vec<f32> {
    values.iter().map(|&v| function(v.into()) as f32).collect()
}

/// The function has an error of 2 ulp, and its result is at most 1. The factor |v| / 2 <= 3 scales the error to `atol` where 1 + f cancels.
fn gelu(entry: &'static str, function: fn(f64) -> f64, atol: f64) -> Case {
    let values = floats(1, 300, -6.0, 6.0);
    Case::cuda("gelu", entry).launch(ceil(300, 256), 256).args([
        input(&values),
        near(&[0.0; 300], &each(&values, function), 5e-7, atol),
        int(300),
    ])
}

fn softmax(row: &[f32]) -> Vec<f32> {
    let greatest = row.iter().copied().fold(f32::MIN, f32::max);
    let power = |v: &f32| f64::from(v - greatest).exp();
    let sum = row.iter().map(power).sum::<f64>();
    row.iter().map(|v| (power(v) / sum) as f32).collect()
}

/// With fast mathematics the argument of the exponential, at most 10, has an error of 2^-20. The exponential adds 2 ulp. Both count
/// twice: in the numerator and in the sum. 14 additions, the reciprocal and the product add half an ulp each.
const SOFTMAX_RTOL: f64 = 4e-6;

fn cuda_softmax() -> Case {
    let (rows, cols) = (3, 301);
    let values = floats(2, rows * cols, -5.0, 5.0);
    let result: Vec<_> = values.chunks(cols).flat_map(softmax).collect();
    Case::cuda("softmax", "softmax").launch(rows, 96).args([
        input(&values),
        near(&vec![0.0; rows * cols], &result, SOFTMAX_RTOL, 0.0),
        int(cols),
    ])
}

/// The elements of a row beyond `cols` do not change.
fn triton_softmax() -> Case {
    let (rows, cols, pitch) = (3, 1001, 1008);
    let values = floats(3, rows * pitch, -5.0, 5.0);
    let before = vec![-9.0; rows * pitch];
    let mut after = before.clone();
    for (row, to) in values.chunks(pitch).zip(after.chunks_mut(pitch)) {
        to[..cols].copy_from_slice(&softmax(&row[..cols]));
    }
    Case::new(Source::Triton("softmax"), "softmax")
        .launch(rows, 128)
        .dynamic_shared(1024)
        .args([
            input(&values),
            near(&before, &after, SOFTMAX_RTOL, 0.0),
            int(pitch),
            int(cols),
        ])
        .args(triton_scratch())
}

/// Results of size 1, from sums of 75 elements with about 20 roundings. The root has an error of 2 ulp.
fn layernorm() -> Case {
    let (rows, cols, eps) = (6, 75, 1e-3);
    let (x, gamma, beta) = (
        floats(4, rows * cols, -2.0, 3.0),
        floats(5, cols, 0.5, 1.5),
        floats(6, cols, -1.0, 1.0),
    );
    let normal = |row: &[f32]| -> Vec<f32> {
        let mean = row.iter().map(|&v| f64::from(v)).sum::<f64>() / cols as f64;
        let variance = row.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / cols as f64;
        let scaled = |(c, &v): (usize, &f32)| (f64::from(v) - mean) / (variance + eps).sqrt() * f64::from(gamma[c]);
        (0..cols)
            .map(|c| (scaled((c, &row[c])) + f64::from(beta[c])) as f32)
            .collect()
    };
    let y: Vec<_> = x.chunks(cols).flat_map(normal).collect();
    Case::cuda("layernorm", "layernorm")
        .launch_3d([2, 1, 1], [32, 4, 1])
        .args([
            input(&x),
            input(&gamma),
            input(&beta),
            near(&vec![0.0; y.len()], &y, 2e-6, 2e-6),
        ])
        .args([int(rows), int(cols), scalar(eps as f32)])
}

/// 17 terms with an error of at most 4 ulp each, and 17 roundings of the sum. No term is much larger than the sum.
fn math_f32() -> Case {
    let values = floats(7, 150, 0.1, 4.0);
    let sum = |v: f64| {
        let first = v.sin() + v.cos() * v.exp() + v.ln() + v.powf(f64::from(1.7f32)) + v.sqrt() / v;
        let second = v.atan2(2.0) + v.cbrt() + v % f64::from(0.3f32) + v.round_ties_even() + v.trunc() + v.ceil();
        first + second + v.hypot(1.0) + v.log2() + v.exp2()
    };
    Case::cuda("math_zoo", "math_f32").launch(ceil(150, 128), 128).args([
        input(&values),
        near(&[0.0; 150], &each(&values, sum), 2e-6, 3e-6),
        int(150),
    ])
}

/// Sine, cosine and tangent have an absolute error of 2^-21 here. Power and exponential add a few ulp to the error of their argument.
fn math_fast() -> Case {
    let values = floats(8, 150, 0.1, 1.2);
    let sum = |v: f64| {
        let first = v.sin() + v.cos() + v.exp() + v.ln() + v.powf(f64::from(1.7f32)) + v / f64::from(3.3f32);
        let second = 1.0 / v + v.sqrt() + v + 1.0 + v * v + v.clamp(0.0, 1.0) + v.tan();
        first + second + 1.0 / v.sqrt() + v * v + 2.0
    };
    Case::cuda("math_zoo", "math_fast").launch(ceil(150, 128), 128).args([
        input(&values),
        near(&[0.0; 150], &each(&values, sum), 2e-6, 3e-6),
        int(150),
    ])
}

fn math_f64() -> Case {
    let values = doubles(9, 150, 0.1, 40.0);
    let sum =
        |&v: &f64| v.sin() + v.ln() + v.powf(0.3) + 1.0 / v.sqrt() + v.floor() + v.mul_add(v, 1.0) + 1.0 + v.abs();
    let sums: Vec<_> = values.iter().map(sum).collect();
    Case::cuda("math_zoo", "math_f64").launch(ceil(150, 128), 128).args([
        input(&values),
        near(&[0.0; 150], &sums, 3e-15, 1e-15),
        int(150),
    ])
}

fn daxpy() -> Case {
    let (x, y) = (doubles(10, 300, -9.0, 9.0), doubles(11, 300, -9.0, 9.0));
    let after: Vec<_> = x.iter().zip(&y).map(|(x, y)| x.mul_add(4.0, *y)).collect();
    Case::cuda("daxpy_f64", "daxpy").launch(ceil(300, 256), 256).args([
        int(300),
        scalar(4.0f64),
        input(&x),
        output(&y, &after),
    ])
}

/// Integers: the sum is exact in any order.
fn ddot() -> Case {
    let draw = |seed| -> Vec<f64> { whole(seed, 333, -999, 999).into_iter().map(f64::from).collect() };
    let (x, y) = (draw(12), draw(13));
    let dot = x.iter().zip(&y).map(|(x, y)| x * y).sum::<f64>();
    Case::cuda("daxpy_f64", "ddot")
        .launch(2, 96)
        .args([int(333), input(&x), input(&y), output(&[0.0], &[dot])])
}

fn dslow() -> Case {
    let x = doubles(14, 150, 0.0, 30.0);
    let y: Vec<_> = x.iter().map(|x| x.sqrt() / (1.0 + (-x).exp()) + x % 3.0).collect();
    Case::cuda("daxpy_f64", "dslow").launch(ceil(150, 128), 128).args([
        int(150),
        input(&x),
        near(&[0.0; 150], &y, 2e-15, 0.0),
    ])
}

/// 256 forces with an error of 8 ulp each. Their magnitudes add up to less than 300 per axis.
fn nbody() -> Case {
    let (n, dt, eps2) = (256, 0.01f32, 0.25f32);
    let (places, speeds) = (floats(15, 4 * n, -1.0, 1.0), floats(16, 4 * n, -1.0, 1.0));
    let at = |body: usize, axis: usize| f64::from(places[4 * body + axis]);
    let pull = |me: usize, axis: usize| {
        let of = |body: usize| {
            let square = (0..3).map(|axis| (at(body, axis) - at(me, axis)).powi(2)).sum::<f64>() + f64::from(eps2);
            at(body, 3) / (square * square.sqrt()) * (at(body, axis) - at(me, axis))
        };
        (0..n).map(of).sum::<f64>()
    };
    let speed = |k: usize| match k % 4 {
        3 => speeds[k],
        axis => (f64::from(speeds[k]) + pull(k / 4, axis) * f64::from(dt)) as f32,
    };
    let after: Vec<_> = (0..4 * n).map(speed).collect();
    Case::cuda("nbody", "nbody")
        .launch(1, n)
        .args([input(&places), near(&speeds, &after, 1e-6, 1e-5)])
        .args([int(n), scalar(dt), scalar(eps2)])
}

/// The root of a weighted sum of five points along a row. The points at its ends are repeated.
fn opencl_blur() -> Case {
    let (w, h) = (24, 3);
    let values = floats(17, 4 * w * h, 0.0, 9.0);
    let point = |k: usize| {
        let (channel, x, y) = (k % 4, k / 4 % w, k / 4 / w);
        let term = |(d, weight): (usize, f64)| {
            let from = (x + d).saturating_sub(2).min(w - 1);
            weight * f64::from(values[4 * (y * w + from) + channel])
        };
        let weights = [0.0625, 0.25, 0.375, 0.25, 0.0625];
        (0..).zip(weights).map(term).sum::<f64>().sqrt() as f32
    };
    let after: Vec<_> = (0..values.len()).map(point).collect();
    Case::new(Source::OpenCl, "blur").launch_3d([3, 3, 1], [8, 1, 1]).args([
        input(&values),
        near(&vec![0.0; after.len()], &after, 4e-7, 0.0),
        int(w),
    ])
}

/// The last rounding is to bf16. Results on two sides of a midpoint differ by one ulp, at most 2^-7 of the value.
fn embed_gelu() -> Case {
    let (words, dim) = (9, 200);
    let table: Vec<_> = floats(18, words * dim, -4.0, 4.0)
        .into_iter()
        .map(f16::from_f32)
        .collect();
    let chosen = ints(19, 5, 0, words as i32 - 1);
    let row = |&word: &i32| {
        table[word as usize * dim..][..dim]
            .iter()
            .map(|v| bf16::from_f64(gelu_erf(v.to_f64())))
    };
    let after: Vec<_> = chosen.iter().flat_map(row).collect();
    Case::new(Source::Triton("embed_gelu"), "embed_gelu")
        .launch(5, 64)
        .args([
            input(&table),
            input(&chosen),
            near(&vec![bf16::ZERO; after.len()], &after, 0.0079, 1e-6),
            int(dim),
        ])
        .args(triton_scratch())
}

/// Triton's uniform numbers: the first word of Philox for the seed, taken as a sign and 31 bits. The division has an error of 2 ulp.
fn dropout() -> Case {
    let (n, p, seed) = (600, 0.4f32, 99u32);
    let values = floats(20, n, -9.0, 9.0);
    let kept = |i: usize| {
        let [word, ..] = philox([i as u32, 0, 0, 0], [seed, 0]);
        let size = if (word as i32) < 0 { !word } else { word };
        let uniform = f64::from(size) * 4.6566127342e-10;
        assert!(
            (uniform - f64::from(p)).abs() > 1e-6,
            "element {i} has a random number too close to p"
        );
        if uniform > f64::from(p) {
            (f64::from(values[i]) / (1.0 - f64::from(p))) as f32
        } else {
            0.0
        }
    };
    let after: Vec<_> = (0..n).map(kept).collect();
    Case::new(Source::Triton("dropout"), "dropout")
        .launch(ceil(n, 256), 128)
        .args([
            input(&values),
            near(&vec![-1.0; n], &after, 3e-7, 0.0),
            int(n),
            scalar(p),
            scalar(seed),
        ])
        .args(triton_scratch())
}

/// Causal attention of two heads. Weights are rounded to f16 before the product with the values, and the result is rounded too. So there
/// are 3 roundings of 2^-11 for numbers of size 1.
fn flash_attention() -> Case {
    let (heads, seq, d, scale) = (2, 75, 64, 0.125f32);
    let draw = |seed| -> Vec<f16> {
        floats(seed, heads * seq * d, -1.0, 1.0)
            .into_iter()
            .map(f16::from_f32)
            .collect()
    };
    let (q, k, v) = (draw(21), draw(22), draw(23));
    let row = |of: &[f16], head: usize, at: usize| -> Vec<f64> {
        of[(head * seq + at) * d..][..d].iter().map(|v| v.to_f64()).collect()
    };
    let attend = |head: usize, at: usize| -> Vec<f16> {
        let query = row(&q, head, at);
        let score = |j: usize| row(&k, head, j).iter().zip(&query).map(|(k, q)| k * q).sum::<f64>() * f64::from(scale);
        let weights: Vec<_> = (0..=at).map(|j| score(j).exp()).collect();
        let sum = weights.iter().sum::<f64>();
        let element = |c: usize| {
            weights
                .iter()
                .enumerate()
                .map(|(j, weight)| weight * row(&v, head, j)[c])
                .sum::<f64>()
        };
        (0..d).map(|c| f16::from_f64(element(c) / sum)).collect()
    };
    let after: Vec<_> = (0..heads * seq).flat_map(|at| attend(at / seq, at % seq)).collect();
    let pointers: [Param; 4] = [
        input(&q),
        input(&k),
        input(&v),
        near(&vec![f16::ZERO; after.len()], &after, 1e-3, 1e-3),
    ];
    Case::new(Source::Triton("flash_attention"), "flash_attention")
        .launch_3d([2, heads as u32, 1], [128, 1, 1])
        .dynamic_shared(40_960)
        .args(pointers)
        .args([int(seq), scalar(scale), int(d)])
        .args(triton_scratch())
}

#[test]
fn erf_matches_the_published_table() {
    // Abramowitz and Stegun, table 7.1.
    for (x, value) in [(0.5, 0.520_499_877_8), (1.0, 0.842_700_792_9), (2.0, 0.995_322_265_0)] {
        assert!((erf(x) - value).abs() < 1e-10, "erf({x}) = {}", erf(x));
    }
}
