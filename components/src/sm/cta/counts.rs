//! Counters of a CTA manager.

use warpwave_hw::stats::{Latency, Report};

/// Counters of a CTA manager.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// CTAs admitted.
    pub ctas: u64,
    /// Warps started.
    pub warps: u64,
    /// Threads started.
    pub threads: u64,
    /// Cycles with at least one CTA resident.
    pub active_cycles: u64,
    /// Barriers opened.
    pub barriers: u64,
    /// Cycles from a barrier's last arrival to its release.
    pub barrier_latency: Latency,
    /// Cycles from a CTA's admission to its end.
    pub cta_latency: Latency,
}

impl Stats {
    /// Reports every counter.
    pub(super) fn report(&self, report: &mut dyn Report) {
        report.count("ctas", self.ctas);
        report.count("warps", self.warps);
        report.count("threads", self.threads);
        report.count("active_cycles", self.active_cycles);
        report.count("barriers", self.barriers);
        report.latency("barrier", &self.barrier_latency);
        report.latency("cta", &self.cta_latency);
    }
}
