//! Any bytes as a program for the machine and the reference without time.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| warpwave::oracle::random_programs(bytes));

#[cfg(not(fuzzing))]
fn main() {
    warpwave_fuzz::replay(warpwave::oracle::random_programs);
}
