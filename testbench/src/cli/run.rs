//! `warpwave run`: runs scenarios, prints a summary, checks every `expect` and `assert`.

use std::fmt::Write;
use std::panic::{self, AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use warpwave::bench::{Bench, Options, Run, Sampled, StopReason};
use warpwave::fault::LinkFault;
use warpwave::lockstep;
use warpwave::report::metrics::Value;
use warpwave::report::units::count;
use warpwave::report::{csv, text};
use warpwave::scenario::{OtherRun, Scenario, npy};
use warpwave::verdict;
use warpwave_components::gpu::LaunchError;
use warpwave_components::preset;
use warpwave_hw::error::SimError;
use warpwave_hw::time::Cycle;

use super::args;
use super::check::endless;
use super::failure::{Failure, INTERRUPTED, UNMET, WRONG, warn, worse};
use super::hang;
use super::jobs::{Job, jobs};
use super::lab;
use super::launch_error;
use super::log;
use super::outputs::Outputs;
use super::plan;
use super::print;
use super::progress::{Line, catch_interrupt, is_stopped, may_search};
use super::report_files::{ReportFiles, sources};
use super::safety;
use super::several;
use super::transaction;
use super::wave::{Wave, keeps_record};
use super::write::{make, write};

/// Runs all scenarios of `args`. The exit code is the greatest one of all scenarios.
pub fn run(args: &args::Run) -> Result<(), Failure> {
    let mut jobs = jobs(args);
    catch_interrupt();
    if jobs.len() == 1 {
        let (_, job) = jobs.remove(0);
        let job = job?;
        let result = bench(&job, args).and_then(|mut bench| {
            let result = run_one(&mut bench, &job, args);
            // The process ends soon: the system frees the memory faster than a drop does.
            std::mem::forget(bench);
            result
        });
        return as_expected(&job.scenario, result, args);
    }
    let mut ended = Vec::new();
    for (name, job) in jobs {
        let run = |job: Job| {
            let args = several::options(args, &job.key, &job.path);
            let result = bench(&job, &args).and_then(|mut bench| run_one(&mut bench, &job, &args));
            as_expected(&job.scenario, result, &args)
        };
        let result = job.and_then(run);
        ended.push((name, result.as_ref().map_or_else(|failure| failure.code, |()| 0)));
        if let Err(failure) = result {
            failure.print();
        }
        say(args, "\n")?;
    }
    say(args, &several::summary(&ended))?;
    match ended.iter().map(|(_, code)| *code).max() {
        Some(code) if code != 0 => Err(Failure::printed(code)),
        _ => Ok(()),
    }
}

/// Prints a part of the report, unless `--quiet`.
fn say(args: &args::Run, text: &str) -> Result<(), Failure> {
    if args.quiet { Ok(()) } else { print(text) }
}

/// Compares the end of a run with the failure that its scenario expects.
fn as_expected(scenario: &Scenario, result: Result<(), Failure>, args: &args::Run) -> Result<(), Failure> {
    let Some(expected) = &scenario.expect_failure else {
        return result;
    };
    // A sample with an end may stop before the failure.
    let has_end = args.sample.as_ref().is_some_and(|sample| sample.end != u64::MAX);
    if has_end && result.is_ok() {
        return result;
    }
    let what = match &expected.message[..] {
        "" => format!("exit code {}", expected.exit),
        message => format!("exit code {} and `{message}`", expected.exit),
    };
    match result {
        Err(failure) if failure.code == expected.exit && failure.text.contains(&expected.message) => {
            say(args, &format!("\n{}: failed as expected, with {what}\n", scenario.name))
        }
        Err(failure) if failure.code == INTERRUPTED => Err(failure),
        Err(failure) => Err(Failure {
            code: WRONG,
            text: format!(
                "{}: a failure with {what} was expected, not exit code {}\n{}",
                scenario.name, failure.code, failure.text
            ),
        }),
        Ok(()) => Err(Failure {
            code: WRONG,
            text: format!(
                "{}: a failure with {what} was expected, but the run did not fail",
                scenario.name
            ),
        }),
    }
}

/// Builds the machine with the scenario's data.
fn bench<'j>(job: &'j Job, args: &args::Run) -> Result<Bench<'j>, Failure> {
    lab::bench(&job.scenario, &job.config, args.ignore_target)
}

/// The default file of the flight recorder. `None` if an option names or disables it, or if it would overwrite an input or output.
fn record(job: &Job, args: &args::Run, outputs: &Outputs, inputs: &[PathBuf]) -> Option<PathBuf> {
    let file = &PathBuf::from(format!("{}.flight.vcd", job.key));
    // An expected failure needs no record.
    if !keeps_record(args) || job.scenario.expect_failure.is_some() {
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
    if args.plan.is_some() {
        plan::check(scenario)?;
    }
    let record = record(job, args, &outputs, &inputs);
    warn_of_endless_loops(bench, scenario);
    if options(scenario, args).max_cycles.is_none() {
        warn_of_endless_grids(bench, scenario);
    }
    inject(bench, args)?;
    bench.gpu_mut().explain_cancel(may_search);
    if let Some(sample) = &args.sample {
        bench.sample(Cycle(sample.start)..Cycle(sample.end));
    }
    if args.has_check(args::Check::Invariants) {
        bench.gpu_mut().check_invariants();
    }
    let transaction = transaction::find(args, scenario, &job.config, options(scenario, args))?;
    let mut wave = Wave::begin(args, scenario, record.clone(), bench, None, transaction)?;
    let mut reports = ReportFiles::begin(args, bench)?;
    let mut run = simulate(bench, scenario, args, &mut wave, &mut reports);
    if let (Some(Sampled { first, end }), None) = (run.sample, &run.stopped)
        && end <= first
    {
        return Err(Failure::input(format!(
            "{}: --sample begins in cycle {first}, but the last launch ended in cycle {end}",
            scenario.name
        )));
    }
    check_asserts(job, args, &mut run);
    for launch in &run.launches {
        print(&launch.printed)?;
    }
    let mut summary = Vec::new();
    text::summary(&mut summary, &scenario.name, &run).expect("memory can be written");
    say(args, &String::from_utf8_lossy(&summary))?;
    say(args, &asserted(&run))?;
    let verdict = verdict(scenario, &run);
    let mut second = hang::repeat(scenario, &job.config, args, record, (bench, &run))?;
    let flight = second.wave.as_mut().unwrap_or(&mut wave);
    let flight = went_wrong(&run, verdict.is_err()).map_or(Ok(()), |what| flight.write_flight(what));
    // A write error has cut the run short: its verdict would say nothing about the kernel.
    let is_cut = wave.has_failed();
    let now = bench.gpu().clock().now();
    let waveform = wave.finish(run.stopped.is_none().then_some(now));
    let report_files = reports.write(args, scenario, &run);
    let files = write_files(args, scenario, bench, &run);
    let written = [flight, waveform, report_files, files].into_iter().fold(Ok(()), worse);
    if is_cut {
        return written;
    }
    if run.stopped.is_none() {
        say(args, &faults_acted(bench, args)?)?;
    }
    let checked = args
        .checks()
        .map_or(Ok(()), |checks| safety::check(scenario, &run, (checks, args.quiet)));
    let ended = match &run.stopped {
        Some((_, LaunchError::Sampled(end))) => say(args, &unchecked(scenario, *end)).and(checked),
        Some((launch, error)) => worse(
            checked,
            Err(launch_error::stopped(scenario, bench, *launch, (error, &second.text))),
        ),
        None => verdict
            .and_then(|text| say(args, &text))
            .and_then(|()| say(args, unasserted(scenario, &run)))
            .and(checked),
    };
    worse(written, ended)
}

/// Warns of each branch to itself in a kernel that is launched.
fn warn_of_endless_loops(bench: &Bench, scenario: &Scenario) {
    for (line, why) in endless::branches(bench.programs().iter().map(Arc::as_ref)) {
        let (path, line) = scenario.ptx_place(line);
        warn(&format!("{path}:{line}: {why}"));
    }
}

/// CTAs that a fast host simulates in a second, each with an empty kernel. Assumed, not measured.
const CTAS_PER_SECOND: u64 = 100_000;

/// Warns of a launch with more CTAs than the host can simulate in a day.
fn warn_of_endless_grids(bench: &Bench, scenario: &Scenario) {
    const DAY: u64 = 24 * 60 * 60;
    for (launch, grid) in bench.grids().iter().enumerate() {
        let days = grid.ctas() / CTAS_PER_SECOND / DAY;
        let time = match days {
            0 => continue,
            1..731 => count(days, "day"),
            days => count(days / 365, "year"),
        };
        warn(&format!(
            "{}: launch[{launch}] has {}: even at {CTAS_PER_SECOND} blocks a second the run takes {time}; \
             end it with --max-cycles, or launch a smaller grid",
            scenario.name,
            count(grid.ctas(), "block")
        ));
    }
}

/// Injects the faults of `--fault`.
fn inject(bench: &mut Bench, args: &args::Run) -> Result<(), Failure> {
    for LinkFault { link, fault } in &args.faults {
        bench.gpu_mut().inject(link, *fault).map_err(Failure::input)?;
    }
    if !args.faults.is_empty() {
        // A broken invariant is part of the report.
        panic::set_hook(Box::new(|_| {}));
    }
    Ok(())
}

/// A line per fault of a run that ended well. A fault that did not act is an error: the run has shown nothing.
fn faults_acted(bench: &Bench, args: &args::Run) -> Result<String, Failure> {
    let mut out = String::new();
    for (LinkFault { link, .. }, acted) in args.faults.iter().zip(bench.gpu().faults_acted()) {
        let Some(at) = acted else {
            return Err(Failure::input(format!(
                "the fault of {link} did not act: the link carried no message in its time, or never had room for two; \
                 choose another link or an earlier cycle"
            )));
        };
        let _ = write!(
            out,
            "\n{link}: the fault acted in cycle {at}, and every message arrived once, in order\n"
        );
    }
    Ok(out)
}

/// The options of a run. `--max-cycles` wins over the scenario.
fn options(scenario: &Scenario, args: &args::Run) -> Options {
    // The report of a broken invariant needs one thread. Results do not depend on the number.
    let threads = if args.faults.is_empty() { args.threads } else { 1 };
    Options {
        threads: threads.into(),
        max_cycles: args.max_cycles.or(scenario.max_cycles),
    }
}

/// Runs all launches with waveforms, report collectors and progress line.
fn simulate(
    bench: &mut Bench,
    scenario: &Scenario,
    args: &args::Run,
    wave: &mut Wave,
    reports: &mut ReportFiles,
) -> Run {
    let options = options(scenario, args);
    // Log lines and the progress line would mix on the terminal.
    let mut line = Line::new(!args.no_progress && !args.quiet && !log::is_on());
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
        Some((_, LaunchError::Sim(SimError::Standstill { .. }))) => Some("standstill"),
        Some((_, LaunchError::Sim(SimError::CycleLimit { .. }))) => Some("cycle_limit"),
        Some((_, LaunchError::Fault(_))) => Some("fault"),
        Some((_, LaunchError::Cancelled(_))) => Some("interrupt"),
        Some((_, LaunchError::Sampled(_) | LaunchError::LocalMemory { .. } | LaunchError::TooLong { .. })) => None,
        None => is_wrong.then_some("failed_expectation"),
    }
}

/// Checks every `assert`, unless the counters cover a part of the run.
fn check_asserts(job: &Job, args: &args::Run, run: &mut Run) {
    if run.stopped_by().is_some() {
        return;
    }
    let options = options(&job.scenario, args);
    let set = [&job.scenario.set[..], &args.set].concat();
    let is_stopped = || is_stopped();
    let mut other = |other: &OtherRun| {
        let run = verdict::run_other(other, &job.gpu, &set, options, &is_stopped);
        run.map_err(|error| error.to_string())
    };
    run.asserts = verdict::check(&job.scenario, run, &mut other);
}

/// The verdict: a line per assertion, and a line for all. A failure lists what did not hold.
fn verdict(scenario: &Scenario, run: &Run) -> Result<String, Failure> {
    let mut wrong: Vec<String> = run
        .differences
        .iter()
        .map(ToString::to_string)
        .chain(run.misprints.iter().cloned())
        .map(|difference| format!("expect: {difference}"))
        .collect();
    if let Some((launch, error)) = &run.reference {
        wrong.push(format!(
            "expect: the reference model stopped in launch {launch}: {error}"
        ));
    }
    let code = if wrong.is_empty() { UNMET } else { WRONG };
    let unmet = run.asserts.iter().filter(|assert| !assert.holds);
    let unmet: Vec<_> = unmet.map(|assert| format!("assert: {}", assert.values)).collect();
    let n = wrong.len() + unmet.len();
    let own = scenario.gpu.as_deref().filter(|own| preset::names().contains(own));
    let other = own.filter(|own| !unmet.is_empty() && *own != run.config.name);
    let note = other.map(|own| format!("the assertions are for {own}, and this run is on {}", run.config.name));
    wrong.extend(unmet.into_iter().chain(note));
    if !wrong.is_empty() {
        return Err(Failure {
            code,
            text: format!("{}: {n} did not hold\n  {}", scenario.name, wrong.join("\n  ")),
        });
    }
    Ok(match (scenario.expectations(), run.asserts.len()) {
        (0, 0) => "\nnothing was expected or asserted\n".to_owned(),
        (buffers, asserts) => format!("\nall held (buffers expected: {buffers}, assertions: {asserts})\n"),
    })
}

/// The verdict of a run that stopped at the end of its sample.
fn unchecked(scenario: &Scenario, end: Cycle) -> String {
    format!(
        "\n{}: stopped on purpose before cycle {end}: expectations and assertions are not checked\n",
        scenario.name
    )
}

/// A line for assertions that are not checked, because a sample leaves out cycles.
fn unasserted(scenario: &Scenario, run: &Run) -> &'static str {
    let has_asserts = !scenario.asserts.is_empty() || !scenario.comparisons.is_empty();
    match run.stopped_by() {
        Some(StopReason::Sampled) if has_asserts => "assertions are not checked: the sample leaves out cycles\n",
        _ => "",
    }
}

/// One line per assertion: whether it holds, its text, and the values.
fn asserted(run: &Run) -> String {
    let mut out = String::new();
    for assert in &run.asserts {
        let word = if assert.holds { "held" } else { "failed" };
        let value = assert
            .left
            .map_or("no value".to_owned(), |left| Value::Number(left).to_string());
        let right = assert
            .right
            .map_or(String::new(), |right| format!(" and {}", Value::Number(right)));
        let _ = write!(out, "\n{word:<7} {}: {value}{right}", assert.that);
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// Writes the files of `--csv`, `--dump` and `--plan`.
fn write_files(args: &args::Run, scenario: &Scenario, bench: &Bench<'_>, run: &Run) -> Result<(), Failure> {
    if let Some(path) = &args.csv {
        write(path, csv::launches(&scenario.name, run).as_bytes())?;
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
    if let Some(folder) = &args.plan {
        plan::write(folder, scenario, bench)?;
    }
    Ok(())
}
