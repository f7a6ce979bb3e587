//! The phases of a launch, from the counters of GigaThread.

use serde::Serialize;

use crate::bench::LaunchRun;

/// Cycles of a launch by phase. They add up to its cycles.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Phases {
    /// From the launch until the first block is sent, and from the last end until the host knows of it.
    pub launch: u64,
    /// From the first block until no slot is free or no block is left.
    pub ramp: u64,
    /// Until a block ends and none is left for its slot.
    pub steady: u64,
    /// Until the last block has ended.
    pub tail: u64,
}

impl Phases {
    pub(super) fn of(launch: &LaunchRun) -> Self {
        let sum = |name| launch.counts.sum("gigathread", name).unwrap_or(0);
        let mut cycles = ["launch_cycles", "ramp_cycles", "steady_cycles", "tail_cycles"].map(sum);
        // The rest is the time of the grid on the host's link.
        cycles[0] += launch.cycles.saturating_sub(cycles.iter().sum());
        let [launch, ramp, steady, tail] = cycles;
        Phases {
            launch,
            ramp,
            steady,
            tail,
        }
    }

    /// Each phase with its name, in order.
    pub fn each(&self) -> [(&'static str, u64); 4] {
        [
            ("launch", self.launch),
            ("ramp", self.ramp),
            ("steady", self.steady),
            ("tail", self.tail),
        ]
    }

    /// Share of a phase in the launch, 0 to 1.
    pub fn share(&self, cycles: u64) -> f64 {
        let all: u64 = self.each().iter().map(|(_, cycles)| cycles).sum();
        super::facts::ratio(cycles, all)
    }
}
