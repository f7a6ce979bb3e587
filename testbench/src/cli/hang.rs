//! Runs a scenario that hangs once more, up to the hang. The second run finds the last writer of each polled word, and
//! records the SM that hangs.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use warpwave::bench::{Bench, Options, Run};
use warpwave::hang::{LastWrite, LastWrites};
use warpwave::scenario::Scenario;
use warpwave_components::config::GpuConfig;
use warpwave_components::gpu::{Hang, LaunchError};
use warpwave_hw::error::SimError;
use warpwave_hw::time::Cycle;

use super::args;
use super::failure::{Failure, tell};
use super::lab;
use super::progress::{is_stopped, presses};
use super::wave::{FLIGHT_SM, Wave, records_sm};

/// Cycles after a standstill is seen that the second run records. A store is in flight for fewer.
const AFTER: u64 = 10_000;

/// Most cycles of the second run, summed over the SMs: a longer run is not repeated.
const MAX_SM_CYCLES: u64 = 1 << 29;

/// Longest second run after Ctrl-C. Assumed: a batch system kills a process some 30 s after its signal.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the second run has found.
#[derive(Default)]
pub struct SecondRun {
    /// A line for each polled word: its name, and its last write.
    pub text: String,
    /// The flight recorder of the SM that hangs, if the first run has recorded another one.
    pub wave: Option<Wave>,
}

/// Repeats a run that hangs, if there is more to find. `record` is the default file of the flight recorder.
pub fn repeat(
    scenario: &Scenario,
    config: &GpuConfig,
    args: &args::Run,
    record: Option<PathBuf>,
    (bench, run): (&Bench<'_>, &Run),
) -> Result<SecondRun, Failure> {
    let (Some(hang), Some((launch, error))) = (bench.gpu().hang(), &run.stopped) else {
        return Ok(SecondRun::default());
    };
    let end = match error {
        LaunchError::Sim(SimError::Standstill { since, .. }) => *since + AFTER,
        _ => bench.gpu().latest().end,
    };
    let sm = unrecorded(hang, args, record.is_some());
    // The second run has no faults of `--fault`, so it would not repeat the hang.
    if sm.is_none() && hang.polled.is_empty() || !args.faults.is_empty() {
        return Ok(SecondRun::default());
    }
    if end.0.saturating_mul(config.n_sms().into()) > MAX_SM_CYCLES {
        let text = "\n  the run is too long to be repeated for the last writes".to_owned();
        return Ok(SecondRun { text, wave: None });
    }
    let is_interrupted = matches!(error, LaunchError::Cancelled(_));
    if is_interrupted {
        tell(&format!(
            "note: repeats the run for the last writes, at most {} s; Ctrl-C ends it",
            PATIENCE.as_secs()
        ));
    }
    // A new machine, since the first one was reset after the hang.
    let mut second = lab::bench(scenario, config, args.ignore_target)?;
    let mut wave = match sm {
        Some(sm) => Some(Wave::begin(args, scenario, record, &mut second, Some(sm), Vec::new())?),
        None => None,
    };
    let mut writes = LastWrites::of(&hang.polled);
    let patience = if is_interrupted { PATIENCE } else { Duration::MAX };
    if let Some(cut) = follow(&mut second, run, (end, patience), &mut writes, wave.as_mut()) {
        let text = format!("\n  {cut} stopped the repeated run before that cycle: the last writes are not known");
        return Ok(SecondRun { text, wave: None });
    }
    let text = writes.found().map(|(address, write)| {
        let name = name(bench, address);
        let written = write.map_or("no kernel has written it".to_owned(), |write| {
            say(bench, *launch, write)
        });
        format!("\n  memory at {address:#x}{name}: {written}")
    });
    Ok(SecondRun {
        text: text.collect(),
        wave,
    })
}

/// The first SM that hangs, if the flight recorder has recorded another one.
fn unrecorded<'h>(hang: &'h Hang, args: &args::Run, has_record: bool) -> Option<&'h str> {
    let is_on = has_record || args.flight.is_some();
    let first = hang.sms.first().filter(|_| is_on && records_sm(args));
    first
        .filter(|_| !hang.sms.iter().any(|sm| sm == FLIGHT_SM))
        .map(String::as_str)
}

/// Runs up to cycle `end`. Returns what stopped it before that cycle: Ctrl-C, or the end of `patience`.
fn follow(
    second: &mut Bench<'_>,
    run: &Run,
    (end, patience): (Cycle, Duration),
    writes: &mut LastWrites,
    mut wave: Option<&mut Wave>,
) -> Option<&'static str> {
    // A second press counts after an interrupt, any press after another hang.
    let (begin, before, mut cut) = (Instant::now(), u32::from(is_stopped()), None);
    // No limit: the closure below stops the run at `end`.
    let options = Options {
        threads: run.threads,
        max_cycles: None,
    };
    second.run_with_events(options, &mut [writes], &mut |progress| {
        let is_written = wave.as_mut().is_none_or(|wave| wave.collect(progress.now));
        cut = match () {
            () if progress.now >= end => None,
            () if presses() > before => Some("Ctrl-C"),
            () if begin.elapsed() > patience => Some("the limit of time"),
            () => None,
        };
        is_written && progress.now < end && cut.is_none()
    });
    cut
}

/// The buffer with an address, in brackets.
fn name(bench: &Bench<'_>, address: u64) -> String {
    let is_inside = |first: u64, bytes: u64| (first..first + bytes).contains(&address);
    let region = bench
        .regions()
        .iter()
        .find(|region| is_inside(region.first, region.bytes));
    region.map_or(String::new(), |region| match address - region.first {
        0 => format!(" (`{}`)", region.name),
        offset => format!(" (`{}` + {offset})", region.name),
    })
}

fn say(bench: &Bench<'_>, launch: usize, write: &LastWrite) -> String {
    let [x, y, z] = write.block;
    let of = match write.launch as usize == launch {
        true => String::new(),
        false => format!(" of launch[{}]", write.launch),
    };
    let program = &bench.programs()[write.launch as usize];
    let line = program.code()[write.pc as usize].line;
    format!(
        "block ({x}, {y}, {z}) warp {}{of} wrote it last, in cycle {} by line {line}",
        write.warp, write.at
    )
}
