//! Speed of light: the use of the SMs and of the memory path in per cent of their peaks, and the bound that follows.
//!
//! All parts have one basis: all cycles of the launch, on all SMs. The profiler's `sm__throughput` and
//! `gpu__compute_memory_throughput` have it too. So no part exceeds its whole. `l1tex__throughput` counts the active cycles of the SMs
//! alone, and is scaled.

use serde::Serialize;

use super::BUSY;
use super::facts::Facts;

/// Difference below which both are the bound, in per cent (the profiler's rule `SOLBottleneck`).
const BALANCED: f64 = 10.0;

/// Use in per cent of the peak over the whole launch.
#[derive(Clone, Debug, Serialize)]
pub struct SpeedOfLight {
    /// The SMs' busiest resource.
    pub sm: f64,
    /// The memory path's busiest stage.
    pub memory: f64,
    /// The L1s.
    pub l1: f64,
    /// The L2.
    pub l2: f64,
    /// The memory channels.
    pub dram: f64,
}

/// What bounds a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Neither SMs nor memory are busy: the launch waits.
    Latency,
    /// The SMs.
    Compute,
    /// The memory path.
    Memory,
    /// Both alike.
    Balanced,
}

impl SpeedOfLight {
    pub(super) fn of(facts: &Facts<'_>) -> Self {
        SpeedOfLight {
            sm: facts.metric("sm__throughput.avg.pct_of_peak_sustained_elapsed"),
            memory: facts.metric("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"),
            l1: facts.use_of_launch("l1tex__throughput.avg.pct_of_peak_sustained_active"),
            l2: facts.metric("lts__throughput.avg.pct_of_peak_sustained_elapsed"),
            dram: facts.metric("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"),
        }
    }

    pub(super) fn bound(&self) -> Bound {
        match (self.sm, self.memory) {
            // Before the comparison: two idle units are alike, but neither is the bound.
            (sm, memory) if sm < BUSY && memory < BUSY => Bound::Latency,
            (sm, memory) if (sm - memory).abs() < BALANCED => Bound::Balanced,
            (sm, memory) if sm > memory => Bound::Compute,
            _ => Bound::Memory,
        }
    }
}

impl Bound {
    /// The bound as a sentence without a full stop.
    pub fn sentence(self) -> String {
        let text = match self {
            Bound::Latency => "bound by latency: neither the SMs nor memory reach 60 % of their peaks",
            Bound::Compute => "bound by the SMs",
            Bound::Memory => "bound by memory",
            Bound::Balanced => "bound by the SMs and by memory alike",
        };
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_follows_the_60_percent_rule() {
        let bound = |sm, memory| {
            let (l1, l2, dram) = (0.0, 0.0, memory);
            SpeedOfLight {
                sm,
                memory,
                l1,
                l2,
                dram,
            }
            .bound()
        };
        assert_eq!(bound(59.0, 59.9), Bound::Latency);
        assert_eq!(bound(60.0, 20.0), Bound::Compute);
        assert_eq!(bound(20.0, 87.0), Bound::Memory);
        assert_eq!(bound(80.0, 75.0), Bound::Balanced);
    }
}
