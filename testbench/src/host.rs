//! What a driver does: puts buffers and module variables into device memory, fills constant banks, makes launches.
//!
//! ```text
//! Scenario + Module ── placement ──> addresses ── launch ──> Grid
//! ```
//!
//! Input: a checked scenario and a compiled module. Output: a [`Grid`](warpwave_components::proto::launch::Grid) that fits its kernel and
//! the machine. So a later fault is the kernel's.

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
