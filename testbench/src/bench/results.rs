//! Inputs of the metrics of a run, and the results of its assertions.

use warpwave_components::config::GpuConfig;

use super::{LaunchRun, Run};
use crate::report::metrics::{Inputs, Metric, Value};
use crate::scenario::{Assert, LaunchName};

impl LaunchRun {
    /// Inputs for the metrics of this launch.
    pub fn inputs<'a>(&'a self, config: &'a GpuConfig) -> Inputs<'a> {
        Inputs {
            counts: &self.counts,
            config,
            cycles: self.cycles,
            launch: Some(self.shape),
        }
    }
}

impl Run {
    /// Core cycles of all launches together, without warm-ups.
    pub fn cycles(&self) -> u64 {
        self.counted().map(|launch| launch.cycles).sum()
    }

    /// The launches without warm-ups.
    fn counted(&self) -> impl Iterator<Item = &LaunchRun> {
        self.launches.iter().filter(|launch| !launch.is_warm_up)
    }

    /// The last repetition of a launch, by the index of its table or by its name. A launch without a name has that of its kernel.
    pub fn launch(&self, launch: &LaunchName) -> Option<&LaunchRun> {
        let is_it = |run: &&LaunchRun| match launch {
            LaunchName::Index(index) => run.table == *index,
            LaunchName::Name(name) => run.name.as_ref().unwrap_or(&run.entry) == name,
        };
        // From the end: the last repetition is the one measured.
        self.launches.iter().rev().find(is_it)
    }

    /// Inputs for the metrics of all launches together.
    pub fn inputs(&self) -> Inputs<'_> {
        // Several launches have no common grid. Metrics of grid and occupancy are then `NotReached`.
        let mut counted = self.counted();
        let only_launch = match (counted.next(), counted.next()) {
            (Some(launch), None) => Some(launch.shape),
            _ => None,
        };
        Inputs {
            counts: &self.totals,
            config: &self.config,
            cycles: self.cycles(),
            launch: only_launch,
        }
    }

    /// The value of an assertion's metric. The second value is true if the assertion holds.
    pub fn check(&self, assert: &Assert, metric: &Metric) -> (Value, bool) {
        let found = match assert.launch {
            Some(launch) => self
                .launches
                .get(launch)
                .map_or(Value::NotReached, |run| metric.value(&run.inputs(&self.config))),
            None => metric.value(&self.inputs()),
        };
        let holds = found.number().is_some_and(|value| {
            assert.min.is_none_or(|min| value >= min)
                && assert.max.is_none_or(|max| value <= max)
                && assert.equal.is_none_or(|equal| value == equal)
        });
        (found, holds)
    }
}
