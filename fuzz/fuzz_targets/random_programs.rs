//! Fuzzes the machine against the reference: bytes decode to a program.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: warpwave::oracle::RandomProgram| warpwave::oracle::random_programs(input));

#[cfg(not(fuzzing))]
fn main() {
    warpwave_fuzz::replay(|bytes| warpwave::oracle::replay(bytes, warpwave::oracle::random_programs));
}
