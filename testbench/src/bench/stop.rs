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
    /// The counters cover the cycles of a sample alone.
    Sampled,
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
            StopReason::Sampled => "sampled",
            StopReason::Trap => "trap",
            StopReason::Deadlock => "deadlock",
            StopReason::Limit => "limit",
            StopReason::Refused => "refused",
            StopReason::Standstill => "standstill",
            StopReason::Fault => "fault",
        }
    }

    /// The reason with its article, as in "stopped by a trap".
    pub fn phrase(self) -> &'static str {
        match self {
            StopReason::Interrupted => "an interrupt",
            StopReason::Sampled => "the end of the sample",
            StopReason::Trap => "a trap",
            StopReason::Deadlock => "a deadlock",
            StopReason::Standstill => "a standstill",
            StopReason::Limit => "the cycle limit",
            StopReason::Refused => "a refusal",
            StopReason::Fault => "a fault",
        }
    }

    /// True if the launch itself failed. Its time then says nothing about its speed.
    pub fn is_failure(self) -> bool {
        use StopReason::{Deadlock, Fault, Refused, Standstill, Trap};
        matches!(self, Trap | Deadlock | Standstill | Refused | Fault)
    }
}

impl Run {
    /// Why the counters do not cover the whole run: an early stop, or a sample. `None` if they do.
    pub fn stopped_by(&self) -> Option<StopReason> {
        // A run may end by itself within the sample, but leave out cycles before it.
        let Some((_, error)) = &self.stopped else {
            let is_sampled = self.launches.iter().any(|launch| launch.is_sampled);
            return is_sampled.then_some(StopReason::Sampled);
        };
        Some(match error {
            LaunchError::Cancelled(_) => StopReason::Interrupted,
            LaunchError::Sampled(_) => StopReason::Sampled,
            LaunchError::Trap(_) => StopReason::Trap,
            LaunchError::Fault(_) => StopReason::Fault,
            LaunchError::Sim(SimError::Deadlock { .. }) => StopReason::Deadlock,
            LaunchError::Sim(SimError::Standstill { .. }) => StopReason::Standstill,
            LaunchError::Sim(SimError::CycleLimit { .. }) => StopReason::Limit,
            LaunchError::LocalMemory { .. } | LaunchError::TooLong { .. } => StopReason::Refused,
        })
    }

    /// Why the counters of a launch do not cover all of it: an early stop, or a sample. `None` if they do.
    pub fn launch_stopped_by(&self, launch: usize) -> Option<StopReason> {
        let is_it = self.stopped.as_ref().is_some_and(|(stopped, _)| *stopped == launch);
        let sampled = self.launches[launch].is_sampled.then_some(StopReason::Sampled);
        self.stopped_by().filter(|_| is_it).or(sampled)
    }
}
