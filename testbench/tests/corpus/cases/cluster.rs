//! Clusters: CTAs that reach into each other's shared memory.

use crate::case::{Case, input, int, output};
use crate::draw::{bytes, floats};

/// The cases.
pub fn cases() -> Vec<Case> {
    vec![cluster_histogram(), cluster_swap()]
}

/// Two clusters of four CTAs; each CTA holds a quarter of the bins.
fn cluster_histogram() -> Case {
    let data = bytes(1, 2999);
    let mut after = [0u32; 256];
    data.iter().for_each(|&byte| after[usize::from(byte)] += 1);
    Case::cuda("cluster_dsmem", "cluster_histogram")
        .launch(8, 256)
        .cluster(4)
        .args([input(&data), output(&[0; 256], &after), int(data.len())])
}

/// Pairs of CTAs change places.
fn cluster_swap() -> Case {
    let values = floats(2, 6 * 128, -9.0, 9.0);
    let pairs = values.chunks(2 * 128);
    let swapped: Vec<_> = pairs.flat_map(|pair| [&pair[128..], &pair[..128]].concat()).collect();
    Case::cuda("cluster_dsmem", "cluster_swap")
        .launch(6, 128)
        .cluster(2)
        .args([input(&values), output(&[0.0; 6 * 128], &swapped)])
}
