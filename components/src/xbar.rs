//! The crossbar between SMs and L2 slices: one network for requests, one for responses.
//!
//! Both are a [`crossbar::Crossbar`]; they differ in which way a packet goes and how many bytes it has on the way.

mod arbiter;
mod calendar;
mod ports;

pub mod crossbar;
