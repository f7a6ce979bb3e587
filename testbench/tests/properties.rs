//! The oracles on committed inputs: the corpus of fuzzing, and every input that once failed.
//!
//! A regression is one file in `fuzz/regressions/TARGET/`; the README beside them tells the story of each.

use std::fs;
use std::path::{Path, PathBuf};

use warpwave::oracle;

/// Folders of other tests with PTX texts in the corpus of fuzzing, as in the command of `fuzz/README.md`.
const TEXTS: [&str; 3] = ["hw/ptx/tests/ok", "hw/ptx/tests/err", "testbench/corpus/ptx"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Passes every committed input of a target to its oracle.
fn replay(target: &str, oracle: impl Fn(&[u8])) {
    let corpus = inputs(&root().join("fuzz/corpus").join(target));
    assert!(!corpus.is_empty(), "{target} has nothing to start from");
    let regressions = inputs(&root().join("fuzz/regressions").join(target));
    give(&[corpus, regressions].concat(), oracle);
}

fn give(paths: &[PathBuf], oracle: impl Fn(&[u8])) {
    for path in paths {
        println!("{}", path.display());
        oracle(&fs::read(path).unwrap());
    }
}

/// The files below a folder, sorted. Empty if the folder does not exist.
fn inputs(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = paths
        .flat_map(|path| if path.is_dir() { inputs(&path) } else { vec![path] })
        .collect();
    files.sort();
    files
}

#[test]
fn ptx_texts_of_the_corpus_pass_the_oracle() {
    replay("ptx_text", |bytes| oracle::replay(bytes, oracle::ptx_text));
}

#[test]
fn ptx_texts_of_other_tests_pass_the_oracle() {
    let commands = [
        fs::read_to_string(root().join("fuzz/README.md")),
        fs::read_to_string(root().join(".ci/run")),
    ];
    for commands in commands {
        assert!(
            commands
                .unwrap()
                .contains(&format!("fuzz/corpus/ptx_text {}", TEXTS.join(" ")))
        );
    }
    let texts: Vec<PathBuf> = TEXTS.iter().flat_map(|folder| inputs(&root().join(folder))).collect();
    assert!(texts.len() > 200, "{} texts", texts.len());
    give(&texts, |bytes| oracle::replay(bytes, oracle::ptx_text));
}

#[test]
fn memory_traffic_of_the_corpus_passes_the_oracle() {
    replay("memory_traffic", |bytes| oracle::replay(bytes, oracle::memory_traffic));
}

#[test]
fn random_programs_of_the_corpus_pass_the_oracle() {
    replay("random_programs", |bytes| {
        oracle::replay(bytes, oracle::random_programs)
    });
}

#[test]
fn random_programs_of_many_seeds_pass_the_oracle() {
    for seed in 0..200 {
        println!("seed {seed}");
        oracle::replay(&noise(seed, 512), oracle::random_programs);
    }
}

/// Pseudo-random bytes from a seed (xorshift).
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
