//! A sample: the counters of some cycles of a run.
//!
//! ```text
//!   launch 0     launch 1        launch 2
//!   |------|     |---A=======|   |=====B
//!   left out     in part         in part, the run stops
//! ```
//!
//! Counters of the sample are a difference of two snapshots, at A and at B. So samples that follow each other add up to the run.

use std::fmt;
use std::ops::Range;

use serde::Serialize;
use warpwave_components::gpu::{Gpu, LaunchError, Launched, ReadGpu, Sample};
use warpwave_hw::time::Cycle;

use crate::report::counts::Counts;

/// The cycles that a sample has counted, on the machine's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Sampled {
    /// The first cycle.
    pub first: u64,
    /// The cycle after the last one. At or before `first` if the run ended before the sample.
    pub end: u64,
}

impl fmt::Display for Sampled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first < self.end {
            true => write!(f, "all numbers count cycles {} to {}", self.first, self.end - 1),
            false => write!(f, "the run ended in cycle {}, so all numbers are 0", self.end),
        }
    }
}

/// Counts a sample while launches run.
pub(crate) struct Sampler {
    cycles: Range<Cycle>,
    /// The counters at the first cycle, once it is reached.
    first: Option<Counts>,
}

/// The part of a launch in a sample.
pub(crate) struct Part {
    pub cycles: u64,
    pub counts: Counts,
    /// True if cycles of the launch are left out.
    pub is_sampled: bool,
}

impl Sampler {
    pub fn new(cycles: Range<Cycle>) -> Self {
        Sampler { cycles, first: None }
    }

    /// The end of the sample, if it is at or before `now`.
    pub fn ended(&self, now: Cycle) -> Option<LaunchError> {
        (self.cycles.end <= now).then_some(LaunchError::Sampled(self.cycles.end))
    }

    /// The counters at the first cycle. `None` if the sample has not begun.
    pub fn first(&self) -> Option<&Counts> {
        self.first.as_ref()
    }

    /// The cycles counted by a run that ends in cycle `end`.
    pub fn sampled(&self, end: Cycle) -> Sampled {
        Sampled {
            first: self.cycles.start.0,
            end: self.cycles.end.min(end).0,
        }
    }

    /// Runs one launch with `launch`. `before` are the counters before the launch.
    ///
    /// Returns the part of the launch in the sample, the counters after it, and its error, if any.
    pub fn run(
        &mut self,
        gpu: &mut Gpu,
        before: &Counts,
        launch: impl FnOnce(&mut Gpu, Option<Sample<'_>>) -> Result<Launched, LaunchError>,
    ) -> (Part, Counts, Result<(), LaunchError>) {
        // The sample began between two launches, or with this one: no counter has moved since `before`.
        if self.cycles.start <= gpu.clock().now() {
            self.first.get_or_insert_with(|| before.clone());
        }
        let has_begun = self.first.is_some();
        let mut begin = |gpu: &Gpu, at| self.first = Some(before.next_snapshot(gpu.components(), at));
        let begin: Option<&mut ReadGpu<'_>> = if has_begun { None } else { Some(&mut begin) };
        let cycles = self.cycles.clone();
        let ended = launch(gpu, Some(Sample { cycles, begin })).map(drop);
        let after = before.next_snapshot(gpu.components(), gpu.clock().now());
        let launched = gpu.latest();
        // Three cases: before the sample, from the launch's first cycle on, from a cycle within the launch on.
        let (cycles, counts) = match &self.first {
            // The difference of equal snapshots: all counters are 0.
            None => (0, after.since(&after)),
            Some(_) if has_begun => (launched.cycles(), after.since(before)),
            Some(first) => {
                let from = launched.start.max(self.cycles.start);
                (launched.end.since(from), after.since(first))
            }
        };
        let is_sampled = cycles < launched.cycles() || matches!(ended, Err(LaunchError::Sampled(_)));
        let part = Part {
            cycles,
            counts,
            is_sampled,
        };
        (part, after, ended)
    }
}

/// Runs one launch without a sample. The results are those of [`Sampler::run`].
pub(crate) fn run_whole(
    gpu: &mut Gpu,
    before: &Counts,
    launch: impl FnOnce(&mut Gpu, Option<Sample<'_>>) -> Result<Launched, LaunchError>,
) -> (Part, Counts, Result<(), LaunchError>) {
    let ended = launch(gpu, None).map(drop);
    let after = before.next_snapshot(gpu.components(), gpu.clock().now());
    let part = Part {
        cycles: gpu.latest().cycles(),
        counts: after.since(before),
        is_sampled: false,
    };
    (part, after, ended)
}
