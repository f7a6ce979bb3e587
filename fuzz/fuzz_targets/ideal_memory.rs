//! Connects the target `ideal_memory` to libFuzzer. Without `cargo fuzz` it replays the files that it is given.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| warpwave_fuzz::run("ideal_memory", bytes));

#[cfg(not(fuzzing))]
fn main() {
    warpwave_fuzz::replay("ideal_memory");
}
