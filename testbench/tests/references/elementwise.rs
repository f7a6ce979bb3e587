//! Kernels in which an output element depends only on the input elements of its index.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// `c[i] = a[i] + b[i]`.
pub fn add(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

/// `y[i] = alpha * x[i] + y[i]`, rounded once, as the compiler contracted it.
pub fn saxpy(alpha: f32, x: &[f32], y: &[f32]) -> Vec<f32> {
    x.iter().zip(y).map(|(&x, &y)| alpha.mul_add(x, y)).collect()
}

/// `c = a + b` over the first `width` columns of `height` rows, `pitch` elements apart. The rest of `c` is not changed.
pub fn matrix_add_2d(a: &[f32], b: &[f32], c: &[f32], width: usize, height: usize, pitch: usize) -> Vec<f32> {
    let mut out = c.to_vec();
    for y in 0..height {
        for x in 0..width {
            let k = y * pitch + x;
            out[k] = a[k] + b[k];
        }
    }
    out
}

/// Copies the elements of `src` at `first`, `first + stride` and so on. The rest of `dst` is not changed.
pub fn copy(src: &[f32], dst: &[f32], first: usize, stride: usize) -> Vec<f32> {
    let mut out = dst.to_vec();
    for k in (first..src.len()).step_by(stride) {
        out[k] = src[k];
    }
    out
}

/// `0.5 v (1 + erf(v / sqrt 2))`.
pub fn gelu_erf(input: &[f32]) -> Vec<f32> {
    each(input, |v| 0.5 * v * (1.0 + erf(v * FRAC_1_SQRT_2)))
}

/// `0.5 v (1 + tanh(sqrt(2 / pi) (v + 0.044715 v^3)))`.
pub fn gelu_tanh(input: &[f32]) -> Vec<f32> {
    let scale = (2.0 / PI).sqrt();
    each(input, |v| 0.5 * v * (1.0 + (scale * (v + 0.044715 * v * v * v)).tanh()))
}

fn each(input: &[f32], function: impl Fn(f64) -> f64) -> Vec<f32> {
    input.iter().map(|&v| function(f64::from(v)) as f32).collect()
}

/// The error function by its series of positive terms (Abramowitz and Stegun 7.1.6), to about 1e-15 for `|x| < 5`.
fn erf(x: f64) -> f64 {
    let mut term = x;
    let mut sum = x;
    for n in 0..200 {
        term *= 2.0 * x * x / f64::from(2 * n + 3);
        sum += term;
    }
    2.0 / PI.sqrt() * (-x * x).exp() * sum
}

#[test]
fn erf_of_tabled_arguments_is_the_tabled_value() {
    // Abramowitz and Stegun, table 7.1.
    for (x, value) in [(0.5, 0.520_499_877_8), (1.0, 0.842_700_792_9), (2.0, 0.995_322_265_0)] {
        assert!((erf(x) - value).abs() < 1e-10, "erf({x}) = {}", erf(x));
        assert_eq!(erf(-x), -erf(x));
    }
}

/// Swaps neighbouring chunks of `chunk` elements.
pub fn swap(input: &[f32], chunk: usize) -> Vec<f32> {
    let pairs = input.chunks(2 * chunk);
    pairs
        .flat_map(|pair| [&pair[chunk..], &pair[..chunk]].concat())
        .collect()
}

/// Every element times a factor, rounded once.
pub fn scale(input: &[f32], factor: f32) -> Vec<f32> {
    input.iter().map(|value| value * factor).collect()
}
