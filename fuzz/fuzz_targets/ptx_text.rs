//! Any bytes as PTX text.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| warpwave::oracle::ptx_text(bytes));

#[cfg(not(fuzzing))]
fn main() {
    warpwave_fuzz::replay(warpwave::oracle::ptx_text);
}
