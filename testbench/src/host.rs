//! The driver's part: places buffers and module variables in device memory, fills constant banks, builds grids.
//!
//! ```text
//! Scenario + Module ── placement ──> addresses ── launch ──> Grid
//! ```
//!
//! Input: a checked scenario and a compiled module. Output: a [`Grid`](warpwave_components::proto::launch::Grid) that
//! matches its kernel and respects the machine's limits. So a fault after that is a fault of the kernel.

mod cooperative;

mod error;

mod memory;

mod module;

mod launch;

pub(crate) mod steps;

pub mod print;

pub mod printf;

pub use cooperative::Workspaces;
pub use error::{ClusterFault, HostError, ResidencyFault};
pub use launch::build_grid;
pub(crate) use memory::allocate;
pub use memory::{Placement, Region};

use warpwave_components::config::GpuConfig;
use warpwave_ptx::Options;

#[cfg(test)]
mod tests;

/// Returns the options of the compiler for a GPU.
pub(crate) fn compiler_options(config: &GpuConfig) -> Options {
    Options {
        // Convergence barriers and a stack need different code.
        reconvergence: config.sm.reconvergence.into(),
        heap_bytes: config.limits.heap_bytes,
        ..Options::default()
    }
}
