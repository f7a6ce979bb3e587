//! The second-level cache (L2): slices, each with its request queue. A group of slices shares its memory channels.
//!
//! The address map gives each line one slice ([`crate::proto::noc::AddressMap`]), so the L2 needs no coherence protocol.

pub mod slice;

pub mod atomic;

mod lines;
