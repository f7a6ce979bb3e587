//! Reasons for a run to stop before its last launch ends.

use serde::Serialize;
use warpwave_components::gpu::LaunchError;
use warpwave_hw::error::SimError;

use super::Run;

/// The reason for an early stop. Reports write it in lower case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StopReason {
    /// The observer stopped the run, for instance after Ctrl-C.
    Interrupted,
    /// A thread trapped.
    Trap,
    /// No component can make progress.
    Deadlock,
    /// Warps run, but repeat themselves: nothing will ever change.
    Standstill,
    /// The limit of cycles was reached.
    Limit,
    /// A fault injected into a link was found.
    Fault,
    /// The launch did not begin, so it has no cycles.
    Refused,
}

impl StopReason {
    /// The reason in one word, as reports write it.
    pub fn word(self) -> &'static str {
        match self {
            StopReason::Interrupted => "interrupted",
            StopReason::Trap => "trap",
            StopReason::Deadlock => "deadlock",
            StopReason::Limit => "limit",
            StopReason::Refused => "refused",
            StopReason::Standstill => "standstill",
            StopReason::Fault => "fault",
        }
    }
}

impl Run {
    /// The reason for an early stop. `None` if every launch ended.
    pub fn stopped_by(&self) -> Option<StopReason> {
        Some(match self.stopped.as_ref()?.1 {
            LaunchError::Cancelled(_) => StopReason::Interrupted,
            LaunchError::Trap(_) => StopReason::Trap,
            LaunchError::Fault(_) => StopReason::Fault,
            LaunchError::Sim(SimError::Deadlock { .. }) => StopReason::Deadlock,
            LaunchError::Sim(SimError::Standstill { .. }) => StopReason::Standstill,
            LaunchError::Sim(SimError::CycleLimit { .. }) => StopReason::Limit,
            LaunchError::LocalMemory { .. } | LaunchError::TooLong { .. } => StopReason::Refused,
        })
    }

    /// The reason for an early stop of one launch. `None` if it ended.
    pub fn launch_stopped_by(&self, launch: usize) -> Option<StopReason> {
        let is_it = self.stopped.as_ref().is_some_and(|(stopped, _)| *stopped == launch);
        self.stopped_by().filter(|_| is_it)
    }
}
