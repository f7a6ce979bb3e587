//! The expected results of each built-in scenario: plain Rust versions of the kernels' sources, without lanes, blocks or time.
//!
//! Sums are computed in f64 if the scenario has a tolerance, and in the source's order and precision if results must be exact.

mod control;
mod elementwise;
mod fragments;
mod matrix;
mod sums;

use half::f16;
use warpwave::scenario::dtype::Dtype;
use warpwave::scenario::{Arg, Buffer, Scenario};

use control::View;
use matrix::Extents;

/// Elements of one buffer as little-endian bytes, with the buffer's name.
pub type Array = (&'static str, Vec<u8>);

/// The inputs of a scenario.
struct Given<'a>(&'a Scenario);

impl Given<'_> {
    fn buffer(&self, name: &str) -> &Buffer {
        let found = self.0.buffers.iter().find(|buffer| buffer.name == name);
        found.unwrap_or_else(|| panic!("{}: no buffer `{name}`", self.0.name))
    }

    fn elements<const N: usize, T>(&self, name: &str, dtype: Dtype, element: impl Fn([u8; N]) -> T) -> Vec<T> {
        let buffer = self.buffer(name);
        assert_eq!(buffer.layout.dtype, dtype, "{}: type of `{name}`", self.0.name);
        buffer.init.as_chunks().0.iter().map(|&bytes| element(bytes)).collect()
    }

    fn f32(&self, name: &str) -> Vec<f32> {
        self.elements(name, Dtype::F32, f32::from_le_bytes)
    }

    fn f64(&self, name: &str) -> Vec<f64> {
        self.elements(name, Dtype::F64, f64::from_le_bytes)
    }

    fn f16(&self, name: &str) -> Vec<f16> {
        self.elements(name, Dtype::F16, f16::from_le_bytes)
    }

    fn i32(&self, name: &str) -> Vec<i32> {
        self.elements(name, Dtype::I32, i32::from_le_bytes)
    }

    fn u32(&self, name: &str) -> Vec<u32> {
        self.elements(name, Dtype::U32, u32::from_le_bytes)
    }

    fn u64(&self, name: &str) -> Vec<u64> {
        self.elements(name, Dtype::U64, u64::from_le_bytes)
    }

    fn u8(&self, name: &str) -> Vec<u8> {
        self.elements(name, Dtype::U8, u8::from_le_bytes)
    }

    /// The bits of argument `n` of the only launch. It must be a 32-bit scalar.
    fn bits(&self, n: usize, dtype: Dtype) -> u32 {
        match &self.0.launches[0].args[n] {
            Arg::Scalar(found, bytes) if *found == dtype => {
                u32::from_le_bytes(bytes[..].try_into().expect("scalars here take 32 bits"))
            }
            other => panic!("{}: argument {n} is {other:?} and no {dtype}", self.0.name),
        }
    }

    fn int(&self, n: usize) -> i32 {
        self.bits(n, Dtype::I32) as i32
    }

    /// A count among the arguments.
    fn count(&self, n: usize) -> usize {
        self.int(n).try_into().expect("counts are not negative")
    }

    fn float(&self, n: usize) -> f32 {
        f32::from_bits(self.bits(n, Dtype::F32))
    }

    /// Three arguments in a row: m, n, k.
    fn extents(&self, first: usize) -> Extents {
        Extents {
            m: self.count(first),
            n: self.count(first + 1),
            k: self.count(first + 2),
        }
    }

    fn threads(&self) -> usize {
        self.0.launches[0].block.iter().product::<u32>() as usize
    }
}

/// Numbers with an encoding in bytes.
trait Encode {
    fn encode(&self) -> Vec<u8>;
}

macro_rules! encode {
    ($($number:ty),*) => {$(
        impl Encode for Vec<$number> {
            fn encode(&self) -> Vec<u8> {
                self.iter().flat_map(|number| number.to_le_bytes()).collect()
            }
        }
    )*};
}
encode!(u8, u32, i32, f16, f32, f64);

fn array(name: &'static str, elements: impl Encode) -> Array {
    (name, elements.encode())
}

/// The input arrays of a scenario that the format's generators cannot produce.
pub fn inputs(scenario: &str) -> Vec<Array> {
    match scenario {
        "mma_tf32_bf16" => vec![
            array("a", fragments::tf32_bf16_words(1, 128)),
            array("b", fragments::tf32_bf16_words(1001, 64)),
        ],
        _ => Vec::new(),
    }
}

/// The expected array of every buffer with an `expect`.
pub fn outputs(scenario: &Scenario) -> Vec<Array> {
    let given = Given(scenario);
    match scenario.name.as_str() {
        "reduce_shuffle" => vec![array("out", sums::chunk_sums(&given.f32("in"), given.count(2)))],
        "scan_warp_shuffle" => {
            let input = given.i32("in");
            vec![
                array("out", sums::prefix_sums(&input, given.threads())),
                array("block_sums", sums::block_sums(&input, given.threads())),
            ]
        }
        name => vec![single(name, &given)],
    }
}

/// The result of a scenario with one output.
fn single(name: &str, given: &Given) -> Array {
    match name {
        "vector_add" => array("c", elementwise::add(&given.f32("a"), &given.f32("b"))),
        "triton_vector_add" => array("o", elementwise::add(&given.f32("x"), &given.f32("y"))),
        "saxpy" => array(
            "y",
            elementwise::saxpy(given.float(1), &given.f32("x"), &given.f32("y")),
        ),
        "matrix_add_2d" => array("c", matrix_add_2d(given)),
        "copy_coalesced" | "copy_float4" => array("dst", given.f32("src")),
        "copy_strided" => array(
            "dst",
            elementwise::copy(&given.f32("src"), &given.f32("dst"), 0, given.count(3)),
        ),
        "copy_offset" => array(
            "dst",
            elementwise::copy(&given.f32("src"), &given.f32("dst"), given.count(3), 1),
        ),
        "gelu_erf" => array("out", elementwise::gelu_erf(&given.f32("in"))),
        "gelu_tanh" => array("out", elementwise::gelu_tanh(&given.f32("in"))),
        "latency_hiding" => array("out", vec![2.0 * sums::dot(&given.f64("x"), &given.f64("y"))]),
        "reduce_interleaved" => array("out", sums::chunk_sums(&given.f32("in"), given.threads())),
        "reduce_sequential" => array("out", sums::chunk_sums(&given.f32("in"), 2 * given.threads())),
        "scan_hillis_steele" => array("out", sums::prefix_sums(&given.i32("in"), given.threads())),
        "cluster_histogram" => array("bins", sums::histogram(given.u8("data").into_iter())),
        "tma_bulk_scale" => array("out", elementwise::scale(&given.f32("in"), given.float(2))),
        // Word n of block r is n + 1024 r.
        "tma_multicast" => array("out", (0..4096).collect::<Vec<u32>>()),
        "tma_tensor2d" => array(
            "out",
            matrix::tile(&given.f32("matrix"), [100, 72], [given.count(3), given.count(2)]),
        ),
        "cluster_swap" => array("out", elementwise::swap(&given.f32("in"), given.threads())),
        "grid_sync" => array(
            "totals",
            sums::rounds(given.buffer("sums").layout.shape[0] as u32, given.int(2)),
        ),
        "histogram_global" => array("bins", sums::histogram(given.u8("data").into_iter())),
        "histogram_shared" => array(
            "bins",
            sums::histogram(given.u32("words").into_iter().flat_map(u32::to_le_bytes)),
        ),
        "diverge_nested" => array("out", control::nested(&given.i32("in"))),
        "diverge_switch" => array(
            "out",
            control::switch(&given.i32("op"), &given.f32("a"), &given.f32("b")),
        ),
        "loop_collatz" => array("steps", control::collatz(&given.u64("start"), given.int(3))),
        "mandelbrot" => array("img", control::mandelbrot(view(given))),
        _ => matrix_result(name, given),
    }
}

fn matrix_result(name: &str, given: &Given) -> Array {
    match name {
        "transpose_naive" | "transpose_tiled" | "transpose_padded" => array(
            "out",
            matrix::transpose(&given.f32("in"), given.count(2), given.count(3)),
        ),
        "sgemm_naive" => array("c", sgemm(given, given.float(3), given.float(6))),
        "sgemm_tiled" | "sgemm_regblock" => array("c", sgemm(given, 1.0, 0.0)),
        "softmax" => array("out", softmax(given, "in", "out", 2, 2)),
        "triton_softmax" => array("o", softmax(given, "x", "o", 3, 2)),
        "triton_matmul" => array("c", triton_matmul(given)),
        "mma_f16" => array("c", mma_f16(given)),
        "wgmma_gemm" => array("c", wgmma_gemm(given)),
        "mma_s8" => array("c", fragments::s8(&given.u32("a"), &given.u32("b"))),
        "mma_tf32_bf16" => array("c", fragments::tf32_bf16(&given.u32("a"), &given.u32("b"))),
        other => panic!("no reference for the scenario `{other}`: write one"),
    }
}

fn matrix_add_2d(given: &Given) -> Vec<f32> {
    let (a, b, c) = (given.f32("a"), given.f32("b"), given.f32("c"));
    elementwise::matrix_add_2d(&a, &b, &c, given.count(3), given.count(4), given.count(5))
}

fn view(given: &Given) -> View {
    View {
        width: given.count(1),
        height: given.count(2),
        x0: given.float(3),
        y0: given.float(4),
        scale: given.float(5),
        max_iter: given.int(6),
    }
}

fn sgemm(given: &Given, alpha: f32, beta: f32) -> Vec<f32> {
    let (a, b, c) = (given.f32("a"), given.f32("b"), given.f32("c"));
    matrix::sgemm(given.extents(0), alpha, &a, &b, beta, &c)
}

fn softmax(given: &Given, input: &str, output: &str, cols: usize, pitch: usize) -> Vec<f32> {
    matrix::softmax(
        &given.f32(input),
        &given.f32(output),
        given.count(cols),
        given.count(pitch),
    )
}

/// Row pitches are arguments. The rest of each row of `c` is not changed.
fn triton_matmul(given: &Given) -> Vec<f16> {
    let size = given.extents(3);
    let [pitch_a, pitch_b, pitch_c] = [6, 7, 8].map(|n| given.count(n));
    let (a, b, mut c) = (given.f16("a"), given.f16("b"), given.f16("c"));
    let product = matrix::product(
        size,
        |row, k| a[row * pitch_a + k].to_f64(),
        |k, col| b[k * pitch_b + col].to_f64(),
    );
    for (row, values) in product.chunks(size.n).enumerate() {
        for (col, &value) in values.iter().enumerate() {
            c[row * pitch_c + col] = f16::from_f64(value);
        }
    }
    c
}

/// The right factor is in column-major order.
fn mma_f16(given: &Given) -> Vec<f32> {
    let size = given.extents(3);
    let (a, b) = (given.f16("a"), given.f16("b"));
    let product = matrix::product(
        size,
        |row, k| a[row * size.k + k].to_f64(),
        |k, col| b[col * size.k + k].to_f64(),
    );
    product.iter().map(|&v| v as f32).collect()
}

/// Both factors are stored in blocks of 8 by 8, two along k.
fn wgmma_gemm(given: &Given) -> Vec<f32> {
    let (a, b) = (given.f16("a"), given.f16("b"));
    let packed = |outer: usize, k: usize| outer / 8 * 128 + k / 8 * 64 + outer % 8 * 8 + k % 8;
    let size = Extents { m: 64, n: 32, k: 16 };
    let product = matrix::product(
        size,
        |row, k| a[packed(row, k)].to_f64(),
        |k, col| b[packed(col, k)].to_f64(),
    );
    product.iter().map(|&v| v as f32).collect()
}
