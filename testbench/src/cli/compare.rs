//! `warpwave compare`: two runs side by side.

use std::path::{Path, PathBuf};
use std::thread;

use clap::Args;
use serde::Deserialize;
use warpwave::bench::Options;
use warpwave::compare::{Comparison, Lines, Side, page, read_report};
use warpwave::report::json;
use warpwave::scenario::Draft;
use warpwave::watch::profile::Profile;
use warpwave_components::{preset, text_file};

use super::args::{DEFAULT_GPU, key_value};
use super::failure::Failure;
use super::lab::{self, check_outputs};
use super::launch_error;
use super::print;
use super::progress;
use super::write::write;

#[derive(Args)]
pub struct Compare {
    /// A scenario (a built-in one or a TOML file), or a report that `run --json` saved
    pub a: String,
    /// The second one; A again if left out
    pub b: Option<String>,
    /// The GPU of both, instead of the scenarios' own: a built-in one or a TOML file
    #[arg(long, value_name = "NAME|FILE", help_heading = "Machine")]
    pub gpu: Option<String>,
    /// The GPU of A
    #[arg(long, value_name = "NAME|FILE", help_heading = "Machine")]
    pub gpu_a: Option<String>,
    /// The GPU of B
    #[arg(long, value_name = "NAME|FILE", help_heading = "Machine")]
    pub gpu_b: Option<String>,
    /// Change a number or a policy of both GPUs
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value, help_heading = "Machine")]
    pub set: Vec<(String, String)>,
    /// Change a number or a policy of the GPU of A
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value, help_heading = "Machine")]
    pub set_a: Vec<(String, String)>,
    /// Change a number or a policy of the GPU of B
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value, help_heading = "Machine")]
    pub set_b: Vec<(String, String)>,
    /// Run programs whose target or instructions are newer than the GPU
    #[arg(long, help_heading = "Run")]
    pub ignore_target: bool,
    /// Print every metric and line that differs
    #[arg(long, help_heading = "Results")]
    pub all: bool,
    /// Write the comparison as JSON
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub json: Option<PathBuf>,
    /// Write the comparison as one HTML page
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub html: Option<PathBuf>,
}

/// What runs on one side.
struct Request<'a> {
    name: &'a str,
    gpu: Option<&'a str>,
    /// The GPU that an option gives to this side alone.
    own_gpu: Option<&'a str>,
    /// Changed preset keys of both sides.
    sets: &'a [(String, String)],
    /// Changed preset keys of this side.
    own_sets: &'a [(String, String)],
}

fn request<'a>(
    args: &'a Compare,
    name: &'a str,
    gpu: &'a Option<String>,
    own_sets: &'a [(String, String)],
) -> Request<'a> {
    Request {
        name,
        gpu: gpu.as_deref().or(args.gpu.as_deref()),
        own_gpu: gpu.as_deref(),
        sets: &args.set,
        own_sets,
    }
}

/// Runs or reads both sides, and prints the comparison.
pub fn compare(args: &Compare) -> Result<(), Failure> {
    let a = request(args, &args.a, &args.gpu_a, &args.set_a);
    let b = request(args, args.b.as_ref().unwrap_or(&args.a), &args.gpu_b, &args.set_b);
    let inputs = [&a, &b].map(|side| lab::inputs(side.name, side.gpu)).concat();
    let outputs = [("--json", args.json.as_deref()), ("--html", args.html.as_deref())];
    check_outputs(&outputs, &inputs)?;
    [&a, &b].into_iter().try_for_each(refuse_changes)?;
    refuse_unused(args, [&a, &b])?;
    progress::catch_interrupt();
    // The sides are independent, so each has a thread.
    let (a, b) = thread::scope(|scope| {
        let a = scope.spawn(|| side(&a, args.ignore_target));
        let b = side(&b, args.ignore_target);
        (a.join().expect("a broken invariant ends the command"), b)
    });
    let comparison = Comparison::new(&a?, &b?);
    print(&comparison.text(args.all))?;
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&comparison).map_err(Failure::input)?;
        write(path, format!("{text}\n").as_bytes())?;
    }
    if let Some(path) = &args.html {
        write(path, page(&comparison).as_bytes())?;
    }
    Ok(())
}

/// True if a side is a saved report, by its name.
fn is_saved(request: &Request<'_>) -> bool {
    Path::new(request.name).extension().is_some_and(|end| end == "json")
}

/// Refuses a GPU or a changed key of a saved report alone.
fn refuse_changes(request: &Request<'_>) -> Result<(), Failure> {
    let has_changes = !request.own_sets.is_empty() || request.own_gpu.is_some();
    if !is_saved(request) || !has_changes {
        return Ok(());
    }
    let name = request.name;
    Err(Failure::input(format!(
        "{name} is a saved report: --gpu-a, --gpu-b, --set-a and --set-b cannot change it"
    )))
}

/// Refuses `--gpu` and `--set` if both sides are saved reports: no side could use them.
fn refuse_unused(args: &Compare, sides: [&Request<'_>; 2]) -> Result<(), Failure> {
    let option = match (&args.gpu, args.set.is_empty()) {
        (Some(_), _) => "--gpu",
        (None, false) => "--set",
        (None, true) => return Ok(()),
    };
    if !sides.into_iter().all(is_saved) {
        return Ok(());
    }
    Err(Failure::input(format!(
        "{option} cannot change a saved report, and both sides are saved reports; name a scenario as B"
    )))
}

fn side(request: &Request<'_>, ignore_target: bool) -> Result<Side, Failure> {
    match is_saved(request) {
        true => saved(request),
        false => simulate(request, ignore_target),
    }
}

/// Reads a saved report.
fn saved(request: &Request<'_>) -> Result<Side, Failure> {
    let name = request.name;
    let file = text_file::open(Path::new(name));
    let file = file.map_err(|error| Failure::input(format!("cannot read {name}: {error}")))?;
    let wrong = |why: &str| {
        Failure::input(format!(
            "{name} is no report ({why}); write one with `warpwave run --json FILE`"
        ))
    };
    let report = read_report(file).map_err(|why| wrong(&why))?;
    // Any other JSON file lacks this key.
    if !report["totals"]["cycles"].is_u64() {
        return Err(wrong("it has no `totals.cycles`"));
    }
    // A sample covers the cycles that its user chose.
    let is_sample = report["stopped"] == "sampled";
    if let Some(reason) = report["stopped"].as_str().filter(|_| !is_sample) {
        return Err(Failure::input(format!(
            "{name} is the report of a run that stopped early ({reason}); save one of a whole run"
        )));
    }
    let word = |key: &str| report[key].as_str().unwrap_or("?").to_owned();
    Ok(Side {
        name: format!(
            "{} on {}, saved in {name}{}",
            word("scenario"),
            word("gpu"),
            if is_sample { ", a sample" } else { "" }
        ),
        // Absent with `--no-lines`, and in a report of another version.
        lines: Lines::deserialize(&report["lines"]).ok(),
        report,
    })
}

/// Runs a scenario, and collects the costs of its lines.
fn simulate(request: &Request<'_>, ignore_target: bool) -> Result<Side, Failure> {
    let draft = Draft::find(request.name).map_err(Failure::input)?;
    let gpu = request.gpu.map(str::to_owned).or_else(|| draft.gpu());
    let gpu = gpu.unwrap_or_else(|| DEFAULT_GPU.to_owned());
    // The later value of a key wins: scenario, both sides, this side.
    let sets = [&draft.settings()[..], request.sets, request.own_sets].concat();
    let config = preset::load(&gpu, &sets)
        .map_err(|error| lab::gpu_failure(&draft, &gpu, &error))?
        .config;
    let scenario = draft.build(Some(&config)).map_err(Failure::input)?;
    let mut bench = lab::bench(&scenario, &config, ignore_target)?;
    let mut profile = Profile::default().without(bench.warm_ups());
    let options = Options {
        // Two sides run at once.
        threads: 1,
        max_cycles: scenario.max_cycles,
    };
    // Ctrl-C stops both sides, since they share the flag.
    let run = bench.run_with_events(options, &mut [&mut profile], &mut |_| !progress::is_stopped());
    if let Some((launch, error)) = &run.stopped {
        return Err(launch_error::stopped(&scenario, &bench, *launch, (error, "")));
    }
    let changed: String = sets.iter().map(|(key, value)| format!(", {key}={value}")).collect();
    Ok(Side {
        name: format!("{} on {}{changed}", scenario.name, config.name),
        report: serde_json::from_str(&json::report(&scenario.name, &run)).map_err(Failure::input)?,
        lines: Some(Lines::new(&scenario, bench.programs(), &profile)),
    })
}
