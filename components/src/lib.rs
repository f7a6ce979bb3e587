//! The clocked components of the GPU, from GigaThread to the memory channels.
//!
//! The modules are in reading order: configuration, messages, then the blocks on the path of a kernel.

pub mod config;

pub mod preset;

pub mod text_file;

pub mod wording;

pub mod occupancy;

pub mod proto;

pub mod cache;

pub mod front;

pub mod sm;

pub mod xbar;

pub mod l2;

pub mod hbm;

pub mod storage;

pub mod gpu;

#[cfg(test)]
mod test_ports;
