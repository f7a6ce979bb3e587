//! The crossbar between SMs and L2 slices: one network for requests, one for responses.
//!
//! Both networks are a [`crossbar::Crossbar`]. They differ in direction, and so in the data bytes of a packet.

mod arbiter;

pub mod crossbar;
