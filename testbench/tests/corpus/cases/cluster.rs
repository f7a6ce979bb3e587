//! Clusters with distributed shared memory, and bulk copies.

use crate::case::{Case, input, int, output, scalar, tiles};
use crate::draw::{bytes, floats};

/// The cases.
pub fn cases() -> Vec<Case> {
    vec![
        cluster_histogram(),
        cluster_swap(),
        tma_bulk_scale(),
        tma_tensor2d(1, 2),
        tma_tensor2d(2, 3).about("a tile across the edges, zero outside"),
    ]
}

/// Each CTA copies 4 KiB in, multiplies the elements, and copies them out.
fn tma_bulk_scale() -> Case {
    let values = floats(3, 3 * 1024, -9.0, 9.0);
    let scaled: Vec<f32> = values.iter().map(|value| value * 1.5).collect();
    Case::cuda("tma_bulk", "tma_bulk_scale").launch(3, 128).args([
        input(&values),
        output(&[0.0; 3 * 1024], &scaled),
        scalar(1.5f32),
    ])
}

/// The tile of 32 by 32 at (x, y) of a tensor of 100 rows of 72.
fn tma_tensor2d(x: usize, y: usize) -> Case {
    const ROWS: usize = 100;
    const COLUMNS: usize = 72;
    let values = floats(4, ROWS * COLUMNS, -9.0, 9.0);
    let place = |n: usize| (32 * y + n / 32, 32 * x + n % 32);
    let tile: Vec<f32> = (0..1024)
        .map(place)
        .map(|(row, column)| {
            if row < ROWS && column < COLUMNS {
                values[row * COLUMNS + column]
            } else {
                0.0
            }
        })
        .collect();
    Case::cuda("tma_bulk", "tma_tensor2d")
        .launch(1, 128)
        .args([
            tiles(&values, [ROWS as u32, COLUMNS as u32], [32, 32]),
            output(&[0.0; 1024], &tile),
            int(x),
            int(y),
        ])
        .except(
            "clang19-sm_90",
            "clang 19 copies the tensor map to local memory, where PTX allows none",
        )
}

/// Two clusters of four CTAs. Each CTA holds a quarter of the bins.
fn cluster_histogram() -> Case {
    let data = bytes(1, 2999);
    let mut after = [0u32; 256];
    data.iter().for_each(|&byte| after[usize::from(byte)] += 1);
    Case::cuda("cluster_dsmem", "cluster_histogram")
        .launch(8, 256)
        .cluster(4)
        .args([input(&data), output(&[0; 256], &after), int(data.len())])
}

/// Pairs of CTAs swap their data.
fn cluster_swap() -> Case {
    let values = floats(2, 6 * 128, -9.0, 9.0);
    let pairs = values.chunks(2 * 128);
    let swapped: Vec<_> = pairs.flat_map(|pair| [&pair[128..], &pair[..128]].concat()).collect();
    Case::cuda("cluster_dsmem", "cluster_swap")
        .launch(6, 128)
        .cluster(2)
        .args([input(&values), output(&[0.0; 6 * 128], &swapped)])
}
