//! Connects the target `fst` to libFuzzer. Without `cargo fuzz` it replays the files that it is given.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| warpwave_fuzz::run("fst", bytes));

#[cfg(not(fuzzing))]
fn main() {
    warpwave_fuzz::replay("fst");
}
