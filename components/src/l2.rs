//! The second-level cache (L2): slices, each with its request queue. A group of slices shares its memory channels.
//!
//! The address map gives each line one home slice ([`crate::proto::noc::AddressMap`]). With `l2.far_lines = "copied"` a slice of the other
//! partition may have a copy of the line. The protocol of [`slice::twin`] keeps it equal.

pub mod slice;

pub mod atomic;

mod directory;

mod lines;
