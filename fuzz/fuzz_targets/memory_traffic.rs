//! Fuzzes the memory system: bytes decode to a machine and its traffic.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: warpwave::oracle::MemoryTraffic| warpwave::oracle::memory_traffic(input));

#[cfg(not(fuzzing))]
fn main() {
    warpwave_fuzz::replay(|bytes| warpwave::oracle::replay(bytes, warpwave::oracle::memory_traffic));
}
