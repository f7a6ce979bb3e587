//! Random cases, and the smallest one.

use super::*;

/// Bytes that look random, from a seed (xorshift).
fn noise(seed: u64, n: usize) -> Vec<u8> {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..n)
        .map(|_| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 32) as u8
        })
        .collect()
}

#[test]
fn random_machines_under_random_traffic_every_answer_is_right() {
    let mut all = Summary::default();
    for seed in 0..60 {
        let summary = check(&noise(seed, 1500)).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        all.requests += summary.requests;
        all.l1_hits += summary.l1_hits;
        all.l2_hits += summary.l2_hits;
    }
    assert!(
        all.l1_hits > 100 && all.l2_hits > all.l1_hits + 100 && all.requests > 10_000,
        "{all:?}"
    );
}

#[test]
fn no_bytes_at_all_a_machine_that_does_nothing() {
    assert_eq!(check(&[]), Ok(Summary::default()));
}
