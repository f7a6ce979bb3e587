//! The table of metrics. A row has a name, a unit, a definition, a formula, and the component that counts it.
//!
//! Names and units are those of Nsight Compute (`ncu`). Definitions and formulas are this model's. A new metric is one more row.

mod table;

mod value;

mod page;

use std::sync::LazyLock;

use warpwave_components::config::GpuConfig;
use warpwave_components::occupancy::Occupancy;

use super::counts::Counts;
use super::stalls::STATES;

pub(super) use table::all_flops;

pub use page::{page, state, states};
pub use value::Value;

/// The inputs of a formula.
pub struct Inputs<'a> {
    /// Counters of all components.
    pub counts: &'a Counts,
    /// The configuration of the GPU.
    pub config: &'a GpuConfig,
    /// Core cycles from start to end of the launch. The sum over all launches for totals.
    pub cycles: u64,
    /// The shape of the launch. `None` for totals over several launches.
    pub launch: Option<LaunchShape>,
}

/// The shape of one launch.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LaunchShape {
    /// CTAs of the grid.
    pub ctas: u64,
    /// Threads of a CTA.
    pub threads: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Shared memory of a CTA, in bytes.
    pub shared_bytes: u32,
    /// Occupancy of an SM by this kernel.
    pub occupancy: Occupancy,
}

/// One row of the table.
#[derive(Clone)]
pub struct Metric {
    /// The profiler's name.
    pub name: String,
    /// The unit, such as `cycle` or `%`.
    pub unit: &'static str,
    /// The component that counts it.
    pub component: &'static str,
    /// Its meaning, in one or two sentences.
    pub definition: String,
    /// Its formula, in names of counters and preset keys.
    pub formula: String,
    compute: Compute,
}

/// The formula as code.
#[derive(Clone, Copy)]
enum Compute {
    With(fn(&Inputs<'_>) -> Value),
    /// Warp-cycles in a state per instruction issued.
    StallPerIssue(&'static str),
    /// Warp-cycles in a state.
    StallSum(&'static str),
    /// Warp-cycles in a state, in per cent of all warp-cycles.
    StallPercent(&'static str),
    /// Warp-cycles in a state while the scheduler issued nothing.
    StallUnissued(&'static str),
}

impl Metric {
    /// The meaning in a few words: the first clause of the definition.
    ///
    /// ```
    /// let metric = warpwave::report::metrics::find("sm__throughput.avg.pct_of_peak_sustained_elapsed").unwrap();
    /// assert_eq!(metric.plain_name(), "Utilization of the SMs' busiest resource over the whole launch");
    /// ```
    pub fn plain_name(&self) -> &str {
        let ends = [". ", ": ", "; "].map(|end| self.definition.find(end));
        let end = ends.into_iter().flatten().min().unwrap_or(self.definition.len());
        self.definition[..end].trim_end_matches('.')
    }

    /// The metric's value for one launch, or for all launches together.
    pub fn value(&self, inputs: &Inputs<'_>) -> Value {
        let stall = |counter| inputs.sum("scheduler", counter);
        match self.compute {
            Compute::With(compute) => compute(inputs),
            Compute::StallPerIssue(counter) => stall(counter) / inputs.sum("scheduler", "inst_issued"),
            Compute::StallSum(counter) => stall(counter),
            Compute::StallUnissued(counter) => inputs.sum("scheduler", &unissued(counter)),
            Compute::StallPercent(counter) => stall(counter) / inputs.sum("scheduler", "warp_cycles") * 100.0,
        }
    }
}

static TABLE: LazyLock<Vec<Metric>> = LazyLock::new(|| {
    let mut metrics: Vec<_> = table::parts().flat_map(|(_, metrics)| metrics).collect();
    for (state, counter) in STATES {
        // States last: each has the same five metrics.
        metrics.extend(stall_rows(state, counter));
    }
    metrics
});

/// Every metric, in the order of reports.
pub fn all() -> &'static [Metric] {
    &TABLE
}

/// The metric of this name.
pub fn find(name: &str) -> Option<&'static Metric> {
    all().iter().find(|metric| metric.name == name)
}

/// The counter of a state's warp-cycles without an issue.
fn unissued(counter: &str) -> String {
    counter.replacen("stall_", "unissued_", 1)
}

/// The name of a state in the profiler's samples.
fn sampled(state: &str) -> &str {
    match state {
        // The profiler spells this one state in two ways.
        "no_instruction" => "no_instructions",
        state => state,
    }
}

fn stall_rows(state: &str, counter: &'static str) -> [Metric; 5] {
    let row = |name: String, unit, definition: String, formula: String, compute| Metric {
        name,
        unit,
        component: "scheduler",
        definition,
        formula,
        compute,
    };
    [
        row(
            format!("smsp__average_warps_issue_stalled_{state}_per_issue_active.ratio"),
            "cycle/inst",
            format!(
                "Warp-cycles in the state {state} per instruction issued: the mean cycles of this state before each issue."
            ),
            format!("sum of {counter} / sum of inst_issued"),
            Compute::StallPerIssue(counter),
        ),
        row(
            format!("smsp__warps_issue_stalled_{state}.sum"),
            "warp",
            format!("Warp-cycles that resident warps spent in the state {state}."),
            format!("sum of {counter}"),
            Compute::StallSum(counter),
        ),
        row(
            format!("smsp__warp_issue_stalled_{state}_per_warp_active.pct"),
            "%",
            format!(
                "Warp-cycles in the state {state}, in per cent of all resident warp-cycles. All states add up to 100."
            ),
            format!("sum of {counter} / sum of warp_cycles x 100"),
            Compute::StallPercent(counter),
        ),
        // A profiler takes samples at intervals. The model takes every warp-cycle as a sample.
        row(
            format!("smsp__pcsamp_warps_issue_stalled_{}", sampled(state)),
            "sample",
            format!("Samples in the state {state}, of all addresses. `--html` shows them line by line."),
            format!("sum of {counter}"),
            Compute::StallSum(counter),
        ),
        row(
            format!("smsp__pcsamp_warps_issue_stalled_{}_not_issued", sampled(state)),
            "sample",
            format!(
                "Samples in the state {state} in cycles in which the scheduler issued nothing: latency that was not hidden."
            ),
            format!("sum of {}", unissued(counter)),
            Compute::StallUnissued(counter),
        ),
    ]
}

impl Inputs<'_> {
    /// The sum of a counter over all instances of a block.
    fn sum(&self, block: &str, name: &str) -> Value {
        self.counts.sum(block, name).map_or(Value::NotModelled, Value::of)
    }

    /// The mean of a counter over all instances of a block.
    fn mean(&self, block: &str, name: &'static str) -> Value {
        // Without instances `sum` is `NotModelled`, and so is the quotient: nothing is divided by 0.
        let n = self.counts.each(block, name).map_or(0, <[u64]>::len);
        self.sum(block, name) / Value::of(n as u64)
    }

    fn least(&self, block: &str, name: &'static str) -> Value {
        let values = self.counts.each(block, name);
        values
            .and_then(|values| values.iter().min())
            .map_or(Value::NotModelled, |&value| Value::of(value))
    }

    fn greatest(&self, block: &str, name: &'static str) -> Value {
        let values = self.counts.each(block, name);
        values
            .and_then(|values| values.iter().max())
            .map_or(Value::NotModelled, |&value| Value::of(value))
    }

    /// The number of instances that have this counter.
    fn instances(&self, block: &str, name: &'static str) -> Value {
        self.counts
            .each(block, name)
            .map_or(Value::NotModelled, |values| Value::of(values.len() as u64))
    }

    fn cycles(&self) -> Value {
        Value::of(self.cycles)
    }

    /// A number of the launch's shape. `NotReached` for totals over several launches.
    fn launch(&self, fact: impl Fn(&LaunchShape) -> f64) -> Value {
        self.launch
            .as_ref()
            .map_or(Value::NotReached, |launch| Value::Number(fact(launch)))
    }
}

#[cfg(test)]
mod tests;
