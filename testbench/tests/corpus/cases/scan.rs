//! Prefix sums, sorting and compaction.

use super::triton_scratch;
use crate::case::{Case, Source, ceil, input, int, output, unordered};
use crate::draw::{bits, ints};

/// Number of elements: no multiple of a block size in this file.
const N: usize = 700;

/// The cases.
pub fn cases() -> Vec<Case> {
    vec![
        scan_hillis_steele(),
        scan_warp_shuffle(),
        triton_cumsum(),
        cub_reduce_scan(),
        cub_radix_sort(),
        bitonic_sort(),
        compact_positive(),
    ]
}

/// Inclusive sums.
fn prefix_sums(values: &[i32]) -> Vec<i32> {
    let add = |sum: &mut i32, v: &i32| {
        *sum += v;
        Some(*sum)
    };
    values.iter().scan(0, add).collect()
}

fn scan_hillis_steele() -> Case {
    let values = ints(1, 201, -99, 99);
    Case::cuda("scan_hillis_steele", "scan_hillis_steele")
        .launch(1, 256)
        .args([input(&values), output(&[0; 201], &prefix_sums(&values)), int(201)])
}

fn scan_warp_shuffle() -> Case {
    let values = ints(2, N, -99, 99);
    let sums: Vec<_> = values.chunks(256).flat_map(prefix_sums).collect();
    let blocks: Vec<_> = values.chunks(256).map(|block| block.iter().sum()).collect();
    Case::cuda("scan_hillis_steele", "scan_warp_shuffle")
        .launch(ceil(N, 256), 256)
        .args([input(&values), output(&[0; N], &sums), output(&[0; 3], &blocks), int(N)])
}

fn triton_cumsum() -> Case {
    let values = ints(3, 501, -99, 99);
    Case::new(Source::Triton("cumsum"), "cumsum")
        .launch(1, 128)
        .dynamic_shared(4096)
        .args([input(&values), output(&[0; 501], &prefix_sums(&values)), int(501)])
        .args(triton_scratch())
}

fn cub_reduce_scan() -> Case {
    let values = ints(4, 3 * 128, -99, 99);
    let exclusive = |block: &[i32]| {
        let sums = prefix_sums(block);
        sums.into_iter().zip(block.to_vec()).map(|(sum, v)| sum - v)
    };
    let sums: Vec<_> = values.chunks(128).flat_map(exclusive).collect();
    let totals: Vec<_> = values.chunks(128).map(|block| block.iter().sum()).collect();
    Case::cuda("cub_block", "cub_reduce_scan").launch(3, 128).args([
        input(&values),
        output(&[0; 3 * 128], &sums),
        output(&[0; 3], &totals),
    ])
}

/// The keys, sorted within each run of `run` elements.
fn sorted(keys: &[u32], run: usize) -> Vec<u32> {
    let mut sorted = keys.to_vec();
    sorted.chunks_mut(run).for_each(<[u32]>::sort);
    sorted
}

fn cub_radix_sort() -> Case {
    let keys = bits(5, 2 * 512);
    Case::cuda("cub_block", "cub_radix_sort")
        .launch(2, 128)
        .args([output(&keys, &sorted(&keys, 512))])
}

fn bitonic_sort() -> Case {
    let keys = bits(6, 2 * 1024);
    Case::cuda("bitonic_sort", "bitonic_sort")
        .launch(2, 512)
        .args([output(&keys, &sorted(&keys, 1024))])
}

/// The kept elements may have any order: it depends on the order of warps.
fn compact_positive() -> Case {
    let values = ints(7, 300, -50, 50);
    let kept: Vec<_> = values.iter().copied().filter(|v| *v > 0).collect();
    Case::cuda("warp_vote_match", "compact_positive")
        .launch(ceil(300, 128), 128)
        .args([
            input(&values),
            unordered(&[-1; 300], &kept, &vec![-1; 300 - kept.len()]),
            output(&[0], &[kept.len() as i32]),
            int(300),
        ])
}
