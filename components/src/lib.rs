//! The clocked components of the GPU, from block dispatcher to memory channels.

pub mod config;
