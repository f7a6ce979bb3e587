//! Coverage-guided fuzzing of the oracles in `warpwave::oracle`. Each file of `fuzz_targets/` connects one oracle to libFuzzer.
//!
//! `README.md` has the commands. `corpus/` has the first inputs, `regressions/` every input that once failed. `cargo test` replays both.
//! Without `cargo fuzz` a target is a program that replays the files it is given, on stable Rust.

/// Passes the bytes of each file on the command line to `oracle`.
///
/// # Panics
/// If a file cannot be read, or if the oracle finds a broken guarantee.
pub fn replay(oracle: impl Fn(&[u8])) {
    for path in std::env::args_os().skip(1) {
        match std::fs::read(&path) {
            Ok(bytes) => oracle(&bytes),
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }
}
