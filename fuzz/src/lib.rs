//! Coverage-guided runs of the oracles in `warpwave::oracle`; each file of `fuzz_targets/` joins one to libFuzzer.
//!
//! `README.md` has the commands. `corpus/` holds inputs to start from, `regressions/` every input that once broke a promise;
//! `cargo test` replays both.
//! Without `cargo fuzz` a target is a program that replays the files it is given, on stable Rust.

/// Gives the bytes of each file named on the command line to `oracle`.
///
/// # Panics
/// If a file cannot be read, or if the oracle finds a broken promise.
pub fn replay(oracle: impl Fn(&[u8])) {
    for path in std::env::args_os().skip(1) {
        match std::fs::read(&path) {
            Ok(bytes) => oracle(&bytes),
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }
}
