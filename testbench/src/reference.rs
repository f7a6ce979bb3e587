//! The reference model: computes the memory contents that a launch must produce, without time.
//!
//! It shares only the meaning of instructions (`warpwave_isa`) and the description of a launch with the machine. It has its own
//! registers, shared and local memory, barriers, and a copy of device memory. Every result is written at once.
//!
//! CTAs take turns, so a CTA can spin on device memory until another one writes it. The CTAs of a cluster take shorter turns, and so
//! do the warps of a CTA. In a cooperative launch all CTAs take turns from the start: each may wait for all others.
//!
//! Invariant: results depend on the launch alone. The machine may perform atomics in another order, so its float sums may differ in
//! the last bits.

mod access;

mod bulk;

mod image;

mod cluster;

mod cta;

mod memory;

mod step;

mod warp;

mod race_detector;

use std::collections::VecDeque;

use thiserror::Error;
use warpwave_components::proto::launch::{Grid, Trap};
use warpwave_hw::error::lines;

use cluster::Cluster;
use cta::Turn;

pub use memory::Memory;
use race_detector::global::GlobalDetector;
pub use race_detector::{Access, Checks, Findings, Group, Kind, Missing, Race, RaceSpace, Unwritten};

/// Warp instructions of a CTA's turn.
const CTA_TURN: u64 = 1 << 16;

/// Warp instructions of a CTA's turn in a cooperative launch. A CTA that waits for all others polls until its turn ends.
const COOPERATIVE_TURN: u64 = 1 << 10;

/// Maximum number of clusters that have started and not ended. Bounds the memory of the reference.
const MAX_RESIDENT: usize = 2048;

/// The reason for a launch that did not run to its end.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum ReferenceError {
    /// A thread trapped.
    #[error("{} at line {} of the program", .0.kind, .0.line)]
    Trap(Box<Trap>),
    /// No warp of a cluster can continue.
    #[error("deadlock: no warp of the block can continue{}", lines(.waits))]
    Deadlock {
        /// One sentence per warp that waits.
        waits: Vec<String>,
    },
    /// The limit of warp instructions was reached.
    #[error("the limit of {limit} warp instructions is reached")]
    StepLimit {
        /// The limit.
        limit: u64,
    },
    /// The user has interrupted it.
    #[error("the run of the reference model was interrupted")]
    Interrupted,
}

/// When a launch ends early. A number is the limit of warp instructions alone.
#[derive(Clone, Copy, Debug)]
pub struct Until {
    /// Limit of warp instructions.
    pub limit: u64,
    /// True once the user wants the run to end. Asked once in a turn of a cluster.
    pub is_interrupted: fn() -> bool,
}

impl From<u64> for Until {
    fn from(limit: u64) -> Self {
        let is_interrupted = || false;
        Until { limit, is_interrupted }
    }
}

/// Runs a launch to its end on `memory`. Returns the number of warp instructions, at most the limit.
///
/// # Errors
/// A trap, a deadlock, the limit, or an interrupt. `memory` keeps the results up to then.
pub fn run(grid: &Grid, memory: &mut Memory, until: impl Into<Until>) -> Result<u64, ReferenceError> {
    run_clusters(grid, memory, until.into(), None, &mut Findings::default())
}

/// Runs a launch as [`run`] does, with the race detector. Returns the findings up to the end or the error.
pub fn run_checked(
    grid: &Grid,
    memory: &mut Memory,
    until: impl Into<Until>,
    checks: Checks,
) -> (Result<u64, ReferenceError>, Findings) {
    let mut findings = Findings::default();
    let outcome = run_clusters(grid, memory, until.into(), Some(checks), &mut findings);
    (outcome, findings)
}

/// Runs a launch, with the detectors that `checks` names. Adds the findings to `findings`.
fn run_clusters(
    grid: &Grid,
    memory: &mut Memory,
    until: Until,
    checks: Option<Checks>,
    findings: &mut Findings,
) -> Result<u64, ReferenceError> {
    let races = checks.filter(|checks| checks.races);
    let mut global = races.map(|checks| Box::new(GlobalDetector::new(grid, checks)));
    let outcome = run_turns(grid, memory, until, checks, (findings, &mut global));
    if let Some(detector) = global {
        findings.add(detector.findings);
    }
    outcome
}

/// Runs the clusters of a launch in turns, oldest first, until all have ended.
fn run_turns<'a>(
    grid: &'a Grid,
    memory: &mut Memory,
    Until { limit, is_interrupted }: Until,
    checks: Option<Checks>,
    (findings, global): (&mut Findings, &mut Option<Box<GlobalDetector<'a>>>),
) -> Result<u64, ReferenceError> {
    let mut resident = VecDeque::new();
    let mut next = 0;
    let mut steps = 0;
    // The host has checked that a GPU holds all CTAs of a cooperative launch at once.
    let (cta_turn, max_resident) = match grid.is_cooperative() {
        true => (COOPERATIVE_TURN * u64::from(grid.cluster_ctas()), usize::MAX),
        false => (CTA_TURN, MAX_RESIDENT),
    };
    loop {
        // One more cluster starts before each turn, so that a cluster which spins on a later one ends.
        if next < grid.ctas() / u64::from(grid.cluster_ctas()) && resident.len() < max_resident {
            resident.push_back(Cluster::new(grid, next, checks));
            next += 1;
        }
        let Some(mut cluster) = resident.pop_front() else {
            return Ok(steps);
        };
        // Tested while a cluster is left: a launch may end exactly at the limit.
        if steps >= limit {
            return Err(ReferenceError::StepLimit { limit });
        }
        if is_interrupted() {
            return Err(ReferenceError::Interrupted);
        }
        let turn = cluster.run(memory, global, cta_turn.min(limit - steps), &mut steps);
        // Also after an error: the findings up to it are reported.
        findings.add(cluster.findings());
        match turn? {
            Turn::Ended => {}
            _ => resident.push_back(cluster),
        }
    }
}

#[cfg(test)]
mod tests;
