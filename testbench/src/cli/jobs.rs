//! The scenarios of `warpwave run` with their GPUs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use warpwave::regression;
use warpwave::scenario::{Draft, Scenario, builtin};
use warpwave_components::config::GpuConfig;
use warpwave_components::preset;
use warpwave_ptx::PassSet;

use super::args::{self, DEFAULT_GPU};
use super::failure::{Failure, warn};
use super::lab;

/// A scenario with its GPU.
pub struct Job {
    /// The scenario with its data.
    pub scenario: Scenario,
    /// Name or path of the GPU.
    pub gpu: String,
    /// The numbers of the GPU.
    pub config: GpuConfig,
    /// The input files of both.
    pub inputs: Vec<PathBuf>,
    /// Its name, unlike those of the other scenarios of the command.
    pub key: String,
    /// Its name or path on the command line.
    pub path: String,
}

/// The scenarios of `args` with their names: built-in ones, files, and those of folders and patterns. A wrong name is an error in its place.
pub fn jobs(args: &args::Run) -> Vec<(String, Result<Job, Failure>)> {
    let (mut jobs, mut seen) = (Vec::new(), BTreeSet::new());
    for name in &args.scenarios {
        let found = match paths(name, args) {
            Ok(found) => found,
            Err(failure) => {
                jobs.push((name.clone(), Err(failure)));
                continue;
            }
        };
        for path in found {
            let draft = Draft::find(&path).map_err(Failure::input);
            let job = draft.and_then(|draft| job(draft, path.clone(), args));
            let job = job.map(|job| Job {
                key: unlike(&seen, &job.key),
                ..job
            });
            let name = job.as_ref().map_or(path, |job| job.key.clone());
            seen.insert(name.clone());
            jobs.push((name, job));
        }
    }
    jobs
}

/// `name`, or else `name.2` or a later number: scenarios with one name must not overwrite each other's files.
fn unlike(seen: &BTreeSet<String>, name: &str) -> String {
    let mut free = name.to_owned();
    let mut n = 1;
    while seen.contains(&free) {
        n += 1;
        free = format!("{name}.{n}");
    }
    free
}

/// The scenarios of a folder or pattern. The name itself for a scenario.
fn paths(name: &str, args: &args::Run) -> Result<Vec<String>, Failure> {
    let path = Path::new(name);
    let inside = builtin::in_folder(name);
    // With an output file, a name that a built-in scenario shares with a folder is that of the scenario: the file keeps its name.
    let is_shared = !path.is_file() && args.writes_files() && builtin::exists(name);
    if is_shared && inside.len() > 1 {
        warn(&format!(
            "with an output option, `{name}` is the scenario of this name alone; its folder has {}: {}",
            inside.len(),
            inside.join(", ")
        ));
    }
    let is_folder = path.is_dir() || name.contains(['*', '?', '[']) || !inside.is_empty();
    if is_shared || path.is_file() || !is_folder {
        return Ok(vec![name.to_owned()]);
    }
    regression::find(name).map_err(Failure::input)
}

/// Loads the GPU, then the scenario's data. The data must fit the GPU's memory.
fn job(draft: Draft, path: String, args: &args::Run) -> Result<Job, Failure> {
    let draft = draft.with_constants(&args.constants).map_err(Failure::input)?;
    let gpu = args.gpu.clone().or_else(|| draft.gpu());
    let gpu = gpu.unwrap_or_else(|| DEFAULT_GPU.to_owned());
    // An option of the command wins over the scenario.
    let set = [draft.settings(), args.set.clone()].concat();
    let preset = preset::load(&gpu, &set).map_err(|error| lab::gpu_failure(&draft, &gpu, &error))?;
    let inputs = draft.inputs([gpu.as_str()]);
    let mut scenario = draft.build(Some(&preset.config)).map_err(Failure::input)?;
    scenario.max_registers = args.maxrregcount.or(scenario.max_registers);
    // The parser of the arguments accepts names of optional passes alone.
    let skipped = args.no_pass.iter().try_fold(PassSet::EMPTY, |set, name| set.with(name));
    scenario.skipped_passes = skipped.unwrap_or_default();
    lab::check_names(&scenario, &gpu, &set)?;
    Ok(Job {
        key: scenario.name.clone(),
        path,
        scenario,
        gpu,
        config: preset.config,
        inputs,
    })
}
