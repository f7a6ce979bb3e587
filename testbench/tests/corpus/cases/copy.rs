//! Elementwise kernels: copies, sums, transpositions, arrays of structures.

use super::{numba_1d, triton_scratch};
use crate::case::{Case, Param, Source, ceil, input, int, output, scalar};
use crate::draw::{floats, whole};

/// Number of elements: no multiple of a block size in this file.
const N: usize = 700;

/// The cases.
pub fn cases() -> Vec<Case> {
    let mut cases = vec![
        vector_add(),
        saxpy(),
        matrix_add_2d(),
        copy_coalesced(),
        copy_strided(),
        copy_offset(),
        copy_float4(),
        push_aos(),
        push_soa(),
        triton_vector_add(),
        opencl_vadd(),
        rust_saxpy(),
        numba_axpy(),
    ];
    cases.extend(["transpose_naive", "transpose_tiled", "transpose_padded"].map(transpose));
    cases
}

fn sum(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn vector_add() -> Case {
    let (a, b) = (floats(1, N, -9.0, 9.0), floats(2, N, -9.0, 9.0));
    Case::cuda("vector_add", "vector_add").launch(ceil(N, 256), 256).args([
        input(&a),
        input(&b),
        output(&[0.0; N], &sum(&a, &b)),
        int(N),
    ])
}

/// Integers, so that fused and separate operations agree.
fn saxpy_data() -> ([Vec<f32>; 2], Vec<f32>) {
    let (x, y) = (whole(3, N, -999, 999), whole(4, N, -999, 999));
    let after = x.iter().zip(&y).map(|(x, y)| 3.0 * x + y).collect();
    ([x, y], after)
}

fn saxpy() -> Case {
    let ([x, y], after) = saxpy_data();
    Case::cuda("saxpy", "saxpy")
        .launch(ceil(N, 256), 256)
        .args([int(N), scalar(3.0f32), input(&x), output(&y, &after)])
}

fn rust_saxpy() -> Case {
    let ([x, y], after) = saxpy_data();
    Case::new(Source::Rust, "saxpy").launch(ceil(N, 128), 128).args([
        scalar(N as u64),
        scalar(3.0f32),
        input(&x),
        output(&y, &after),
    ])
}

fn numba_axpy() -> Case {
    let ([x, y], after) = saxpy_data();
    Case::new(Source::Numba("axpy"), "axpy")
        .launch(ceil(N, 128), 128)
        .args([scalar(3.0f32)])
        .args(numba_1d(&x, input(&x)))
        .args(numba_1d(&y, output(&y, &after)))
}

fn matrix_add_2d() -> Case {
    let (w, h, pitch) = (37, 21, 40);
    let (a, b) = (floats(5, h * pitch, -9.0, 9.0), floats(6, h * pitch, -9.0, 9.0));
    let before = vec![-1.0; h * pitch];
    let mut after = before.clone();
    for at in (0..h * pitch).filter(|at| at % pitch < w) {
        after[at] = a[at] + b[at];
    }
    Case::cuda("matrix_add_2d", "matrix_add_2d")
        .launch_3d([3, 2, 1], [16, 16, 1])
        .args([
            input(&a),
            input(&b),
            output(&before, &after),
            int(w),
            int(h),
            int(pitch),
        ])
}

/// A copy of the elements for which `is_copied` is true.
fn copied(entry: &'static str, is_copied: impl Fn(usize) -> bool) -> (Case, [Param; 3]) {
    let (from, before) = (floats(7, N, -9.0, 9.0), floats(8, N, -9.0, 9.0));
    let element = |i: usize| if is_copied(i) { from[i] } else { before[i] };
    let after: Vec<f32> = (0..N).map(element).collect();
    let case = Case::cuda("copy_patterns", entry).launch(ceil(N, 256), 256);
    (case, [input(&from), output(&before, &after), int(N)])
}

fn copy_coalesced() -> Case {
    let (case, args) = copied("copy_coalesced", |_| true);
    case.args(args)
}

fn copy_strided() -> Case {
    let (case, args) = copied("copy_strided", |i| i % 3 == 0);
    case.args(args).args([int(3)])
}

fn copy_offset() -> Case {
    let (case, args) = copied("copy_offset", |i| i >= 5);
    case.args(args).args([int(5)])
}

fn copy_float4() -> Case {
    let (from, n4) = (floats(9, N, -9.0, 9.0), N / 4);
    Case::cuda("copy_patterns", "copy_float4")
        .launch(ceil(n4, 256), 256)
        .args([input(&from), output(&[0.0; N], &from), int(n4)])
}

/// Seven numbers per particle: position, velocity, mass.
fn push_aos() -> Case {
    let n = 201;
    let before = whole(10, 7 * n, -99, 99);
    let mut after = before.clone();
    for particle in after.chunks_mut(7) {
        for axis in 0..3 {
            particle[axis] += particle[axis + 3] * 0.5;
        }
    }
    Case::cuda("aos_soa", "push_aos")
        .launch(ceil(n, 128), 128)
        .args([output(&before, &after), scalar(0.5f32), int(n)])
}

fn push_soa() -> Case {
    let n = 201;
    let places: Vec<_> = (0..3).map(|axis| whole(11 + axis, n, -99, 99)).collect();
    let speeds: Vec<_> = (0..3).map(|axis| whole(14 + axis, n, -99, 99)).collect();
    let pushed = |(place, speed): (&Vec<f32>, &Vec<f32>)| {
        let after: Vec<_> = place.iter().zip(speed).map(|(p, v)| p + v * 0.5).collect();
        output(place, &after)
    };
    let fields = places.iter().zip(&speeds).map(pushed);
    let fields = fields.chain(speeds.iter().map(|speed| input(speed))).collect();
    Case::cuda("aos_soa", "push_soa")
        .launch(ceil(n, 128), 128)
        .args([Param::Struct(fields), scalar(0.5f32), int(n)])
}

fn transpose(entry: &'static str) -> Case {
    let (w, h) = (45, 70);
    let from = floats(17, w * h, -9.0, 9.0);
    let to: Vec<f32> = (0..w * h).map(|at| from[at % h * w + at / h]).collect();
    Case::cuda(entry, entry).launch_3d([2, 3, 1], [32, 8, 1]).args([
        input(&from),
        output(&vec![0.0; w * h], &to),
        int(w),
        int(h),
    ])
}

fn triton_vector_add() -> Case {
    let n = 1500;
    let (a, b) = (floats(1, n, -9.0, 9.0), floats(2, n, -9.0, 9.0));
    Case::new(Source::Triton("vector_add"), "vector_add")
        .launch(ceil(n, 1024), 128)
        .args([input(&a), input(&b), output(&vec![0.0; n], &sum(&a, &b)), int(n)])
        .args(triton_scratch())
}

fn opencl_vadd() -> Case {
    let (a, b) = (floats(1, N, -9.0, 9.0), floats(2, N, -9.0, 9.0));
    Case::new(Source::OpenCl, "vadd").launch(ceil(N, 64), 64).args([
        input(&a),
        input(&b),
        output(&[0.0; N], &sum(&a, &b)),
        int(N),
    ])
}
