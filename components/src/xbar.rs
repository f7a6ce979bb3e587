//! The crossbar between SMs and L2 slices: one network for requests, one for responses.
//!
//! Both are a [`crossbar::Crossbar`]. They differ in the direction of packets and in the bytes that a packet has on the way.

mod arbiter;

pub mod crossbar;
