//! What must hold whatever comes in: each oracle takes bytes, makes an input of them, and panics if a promise is broken.
//!
//! The fuzz targets feed them with anything; `tests/properties.rs` with the corpus and with every input that once broke one.

mod ptx_text;

pub use ptx_text::ptx_text;
