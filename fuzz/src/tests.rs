//! Every target on its corpus, its regressions, and inputs from noise.
//!
//! A regression is one file in `fuzz/regressions/TARGET/`; the README beside them tells the story of each.

use std::fs;
use std::path::Path;

use crate::runner::{corpus, regressions};
use crate::targets::ALL;

/// Inputs of noise for each target. A program takes a hundred times longer than a component.
fn n_noise(target: &str) -> u64 {
    match target {
        "memory_traffic" => 20,
        "random_programs" | "ptx_lowering" | "toml_text" => 100,
        _ => 300,
    }
}

/// Pseudo-random bytes from a seed (xorshift).
fn noise(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(byte).take(40 + seed as usize % 700).collect()
}

#[test]
fn targets_hold_on_their_corpus_and_on_inputs_that_once_failed() {
    for target in ALL {
        let inputs = [corpus(target), regressions(target)].concat();
        assert!(!inputs.is_empty(), "{}: no input to start from", target.name);
        for (n, input) in inputs.iter().enumerate() {
            println!("{} {n}: {} bytes", target.name, input.len());
            (target.run)(input);
        }
    }
}

#[test]
fn targets_hold_on_noise() {
    for target in ALL {
        for seed in 0..n_noise(target.name) {
            println!("{} seed {seed}", target.name);
            (target.run)(&noise(seed));
        }
    }
}

#[test]
fn every_target_has_a_file_for_libfuzzer() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    for target in ALL {
        let path = format!("fuzz_targets/{}.rs", target.name);
        assert!(root.join(&path).is_file(), "{path} is missing");
        assert!(
            manifest.contains(&format!("path = \"{path}\"")),
            "{path} is not in Cargo.toml"
        );
    }
    let files = fs::read_dir(root.join("fuzz_targets")).unwrap().count();
    assert_eq!(files, ALL.len(), "a file of fuzz_targets is not in `targets::ALL`");
}

#[test]
fn sources_under_test_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for target in ALL {
        assert!(!target.sources.is_empty(), "{}: no source under test", target.name);
        for source in target.sources {
            assert!(root.join(source).exists(), "{}: {source} does not exist", target.name);
        }
    }
}

#[test]
fn replayed_texts_are_many() {
    let texts = ALL.iter().find(|target| target.name == "ptx_text").map(corpus);
    assert!(texts.is_some_and(|texts| texts.len() > 200));
}
