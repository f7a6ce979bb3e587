//! `--check`: runs the launches on the reference model with the race detector, and reports its findings.

use std::fmt::Write;

use warpwave::bench::Run;
use warpwave::host::Region;
use warpwave::lockstep::race_cycles::race_cycles;
use warpwave::lockstep::{self, CheckedLaunch};
use warpwave::reference::{
    Access, Checks, Findings, Group, Kind, Missing, Race, RaceSpace, ReferenceError, Until, Unwritten,
};
use warpwave::scenario::Scenario;
use warpwave_hw::time::Cycle;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::program::Program;
use warpwave_isa::space::Space;

use super::failure::{Failure, INTERRUPTED, WRONG, warn};
use super::launch_error;
use super::print;
use super::progress;

/// Least limit of the warp instructions to check.
const LIMIT: u64 = 1 << 24;

/// Warp instructions that the reference may execute for each one of the machine. Assumed: a reference that needs more polls for ever.
const POLLS: u64 = 64;

/// Issue cycles of the two accesses of a race, where the machine issues them.
type RaceCycles = [Option<Cycle>; 2];

/// Checks the launches of a run. A read of unwritten bytes is a warning, a race is a failure.
pub fn check(scenario: &Scenario, run: &Run, (checks, is_quiet): (Checks, bool)) -> Result<(), Failure> {
    // A program may hang here too: on the machine it stopped, or its warps run in another order here.
    let issued = run.totals.sum("scheduler", "inst_issued").unwrap_or(0);
    let until = Until {
        limit: issued.saturating_mul(POLLS).max(LIMIT),
        is_interrupted: progress::is_stopped,
    };
    let checked = lockstep::check_memory(scenario, &run.config, checks, until);
    let checked = checked.map_err(|error| Failure::bench(scenario, &error))?;
    if let Some(CheckedLaunch {
        ended: Some(ReferenceError::Interrupted),
        ..
    }) = checked.last()
    {
        let text = format!("{}: --check was interrupted", scenario.name);
        return Err(Failure {
            code: INTERRUPTED,
            text,
        });
    }
    let cycles = cycles(scenario, run, &checked)?;
    let mut races = String::new();
    for (launch, checked) in checked.iter().enumerate() {
        let CheckedLaunch { program, findings, .. } = checked;
        let place = format!("{}: launch[{launch}]", scenario.name);
        if let (None, Some(error @ ReferenceError::StepLimit { .. })) = (&run.stopped, &checked.ended) {
            warn(&format!(
                "{place}: --check ends early: {error}\n  the launch ends on the machine; the reference model runs its warps in another order, \
                 and polls; look for a wait that is missing"
            ));
        }
        if findings.unchecked > 0 {
            let n = findings.unchecked;
            let limit = "set a higher limit with --check-words";
            warn(&format!(
                "{place}: {n} accesses of global memory are not checked for races: the limit of words is reached\n  {limit}"
            ));
        }
        for read in &findings.unwritten {
            warn(&format!("{place}: {}", unwritten(scenario, program, read)));
        }
        for (race, cycles) in findings.races.iter().zip(&cycles[launch]) {
            let _ = write!(races, "\n{place}: {}", raced(scenario, checked, race, *cycles));
        }
    }
    let is_whole = checked.iter().all(|launch| launch.ended.is_none());
    if !is_quiet && is_whole && checked.iter().all(|launch| launch.findings.is_empty()) {
        print("\n--check found nothing\n")?;
    }
    match checked.iter().map(|launch| launch.findings.races.len()).sum::<usize>() {
        0 => Ok(()),
        n => Err(Failure {
            code: WRONG,
            text: format!("{}: {} in {} memory{races}", scenario.name, pairs(n), spaces(&checked)),
        }),
    }
}

fn pairs(n: usize) -> String {
    match n {
        1 => "1 pair of instructions races".to_owned(),
        n => format!("{n} pairs of instructions race"),
    }
}

/// The state spaces of all races.
fn spaces(checked: &[CheckedLaunch]) -> &'static str {
    let races = |findings: &Findings, space| findings.races.iter().any(|race| race.space() == space);
    let has = |space| checked.iter().any(|launch| races(&launch.findings, space));
    match (has(RaceSpace::Shared), has(RaceSpace::Global)) {
        (true, true) => "shared and global",
        (false, true) => "global",
        _ => "shared",
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

fn raced(scenario: &Scenario, checked: &CheckedLaunch, race: &Race, cycles: RaceCycles) -> String {
    let program = &checked.program;
    let kernel = program.name();
    let mut out = match race.owner {
        Some([x, y, z]) => {
            let word = word(program, race.address as u32);
            format!("race for {word}, block ({x}, {y}, {z}) of `{kernel}`")
        }
        None => format!("race for {} in `{kernel}`", global_word(&checked.regions, race.address)),
    };
    let pair = [&race.first, &race.second];
    // The owner of shared memory is named once if both threads are in it.
    let is_inside = pair.iter().all(|access| race.owner == Some(access.block));
    for (access, cycle) in pair.into_iter().zip(cycles) {
        let block = match is_inside {
            true => String::new(),
            false => of_block(access),
        };
        let _ = write!(out, "\n  {}", accessed(scenario, program, access, &block, cycle));
    }
    let help = help(race);
    let _ = write!(out, "\n  {} in all, without an order: {help}", cases(race.count));
    out
}

/// What is missing between the accesses of a race.
fn help(race: &Race) -> &'static str {
    match (race.space(), race.missing) {
        (_, Missing::Wait(Group::Copies)) => {
            "wait for the copy (cp.async.wait_group), then synchronize the threads with a barrier"
        }
        (_, Missing::Wait(Group::Bulk)) => {
            "wait for the bulk copy to read its source (cp.async.bulk.wait_group.read), then synchronize the threads with a barrier"
        }
        (_, Missing::Wait(Group::Products)) => {
            "wait for the product (wgmma.wait_group), then synchronize the threads with a barrier"
        }
        (_, Missing::ProxyFence) => {
            "the second access is asynchronous; put fence.proxy.async between the write and the barrier before that access"
        }
        (_, Missing::ClusterBarrier) if race.first.kind == Kind::End || race.second.kind == Kind::End => {
            "a block must not end before the last access to its shared memory; put a cluster barrier (barrier.cluster.arrive and \
             barrier.cluster.wait) before its end"
        }
        (_, Missing::ClusterBarrier) => {
            "put a cluster barrier between the accesses (barrier.cluster.arrive, without .relaxed, and barrier.cluster.wait)"
        }
        (RaceSpace::Shared, _) => "put a barrier between the accesses (bar.sync; bar.warp.sync within a warp)",
        (_, Missing::WarpBarrier) => "both threads are in one warp; put bar.warp.sync between the accesses",
        (_, Missing::Barrier) => "both threads are in one block; put bar.sync between the accesses",
        (_, Missing::AccessScope) => "the scope of an access excludes the other block; use .gpu in place of .cta",
        (_, Missing::FenceScope) => "the scope of a fence or flag excludes the other block; use .gpu in place of .cta",
        (_, Missing::Acquire) => {
            "the second thread reads a flag without an acquire; use ld.acquire.gpu, or fence.acq_rel.gpu after the read of the flag"
        }
        (_, Missing::Release) => {
            "the first thread writes a flag without a release; use st.release.gpu, or fence.acq_rel.gpu (__threadfence) before the \
             write of the flag"
        }
        (_, Missing::Synchronization) => {
            "nothing orders the two blocks; use atomics, a release and an acquire, or another launch"
        }
    }
}

/// A word of global memory, with the buffer or variable that contains it.
fn global_word(regions: &[Region], address: u64) -> String {
    let inside = |region: &&Region| (region.first..region.first + region.bytes).contains(&address);
    match regions.iter().find(inside) {
        Some(Region { name, first, .. }) if *first == address => {
            format!("the word at {address:#x} of global memory (`{name}`)")
        }
        Some(Region { name, first, .. }) => {
            format!(
                "the word at {address:#x} of global memory (`{name}` + {})",
                address - first
            )
        }
        None => format!("the word at {address:#x} of global memory"),
    }
}

fn unwritten(scenario: &Scenario, program: &Program, read: &Unwritten) -> String {
    let [x, y, z] = read.block;
    let word = word(program, read.address);
    let block = match read.access.block == read.block {
        true => String::new(),
        false => of_block(&read.access),
    };
    let access = accessed(scenario, program, &read.access, &block, None);
    format!(
        "{word}, block ({x}, {y}, {z}), is read before all of it is written\n  {access}\n  {} in all; on a real \
         GPU its value is undefined",
        cases(read.count)
    )
}

/// The lane and the block of an access.
fn of_block(access: &Access) -> String {
    let [x, y, z] = access.block;
    format!(", lane {}, of block ({x}, {y}, {z})", access.lane)
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

fn accessed(scenario: &Scenario, program: &Program, access: &Access, block: &str, cycle: Option<Cycle>) -> String {
    let ([x, y, z], warp) = (access.thread, access.warp);
    let is_test = program
        .code()
        .get(access.pc as usize)
        .is_some_and(|inst| inst.op == Opcode::Syncs);
    let verb = match access.kind {
        Kind::Atomic if is_test => "tested by a wait for an mbarrier, by",
        Kind::Read => "read by",
        Kind::Write => "written by",
        Kind::Atomic => "changed by an atomic by",
        Kind::Copy => "copied to by",
        Kind::End => "freed by the end of",
    };
    let place = launch_error::place(scenario, program, access.pc).replace("\n  ", "\n    ");
    let cycle = cycle.map_or_else(String::new, |cycle| format!(" in cycle {cycle}"));
    format!("{verb} thread ({x}, {y}, {z}) of warp {warp}{block}{cycle} at {place}")
}
