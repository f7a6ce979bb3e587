//! A launch that did not come to its end: what happened, where, and what to do.

use std::fmt::Write;

use warpwave::bench::Bench;
use warpwave::scenario::Scenario;
use warpwave_components::gpu::LaunchError;
use warpwave_components::proto::launch::{Trap, TrapKind};
use warpwave_hw::error::SimError;
use warpwave_isa::program::{Assertion, Program};

use super::failure::{Failure, INTERRUPTED, STUCK, TRAP};

/// Most waits that are listed.
const MAX_WAITS: usize = 24;

/// The failure of a launch.
pub fn stopped(scenario: &Scenario, bench: &Bench<'_>, launch: usize, error: &LaunchError) -> Failure {
    let place = format!("{}: launch[{launch}]", scenario.name);
    match error {
        LaunchError::Trap(trap) => Failure {
            code: TRAP,
            text: format!("{place}: {}", trapped(scenario, bench, launch, trap)),
        },
        LaunchError::Sim(error) => Failure {
            code: STUCK,
            text: format!("{place}: {}", stuck(error)),
        },
        LaunchError::LocalMemory { bytes } => Failure::input(format!(
            "{place}: device memory has no room for {bytes} bytes of local memory; \
             use smaller buffers, or set memory_bytes"
        )),
        LaunchError::Cancelled(at) => Failure {
            code: INTERRUPTED,
            text: format!("{place}: interrupted in cycle {at}; the summary covers the launches before"),
        },
    }
}

fn trapped(scenario: &Scenario, bench: &Bench<'_>, launch: usize, trap: &Trap) -> String {
    let [bx, by, bz] = trap.block;
    let [tx, ty, tz] = trap.thread;
    let assertion = bench.programs()[launch].assertion(trap.pc);
    let mut out = assertion.map_or_else(|| trap.kind.to_string(), failed);
    if let Some(address) = trap.address {
        let _ = write!(out, ": {} bytes of {} memory at {address:#x}", trap.bytes, trap.space);
    }
    let _ = write!(out, "\n  by block ({bx}, {by}, {bz}), thread ({tx}, {ty}, {tz})");
    let place = place(scenario, &bench.programs()[launch], trap.pc);
    let advice = match assertion {
        Some(_) => "the assertion is the kernel's own: check its arguments, or look at what it asks for".to_owned(),
        None => advice(bench, trap),
    };
    let _ = write!(out, "\n  at instruction {}, {place}\n  {advice}", trap.pc);
    out
}

/// An assertion that did not hold.
fn failed(assertion: &Assertion) -> String {
    let Assertion {
        message,
        file,
        source_line,
        function,
        ..
    } = assertion;
    let mut out = format!("assertion failed: `{message}`");
    if !file.is_empty() {
        let _ = write!(out, "\n  at {file}:{source_line}");
    }
    if !function.is_empty() {
        let _ = write!(out, ", in `{function}`");
    }
    out
}

/// An instruction: its text, its line of PTX, and the lines of the source that it comes from, innermost first.
pub(super) fn place(scenario: &Scenario, program: &Program, pc: u32) -> String {
    let inst = &program.code()[pc as usize];
    let mut out = format!("{inst}\n  of {}:{}", scenario.ptx_path, inst.line);
    let line = (inst.line as usize).checked_sub(1);
    if let Some(text) = line.and_then(|n| scenario.ptx.lines().nth(n)) {
        let _ = write!(out, ": {}", text.trim());
    }
    for (depth, source) in program.sources().stack(inst.line).enumerate() {
        let _ = match depth {
            0 => write!(out, "\n  from {source}"),
            _ => write!(out, "\n  inlined at {source}"),
        };
    }
    out
}

/// What to look at.
fn advice(bench: &Bench<'_>, trap: &Trap) -> String {
    match (trap.kind, trap.address) {
        (TrapKind::Misaligned, _) => format!("the address must be a multiple of {}", trap.bytes),
        (TrapKind::OutOfBounds, Some(address)) if trap.space == "global" => nearest(bench, address),
        (TrapKind::OutOfBounds, _) => format!("enlarge the {} memory of the kernel, or check the index", trap.space),
        (TrapKind::Trapped, _) => "the program itself gave up here: an assertion of the kernel, most likely".to_owned(),
    }
}

/// The buffer next to an address.
fn nearest(bench: &Bench<'_>, address: u64) -> String {
    let distance = |first: u64, bytes: u64| {
        if address < first {
            first - address
        } else {
            address.saturating_sub(first + bytes - 1)
        }
    };
    let buffers = bench
        .data()
        .map(|(buffer, first)| (distance(first, buffer.layout.bytes()), first, buffer));
    let Some((_, first, buffer)) = buffers.min_by_key(|(distance, ..)| *distance) else {
        return "the scenario has no buffers; check the kernel's arguments".to_owned();
    };
    let end = first + buffer.layout.bytes();
    let place = match address {
        before if before < first => format!("{} bytes before its first", first - before),
        inside if inside < end => "across its end".to_owned(),
        after => format!("{} bytes behind its last", after - end + 1),
    };
    format!(
        "the nearest buffer is `{}`, {} bytes at {first:#x}: the access is {place}; check the index, or enlarge the buffer",
        buffer.name,
        buffer.layout.bytes()
    )
}

fn stuck(error: &SimError) -> String {
    let (mut out, waits, advice) = match error {
        SimError::Deadlock { at, waits } => (
            format!("deadlock: nothing can happen after cycle {at}"),
            waits,
            "check that all threads of a block reach the same barriers",
        ),
        SimError::CycleLimit { limit, waits } => (
            format!("the limit of cycles is reached in cycle {limit}"),
            waits,
            "raise --max-cycles, or check the kernel for a loop without an end",
        ),
    };
    for wait in waits.iter().take(MAX_WAITS) {
        let _ = write!(out, "\n  {wait}");
    }
    if waits.len() > MAX_WAITS {
        let _ = write!(out, "\n  and {} more", waits.len() - MAX_WAITS);
    }
    let _ = write!(out, "\n  {advice}");
    out
}
