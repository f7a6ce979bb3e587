//! The clocked components of the GPU, from block dispatcher to memory channels.
//!
//! Read in the order in which a kernel meets them.

pub mod config;

pub mod preset;

pub mod text_file;

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
