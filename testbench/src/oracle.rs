//! What must hold whatever comes in: each oracle takes bytes, makes an input of them, and panics if a promise is broken.
//!
//! The fuzz targets feed them with anything; `tests/properties.rs` with the corpus and with every input that once broke one.

mod ptx_text;

mod random_programs;

pub use ptx_text::ptx_text;
pub use random_programs::random_programs;

/// Any machine's memory system under any traffic: every request answered once, with the right bytes, in the same cycle however
/// the machine is run ([`warpwave_components::gpu::rig`]).
///
/// # Panics
/// If it is not so.
pub fn memory_traffic(bytes: &[u8]) {
    if let Err(what) = warpwave_components::gpu::rig::check(bytes) {
        panic!("{what}");
    }
}
