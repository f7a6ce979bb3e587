//! The error text of a launch that stopped early: the cause, the place, and advice.

use std::fmt::Write;

use warpwave::bench::Bench;
use warpwave::host::Region;
use warpwave::report::units::count;
use warpwave::scenario::Scenario;
use warpwave_components::gpu::{Hang, LaunchError};
use warpwave_components::proto::bulk;
use warpwave_components::proto::launch::{Trap, TrapKind};
use warpwave_hw::error::SimError;
use warpwave_hw::time::Cycle;
use warpwave_isa::exec::mbarrier::Fault;
use warpwave_isa::program::{Assertion, Param, Program, Requirements, Variable};
use warpwave_isa::space::{Space, bank0};

use super::failure::{FAULT, Failure, INTERRUPTED, STUCK, TRAP};

/// Remedy for a failed `assert`.
const FAILED_ASSERT: &str = "an assert in the kernel failed: check the kernel's arguments, or its condition";

/// Limit of the lines of each list: reasons, PTX lines, components that wait.
const MAX_WAITS: usize = 16;

/// The failure for a launch that stopped early.
///
/// `writes` has a line for each polled word, from [`super::hang`].
pub fn stopped(
    scenario: &Scenario,
    bench: &Bench<'_>,
    launch: usize,
    (error, writes): (&LaunchError, &str),
) -> Failure {
    let place = format!("{}: launch[{launch}]", scenario.name);
    match error {
        LaunchError::Trap(trap) => Failure {
            code: TRAP,
            text: format!("{place}: {}", trapped(scenario, bench, launch, trap)),
        },
        LaunchError::Sim(error) => Failure {
            code: STUCK,
            text: format!("{place}: {}", stuck(scenario, bench.gpu().hang(), error, writes)),
        },
        LaunchError::LocalMemory { bytes } => Failure::input(format!(
            "{place}: device memory has no room for {bytes} bytes of local memory; \
             use smaller buffers, or set memory_bytes"
        )),
        LaunchError::TooLong { .. } => Failure::input(format!("{place}: {error}; split the kernel")),
        LaunchError::Sampled(_) => Failure::input(format!("{place}: {error}")),
        LaunchError::Fault(report) => Failure {
            code: FAULT,
            text: format!("{place}: {report}\n  the fault was injected with --fault; the results are not valid"),
        },
        LaunchError::Cancelled(at) => Failure {
            code: INTERRUPTED,
            text: format!("{place}: {}", interrupted(scenario, bench.gpu().hang(), *at, writes)),
        },
    }
}

fn trapped(scenario: &Scenario, bench: &Bench<'_>, launch: usize, trap: &Trap) -> String {
    let [bx, by, bz] = trap.block;
    let [tx, ty, tz] = trap.thread;
    let assertion = bench.programs()[launch].assertion(trap.pc);
    let mut out = assertion.map_or_else(|| trap.kind.to_string(), failed);
    // The other kinds of traps concern no access.
    if let Some(address) = trap.address.filter(|_| lacks_image(trap)) {
        out = format!("no {} has the handle {address:#x}", trap.space);
    } else if let Some(address) = trap.address {
        let _ = write!(out, ": {} bytes of {} memory at {address:#x}", trap.bytes, trap.space);
    }
    let _ = write!(out, "\n  by block ({bx}, {by}, {bz}), thread ({tx}, {ty}, {tz})");
    let place = place(scenario, &bench.programs()[launch], trap.pc);
    let advice = match assertion {
        Some(assertion) => assertion.remedy.unwrap_or(FAILED_ASSERT).to_owned(),
        None => advice(scenario, bench, launch, trap),
    };
    let _ = write!(out, "\n  at instruction {}, {place}\n  {advice}", trap.pc);
    out
}

/// The text for a failed `assert` in the kernel, or for a check that the compiler added.
fn failed(assertion: &Assertion) -> String {
    let Assertion {
        message,
        file,
        source_line,
        function,
        ..
    } = assertion;
    if assertion.remedy.is_some() {
        return message.clone();
    }
    let mut out = format!("assertion failed: `{message}`");
    if !file.is_empty() {
        let _ = write!(out, "\n  at {file}:{source_line}");
    }
    if !function.is_empty() {
        let _ = write!(out, ", in `{function}`");
    }
    out
}

/// The text of an instruction, its line of PTX, and its source lines from the innermost inlined call outwards.
pub(super) fn place(scenario: &Scenario, program: &Program, pc: u32) -> String {
    let inst = &program.code()[pc as usize];
    let (path, line) = scenario.ptx_place(inst.line);
    let mut out = format!("{inst}\n  of {path}:{line}");
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

/// True for an access by a handle that no texture or surface has. It has 0 bytes.
fn lacks_image(trap: &Trap) -> bool {
    let is_image = trap.space == "texture" || trap.space == "surface";
    is_image && trap.kind == TrapKind::OutOfBounds && trap.bytes == 0
}

/// The remedy for a trap.
fn advice(scenario: &Scenario, bench: &Bench<'_>, launch: usize, trap: &Trap) -> String {
    // A remedy of its own, since no address is at fault.
    if trap.kind == TrapKind::SplitExchange {
        return "all threads of the mask must execute the same vote, shfl, match or redux: move it out of the branch, or use a mask \
                with only the threads of the branch"
            .to_owned();
    }
    if trap.kind == TrapKind::Barrier {
        return "use a barrier from 0 to 15, and a thread count that is a multiple of 32; `bar.arrive` needs a count"
            .to_owned();
    }
    if trap.kind == TrapKind::MbarrierCount {
        return "the second operand of `mbarrier.init` is the number of arrivals of each phase, at least 1: pass the number of \
                threads that arrive"
            .to_owned();
    }
    if trap.kind == TrapKind::BulkSize {
        return format!(
            "the size is {} bytes; round it up, and pad both buffers to it",
            trap.bytes
        );
    }
    if let TrapKind::EndedCta(_) = trap.kind {
        return "synchronise the cluster before a block leaves: put a cluster barrier (barrier.cluster.arrive and \
                barrier.cluster.wait, or cluster.sync()) after the last access to its shared memory"
            .to_owned();
    }
    if let TrapKind::Mbarrier(fault) = trap.kind {
        return match fault {
            Fault::Arrivals { count: 0, .. } => {
                "no `mbarrier.init` has set its count, or every thread has dropped out".to_owned()
            }
            Fault::Arrivals { count: all, .. } => format!(
                "each phase waits for {}: check the count of `mbarrier.init` against the threads that arrive; a thread waits \
                 for the end of a phase before it arrives at the next one",
                count(all.into(), "arrival")
            ),
            Fault::Bytes { .. } => {
                "check the bytes of `expect_tx` against those of the copies that complete on the mbarrier".to_owned()
            }
        };
    }
    let Some(address) = trap.address else {
        // A grid barrier of cooperative groups traps without the workspace that these registers point to.
        return match scenario.ptx.contains("%envreg2") && !scenario.launches[launch].is_cooperative {
            true => "the kernel executed `trap`: a check in its code failed, or it has a grid barrier of cooperative groups; such a \
                     barrier traps unless the launch has `cooperative = true`"
                .to_owned(),
            false => "the kernel executed `trap`, most likely after a failed check in its code".to_owned(),
        };
    };
    if trap.space == bulk::MAP_SPACE {
        return "a copy of a tile takes its tensor map from a kernel parameter (`const __grid_constant__ CUtensorMap`), from constant or \
                from global memory, and there is none that fits the instruction at this address; pass the map as a parameter, not in \
                local memory; give it the rank of the copy and no interleaved layout, and an im2col copy an im2col map"
            .to_owned();
    }
    if lacks_image(trap) {
        return format!("pass a {} as an argument of the launch", trap.space);
    }
    let needs = bench.programs()[launch].requirements();
    if trap.space == "local" && trap.kind == TrapKind::OutOfBounds && needs.stack_bytes > 0 {
        return stack_is_full(needs);
    }
    let near = nearest(&regions(scenario, bench, launch, trap.space), trap.space, address);
    match trap.kind {
        TrapKind::Misaligned => format!("{near}; the address must be a multiple of {}", trap.bytes),
        _ => format!("{near}; check the index, or enlarge the memory"),
    }
}

/// The remedy for an access outside local memory in a kernel with a stack.
fn stack_is_full(needs: &Requirements) -> String {
    let Requirements {
        recursive, stack_bytes, ..
    } = needs;
    let names = recursive.join("`, `");
    let what = match recursive.len() {
        0 => "the kernel allocates memory on a stack (`alloca`)".to_owned(),
        1 => format!("the kernel has a recursive function (`{names}`) with a stack"),
        _ => format!("the kernel has recursive functions (`{names}`) with a stack"),
    };
    format!(
        "{what} of {stack_bytes} bytes for each thread, which may be used up: check that the recursion ends, and its depth; or check the \
         index of the access"
    )
}

/// The named regions of a state space, for a launch.
fn regions(scenario: &Scenario, bench: &Bench<'_>, launch: usize, space: &str) -> Vec<Region> {
    let needs = bench.programs()[launch].requirements();
    let dynamic = scenario.launches[launch].dynamic_shared_bytes;
    let region = |name: &str, first: u32, bytes: u32| Region {
        name: name.to_owned(),
        first: first.into(),
        bytes: bytes.into(),
    };
    let space = match space {
        "shared" => Space::Shared,
        "local" => Space::Local,
        "constant" => Space::Const,
        "parameter" => {
            let param = |param: &Param| region(&param.name, u32::from(bank0::PARAMS) + param.offset, param.bytes);
            return needs.params.iter().map(param).collect();
        }
        "global" => return bench.regions().to_vec(),
        _ => return Vec::new(),
    };
    let variables = needs.all_variables().filter(|variable| variable.space == space);
    let named = |variable: &Variable| match variable.bytes {
        // `extern .shared` has size 0 in the program. The launch gives its size.
        0 => region(&variable.name, variable.offset, dynamic),
        bytes => region(&variable.name, variable.offset, bytes),
    };
    variables.map(named).collect()
}

/// A sentence on the region nearest to an address: its name, its size and its distance.
fn nearest(regions: &[Region], space: &str, address: u64) -> String {
    // An address of the other spaces has 32 bits: a negative index wraps.
    let offset = |first: u64| match space {
        "global" => address.wrapping_sub(first) as i64,
        _ => i64::from((address as u32).wrapping_sub(first as u32) as i32),
    };
    let distance = |region: &&Region| match u64::try_from(offset(region.first)) {
        Err(_) => offset(region.first).unsigned_abs(),
        // 0 inside the region.
        Ok(at) => (at + 1).saturating_sub(region.bytes),
    };
    let Some(region) = regions.iter().min_by_key(distance) else {
        return format!("{space} memory has no named variable");
    };
    let Region { name, first, bytes } = region;
    let place = match u64::try_from(offset(*first)) {
        Err(_) => format!("{} before it", count(offset(*first).unsigned_abs(), "byte")),
        Ok(at) if at < *bytes => format!("{} from its start", count(at, "byte")),
        // The most frequent case: an index that is one too large.
        Ok(at) if at == *bytes => "right behind it".to_owned(),
        Ok(at) => format!("{} behind it", count(at - bytes, "byte")),
    };
    let what = if space == "global" { "buffer" } else { "variable" };
    format!("the nearest {what} is `{name}`, {bytes} bytes at {first:#x}: the access is {place}")
}

/// Adds lines, up to a limit.
fn list(out: &mut String, lines: &[String]) {
    for line in lines.iter().take(MAX_WAITS) {
        let _ = write!(out, "\n  {line}");
    }
    if lines.len() > MAX_WAITS {
        let _ = write!(out, "\n  and {} more", lines.len() - MAX_WAITS);
    }
}

/// The lines of the PTX text that the reasons of a hang name.
fn ptx_lines(scenario: &Scenario, hang: &Hang) -> Vec<String> {
    hang.lines.iter().filter_map(|&line| ptx_line(scenario, line)).collect()
}

/// A line of the PTX text, with its place.
fn ptx_line(scenario: &Scenario, line: u32) -> Option<String> {
    let text = scenario.ptx.lines().nth((line as usize).checked_sub(1)?)?;
    let (path, line) = scenario.ptx_place(line);
    Some(format!("{path}:{line}: {}", text.trim()))
}

/// The text for an interrupted launch: what its warps poll, the last writes, and the PTX lines.
fn interrupted(scenario: &Scenario, hang: Option<&Hang>, at: Cycle, writes: &str) -> String {
    let mut out = format!("interrupted in cycle {at}; the summary covers the cycles before it");
    let Some(hang) = hang else { return out };
    list(&mut out, &hang.reasons);
    out.push_str(writes);
    list(&mut out, &ptx_lines(scenario, hang));
    out
}

/// The text for a launch that hangs, or that reached the limit: reasons, last writes, PTX lines, components that wait, advice.
fn stuck(scenario: &Scenario, hang: Option<&Hang>, error: &SimError, writes: &str) -> String {
    let (mut out, waits, advice) = match error {
        SimError::Deadlock { at, waits } => (
            format!("deadlock: no component can make progress after cycle {at}"),
            waits,
            "check that every thread of a block reaches the same barriers",
        ),
        SimError::Standstill { since, waits } => (
            format!("standstill: the warps run, but nothing has changed since cycle {since}"),
            waits,
            "check which thread must change what the others wait for, and whether it can run",
        ),
        SimError::CycleLimit { limit, waits } => (
            format!("the cycle limit is reached in cycle {limit} of the clock, which begins before the first launch"),
            waits,
            "raise --max-cycles, or check the kernel for an endless loop",
        ),
    };
    let n_reasons = hang.map_or(0, |hang| hang.reasons.len());
    // The machine lists the reasons of a hang before the components that wait.
    let (reasons, waits) = waits.split_at(n_reasons);
    list(&mut out, reasons);
    out.push_str(writes);
    list(&mut out, &hang.map_or(Vec::new(), |hang| ptx_lines(scenario, hang)));
    list(&mut out, waits);
    let _ = write!(out, "\n  {advice}");
    out
}
