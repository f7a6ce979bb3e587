//! `warpwave run`: runs scenarios, prints a summary, checks every `expect` and `assert`.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use warpwave::bench::{Bench, Options, Run};
use warpwave::lockstep;
use warpwave::report::{json, metrics, text};
use warpwave::scenario::{Assert, Draft, Scenario, npy};
use warpwave_components::config::GpuConfig;
use warpwave_components::gpu::LaunchError;
use warpwave_components::preset;
use warpwave_hw::error::SimError;
use warpwave_ptx::diag::render_all;

use super::args::{self, DEFAULT_GPU};
use super::failure::{Failure, WRONG, warn, worse};
use super::launch_error;
use super::log;
use super::outputs::Outputs;
use super::print;
use super::progress::{Line, catch_interrupt};
use super::report_files::{ReportFiles, sources};
use super::safety;
use super::show::unknown_metric;
use super::wave::{Wave, keeps_record};
use super::write::{make, write};

/// A scenario with its GPU.
struct Job {
    scenario: Scenario,
    config: GpuConfig,
    /// The input files of both.
    inputs: Vec<PathBuf>,
    /// Default file of the flight recorder.
    record: PathBuf,
}

/// Runs all scenarios of `args`. The exit code is the greatest one of all scenarios.
pub fn run(args: &args::Run) -> Result<(), Failure> {
    let mut jobs = jobs(args);
    if jobs.len() > 1 && args.writes_files() {
        return Err(Failure::input(
            "--vcd, --fst, --hist, --html, --kanata, --perfetto, --flight, --json and --dump take one scenario at a time",
        ));
    }
    catch_interrupt();
    if jobs.len() == 1 {
        let job = jobs.remove(0)?;
        let mut bench = bench(&job, args)?;
        let result = run_one(&mut bench, &job, args);
        // The process ends soon: the system frees the memory faster than a drop does.
        std::mem::forget(bench);
        return result;
    }
    let mut code = 0;
    for job in jobs {
        let run = |job| run_one(&mut bench(&job, args)?, &job, args);
        if let Err(failure) = job.and_then(run) {
            failure.print();
            code = code.max(failure.code);
        }
        print("\n")?;
    }
    if code == 0 { Ok(()) } else { Err(Failure::printed(code)) }
}

/// The scenarios of `args`, given by name or folder. A wrong name is an error in its place.
fn jobs(args: &args::Run) -> Vec<Result<Job, Failure>> {
    let find = |name: &String| match Draft::find_all(name) {
        Ok(drafts) => drafts.into_iter().map(|draft| job(draft, args)).collect(),
        Err(error) => vec![Err(Failure::input(error))],
    };
    let mut jobs: Vec<_> = args.scenarios.iter().flat_map(find).collect();
    let mut seen = BTreeMap::new();
    for job in jobs.iter_mut().flatten() {
        let n: &mut u32 = seen.entry(job.scenario.name.clone()).or_default();
        *n += 1;
        // Scenarios with one name must not overwrite each other's flight recorder.
        if *n > 1 {
            job.record = format!("{}.{n}.flight.vcd", job.scenario.name).into();
        }
    }
    jobs
}

/// Loads the GPU, then the scenario's data. The data must fit the GPU's memory.
fn job(draft: Draft, args: &args::Run) -> Result<Job, Failure> {
    let draft = draft.with_constants(&args.constants).map_err(Failure::input)?;
    let gpu = args.gpu.clone().or_else(|| draft.gpu());
    let preset = preset::load(gpu.as_deref().unwrap_or(DEFAULT_GPU), &args.set).map_err(Failure::input)?;
    let inputs = [draft.files(), preset.files].concat();
    let scenario = draft.build(Some(&preset.config)).map_err(Failure::input)?;
    for assert in &scenario.asserts {
        metrics::find(&assert.metric).ok_or_else(|| unknown_metric(&assert.metric))?;
    }
    Ok(Job {
        record: format!("{}.flight.vcd", scenario.name).into(),
        scenario,
        config: preset.config,
        inputs,
    })
}

/// Builds the machine with the scenario's data.
fn bench<'j>(job: &'j Job, args: &args::Run) -> Result<Bench<'j>, Failure> {
    let (scenario, config) = (&job.scenario, &job.config);
    let bench = Bench::new(scenario, config.clone()).map_err(|error| Failure::bench(scenario, &error))?;
    if !args.ignore_target && !bench.unmet_requirements().is_empty() {
        let findings = render_all(bench.unmet_requirements(), &scenario.ptx_path, &scenario.ptx);
        return Err(Failure::input(format!(
            "{}: the program is too new for {}; choose another --gpu, or run it with --ignore-target\n{findings}",
            scenario.name, config.name
        )));
    }
    Ok(bench)
}

/// The default file of the flight recorder. `None` if an option names or disables it, or if it would overwrite an input or output.
fn record(file: &Path, args: &args::Run, outputs: &Outputs, inputs: &[PathBuf]) -> Option<PathBuf> {
    if !keeps_record(args) {
        return None;
    }
    let conflict = Outputs::of_record(file).conflict(outputs, inputs);
    if let Some(conflict) = &conflict {
        warn(&format!(
            "the last cycles are not recorded: {conflict}; name another file with --flight"
        ));
    }
    conflict.is_none().then(|| file.to_owned())
}

fn run_one(bench: &mut Bench, job: &Job, args: &args::Run) -> Result<(), Failure> {
    let scenario = &job.scenario;
    let outputs = Outputs::of(args, bench.data().map(|(buffer, _)| buffer.name.as_str()));
    let inputs = [job.inputs.clone(), sources(args, bench)].concat();
    outputs.check(&inputs)?;
    outputs.try_all()?;
    let record = record(&job.record, args, &outputs, &inputs);
    let mut wave = Wave::begin(args, scenario, record, bench)?;
    let mut reports = ReportFiles::begin(args, bench)?;
    let run = simulate(bench, scenario, args, &mut wave, &mut reports);
    for launch in &run.launches {
        print(&launch.printed)?;
    }
    let mut summary = Vec::new();
    text::summary(&mut summary, &scenario.name, &run).expect("memory can be written");
    print(&String::from_utf8_lossy(&summary))?;
    let verdict = verdict(scenario, &run);
    let flight = went_wrong(&run, verdict.is_err()).map_or(Ok(()), |what| wave.write_flight(what));
    // A write error has cut the run short: its verdict would say nothing about the kernel.
    let is_cut = wave.has_failed();
    let now = bench.gpu().clock().now();
    let waveform = wave.finish(run.stopped.is_none().then_some(now));
    let report_files = reports.write(args, scenario, &run, now);
    let files = write_files(args, scenario, bench, &run);
    let written = [flight, waveform, report_files, files].into_iter().fold(Ok(()), worse);
    if is_cut {
        return written;
    }
    let checked = args
        .checks()
        .map_or(Ok(()), |checks| safety::check(scenario, &run, checks));
    let ended = match &run.stopped {
        Some((launch, error)) => worse(checked, Err(launch_error::stopped(scenario, bench, *launch, error))),
        None => verdict.and_then(|text| print(&text)).and(checked),
    };
    worse(written, ended)
}

/// Runs all launches with waveforms, report collectors and progress line.
fn simulate(
    bench: &mut Bench,
    scenario: &Scenario,
    args: &args::Run,
    wave: &mut Wave,
    reports: &mut ReportFiles,
) -> Run {
    let options = Options {
        threads: args.threads.into(),
        max_cycles: args.max_cycles,
    };
    // Log lines and the progress line would mix on the terminal.
    let mut line = Line::new(!args.no_progress && !log::is_on());
    let log = log::hold();
    // A broken invariant panics. The last cycles before it are worth a waveform.
    let run = catch_unwind(AssertUnwindSafe(|| {
        bench.run(options, &mut |progress| {
            log.release(progress.now);
            reports.collect(progress.now);
            wave.collect(progress.now) && line.observe(&scenario.name, progress)
        })
    }));
    drop(log);
    line.clear();
    run.unwrap_or_else(|panic| {
        wave.rescue(bench);
        resume_unwind(panic)
    })
}

/// The reason, in one word, for writing the flight recorder. `None` if the run succeeded.
fn went_wrong(run: &Run, is_wrong: bool) -> Option<&'static str> {
    match &run.stopped {
        Some((_, LaunchError::Trap(_))) => Some("trap"),
        Some((_, LaunchError::Sim(SimError::Deadlock { .. }))) => Some("deadlock"),
        Some((_, LaunchError::Sim(SimError::CycleLimit { .. }))) => Some("cycle_limit"),
        Some((_, LaunchError::Cancelled(_))) => Some("interrupt"),
        Some((_, LaunchError::LocalMemory { .. } | LaunchError::TooLong { .. })) => None,
        None => is_wrong.then_some("failed_expectation"),
    }
}

/// Checks every `expect` and `assert`. Returns the verdict line.
fn verdict(scenario: &Scenario, run: &Run) -> Result<String, Failure> {
    let expected = scenario
        .buffers
        .iter()
        .chain(&scenario.globals)
        .filter(|buffer| buffer.expect.is_some())
        .count();
    let mut failures: Vec<String> = run
        .differences
        .iter()
        .map(|difference| format!("expect: {difference}"))
        .collect();
    for assert in &scenario.asserts {
        let metric = metrics::find(&assert.metric).ok_or_else(|| unknown_metric(&assert.metric))?;
        let (found, holds) = run.check(assert, &metric);
        if !holds {
            failures.push(format!("assert: {} is {found}, not {}", assert.metric, wanted(assert)));
        }
    }
    if failures.is_empty() {
        return Ok(match (expected, scenario.asserts.len()) {
            (0, 0) => "\nnothing was expected or asserted\n".to_owned(),
            (buffers, asserts) => format!("\nall held (buffers expected: {buffers}, assertions: {asserts})\n"),
        });
    }
    Err(Failure {
        code: WRONG,
        text: format!(
            "{}: {} did not hold\n  {}",
            scenario.name,
            failures.len(),
            failures.join("\n  ")
        ),
    })
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

/// Writes the files of `--json` and `--dump`.
fn write_files(args: &args::Run, scenario: &Scenario, bench: &Bench<'_>, run: &Run) -> Result<(), Failure> {
    if let Some(path) = &args.json {
        write(path, json::report(&scenario.name, run).as_bytes())?;
    }
    if let Some(folder) = &args.dump {
        make(folder)?;
        for (buffer, address) in bench.data() {
            let mut file = Vec::new();
            let bytes = lockstep::bytes_of(buffer, address, bench.gpu().storage());
            npy::write(&mut file, buffer.layout.dtype, &buffer.layout.shape, &bytes).expect("memory can be written");
            write(&folder.join(format!("{}.npy", buffer.name)), &file)?;
        }
    }
    Ok(())
}
