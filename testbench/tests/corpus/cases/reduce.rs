//! Reductions: sums, extremes and histograms over blocks, warps and rows.

use super::{numba_1d, triton_scratch};
use crate::case::{Case, Source, ceil, input, int, output, scalar};
use crate::draw::{bytes, floats, ints, whole};

/// Number of elements: no multiple of a block size in this file.
const N: usize = 700;

/// The cases.
pub fn cases() -> Vec<Case> {
    vec![
        block_sums("reduce_interleaved", 256),
        block_sums("reduce_sequential", 512),
        reduce_shuffle(),
        opencl_reduce(),
        triton_dot(),
        numba_warp_sum(),
        redux_sync(),
        redux_of_masks(),
        histogram_global(),
        histogram_shared(),
        numba_histogram(),
        opencl_count(),
        cub_warp_max(),
    ]
}

/// Sums of chunks. The numbers are integers, so the order of additions does not matter.
fn chunk_sums(values: &[f32], chunk: usize) -> Vec<f32> {
    values.chunks(chunk).map(|chunk| chunk.iter().sum()).collect()
}

fn block_sums(entry: &'static str, chunk: usize) -> Case {
    let values = whole(1, N, -999, 999);
    let sums = chunk_sums(&values, chunk);
    Case::cuda("reduce_shared", entry)
        .launch(sums.len(), 256)
        .dynamic_shared(4 * 256)
        .args([input(&values), output(&vec![0.0; sums.len()], &sums), int(N)])
}

/// A block of 96 threads has three partial sums: most lanes of the warp that adds them have none.
fn reduce_shuffle() -> Case {
    let values = whole(2, N, -999, 999);
    let sum = 5.0 + values.iter().sum::<f32>();
    Case::cuda("reduce_shuffle", "reduce_shuffle")
        .launch(3, 96)
        .args([input(&values), output(&[5.0], &[sum]), int(N)])
}

/// The `local` argument is the address of the dynamic shared memory: 0.
fn opencl_reduce() -> Case {
    let values = whole(3, N, -999, 999);
    let sums = chunk_sums(&values, 128);
    Case::new(Source::OpenCl, "reduce")
        .launch(sums.len(), 128)
        .dynamic_shared(4 * 128)
        .args([
            input(&values),
            output(&vec![0.0; sums.len()], &sums),
            int(N),
            scalar(0u64),
        ])
}

fn triton_dot() -> Case {
    let (x, y) = (whole(4, N, -99, 99), whole(5, N, -99, 99));
    let sum = x.iter().zip(&y).map(|(x, y)| x * y).sum::<f32>();
    Case::new(Source::Triton("dot_atomic"), "dot_atomic")
        .launch(ceil(N, 512), 128)
        .dynamic_shared(1024)
        .args([input(&x), input(&y), output(&[0.0], &[sum]), int(N)])
        .args(triton_scratch())
}

fn numba_warp_sum() -> Case {
    let values = whole(6, 192, -99, 99);
    let sum = values.iter().sum::<f32>();
    Case::new(Source::Numba("warp_sum"), "warp_sum")
        .launch(2, 96)
        .args(numba_1d(&values, input(&values)))
        .args(numba_1d(&[0.0f32], output(&[0.0], &[sum])))
}

/// Full warps: elements beyond the end count as zero.
fn redux_sync() -> Case {
    redux(&ints(7, N, -1_000_000, 1_000_000)).except(
        "clang19-sm_80",
        "clang 19 gives `redux.sync` mask and value in the wrong order",
    )
}

/// All ones: value and mask are the same, so their order does not matter.
fn redux_of_masks() -> Case {
    redux(&[-1; 96]).about("every value is the mask of all lanes")
}

fn redux(values: &[i32]) -> Case {
    let least = values.iter().copied().min().unwrap_or(0);
    let greatest = values.iter().map(|&v| v as u32).max().unwrap_or(0);
    let xor = values.iter().fold(0, |x, v| x ^ v);
    let after = [values.iter().sum(), least, greatest as i32, xor];
    Case::cuda("redux_sync", "redux_sync")
        .launch(ceil(values.len(), 96), 96)
        .args([input(values), output(&[0; 4], &after), int(values.len())])
}

fn counts<const BINS: usize>(bins: impl Iterator<Item = u8>) -> [u32; BINS] {
    let mut counts = [0; BINS];
    bins.for_each(|bin| counts[usize::from(bin)] += 1);
    counts
}

fn histogram_global() -> Case {
    let data = bytes(8, 1999);
    let after: [u32; 256] = counts(data.iter().copied());
    Case::cuda("histogram", "histogram_global").launch(3, 256).args([
        input(&data),
        output(&[0; 256], &after),
        int(1999),
    ])
}

fn histogram_shared() -> Case {
    let data = bytes(9, 4 * N);
    let words: Vec<u32> = data
        .as_chunks()
        .0
        .iter()
        .map(|&bytes| u32::from_le_bytes(bytes))
        .collect();
    let after: [u32; 256] = counts(data.iter().copied());
    Case::cuda("histogram", "histogram_shared")
        .launch(2, 256)
        .args([input(&words), output(&[0; 256], &after), int(N)])
}

fn numba_histogram() -> Case {
    let data = bytes(10, 1999);
    let after = counts::<256>(data.iter().copied()).map(|n| n as i32);
    Case::new(Source::Numba("histogram"), "histogram")
        .launch(2, 96)
        .args(numba_1d(&data, input(&data)))
        .args(numba_1d(&after, output(&[0; 256], &after)))
}

fn opencl_count() -> Case {
    let values = ints(11, N, -99, 99);
    let after = counts::<16>(values.iter().map(|v| (v & 15) as u8)).map(|n| n as i32);
    Case::new(Source::OpenCl, "count")
        .launch(3, 96)
        .args([input(&values), output(&[0; 16], &after), int(N)])
}

fn cub_warp_max() -> Case {
    let values = floats(12, 128, -9.0, 9.0);
    let maxima: Vec<_> = values
        .chunks(32)
        .map(|warp| warp.iter().copied().fold(f32::MIN, f32::max))
        .collect();
    Case::cuda("cub_block", "cub_warp_max")
        .launch(1, 128)
        .args([input(&values), output(&[0.0; 4], &maxima)])
}
