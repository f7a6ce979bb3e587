//! The progress of a run, as its observer sees it between two windows of the clock.

use warpwave_hw::clock::Pause;
use warpwave_hw::stats::{Latency, Report};
use warpwave_hw::time::Cycle;

use crate::report::counts;
use crate::report::stalls::STATES;

/// The position of a run, and access to the counters of its schedulers.
#[derive(Clone, Copy)]
pub struct Progress<'a> {
    /// The first cycle that has not run.
    pub now: Cycle,
    /// Index of the launch that runs.
    pub launch: usize,
    /// Launches of the scenario.
    pub n_launches: usize,
    /// CTAs of the launch that runs.
    pub ctas: u64,
    /// CTAs of all earlier launches.
    pub(super) ctas_before: u64,
    /// CTAs of all launches together.
    pub(super) ctas_of_all: u64,
    pub(super) pause: &'a Pause<'a>,
}

/// Counters of a launch while it runs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Activity {
    /// CTAs of the launch that have ended.
    pub ctas_done: u64,
    /// Warp-cycles in each of [`STATES`], counted from the first launch on.
    pub warp_cycles: [u64; STATES.len()],
}

impl Progress<'_> {
    /// Reads the counters of all schedulers. This takes longer than a window of the clock, so do not call it in each.
    pub fn activity(&self) -> Activity {
        let mut activity = Activity::default();
        self.pause.each_component(&mut |component| {
            // Only these two have the counters. To read the others would cost time.
            let is_read = matches!(counts::kind(component.path().as_str()), "scheduler" | "gigathread");
            if is_read {
                component.stats(&mut activity);
            }
        });
        // GigaThread counts from the first launch on.
        activity.ctas_done -= self.ctas_before;
        activity
    }
}

impl Progress<'_> {
    /// The share of all CTAs that have ended, from 0 to 1.
    pub fn share_done(&self, activity: &Activity) -> f64 {
        (self.ctas_before + activity.ctas_done) as f64 / self.ctas_of_all as f64
    }
}

impl Activity {
    /// The stall state with the most warp-cycles since `earlier`. `None` if no warp stalled.
    pub fn top_stall(&self, earlier: &Activity) -> Option<&'static str> {
        let added = self
            .warp_cycles
            .iter()
            .zip(&earlier.warp_cycles)
            .map(|(now, before)| now - before);
        let stalls = STATES
            .iter()
            .zip(added)
            .filter(|((state, _), added)| *state != "selected" && *added > 0);
        stalls.max_by_key(|(_, added)| *added).map(|((state, _), _)| *state)
    }
}

impl Report for Activity {
    fn count(&mut self, name: &'static str, value: u64) {
        if name == "ctas_done" {
            self.ctas_done += value;
        } else if let Some(state) = STATES.iter().position(|(_, counter)| *counter == name) {
            self.warp_cycles[state] += value;
        }
    }

    fn latency(&mut self, _: &'static str, _: &Latency) {}
}
