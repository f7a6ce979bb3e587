//! The JSON report of a run. Two runs of the same input differ only in `host`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::diagnosis::{self, Diagnosis};
use super::latency;
use super::metrics::{self, Inputs, Value};
use crate::bench::{Checked, Run, Sampled, StopReason};

/// The JSON object.
#[derive(Serialize)]
struct Report<'a, L> {
    scenario: &'a str,
    gpu: &'a str,
    build: &'static str,
    /// The headline of the run as one line ([`diagnosis::headline`]). Null without launches.
    diagnosis: Option<String>,
    /// Null if the counters cover all launches.
    stopped: Option<StopReason>,
    /// Present only in a sampled run.
    #[serde(skip_serializing_if = "Option::is_none")]
    sample: Option<Sampled>,
    launches: Vec<Launch<'a>>,
    totals: Totals,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    asserts: &'a [Checked],
    latencies: BTreeMap<&'static str, Latency>,
    /// The PTX with the cost of each line.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<&'a L>,
    host: Host,
}

#[derive(Serialize)]
struct Launch<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    /// Present only in a launch that does not count in totals.
    #[serde(skip_serializing_if = "is_false")]
    warm_up: bool,
    entry: &'a str,
    grid: [u32; 3],
    block: [u32; 3],
    cycles: u64,
    /// Present only in a launch that was stopped, or that a sample leaves out in part.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<StopReason>,
    diagnosis: &'a Diagnosis,
    metrics: BTreeMap<&'static str, Value>,
    #[serde(skip_serializing_if = "str::is_empty")]
    printed: &'a str,
}

#[derive(Serialize)]
struct Totals {
    cycles: u64,
    metrics: BTreeMap<&'static str, Value>,
}

/// A distribution in cycles.
#[derive(Serialize)]
struct Latency {
    count: u64,
    min: u64,
    mean: f64,
    p50: u64,
    p90: u64,
    p99: u64,
    max: u64,
}

/// Values that depend on the host.
#[derive(Serialize)]
struct Host {
    wall_seconds: f64,
    threads: usize,
    cycles_per_second: f64,
    warp_instructions_per_second: f64,
}

/// Returns the report as indented JSON.
///
/// # Panics
/// Never: all keys are text, so the report can be encoded.
pub fn report(scenario: &str, run: &Run) -> String {
    with_lines(scenario, run, None::<&()>)
}

/// Returns the report with the costs of the PTX lines, if they are known.
///
/// # Panics
/// Never: all keys are text, so the report can be encoded.
pub fn with_lines<L: Serialize>(scenario: &str, run: &Run, lines: Option<&L>) -> String {
    let seconds = run.wall.as_secs_f64();
    // JSON has no infinity.
    let rate = |n: u64| if seconds > 0.0 { n as f64 / seconds } else { 0.0 };
    let diagnoses = diagnosis::of_run(run);
    let launches = run.launches.iter().enumerate().map(|(index, launch)| Launch {
        name: launch.name.as_deref(),
        warm_up: launch.is_warm_up,
        entry: &launch.entry,
        grid: launch.grid,
        block: launch.block,
        cycles: launch.cycles,
        stopped: run.launch_stopped_by(index),
        diagnosis: &diagnoses[index],
        metrics: values(&launch.inputs(&run.config)),
        printed: &launch.printed,
    });
    let report = Report {
        scenario,
        gpu: &run.config.name,
        build: env!("CARGO_PKG_VERSION"),
        diagnosis: diagnosis::headline(run, &diagnoses),
        stopped: run.stopped_by(),
        sample: run.sample,
        launches: launches.collect(),
        totals: Totals {
            cycles: run.cycles(),
            metrics: values(&run.inputs()),
        },
        asserts: &run.asserts,
        latencies: run
            .totals
            .latencies()
            .map(|(path, latency)| (path, distribution(latency)))
            .collect(),
        lines,
        host: Host {
            wall_seconds: seconds,
            threads: run.threads,
            cycles_per_second: rate(run.cycles()),
            warp_instructions_per_second: rate(run.totals.sum("scheduler", "inst_issued").unwrap_or(0)),
        },
    };
    let mut text = serde_json::to_string_pretty(&report).expect("a report is made of texts and numbers");
    text.push('\n');
    text
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

fn values(inputs: &Inputs<'_>) -> BTreeMap<&'static str, Value> {
    metrics::all()
        .iter()
        .map(|metric| (metric.name.as_str(), metric.value(inputs)))
        .collect()
}

fn distribution(latency: &warpwave_hw::stats::Latency) -> Latency {
    let histogram = latency.histogram();
    let percentile = |thousandths| latency::percentile(&histogram, thousandths);
    Latency {
        count: histogram.len(),
        min: histogram.min(),
        mean: histogram.mean(),
        p50: percentile(500),
        p90: percentile(900),
        p99: percentile(990),
        max: histogram.max(),
    }
}
