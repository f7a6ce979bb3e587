//! The oracles on committed inputs: what fuzzing starts from, and every input that once broke a promise.
//!
//! A regression is one file in `fuzz/regressions/TARGET/`; the README beside them tells the story of each.

use std::fs;
use std::path::{Path, PathBuf};

/// Gives every committed input of a target to its oracle.
fn replay(target: &str, oracle: impl Fn(&[u8])) {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    let corpus = inputs(&fuzz.join("corpus").join(target));
    assert!(!corpus.is_empty(), "{target} has nothing to start from");
    for path in corpus.iter().chain(&inputs(&fuzz.join("regressions").join(target))) {
        println!("{}", path.display());
        oracle(&fs::read(path).unwrap());
    }
}

/// The files of a folder, sorted; none where there is no such folder.
fn inputs(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn ptx_texts_that_fuzzing_knows_keep_every_promise() {
    replay("ptx_text", warpwave::oracle::ptx_text);
}

#[test]
fn memory_traffic_that_fuzzing_knows_keeps_every_promise() {
    replay("memory_traffic", warpwave::oracle::memory_traffic);
}

#[test]
fn random_programs_that_fuzzing_knows_keep_every_promise() {
    replay("random_programs", warpwave::oracle::random_programs);
}

#[test]
fn random_programs_of_many_seeds_give_the_same_on_machine_and_reference() {
    for seed in 0..200 {
        println!("seed {seed}");
        warpwave::oracle::random_programs(&noise(seed, 512));
    }
}

/// Bytes without a pattern, always the same for a seed (xorshift).
fn noise(seed: u64, n: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(byte).take(n).collect()
}
