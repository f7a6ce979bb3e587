//! `--check`: runs the launches on the reference model with the race detector, and reports its findings.

use std::fmt::Write;

use warpwave::bench::Run;
use warpwave::lockstep::race_cycles::race_cycles;
use warpwave::lockstep::{self, CheckedLaunch};
use warpwave::reference::{Access, Checks, Kind, Race, Unwritten};
use warpwave::scenario::Scenario;
use warpwave_hw::time::Cycle;
use warpwave_isa::program::Program;
use warpwave_isa::space::Space;

use super::failure::{Failure, WRONG, warn};
use super::launch_error;
use super::print;

/// Limit of the warp instructions to check if the run stopped early.
const LIMIT: u64 = 1 << 24;

/// Issue cycles of the two accesses of a race, where the machine issues them.
type RaceCycles = [Option<Cycle>; 2];

/// Checks the launches of a run. A read of unwritten bytes is a warning, a race is a failure.
pub fn check(scenario: &Scenario, run: &Run, checks: Checks) -> Result<(), Failure> {
    // A program that hangs on the machine may hang here too.
    let limit = if run.stopped.is_some() { LIMIT } else { u64::MAX };
    let checked = lockstep::check_shared(scenario, &run.config, checks, limit);
    let checked = checked.map_err(|error| Failure::bench(scenario, &error))?;
    let cycles = cycles(scenario, run, &checked)?;
    let mut races = String::new();
    for (launch, CheckedLaunch { program, findings }) in checked.iter().enumerate() {
        let place = format!("{}: launch[{launch}]", scenario.name);
        for read in &findings.unwritten {
            warn(&format!("{place}: {}", unwritten(scenario, program, read)));
        }
        for (race, cycles) in findings.races.iter().zip(&cycles[launch]) {
            let _ = write!(races, "\n{place}: {}", raced(scenario, program, race, *cycles));
        }
    }
    if checked.iter().all(|launch| launch.findings.is_empty()) {
        print("\n--check found nothing\n")?;
    }
    match checked.iter().map(|launch| launch.findings.races.len()).sum::<usize>() {
        0 => Ok(()),
        n => Err(Failure {
            code: WRONG,
            text: format!(
                "{}: {n} pairs of instructions race in shared memory{races}",
                scenario.name
            ),
        }),
    }
}

/// The cycles of all races. Without a race the machine runs no second time.
fn cycles(scenario: &Scenario, run: &Run, checked: &[CheckedLaunch]) -> Result<Vec<Vec<RaceCycles>>, Failure> {
    if checked.iter().all(|launch| launch.findings.races.is_empty()) {
        return Ok(vec![Vec::new(); checked.len()]);
    }
    // A sample counts a part of the cycles. Its end is on the machine's clock.
    let ended: u64 = run.launches.iter().map(|launch| launch.cycles).sum();
    let ended = run.sample.map_or(ended, |sample| sample.end.max(ended));
    let cycles = race_cycles(scenario, &run.config, checked, Some(ended));
    cycles.map_err(|error| Failure::bench(scenario, &error))
}

fn raced(scenario: &Scenario, program: &Program, race: &Race, cycles: RaceCycles) -> String {
    let ([x, y, z], kernel) = (race.block, program.name());
    let word = word(program, race.address);
    let mut out = format!("race for {word}, block ({x}, {y}, {z}) of `{kernel}`");
    for (access, cycle) in [&race.first, &race.second].into_iter().zip(cycles) {
        let _ = write!(out, "\n  {}", accessed(scenario, program, access, cycle));
    }
    let help = match race.first.kind {
        Kind::Copy => "wait for the copy (cp.async.wait_group), then synchronize the threads with a barrier",
        _ => "put a barrier between the accesses (bar.sync; bar.warp.sync within a warp)",
    };
    let _ = write!(out, "\n  {} in all, without an order: {help}", cases(race.count));
    out
}

fn unwritten(scenario: &Scenario, program: &Program, read: &Unwritten) -> String {
    let [x, y, z] = read.block;
    let word = word(program, read.address);
    let access = accessed(scenario, program, &read.access, None);
    format!(
        "{word}, block ({x}, {y}, {z}), is read before all of it is written\n  {access}\n  {} in all; on a real \
         GPU its value is undefined",
        cases(read.count)
    )
}

fn cases(n: u64) -> String {
    if n == 1 {
        "1 case".to_owned()
    } else {
        format!("{n} cases")
    }
}

fn word(program: &Program, address: u32) -> String {
    match program.requirements().variable_at(Space::Shared, address) {
        Some((variable, 0)) => format!("the word at {address:#x} of shared memory (`{}`)", variable.name),
        Some((variable, at)) => format!("the word at {address:#x} of shared memory (`{}` + {at})", variable.name),
        None => format!("the word at {address:#x} of shared memory"),
    }
}

fn accessed(scenario: &Scenario, program: &Program, access: &Access, cycle: Option<Cycle>) -> String {
    let ([x, y, z], warp) = (access.thread, access.warp);
    let verb = match access.kind {
        Kind::Read => "read",
        Kind::Write => "written",
        Kind::Atomic => "changed by an atomic",
        Kind::Copy => "copied to",
    };
    let place = launch_error::place(scenario, program, access.pc).replace("\n  ", "\n    ");
    let cycle = cycle.map_or_else(String::new, |cycle| format!(" in cycle {cycle}"));
    format!("{verb} by thread ({x}, {y}, {z}) of warp {warp}{cycle} at {place}")
}
