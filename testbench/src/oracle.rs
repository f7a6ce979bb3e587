//! What must hold for every input: each oracle takes an input and panics if a promise is broken.
//!
//! An input derives [`Arbitrary`], so libFuzzer makes it of any bytes and prints it. `tests/properties.rs` replays the corpus and
//! every input that once broke a promise.

use arbitrary::{Arbitrary, Unstructured};

mod draw;

mod memory_traffic;

mod ptx_text;

mod random_programs;

pub use memory_traffic::{MemoryTraffic, memory_traffic};
pub use ptx_text::{PtxText, ptx_text};
pub use random_programs::{RandomProgram, random_programs};

/// Gives an oracle the input that libFuzzer makes of `bytes`, if it makes one.
pub fn replay<'a, T: Arbitrary<'a>>(bytes: &'a [u8], oracle: impl Fn(T)) {
    if let Ok(input) = T::arbitrary_take_rest(Unstructured::new(bytes)) {
        oracle(input);
    }
}
