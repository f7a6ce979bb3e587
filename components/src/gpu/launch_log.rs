//! Log events of launches: begin, end and reason of each, in simulated time.

use tracing::span::EnteredSpan;
use tracing::{debug, info, info_span};
use warpwave_hw::error::SimError;
use warpwave_hw::time::Cycle;

use super::{LaunchError, Launched};
use crate::proto::launch::Grid;
use crate::proto::mem::SliceCommand;

/// The path of these events: the whole machine.
const PATH: &str = "gpu";

/// Enters the span of a launch. Its number lets a filter select one launch: `[launch{number=1}]=debug`.
pub(super) fn enter_launch(grid: &Grid, now: Cycle) -> EnteredSpan {
    let kernel = grid.program.name();
    info_span!("launch", cycle = now.0, path = PATH, number = grid.id, kernel).entered()
}

/// A launch begins.
pub(super) fn launch_begins(grid: &Grid, at: Cycle) {
    let (number, kernel) = (grid.id, grid.program.name());
    info!(cycle = at.0, path = PATH, grid = ?grid.grid, block = ?grid.block, "launch {number} of {kernel} begins");
}

/// A launch ended, or was stopped before cycle `stopped`.
pub(super) fn launch_ends(number: u32, start: Cycle, stopped: Cycle, result: &Result<Launched, LaunchError>) {
    let reason = match result {
        Ok(launched) => {
            let cycles = launched.cycles();
            return info!(cycle = launched.end.0, path = PATH, cycles, "launch {number} ends");
        }
        Err(LaunchError::Sim(SimError::Deadlock { .. })) => "deadlock",
        Err(LaunchError::Sim(SimError::Standstill { .. })) => "standstill",
        Err(LaunchError::Sim(SimError::CycleLimit { .. })) => "cycle limit",
        Err(LaunchError::Trap(_)) => "trap",
        Err(LaunchError::Cancelled(_)) => "cancelled",
        Err(LaunchError::Sampled(_)) => "end of the sample",
        Err(LaunchError::Fault(_)) => "fault",
        Err(LaunchError::LocalMemory { .. } | LaunchError::TooLong { .. }) => "refused",
    };
    let cycles = stopped.since(start);
    info!(
        cycle = stopped.0,
        path = PATH,
        cycles,
        "launch {number} is stopped: {reason}"
    );
}

/// The host commands every L2 slice.
pub(super) fn slices_commanded(command: SliceCommand, at: Cycle) {
    match command {
        SliceCommand::WriteBack => debug!(cycle = at.0, path = PATH, "L2 write-back begins"),
        SliceCommand::Invalidate => debug!(cycle = at.0, path = PATH, "L2 invalidated: the host has written memory"),
    }
}

/// Every L2 slice has completed the command.
pub(super) fn slices_done(command: SliceCommand, at: Cycle) {
    if command == SliceCommand::WriteBack {
        debug!(cycle = at.0, path = PATH, "L2 write-back ends");
    }
}
