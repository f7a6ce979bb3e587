//! The figures of a launch that several causes use.

use warpwave_components::config::GpuConfig;

use super::Phases;
use super::sites::{Site, sites};
use crate::bench::LaunchRun;
use crate::report::metrics::Metric;
use crate::report::stalls::{self, Stall};

/// The counters of a launch, its metrics and warp states.
pub(super) struct Facts<'a> {
    pub launch: &'a LaunchRun,
    pub config: &'a GpuConfig,
    metrics: &'a [Metric],
    pub stalls: Vec<Stall>,
    pub phases: Phases,
}

impl<'a> Facts<'a> {
    /// `metrics` is the table of all metrics.
    pub fn new(launch: &'a LaunchRun, config: &'a GpuConfig, metrics: &'a [Metric]) -> Self {
        Facts {
            launch,
            config,
            metrics,
            stalls: stalls::table(&launch.counts),
            phases: Phases::of(launch),
        }
    }

    /// A metric of the launch. 0 if it has no number.
    pub fn metric(&self, name: &str) -> f64 {
        let metric = self.metrics.iter().find(|metric| metric.name == name);
        let metric = metric.expect("a metric of the diagnosis is a row of the table");
        // A metric without a number, such as a ratio over 0, names no cause.
        metric.value(&self.launch.inputs(self.config)).number().unwrap_or(0.0)
    }

    /// A metric in per cent of the peak over all cycles of the launch, on all SMs. One over active cycles is scaled to this basis.
    pub fn use_of_launch(&self, name: &str) -> f64 {
        let used = self.metric(name);
        if !name.ends_with("_active") {
            return used;
        }
        // The L1 and the LSU count cycles of their SM, all other units cycles of a scheduler.
        let is_of_sm = name.starts_with("l1tex__") || name.contains("_pipe_lsu.");
        let (block, per_sm) = match is_of_sm {
            true => ("cta", 1),
            false => ("scheduler", self.config.sm.subcores),
        };
        let all = self.launch.cycles * u64::from(self.config.n_sms() * per_sm);
        used * ratio(self.sum(block, "active_cycles"), all)
    }

    pub fn sum(&self, block: &str, counter: &str) -> u64 {
        self.launch.counts.sum(block, counter).unwrap_or(0)
    }

    /// Share of these states in the warps' time, 0 to 1.
    pub fn stalled(&self, states: &[&str]) -> f64 {
        let found = self.stalls.iter().filter(|stall| states.contains(&stall.state));
        found.map(|stall| stall.percent).sum::<f64>() / 100.0
    }

    /// Achieved occupancy in per cent.
    pub fn achieved(&self) -> f64 {
        self.metric("sm__warps_active.avg.pct_of_peak_sustained_active")
    }

    /// Instructions with any of three counters, in order of their program counters.
    pub fn sites(&self, counters: [&str; 3]) -> Vec<Site> {
        sites(self.launch, counters)
    }
}

/// `part / whole`, or 0 if `whole` is 0.
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
