//! Dynamic shared memory, chains of loads, bank strides, and special registers.

use crate::case::{Case, ceil, free, input, int, output, satisfying, scalar};
use crate::draw::{ints, whole};

/// The cases.
pub fn cases() -> Vec<Case> {
    vec![
        dynamic_smem(),
        pointer_chase(),
        bank_stride(),
        add_latency(),
        who_am_i(),
    ]
}

/// The arrays in shared memory are padded with zeros. Each thread reads its mirror element.
fn dynamic_smem() -> Case {
    let (n, block) = (300, 128);
    let a: Vec<_> = whole(1, n, -99, 99).into_iter().map(f64::from).collect();
    let (b, c) = (ints(2, n, -99, 99), ints(3, n, -99, 99));
    let c: Vec<_> = c.into_iter().map(|c| c as i16).collect();
    let mirrored = |i: usize| {
        let j = i / block * block + block - 1 - i % block;
        if j < n {
            a[j] * f64::from(b[j]) + f64::from(c[j])
        } else {
            0.0
        }
    };
    let out: Vec<_> = (0..n).map(mirrored).collect();
    Case::cuda("dynamic_smem", "dynamic_smem")
        .launch(ceil(n, block), block)
        .dynamic_shared(block * (8 + 4 + 2))
        .args([input(&a), input(&b), input(&c), output(&vec![0.0; n], &out), int(n)])
}

/// The measured cycles depend on the machine, the end of the chain does not. So the cycles are not checked.
fn pointer_chase() -> Case {
    let next: Vec<u32> = (0..101).map(|at| (at * 7 + 3) % 101).collect();
    let end = (0..37).fold(5, |at: u32, _| next[at as usize]);
    Case::cuda("microbench", "pointer_chase").launch(1, 1).args([
        input(&next),
        scalar(5u32),
        int(37),
        free(&[0i64]),
        output(&[0], &[end]),
    ])
}

fn bank_stride() -> Case {
    let walk = |thread: i32| {
        let (mut at, mut sum) = ((thread * 33) & 2047, 0);
        for _ in 0..20 {
            sum += at;
            at = (at + sum) & 2047;
        }
        sum
    };
    let sums: Vec<_> = (0..32).map(walk).collect();
    Case::cuda("microbench", "bank_stride").launch(1, 32).args([
        int(33),
        int(20),
        free(&[0u32; 32]),
        output(&[0; 32], &sums),
    ])
}

/// 64 steps of x / 2 + 1. The product is exact, so fused and separate operations agree.
fn add_latency() -> Case {
    let end = (0..64).fold(5.0f32, |a, _| a * 0.5 + 1.0);
    Case::cuda("microbench", "add_latency").launch(1, 32).args([
        scalar(5.0f32),
        scalar(0.5f32),
        free(&[0u32]),
        output(&[0.0], &[end]),
    ])
}

/// The SM in bits 0 to 7, the warp slot in bits 8 to 15, the number of SMs from bit 16 on. Lane 0 has no lanes below it.
fn who_am_i() -> Case {
    let is_possible = |word: &u32| (word & 0xff) < word >> 16;
    let holds = move |words: &[u32]| match words.iter().all(is_possible) {
        true => Ok(()),
        false => Err(format!("{words:x?} names an SM beyond the last")),
    };
    Case::cuda("microbench", "who_am_i")
        .launch_3d([3, 2, 1], [32, 1, 1])
        .args([satisfying(&[u32::MAX; 6], holds), free(&[0u64; 6])])
}
