//! Any bytes as the shape of a memory system and its traffic.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| warpwave::oracle::memory_traffic(bytes));

#[cfg(not(fuzzing))]
fn main() {
    warpwave_fuzz::replay(warpwave::oracle::memory_traffic);
}
