//! Oracles for fuzzing: each takes any input and panics if a guarantee is broken.
//!
//! An input derives [`Arbitrary`], so libFuzzer can decode it from any bytes and print it. The tests of `fuzz` replay
//! the corpus and every input that once failed.

use arbitrary::{Arbitrary, Unstructured};

mod draw;

mod memory_traffic;

mod ptx_text;

mod random_programs;

mod ptx_lowering;

pub use memory_traffic::{MemoryTraffic, memory_traffic};
pub use ptx_lowering::{PtxLowering, ptx_lowering};
pub use ptx_text::{PtxText, ptx_text};
pub use random_programs::{RandomProgram, random_programs, write_plan};

/// Decodes an input from `bytes` as libFuzzer does, and passes it to the oracle. Bytes that decode to no input are skipped.
pub fn replay<'a, T: Arbitrary<'a>>(bytes: &'a [u8], oracle: impl Fn(T)) {
    if let Ok(input) = T::arbitrary_take_rest(Unstructured::new(bytes)) {
        oracle(input);
    }
}
