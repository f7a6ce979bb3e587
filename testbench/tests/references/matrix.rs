//! Kernels on matrices, stored by rows: transposition, products, softmax of each row.

/// The transpose of `height` rows of `width`.
pub fn transpose(input: &[f32], width: usize, height: usize) -> Vec<f32> {
    (0..width * height)
        .map(|k| input[k % height * width + k / height])
        .collect()
}

/// Extents of `c[m][n] = a[m][k] b[k][n]`.
#[derive(Clone, Copy)]
pub struct Extents {
    pub m: usize,
    pub n: usize,
    pub k: usize,
}

/// The product in f64; `a` and `b` give the factors' elements by row and column.
pub fn product(size: Extents, a: impl Fn(usize, usize) -> f64, b: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    let element = |row: usize, col: usize| (0..size.k).map(|t| a(row, t) * b(t, col)).sum();
    (0..size.m * size.n)
        .map(|at| element(at / size.n, at % size.n))
        .collect()
}

/// `alpha a b + beta c`.
pub fn sgemm(size: Extents, alpha: f32, a: &[f32], b: &[f32], beta: f32, c: &[f32]) -> Vec<f32> {
    let (alpha, beta) = (f64::from(alpha), f64::from(beta));
    product(
        size,
        |r, t| f64::from(a[r * size.k + t]),
        |t, c| f64::from(b[t * size.n + c]),
    )
    .iter()
    .zip(c)
    .map(|(ab, &c)| (alpha * ab + beta * f64::from(c)) as f32)
    .collect()
}

/// Softmax over the first `cols` elements of each row. The rest of a row of `out` is not changed.
pub fn softmax(input: &[f32], out: &[f32], cols: usize, pitch: usize) -> Vec<f32> {
    let mut result = out.to_vec();
    for (row, to) in input.chunks(pitch).zip(result.chunks_mut(pitch)) {
        let row: Vec<f64> = row[..cols].iter().copied().map(f64::from).collect();
        let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = row.iter().map(|v| (v - max).exp()).sum();
        for (to, v) in to.iter_mut().zip(&row) {
            *to = ((v - max).exp() / sum) as f32;
        }
    }
    result
}

/// The tile of 32 by 32 elements with this index among the tiles. Zero outside the matrix.
pub fn tile(input: &[f32], [rows, cols]: [usize; 2], [down, right]: [usize; 2]) -> Vec<f32> {
    let element = |row: usize, col: usize| {
        let inside = row < rows && col < cols;
        if inside { input[row * cols + col] } else { 0.0 }
    };
    (0..1024)
        .map(|n| element(32 * down + n / 32, 32 * right + n % 32))
        .collect()
}
