//! Fuzzes the PTX front end: bytes are the text.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: warpwave::oracle::PtxText<'_>| warpwave::oracle::ptx_text(input));

#[cfg(not(fuzzing))]
fn main() {
    warpwave_fuzz::replay(|bytes| warpwave::oracle::replay(bytes, warpwave::oracle::ptx_text));
}
