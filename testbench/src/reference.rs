//! Reference model without time: the memory contents that a launch must produce.
//!
//! It shares the meaning of instructions (`warpwave_isa`) and the description of a launch with the machine, and nothing else. It has
//! its own registers, shared and local memory, barriers and copy of device memory, and writes every result at once.
//!
//! CTAs run one after the other. After a turn the next CTA runs, so a CTA can wait for another by a spin on device memory. The CTAs
//! of a cluster take turns, and so do the warps of a CTA.
//!
//! Invariant: the results depend on the launch alone. Where the order of atomics is open, the machine may differ in the last bits of
//! float sums.

mod access;

mod bulk;

mod image;

mod cluster;

mod cta;

mod memory;

mod step;

mod warp;

mod watch;

use std::collections::VecDeque;

use thiserror::Error;
use warpwave_components::proto::launch::{Grid, Trap};
use warpwave_hw::error::lines;

use cluster::Cluster;
use cta::Turn;

pub use memory::Memory;
pub use watch::{Access, Checks, Findings, Kind, Race, Unwritten};

/// Warp instructions that a CTA runs before another one gets a turn.
const CTA_TURN: u64 = 1 << 16;

/// Limit of the CTAs that have started and not ended. The largest GPUs hold no more.
const MAX_RESIDENT: usize = 2048;

/// Why a launch did not run to its end.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum ReferenceError {
    /// A thread trapped.
    #[error("{} at line {} of the program", .0.kind, .0.line)]
    Trap(Box<Trap>),
    /// No warp of a CTA can continue.
    #[error("deadlock: no warp of the block can continue{}", lines(.waits))]
    Deadlock {
        /// One sentence per warp: what it waits for.
        waits: Vec<String>,
    },
    /// The limit of warp instructions was reached.
    #[error("the limit of {limit} warp instructions is reached")]
    StepLimit {
        /// The limit.
        limit: u64,
    },
}

/// Runs a launch to its end on `memory`. Returns the number of warp instructions, at most `limit`.
///
/// # Errors
/// A trap, a deadlock, or the limit. `memory` has the results up to that point.
pub fn run(grid: &Grid, memory: &mut Memory, limit: u64) -> Result<u64, ReferenceError> {
    go(grid, memory, limit, None, &mut Findings::default())
}

/// As [`run`], with checks of shared memory. Returns their findings up to the end or the error.
pub fn run_watched(
    grid: &Grid,
    memory: &mut Memory,
    limit: u64,
    checks: Checks,
) -> (Result<u64, ReferenceError>, Findings) {
    let mut findings = Findings::default();
    let outcome = go(grid, memory, limit, Some(checks), &mut findings);
    (outcome, findings)
}

fn go(
    grid: &Grid,
    memory: &mut Memory,
    limit: u64,
    checks: Option<Checks>,
    findings: &mut Findings,
) -> Result<u64, ReferenceError> {
    let mut resident = VecDeque::new();
    let mut next = 0;
    let mut steps = 0;
    loop {
        if next < grid.ctas() / u64::from(grid.cluster_ctas()) && resident.len() < MAX_RESIDENT {
            resident.push_back(Cluster::new(grid, next, checks));
            next += 1;
        }
        let Some(mut cluster) = resident.pop_front() else {
            return Ok(steps);
        };
        if steps >= limit {
            return Err(ReferenceError::StepLimit { limit });
        }
        let turn = cluster.run(memory, CTA_TURN.min(limit - steps), &mut steps);
        findings.add(cluster.findings());
        match turn? {
            Turn::Ended => {}
            _ => resident.push_back(cluster),
        }
    }
}

#[cfg(test)]
mod tests;
