//! The built-in scenarios as benchmarks: whole kernels.

use warpwave_components::preset;

use super::lab::Launches;
use super::{Lab, Point};
use crate::bench::{self, BenchError, Options};
use crate::gpu::GpuError;
use crate::plan::{Plan, PlannedStep};
use crate::scenario::Scenario;

/// Cycles of launch `x` of the scenario that the series names. An equal launch before it fills the L2, as on silicon, where a launch is
/// repeated in a graph.
pub(super) fn kernels(lab: &Lab, point: &Point) -> Result<f64, GpuError> {
    let name = &point.series;
    let mut scenario = Scenario::find(name).unwrap_or_else(|_| panic!("the figures name {name}, which is no scenario"));
    let launches = std::mem::take(&mut scenario.launches).into_iter();
    scenario.launches = launches.flat_map(|launch| [launch.clone(), launch]).collect();
    for second in scenario.launches.iter_mut().skip(1).step_by(2) {
        // A host step empties the L2.
        second.before.clear();
    }
    let n = 2 * point.x() as usize + 1;
    match lab.launches() {
        Launches::Model => run(lab, &point.gpu, &scenario, n),
        Launches::Plan(mut plans) => {
            plans.push(planned(&scenario, n));
            // Some figure: the plan is what counts.
            Ok(1.0)
        }
        Launches::Measured(ghz, mut nanoseconds) => {
            Ok(nanoseconds.pop_front().expect("a result for the timed launch") * ghz)
        }
    }
}

/// Runs a scenario on the model. Returns the cycles of launch `n`.
fn run(lab: &Lab, gpu: &str, scenario: &Scenario, n: usize) -> Result<f64, GpuError> {
    let config = preset::load(gpu, &lab.sets)?.config;
    let bench = bench::Bench::new(scenario, config).map_err(|error| match error {
        BenchError::Ptx(findings) => GpuError::Ptx {
            findings,
            text: scenario.ptx.clone(),
        },
        BenchError::Host(error) | BenchError::Launch { error, .. } => GpuError::Host(error),
    });
    let options = Options {
        threads: 1,
        max_cycles: None,
    };
    let run = bench?.run(options, &mut |_| true);
    if let Some((_, error)) = run.stopped {
        return Err(GpuError::Launch(error));
    }
    Ok(run.launches[n].cycles as f64)
}

/// The plan of a scenario with launch `n` timed.
fn planned(scenario: &Scenario, n: usize) -> Plan {
    let mut plan = Plan::of(scenario).unwrap_or_else(|error| panic!("{error}; the figures name it"));
    let mut launches = plan.steps.iter_mut().filter_map(|step| match step {
        PlannedStep::Launch(launch) => Some(launch),
        _ => None,
    });
    if let Some(launch) = launches.nth(n) {
        launch.is_timed = true;
    }
    plan
}
