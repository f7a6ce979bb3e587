//! Checks the assertions of a scenario on a run.
//!
//! ```text
//! Scenario::asserts, comparisons + Run ── check ──> Checked: the text, both values, whether it holds
//! ```
//!
//! A comparison may name another run: a table `[runs.NAME]`, or a scenario. The caller runs it, once.

mod figures;

use warpwave_components::config::GpuConfig;
use warpwave_components::preset;

use crate::bench::{Bench, BenchError, Checked, Options, Run};
use crate::report::metrics::{self, Value};
use crate::scenario::dtype::Number;
use crate::scenario::expr::{Binary, ExprError, Scope, binary};
use crate::scenario::{Assert, Comparison, Draft, OtherRun, Scenario, ScenarioError, Tolerance};

use figures::Figures;

/// Checks every assertion of a scenario that has run. `run_other` runs the scenarios that comparisons name.
pub fn check(
    scenario: &Scenario,
    run: &Run,
    run_other: &mut dyn FnMut(&OtherRun) -> Result<Run, String>,
) -> Vec<Checked> {
    let figures = Figures::of(scenario, run, run_other);
    let bounds = scenario.asserts.iter().map(|assert| bound(assert, run));
    let comparisons = scenario
        .comparisons
        .iter()
        .map(|comparison| compare(comparison, &figures));
    bounds.chain(comparisons).collect()
}

/// Checks before a run that every name of the assertions exists: metrics, other runs with their GPUs, rows of CSV files.
/// `gpu` and `set` are those of this run.
///
/// # Errors
/// The first wrong name, with its assertion or its run.
pub fn check_names(scenario: &Scenario, gpu: &str, set: &[(String, String)]) -> Result<(), String> {
    let figures = Figures::without_run(scenario);
    for comparison in &scenario.comparisons {
        let sides = [&comparison.left, &comparison.right];
        // Before the run every figure is 1, so a difference may be 0, and a quotient impossible.
        let is_name = |fault: &ExprError| !matches!(fault, ExprError::Operation { .. });
        let fault = sides.into_iter().find_map(|side| side.value(&figures).err());
        if let Some(fault) = fault.filter(is_name) {
            return Err(format!("assert `{}`: {fault}", comparison.text));
        }
    }
    for (name, other) in &scenario.runs {
        prepare(other, gpu, set).map_err(|error| format!("runs.{name}: {error}"))?;
    }
    Ok(())
}

/// Finds the scenario and the GPU of another run.
fn prepare(other: &OtherRun, gpu: &str, set: &[(String, String)]) -> Result<(Draft, GpuConfig), OtherError> {
    let draft = Draft::find(&other.scenario)?.with_constants(&other.constants)?;
    // The later value of a key wins: the other scenario, then this run, then the table of the other run.
    let sets = [draft.settings(), set.to_vec(), other.set.clone()].concat();
    let gpu = other.gpu.as_deref().unwrap_or(gpu);
    let preset = preset::load(gpu, &sets).map_err(|error| match draft.gpu_fault(gpu) {
        Some(fault) => OtherError::Scenario(fault),
        // An option of the command has been applied to this run before.
        None => OtherError::Preset(error.of(gpu)),
    });
    Ok((draft, preset?.config))
}

fn bound(assert: &Assert, run: &Run) -> Checked {
    let metric = metrics::find(&assert.metric);
    // An unknown metric fails its assertion.
    let (found, holds) = metric.map_or((Value::NotModelled, false), |metric| run.check(assert, metric));
    let wanted = wanted(assert);
    Checked {
        that: format!("{} is {wanted}", assert.metric),
        holds,
        left: found.number(),
        right: None,
        values: format!("{} is {found}, not {wanted}", assert.metric),
    }
}

/// The bounds of an assertion as text.
fn wanted(assert: &Assert) -> String {
    let parts = [
        ("at least", assert.min),
        ("at most", assert.max),
        ("equal to", assert.equal),
    ];
    let parts: Vec<_> = parts
        .iter()
        .filter_map(|(word, value)| Some(format!("{word} {}", (*value)?)))
        .collect();
    let launch = assert
        .launch
        .map_or(String::new(), |launch| format!(" in launch {launch}"));
    format!("{}{launch}", parts.join(" and "))
}

fn compare(comparison: &Comparison, figures: &impl Scope) -> Checked {
    let sides = [&comparison.left, &comparison.right].map(|side| side.value(figures));
    let number = |side: &Result<Number, ExprError>| side.as_ref().ok().map(|number| number.value());
    let (holds, values) = match &sides {
        [Ok(left), Ok(right)] => (holds(comparison, *left, *right), beside(comparison, *left, *right)),
        [Err(fault), _] | [_, Err(fault)] => (false, fault.to_string()),
    };
    Checked {
        holds,
        left: number(&sides[0]),
        right: number(&sides[1]),
        values: format!("{}: {values}", comparison.text),
        that: comparison.text.clone(),
    }
}

fn holds(comparison: &Comparison, left: Number, right: Number) -> bool {
    // No measured value is infinite or NaN, so such a side proves nothing.
    if !left.value().is_finite() || !right.value().is_finite() {
        return false;
    }
    let distance = (left.value() - right.value()).abs();
    match (comparison.operator, comparison.tolerance) {
        (Binary::Equal, Tolerance::Part(part)) => distance <= part * right.value().abs(),
        (Binary::Equal, Tolerance::Distance(limit)) if limit > 0.0 => distance <= limit,
        // Without a tolerance, integers compare exactly, also above 2^53.
        (operator, _) => binary(operator, left, right).is_ok_and(|truth| truth != Number::Int(0)),
    }
}

/// Both values with the operator between them.
fn beside(comparison: &Comparison, left: Number, right: Number) -> String {
    let within = match comparison.tolerance {
        Tolerance::Part(part) => format!(" within {} %", Value::Number(100.0 * part)),
        Tolerance::Distance(distance) if distance > 0.0 => format!(" within {distance}"),
        Tolerance::Distance(_) => String::new(),
    };
    let shown = |number: Number| Value::Number(number.value());
    format!(
        "{} {} {}{within}",
        shown(left),
        comparison.operator.symbol(),
        shown(right)
    )
}

/// Why another run has no results, or the faults of its scenario.
#[derive(Debug, thiserror::Error)]
pub enum OtherError {
    /// Its scenario has a fault.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Its GPU has a fault.
    #[error(transparent)]
    Preset(#[from] preset::PresetError),
    /// It cannot be run.
    #[error("{0}: {1}")]
    Bench(String, Box<BenchError>),
    /// It stopped early.
    #[error("{0}: launch[{1}] stopped: {2}")]
    Stopped(String, usize, String),
    /// Its results are wrong.
    #[error("{0}: {1}")]
    Wrong(String, String),
}

/// Runs the scenario that a comparison names. Without a GPU of its own it takes `gpu` with the settings `set`.
///
/// # Errors
/// If it cannot be run to its end, or if its results are not as it expects.
pub fn run_other(
    other: &OtherRun,
    gpu: &str,
    set: &[(String, String)],
    options: Options,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Run, OtherError> {
    let (draft, config) = prepare(other, gpu, set)?;
    let scenario = draft.build(Some(&config))?;
    let name = || scenario.name.clone();
    let mut bench = Bench::new(&scenario, config).map_err(|error| OtherError::Bench(name(), error.into()))?;
    let run = bench.run(options, &mut |_| !is_stopped());
    if let Some((launch, error)) = &run.stopped {
        return Err(OtherError::Stopped(name(), *launch, error.to_string()));
    }
    // The cycles of a wrong result are not worth a comparison.
    let differences = run.differences.iter().map(ToString::to_string);
    match differences.chain(run.misprints.iter().cloned()).next() {
        Some(difference) => Err(OtherError::Wrong(name(), difference)),
        None => Ok(run),
    }
}
