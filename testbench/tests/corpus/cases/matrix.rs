//! Matrix products, convolutions and stencils of integers: exact for any order of the sums, fused or not.

use half::f16;

use super::{numba_2d, triton_scratch};
use crate::case::{Case, Param, Source, ceil, input, int, output, scalar};
use crate::draw::{ints, whole};

/// The cases.
pub fn cases() -> Vec<Case> {
    vec![
        sgemm_naive(),
        sgemm_tiled(),
        sgemm_regblock(),
        cp_async_gemm(),
        opencl_gemm(),
        numba_matmul(),
        triton_matmul(),
        wmma_gemm(),
        mma_f16(),
        mma_s8(),
        mma_tf32_bf16(),
        wgmma_gemm(),
        conv2d(),
        stencil2d(1.0, 1).about("some point still moves"),
        stencil2d(1e6, 0).about("no point moves"),
        spmv("spmv_csr_scalar", 1),
        spmv("spmv_csr_vector", 32),
    ]
}

/// Extents of `c[m][n] = a[m][k] b[k][n]`.
#[derive(Clone, Copy)]
struct Size {
    m: usize,
    n: usize,
    k: usize,
}

/// The product, element by element. `a` and `b` return an element of a factor by row and column.
fn product(size: Size, a: impl Fn(usize, usize) -> f32, b: impl Fn(usize, usize) -> f32) -> Vec<f32> {
    let element = |at: usize| (0..size.k).map(|t| a(at / size.n, t) * b(t, at % size.n)).sum();
    (0..size.m * size.n).map(element).collect()
}

/// Row-major factors, and their product.
fn factors(size: Size) -> [Vec<f32>; 3] {
    let (a, b) = (whole(1, size.m * size.k, -9, 9), whole(2, size.k * size.n, -9, 9));
    let c = product(size, |r, t| a[r * size.k + t], |t, c| b[t * size.n + c]);
    [a, b, c]
}

fn sizes(size: Size) -> [Param; 3] {
    [int(size.m), int(size.n), int(size.k)]
}

/// A grid of tiles of `edge` that covers the result.
fn tiles(size: Size, edge: usize) -> [u32; 3] {
    [ceil(size.n, edge) as u32, ceil(size.m, edge) as u32, 1]
}

fn sgemm_naive() -> Case {
    let size = Size { m: 19, n: 37, k: 23 };
    let ([a, b, ab], c) = (factors(size), whole(3, 19 * 37, -9, 9));
    let after: Vec<_> = ab.iter().zip(&c).map(|(ab, c)| 2.0 * ab - 3.0 * c).collect();
    Case::cuda("sgemm_naive", "sgemm_naive")
        .launch_3d(tiles(size, 16), [16, 16, 1])
        .args(sizes(size))
        .args([
            scalar(2.0f32),
            input(&a),
            input(&b),
            scalar(-3.0f32),
            output(&c, &after),
        ])
}

fn sgemm(entry: &'static str, size: Size, edge: usize, block: [u32; 3]) -> Case {
    let [a, b, c] = factors(size);
    Case::cuda(entry, entry)
        .launch_3d(tiles(size, edge), block)
        .args(sizes(size))
        .args([input(&a), input(&b), output(&vec![0.0; c.len()], &c)])
}

fn sgemm_tiled() -> Case {
    sgemm("sgemm_tiled", Size { m: 19, n: 37, k: 23 }, 16, [16, 16, 1])
}

/// The tiles cover the result exactly. The depth is an odd number of steps.
fn sgemm_regblock() -> Case {
    sgemm("sgemm_regblock", Size { m: 64, n: 128, k: 24 }, 64, [256, 1, 1])
}

fn cp_async_gemm() -> Case {
    sgemm("cp_async_gemm", Size { m: 32, n: 64, k: 96 }, 32, [8, 32, 1])
}

fn opencl_gemm() -> Case {
    let size = Size { m: 16, n: 32, k: 48 };
    let [a, b, c] = factors(size);
    Case::new(Source::OpenCl, "gemm")
        .launch_3d(tiles(size, 16), [16, 16, 1])
        .args([input(&a), input(&b), output(&vec![0.0; c.len()], &c)])
        .args(sizes(size))
}

fn numba_matmul() -> Case {
    let size = Size { m: 19, n: 37, k: 23 };
    let [a, b, c] = factors(size);
    Case::new(Source::Numba("matmul_shared"), "matmul_shared")
        .launch_3d(tiles(size, 16), [16, 16, 1])
        .args(numba_2d(&a, size.m, input(&a)))
        .args(numba_2d(&b, size.k, input(&b)))
        .args(numba_2d(&c, size.m, output(&vec![0.0; c.len()], &c)))
}

fn halves(values: &[f32]) -> Vec<f16> {
    values.iter().map(|&v| f16::from_f32(v)).collect()
}

/// Rows have a pitch. The kernel guards its loads only along the depth, so both factors hold whole tiles.
fn triton_matmul() -> Case {
    let (size, pitch) = (Size { m: 70, n: 90, k: 40 }, [48, 128, 96]);
    let (a, b) = (whole(4, 128 * pitch[0], -5, 5), whole(5, size.k * pitch[1], -5, 5));
    let before = vec![f16::from_f32(-9.0); size.m * pitch[2]];
    let mut after = before.clone();
    let c = product(size, |r, t| a[r * pitch[0] + t], |t, c| b[t * pitch[1] + c]);
    for (row, values) in c.chunks(size.n).enumerate() {
        after[row * pitch[2]..][..size.n].copy_from_slice(&halves(values));
    }
    Case::new(Source::Triton("matmul"), "matmul")
        .launch_3d([2, 2, 1], [128, 1, 1])
        .dynamic_shared(40_960)
        .args([input(&halves(&a)), input(&halves(&b)), output(&before, &after)])
        .args(sizes(size))
        .args(pitch.map(int))
        .args(triton_scratch())
}

/// The right factor is column-major.
fn half_factors(size: Size) -> [Param; 3] {
    let (a, b) = (whole(6, size.m * size.k, -9, 9), whole(7, size.k * size.n, -9, 9));
    let c = product(size, |r, t| a[r * size.k + t], |t, c| b[c * size.k + t]);
    [input(&halves(&a)), input(&halves(&b)), output(&vec![0.0; c.len()], &c)]
}

/// Four warps per block, with one tile of 16 rows each. The last two warps have no tile.
fn wmma_gemm() -> Case {
    let size = Size { m: 32, n: 48, k: 64 };
    Case::cuda("wmma_gemm", "wmma_gemm")
        .launch_3d([3, 1, 1], [32, 4, 1])
        .args(half_factors(size))
        .args(sizes(size))
}

fn mma_f16() -> Case {
    let size = Size { m: 32, n: 24, k: 48 };
    Case::cuda("mma_sync", "mma_f16")
        .launch_3d([3, 2, 1], [32, 1, 1])
        .args(half_factors(size))
        .args(sizes(size))
}

/// Lane and register of an element of a factor (PTX manual, fragments of `mma.m16n8k*`). A register holds `per` elements. Successive k are
/// first in the parts of a register, then in the four lanes of a group, then in other registers.
struct Fragment {
    lane: usize,
    register: usize,
    part: usize,
}

fn left(per: usize, row: usize, k: usize) -> Fragment {
    Fragment {
        lane: 4 * (row % 8) + k / per % 4,
        register: row / 8 + 2 * (k / (4 * per)),
        part: k % per,
    }
}

fn right(per: usize, k: usize, col: usize) -> Fragment {
    Fragment {
        lane: 4 * col + k / per % 4,
        register: k / (4 * per),
        part: k % per,
    }
}

/// The product of 16 rows and 8 columns in the order of lanes. Each lane holds two columns of two rows.
fn by_lane(c: &[f32]) -> Vec<f32> {
    let element = |lane: usize, i: usize| c[(lane / 4 + 8 * (i / 2)) * 8 + 2 * (lane % 4) + i % 2];
    (0..128).map(|at| element(at / 4, at % 4)).collect()
}

/// The product of fragments. A register holds `per` elements, and `part` extracts one.
fn fragments(a: &[u32], b: &[u32], per: usize, part: impl Fn(u32, usize) -> f32) -> Vec<f32> {
    let size = Size {
        m: 16,
        n: 8,
        k: 8 * per,
    };
    let take = |words: &[u32], each: usize, at: Fragment| part(words[each * at.lane + at.register], at.part);
    let c = product(
        size,
        |r, k| take(a, 4, left(per, r, k)),
        |k, c| take(b, 2, right(per, k, c)),
    );
    by_lane(&c)
}

fn mma_s8() -> Case {
    let (a, b) = (crate::draw::bits(8, 128), crate::draw::bits(9, 64));
    let c = fragments(&a, &b, 4, |word, n| f32::from((word >> (8 * n)) as i8));
    let c: Vec<_> = c.into_iter().map(|v| v as i32).collect();
    Case::cuda("mma_sync", "mma_s8")
        .launch(1, 32)
        .args([input(&a), input(&b), output(&[0; 128], &c)])
}

/// Words with few significant bits, both as one tf32 and as two bf16. The high half is from 4 to 8, the low half 2, -2 or zero.
fn mma_tf32_bf16() -> Case {
    let word = |v: i32| (0x4080 + ((v as u32 & 7) << 4)) << 16 | [0, 0x4000, 0xc000][v as usize % 3];
    let draw = |seed, n| -> Vec<u32> { ints(seed, n, 0, 99).into_iter().map(word).collect() };
    let (a, b) = (draw(10, 128), draw(11, 64));
    let whole = fragments(&a, &b, 1, |word, _| f32::from_bits(word));
    let pairs = fragments(&a, &b, 2, |word, n| f32::from_bits(word >> (16 * n) << 16));
    let c: Vec<_> = whole.iter().zip(&pairs).map(|(x, y)| x + y).collect();
    Case::cuda("mma_sync", "mma_tf32_bf16")
        .launch(1, 32)
        .args([input(&a), input(&b), output(&[0.0; 128], &c)])
}

/// Factors packed as core matrices of 8 by 8 elements, two side by side along the depth. A line is a row of the left factor, or a column of
/// the right factor.
fn wgmma_gemm() -> Case {
    let size = Size { m: 64, n: 32, k: 16 };
    let (a, b) = (whole(12, 64 * 16, -9, 9), whole(13, 32 * 16, -9, 9));
    let packed = |row: usize, k: usize| (row / 8 * 2 + k / 8) * 64 + row % 8 * 8 + k % 8;
    let c = product(size, |r, k| a[packed(r, k)], |k, c| b[packed(c, k)]);
    Case::cuda("wgmma_gemm", "wgmma_gemm").launch(1, 128).args([
        input(&halves(&a)),
        input(&halves(&b)),
        output(&[0.0; 64 * 32], &c),
    ])
}

/// The image is zero beyond its edges.
fn conv2d() -> Case {
    let (w, h) = (37, 21);
    let (image, filter) = (whole(14, w * h, -9, 9), whole(15, 25, -9, 9));
    let at = |x: i32, y: i32| match (0..w as i32).contains(&x) && (0..h as i32).contains(&y) {
        true => image[y as usize * w + x as usize],
        false => 0.0,
    };
    let pixel = |k: usize| {
        let (x, y) = ((k % w) as i32, (k / w) as i32);
        let term = |n: i32| filter[n as usize] * at(x + n % 5 - 2, y + n / 5 - 2);
        (0..25).map(term).sum()
    };
    let result: Vec<f32> = (0..w * h).map(pixel).collect();
    Case::cuda("conv2d", "conv2d")
        .launch_3d([3, 2, 1], [16, 16, 1])
        .global("filt", &filter)
        .args([input(&image), output(&vec![0.0; w * h], &result), int(w), int(h)])
}

/// The edges do not change. Quarters of integers are exact.
fn stencil2d(tolerance: f32, moves: i32) -> Case {
    let (w, h) = (45, 19);
    let (u, before) = (whole(16, w * h, -99, 99), whole(17, w * h, -99, 99));
    let mut after = before.clone();
    for y in 1..h - 1 {
        for x in 1..w - 1 {
            let i = y * w + x;
            after[i] = 0.25 * (u[i - 1] + u[i + 1] + u[i - w] + u[i + w]);
        }
    }
    Case::cuda("stencil2d", "stencil2d")
        .launch_3d([2, 3, 1], [32, 8, 1])
        .args([input(&u), output(&before, &after), int(w), int(h)])
        .args([scalar(tolerance), output(&[0], &[moves])])
}

/// Rows of very different lengths, some empty.
fn spmv(entry: &'static str, lanes_per_row: usize) -> Case {
    let (rows, cols) = (77, 60);
    let lengths = ints(18, rows, -5, 50);
    let mut starts = vec![0];
    for length in &lengths {
        starts.push(starts[starts.len() - 1] + (*length).max(0));
    }
    let n = starts[rows] as usize;
    let (columns, values, x) = (
        ints(19, n, 0, cols - 1),
        whole(20, n, -9, 9),
        whole(21, cols as usize, -9, 9),
    );
    let row = |r: usize| {
        (starts[r] as usize..starts[r + 1] as usize).fold(0.0, |sum, j| sum + values[j] * x[columns[j] as usize])
    };
    let y: Vec<f32> = (0..rows).map(row).collect();
    Case::cuda("spmv_csr", entry)
        .launch(ceil(rows * lanes_per_row, 128), 128)
        .args([int(rows), input(&starts), input(&columns), input(&values)])
        .args([input(&x), output(&vec![0.0; rows], &y)])
}
