//! Cooperative launches: barriers of the whole grid.

use crate::case::{Case, int, output};

/// The cases.
pub fn cases() -> Vec<Case> {
    vec![
        grid_rounds(),
        grid_split(9, 100),
        grid_split(1, 32).about("a grid of one block"),
        Case::cuda("grid_sync", "grid_split")
            .about("a launch that is not cooperative")
            .launch(1, 32)
            .args([output(&[0u32; 32], &[0; 32]), output(&[0u32; 32], &[0; 32])])
            .traps(),
    ]
}

/// Six blocks, four rounds. Round by round the total of all blocks is 21 + 6 times the one before.
fn grid_rounds() -> Case {
    let totals = [21, 21 + 6 * 21, 21 + 6 * 147, 21 + 6 * 903];
    let sums = [1, 2, 3, 4, 5, 6].map(|n: u32| n + totals[2]);
    Case::cuda("grid_sync", "grid_rounds")
        .launch(6, 64)
        .cooperative()
        .args([output(&[0; 6], &sums), output(&[0; 6], &[totals[3]; 6]), int(4)])
}

/// Thread i of n writes its square, and reads that of thread n - 1 - i.
fn grid_split(blocks: usize, threads: usize) -> Case {
    let n = (blocks * threads) as u32;
    let squares: Vec<u32> = (0..n).map(|i| i * i).collect();
    let out: Vec<u32> = (0..n).map(|i| (n - 1 - i) * (n - 1 - i) + 3 * i).collect();
    let zeros = vec![0; squares.len()];
    Case::cuda("grid_sync", "grid_split")
        .launch(blocks, threads)
        .cooperative()
        .args([output(&zeros, &squares), output(&zeros, &out)])
}
