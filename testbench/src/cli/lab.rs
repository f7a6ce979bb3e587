//! Functions of all commands that run scenarios: the machine with a scenario's data, work in parallel, checks of output
//! files and of names.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use warpwave::bench::Bench;
use warpwave::report::metrics;
use warpwave::report::saved::CYCLES;
use warpwave::scenario::{Draft, Scenario};
use warpwave::verdict;
use warpwave_components::config::GpuConfig;
use warpwave_components::preset::PresetError;

use super::explain::unknown_metric;
use super::failure::Failure;
use super::progress;
use super::write::{resolve, try_file};

/// Builds the machine with the scenario's data. Refuses a program that is too new for the GPU, unless `ignore_target`.
pub fn bench<'s>(scenario: &'s Scenario, config: &GpuConfig, ignore_target: bool) -> Result<Bench<'s>, Failure> {
    let mut bench = Bench::new(scenario, config.clone()).map_err(|error| Failure::bench(scenario, &error))?;
    bench.interrupt_reference(progress::is_stopped);
    if !ignore_target && !bench.unmet_requirements().is_empty() {
        let findings = scenario.render(bench.unmet_requirements());
        return Err(Failure::input(format!(
            "{}: the program is too new for {}; choose another --gpu, or run it with --ignore-target\n{findings}",
            scenario.name, config.name
        )));
    }
    Ok(bench)
}

/// The failure for a GPU that does not load. It names the scenario if the fault is in its text.
pub fn gpu_failure(draft: &Draft, gpu: &str, error: &PresetError) -> Failure {
    let fault = draft.gpu_fault(gpu);
    fault.map_or_else(|| Failure::input(error), Failure::input)
}

/// All input files of a scenario on `gpu`, or on its own GPU. A name that is no scenario gives its own path.
pub fn inputs(name: &str, gpu: Option<&str>) -> Vec<PathBuf> {
    // The run reports the fault of a scenario.
    let Ok(draft) = Draft::find(name) else {
        return vec![PathBuf::from(name)];
    };
    let own = draft.gpu();
    draft.inputs(gpu.or(own.as_deref()))
}

/// Checks that the files of these options can be written, and that none is an input or another output.
pub fn check_outputs(outputs: &[(&str, Option<&Path>)], inputs: &[PathBuf]) -> Result<(), Failure> {
    let mut taken: Vec<(PathBuf, String)> = Vec::new();
    taken.extend(
        inputs
            .iter()
            .map(|path| (resolve(path), "is read by this run".to_owned())),
    );
    for (option, path) in outputs.iter().filter_map(|(option, path)| Some((option, (*path)?))) {
        let place = resolve(path);
        if let Some((_, why)) = taken.iter().find(|(other, _)| *other == place) {
            let path = path.display();
            return Err(Failure::input(format!("{option} {path} {why}; choose another name")));
        }
        // Tested before the run, which may take hours.
        try_file(path)?;
        taken.push((place, format!("is also the file of {option}")));
    }
    Ok(())
}

/// Calls `work` with 0 to n - 1 on at most `jobs` threads. After Ctrl-C no more calls begin.
pub fn in_parallel(n: usize, jobs: NonZeroUsize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    let run = || {
        while !progress::is_stopped() {
            // A shared counter balances the load: a long run does not hold up others.
            match next.fetch_add(1, Ordering::Relaxed) {
                index if index < n => work(index),
                _ => break,
            }
        }
    };
    thread::scope(|scope| {
        // The scope joins the threads, and passes on a panic.
        (0..jobs.get().min(n)).for_each(|_| drop(scope.spawn(run)));
    });
}

/// Checks that every metric, run and CSV row of the assertions exists. `gpu` and `set` are those of this run.
pub fn check_names(scenario: &Scenario, gpu: &str, set: &[(String, String)]) -> Result<(), Failure> {
    for assert in &scenario.asserts {
        let unknown = || match assert.metric.as_str() {
            CYCLES => "`cycles` is no metric of the profiler; write that = \"cycles < 1000\" instead".to_owned(),
            name => unknown_metric(name).text,
        };
        let known = metrics::find(&assert.metric).ok_or_else(unknown);
        known.map_err(|fault| Failure::input(format!("{}: assert: {fault}", scenario.name)))?;
    }
    verdict::check_names(scenario, gpu, set).map_err(|fault| Failure::input(format!("{}: {fault}", scenario.name)))
}
