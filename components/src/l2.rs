//! The second-level cache: slices, each with its queue, and the memory channels that stand behind a group of slices.
//!
//! A line lives in one slice alone ([`crate::proto::noc::AddressMap`]), so the L2 needs no coherence of its own.

pub mod slice;

mod atomic;

mod lines;
