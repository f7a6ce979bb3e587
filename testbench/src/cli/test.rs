//! `warpwave test`: runs scenarios as a test suite, each by `warpwave run` in its own process.

use std::ffi::OsStr;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::thread::available_parallelism;
use std::time::Instant;

use clap::Args;
use serde_json::Value as Json;
use warpwave::regression::{Baseline, Case, Failed, find, junit};
use warpwave::report::units::count;
use warpwave::scenario::Draft;

use super::args::{cycles, key_value};
use super::child;
use super::failure::{Failure, INTERRUPTED, WRONG};
use super::lab::{self, check_outputs, in_parallel};
use super::print;
use super::progress;
use super::write::{resolve, write};

#[derive(Args)]
pub struct Test {
    /// Folders, glob patterns such as 'kernels/**/*.toml', scenario files, or built-in scenarios and folders of them
    #[arg(required = true, value_name = "DIR|GLOB|FILE|NAME")]
    pub scenarios: Vec<String>,
    /// The GPU, instead of the scenarios' own: a built-in one or a TOML file
    #[arg(long, value_name = "NAME|FILE", help_heading = "Machine")]
    pub gpu: Option<String>,
    /// Change a number or a policy of the GPU, such as sm.lsu.queue_depth=8
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value, help_heading = "Machine")]
    pub set: Vec<(String, String)>,
    /// Run programs whose target or instructions are newer than the GPU
    #[arg(long, help_heading = "Run")]
    pub ignore_target: bool,
    /// Also run the sweep of each scenario that has one, and check its curves
    #[arg(long, help_heading = "Run")]
    pub sweeps: bool,
    /// Stop a scenario after N cycles, such as 1e6, summed over its launches
    #[arg(long, value_name = "N", value_parser = cycles, help_heading = "Run")]
    pub max_cycles: Option<u64>,
    /// Scenarios at the same time; as many as the host has cores if left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), allow_negative_numbers = true, help_heading = "Run")]
    pub jobs: Option<u16>,
    /// Print only failed scenarios
    #[arg(short, long, help_heading = "Results")]
    pub quiet: bool,
    /// Write the results as JUnit XML
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub junit: Option<PathBuf>,
    /// Fail if metrics moved away from the ones in this file, by more than its tolerances
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub baseline: Option<PathBuf>,
    /// Write the metrics of passed scenarios to the baseline
    #[arg(long, requires = "baseline", help_heading = "Results")]
    pub bless: bool,
}

/// The result of a scenario, and its report if it passed.
struct Ran {
    case: Case,
    report: Option<Json>,
}

/// Runs the suite. Exit code 1 if a scenario failed.
pub fn test(args: &Test) -> Result<(), Failure> {
    let scenarios = scenarios(&args.scenarios)?;
    let mut baseline = baseline(args)?;
    let mut inputs: Vec<PathBuf> = scenarios
        .iter()
        .flat_map(|name| lab::inputs(name, args.gpu.as_deref()))
        .collect();
    let outputs = [("--junit", &args.junit), ("--baseline", &args.baseline)];
    // Without --bless the baseline is only read.
    let is_written = |option: &str| args.bless || option != "--baseline";
    let outputs = outputs.map(|(option, path)| (option, path.as_deref().filter(|_| is_written(option))));
    inputs.extend(args.baseline.clone().filter(|_| !args.bless));
    check_outputs(&outputs, &inputs)?;
    progress::catch_interrupt();
    let begin = Instant::now();
    // Each scenario in a process: a crash ends that one alone.
    let ran = run_all(args, &scenarios, baseline.as_ref())?;
    let seconds = begin.elapsed().as_secs_f64();
    let cases: Vec<Case> = ran.iter().map(|ran| ran.case.clone()).collect();
    for case in &cases {
        if let Some(failed) = &case.failed {
            print(&format!(
                "\n{}: {}\n{}\n",
                case.name,
                failed.kind,
                failed.text.trim_end()
            ))?;
        }
    }
    let failed = cases.iter().filter(|case| case.failed.is_some()).count();
    if !args.quiet || failed > 0 {
        print(&format!(
            "\n{} passed, {failed} failed in {seconds:.1} s\n",
            cases.len() - failed
        ))?;
    }
    if let Some(path) = &args.junit {
        write(path, junit(&cases, seconds).as_bytes())?;
    }
    if let (Some(path), Some(baseline), true) = (&args.baseline, &mut baseline, args.bless) {
        // By the name of each case: an interrupted scenario has none, so the lists may differ.
        for Ran { case, report } in &ran {
            if let Some(report) = report {
                baseline.bless(&kept_name(&case.name, path), report);
            }
        }
        write(path, baseline.text().as_bytes())?;
    }
    // An interrupted scenario has no case.
    if cases.len() < scenarios.len() {
        let left = (scenarios.len() - cases.len()) as u64;
        let text = format!("interrupted: {} did not run", count(left, "scenario"));
        return Err(Failure {
            code: INTERRUPTED,
            text,
        });
    }
    match failed {
        0 => Ok(()),
        _ => Err(Failure::printed(WRONG)),
    }
}

/// The scenarios of all arguments, each once.
fn scenarios(names: &[String]) -> Result<Vec<String>, Failure> {
    let mut scenarios = Vec::new();
    for name in names {
        for scenario in find(name).map_err(Failure::input)? {
            if !scenarios.contains(&scenario) {
                scenarios.push(scenario);
            }
        }
    }
    Ok(scenarios)
}

/// The baseline. A file that --bless will create is empty.
fn baseline(args: &Test) -> Result<Option<Baseline>, Failure> {
    let Some(path) = &args.baseline else { return Ok(None) };
    if args.bless && !path.exists() {
        return Ok(Some(Baseline::default()));
    }
    let shown = path.display();
    let text = fs::read_to_string(path);
    let text = text.map_err(|error| Failure::input(format!("cannot read {shown}: {error}; create it with --bless")))?;
    let baseline = Baseline::parse(&text).map_err(|error| Failure::input(format!("{shown}: {error}")))?;
    Ok(Some(baseline))
}

/// The name of a scenario in a baseline: its path from the folder of the baseline, wherever the command runs.
fn kept_name(scenario: &str, baseline: &Path) -> String {
    let path = Path::new(scenario);
    if !path.is_file() {
        return scenario.to_owned();
    }
    let (path, baseline) = (resolve(path), resolve(baseline));
    let folder = baseline.parent().unwrap_or(Path::new(""));
    let kept = relative(&path, folder);
    // One baseline serves all systems.
    kept.display().to_string().replace('\\', "/")
}

/// The path from `folder` to `path`, both absolute. On another drive, the path itself.
fn relative(path: &Path, folder: &Path) -> PathBuf {
    let alike = path
        .components()
        .zip(folder.components())
        .take_while(|(a, b)| a == b)
        .count();
    if alike == 0 {
        return path.to_owned();
    }
    let up = folder.components().skip(alike).map(|_| Component::ParentDir);
    up.chain(path.components().skip(alike)).collect()
}

/// Runs all scenarios in parallel. Prints one line for each, in order. After Ctrl-C no scenario starts.
fn run_all(args: &Test, scenarios: &[String], baseline: Option<&Baseline>) -> Result<Vec<Ran>, Failure> {
    let reports =
        tempfile::tempdir().map_err(|error| Failure::input(format!("cannot create a temporary folder: {error}")))?;
    let jobs = args.jobs.and_then(|jobs| NonZeroUsize::new(jobs.into()));
    let jobs = jobs.unwrap_or_else(|| available_parallelism().unwrap_or(NonZeroUsize::MIN));
    let program = std::env::current_exe().map_err(Failure::input)?;
    let width = scenarios.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let done = Mutex::new((0, Vec::from_iter(scenarios.iter().map(|_| None))));
    in_parallel(scenarios.len(), jobs, |n| {
        let report = reports.path().join(format!("{n}.json"));
        let Some(ran) = run_one(args, &program, &scenarios[n], &report, baseline) else {
            return;
        };
        let mut done = done.lock().expect("no worker panicked");
        done.1[n] = Some(ran);
        // Lines appear in the order of the scenarios: a result waits for all before it.
        while let Some(Some(ran)) = done.1.get(done.0) {
            if is_shown(args, &ran.case) {
                // A closed pipe does not end the suite: the files of the results remain to be written.
                let _ = print(&line(&ran.case, width));
            }
            done.0 += 1;
        }
    });
    let (printed, ran) = done.into_inner().expect("no worker panicked");
    // After Ctrl-C, a result may wait for one that does not come.
    let late = ran.iter().skip(printed).flatten().map(|ran| &ran.case);
    late.filter(|case| is_shown(args, case))
        .for_each(|case| drop(print(&line(case, width))));
    Ok(ran.into_iter().flatten().collect())
}

/// With --quiet, only failed scenarios have a line.
fn is_shown(args: &Test, case: &Case) -> bool {
    !args.quiet || case.failed.is_some()
}

/// The line of a scenario.
fn line(case: &Case, width: usize) -> String {
    let word = if case.failed.is_some() { "FAILED" } else { "ok" };
    let cycles = case.cycles.map_or_else(|| "-".to_owned(), |cycles| cycles.to_string());
    format!(
        "{word:<7} {:<width$} {cycles:>12} cycles {:>8.2} s\n",
        case.name, case.seconds
    )
}

/// Runs one scenario. `None` if it was interrupted.
fn run_one(args: &Test, program: &Path, name: &str, report: &Path, baseline: Option<&Baseline>) -> Option<Ran> {
    let mut command = Command::new(program);
    command
        // Without the flight recorder: each failure would leave a file in the working folder.
        .args(["run", "--no-progress", "--no-flight", "--no-lines", "--json"].map(OsStr::new))
        .arg(report);
    pass_options(&mut command, args);
    let begin = Instant::now();
    // After `--`, a name that begins with a dash is no option.
    let mut ran = child::output(command.arg("--").arg(name));
    // A sweep is worth its time only if the scenario itself passes.
    if args.sweeps && ran.as_ref().is_ok_and(|ran| ran.status.success()) && has_sweep(name) {
        // A new store in the temporary folder, so that every point is computed.
        ran = sweep(args, program, name, &report.with_extension("store"));
    }
    let seconds = begin.elapsed().as_secs_f64();
    let json: Option<Json> = fs::read(report)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let cycles = json.as_ref().and_then(|report| report["totals"]["cycles"].as_u64());
    let failed = match ran {
        Err(error) => Some(failed("no process", &error.to_string())),
        Ok(ran) if ran.status.success() => baseline.and_then(|baseline| moved(args, baseline, name, json.as_ref())),
        // Ctrl-C has ended the child too. Its scenario has neither passed nor failed.
        Ok(ran) if ran.status.code() == Some(INTERRUPTED.into()) || progress::is_stopped() => return None,
        Ok(ran) => {
            let kind = ran
                .status
                .code()
                .map_or_else(|| ran.status.to_string(), |code| format!("exit code {code}"));
            Some(failed(&kind, &String::from_utf8_lossy(&ran.stderr)))
        }
    };
    let case = Case {
        name: name.to_owned(),
        cycles,
        seconds,
        failed,
    };
    let report = json.filter(|_| case.failed.is_none());
    Some(Ran { case, report })
}

/// Passes the options of the machine and its launches on to the command of a scenario.
fn pass_options(command: &mut Command, args: &Test) {
    if let Some(gpu) = &args.gpu {
        command.args(["--gpu", gpu]);
    }
    for (key, value) in &args.set {
        command.args(["--set", &format!("{key}={value}")]);
    }
    if let Some(cycles) = &args.max_cycles {
        command.args(["--max-cycles", &cycles.to_string()]);
    }
    if args.ignore_target {
        command.arg("--ignore-target");
    }
}

fn has_sweep(name: &str) -> bool {
    Draft::find(name).is_ok_and(|draft| draft.sweep().is_some())
}

/// Runs the sweep of a scenario, one point at a time: other scenarios run in parallel.
fn sweep(args: &Test, program: &Path, name: &str, store: &Path) -> std::io::Result<Output> {
    let mut command = Command::new(program);
    command
        .args(["sweep", "--no-progress", "--jobs", "1", "--store"].map(OsStr::new))
        .arg(store);
    pass_options(&mut command, args);
    child::output(command.arg("--").arg(name))
}

fn failed(kind: &str, text: &str) -> Failed {
    Failed {
        kind: kind.to_owned(),
        text: text.to_owned(),
    }
}

/// The failure if metrics moved away from the baseline. With --bless, a metric of an absent launch is the only failure.
fn moved(args: &Test, baseline: &Baseline, name: &str, report: Option<&Json>) -> Option<Failed> {
    let (path, report) = (args.baseline.as_deref()?, report?);
    // A baseline cannot have a metric of an absent launch, so --bless refuses it too.
    let absent = baseline.absent(report);
    if !absent.is_empty() {
        return Some(failed("no such launch", &absent.join("\n")));
    }
    if args.bless {
        return None;
    }
    let name = kept_name(name, path);
    let (unblessed, moved) = (baseline.unblessed(&name, report), baseline.check(&name, report));
    let kind = if moved.is_empty() {
        "no baseline"
    } else {
        "metrics moved"
    };
    let all = [moved, unblessed].concat();
    (!all.is_empty()).then(|| failed(kind, &all.join("\n")))
}
