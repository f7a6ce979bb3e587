//! What a driver does: puts buffers and module variables into device memory, fills constant banks, makes launches.
//!
//! ```text
//! Scenario + Module ── placement ──> addresses ── launch ──> Grid
//! ```
//!
//! Takes a checked scenario and a compiled module; promises that a [`Grid`](warpwave_components::proto::launch::Grid) fits its
//! kernel and the machine, so that whatever goes wrong later is the kernel's own doing.

mod error;

mod memory;

mod module;

mod launch;

pub mod print;

pub mod printf;

pub use error::{ClusterFault, HostError};
pub use launch::grid;
pub(crate) use memory::allocate;
pub use memory::{Placement, Region};

#[cfg(test)]
mod tests;
