//! Why a run ended before its last launch did.

use serde::Serialize;
use warpwave_components::gpu::LaunchError;
use warpwave_hw::error::SimError;

use super::Run;

/// Why a run ended early. The reports write it in lower case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StopReason {
    /// The caller asked to stop, by Ctrl-C for instance.
    Interrupted,
    /// A thread trapped.
    Trap,
    /// No component could do anything any more.
    Deadlock,
    /// The limit of cycles was reached.
    Limit,
    /// The launch could not begin, and none of its cycles ran.
    Refused,
}

impl Run {
    /// Why the run ended early; nothing for a run that came to its end.
    pub fn stopped_by(&self) -> Option<StopReason> {
        Some(match self.stopped.as_ref()?.1 {
            LaunchError::Cancelled(_) => StopReason::Interrupted,
            LaunchError::Trap(_) => StopReason::Trap,
            LaunchError::Sim(SimError::Deadlock { .. }) => StopReason::Deadlock,
            LaunchError::Sim(SimError::CycleLimit { .. }) => StopReason::Limit,
            LaunchError::LocalMemory { .. } | LaunchError::TooLong { .. } => StopReason::Refused,
        })
    }

    /// Why one launch ended early; nothing if it came to its end.
    pub fn launch_stopped_by(&self, launch: usize) -> Option<StopReason> {
        let is_it = self.stopped.as_ref().is_some_and(|(stopped, _)| *stopped == launch);
        self.stopped_by().filter(|_| is_it)
    }
}
