//! `warpwave run`: runs scenarios, prints what happened, checks what they expect and assert.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use warpwave::bench::{Bench, Options, Run};
use warpwave::lockstep;
use warpwave::report::{json, metrics, text};
use warpwave::scenario::{Assert, Scenario, npy};
use warpwave_components::gpu::LaunchError;
use warpwave_components::preset;
use warpwave_hw::error::SimError;

use super::args::{self, DEFAULT_GPU};
use super::failure::{Failure, WRONG};
use super::print;
use super::progress::{Line, catch_interrupt};
use super::safety;
use super::show::unknown_metric;
use super::trouble;
use super::views::{Views, make, write};
use super::wave::Wave;

/// Runs all scenarios that the names stand for; the greatest exit code of them is the command's.
pub fn run(args: &args::Run) -> Result<(), Failure> {
    let mut scenarios = named(&args.scenarios);
    if scenarios.len() > 1 && args.writes_files() {
        return Err(Failure::input(
            "--vcd, --fst, --hist, --html, --kanata, --perfetto, --json and --dump take one scenario at a time",
        ));
    }
    catch_interrupt();
    if scenarios.len() == 1 {
        let scenario = scenarios.remove(0)?;
        let mut bench = bench(&scenario, args)?;
        let result = run_one(&mut bench, &scenario, args);
        // The system takes the memory back sooner than a machine is taken apart.
        std::mem::forget(bench);
        return result;
    }
    let mut code = 0;
    for scenario in scenarios {
        let run = |scenario| run_one(&mut bench(&scenario, args)?, &scenario, args);
        if let Err(failure) = scenario.and_then(run) {
            failure.say();
            code = code.max(failure.code);
        }
        print("\n")?;
    }
    if code == 0 { Ok(()) } else { Err(Failure::said(code)) }
}

/// Every scenario that is named, by itself or by its folder, and every name that is wrong.
fn named(names: &[String]) -> Vec<Result<Scenario, Failure>> {
    let find = |name: &String| match Scenario::find_all(name) {
        Ok(scenarios) => scenarios.into_iter().map(Ok).collect(),
        Err(error) => vec![Err(Failure::input(error))],
    };
    names.iter().flat_map(find).collect()
}

/// The machine that is asked for, with a scenario's data.
fn bench<'a>(scenario: &'a Scenario, args: &args::Run) -> Result<Bench<'a>, Failure> {
    let gpu = args.gpu.as_deref().or(scenario.gpu.as_deref()).unwrap_or(DEFAULT_GPU);
    let config = preset::load(gpu, &args.set).map_err(Failure::input)?.config;
    for assert in &scenario.asserts {
        metrics::find(&assert.metric).ok_or_else(|| unknown_metric(&assert.metric))?;
    }
    Bench::new(scenario, config).map_err(|error| Failure::bench(scenario, &error))
}

fn run_one(bench: &mut Bench, scenario: &Scenario, args: &args::Run) -> Result<(), Failure> {
    let options = Options {
        threads: args.threads.into(),
        max_cycles: args.max_cycles,
    };
    let mut wave = Wave::begin(args, scenario, bench)?;
    let mut views = Views::begin(args, bench)?;
    let mut line = Line::new(!args.no_progress);
    let run = catch_unwind(AssertUnwindSafe(|| {
        bench.run(options, &mut |progress| {
            views.collect(progress.now);
            wave.collect(progress.now) && line.observe(&scenario.name, progress)
        })
    }));
    let run = match run {
        Ok(run) => run,
        Err(panic) => {
            wave.rescue(bench)?;
            resume_unwind(panic)
        }
    };
    line.clear();
    for launch in &run.launches {
        print(&launch.printed)?;
    }
    let mut summary = Vec::new();
    text::summary(&mut summary, &scenario.name, &run).expect("memory can be written");
    print(&String::from_utf8_lossy(&summary))?;
    let verdict = verdict(scenario, &run);
    if let Some(what) = went_wrong(&run, verdict.is_err()) {
        wave.write_flight(what)?;
    }
    wave.finish(run.stopped.is_none().then(|| bench.gpu().clock().now()))?;
    views.write(args, scenario, &run, bench.gpu().clock().now())?;
    write_files(args, scenario, bench, &run)?;
    let watched = args
        .checks()
        .map_or(Ok(()), |checks| safety::watch(scenario, &run, checks));
    if let Some((launch, error)) = &run.stopped {
        if let Err(races) = watched {
            races.say();
        }
        return Err(trouble::stopped(scenario, bench, *launch, error));
    }
    verdict.and_then(|text| print(&text)).and(watched)
}

/// What the record of the last cycles is to be kept for, in one word.
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

/// Says of every expectation and assertion whether it holds.
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

/// What an assertion asks for, in words.
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

/// Writes what `--json` and `--dump` ask for.
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
