//! Faults of the kernel's code: spills, uncoalesced accesses, bank conflicts, divergence.

use warpwave_isa::inst::{Inst, Operand};
use warpwave_isa::opcode::Opcode;
use warpwave_isa::program::Program;
use warpwave_isa::space::Space;

use super::facts::{Facts, ratio};
use super::sites::{Place, Site};
use super::{BUSY, Cause};
use crate::report::units::{count, digits};

/// Bytes of a sector.
const SECTOR: u64 = 32;
/// Lanes of a warp.
const LANES: f64 = 32.0;
/// Most active lanes per instruction of a warp that diverges noticeably. Assumed.
const DIVERGED: f64 = 28.0;

/// States of warps that wait for global or local memory.
pub(super) const MEMORY: &[&str] = &["long_scoreboard", "lg_throttle", "drain"];
/// States of warps in which idle lanes cost nothing: the warp waits, whatever its number of active lanes.
const WAITS: &[&str] = &[
    "long_scoreboard",
    "lg_throttle",
    "drain",
    "barrier",
    "sleeping",
    "membar",
    "gmma",
];
/// States of warps that wait for shared memory, or for other warps that do.
const SHARED: &[&str] = &["short_scoreboard", "mio_throttle", "lg_throttle", "barrier"];

/// All faults found.
pub(super) fn all(facts: &Facts<'_>) -> Vec<Cause> {
    let global = facts.sites(["global_inst", "global_sectors", "global_lane_bytes"]);
    // The LSU's counters of global memory include local memory, which takes the same path.
    let (local, global): (Vec<_>, Vec<_>) = global
        .into_iter()
        .partition(|site| site.inst.mods.space == Space::Local);
    let found = [
        spills(facts, &local, &global),
        uncoalesced(facts, &global),
        conflicts(facts),
        contended_slices(facts, &global),
        divergence(facts),
    ];
    found.into_iter().flatten().collect()
}

fn sum(sites: &[Site], counter: usize) -> u64 {
    sites.iter().map(|site| site.counts[counter]).sum()
}

/// Bytes of the spill slots, which lie after the first `arrays` bytes of local memory.
fn spilled_bytes(program: &Program, arrays: u32) -> u32 {
    // A spill has a constant address. The call stack lies between arrays and slots, and its accesses have a base register.
    let is_spill = |inst: &&Inst| {
        let is_local = matches!(inst.op, Opcode::Ld | Opcode::St) && inst.mods.space == Space::Local;
        is_local && inst.src[0] == Operand::NONE && inst.mods.offset >= arrays as i32
    };
    let spills = || program.code().iter().filter(is_spill).map(|inst| inst.mods);
    let first = spills().map(|mods| mods.offset as u32).min();
    let end = spills().map(|mods| mods.offset as u32 + mods.access.total()).max();
    end.zip(first).map_or(0, |(end, first)| end - first)
}

/// Registers in local memory, arrays that are indexed by a variable, or the call stack.
fn spills(facts: &Facts<'_>, local: &[Site], global: &[Site]) -> Option<Cause> {
    let instructions = sum(local, 0);
    if instructions == 0 {
        return None;
    }
    let requirements = facts.launch.program.requirements();
    let arrays = requirements
        .all_variables()
        .filter(|variable| variable.space == Space::Local);
    let arrays = arrays
        .map(|variable| variable.offset + variable.bytes)
        .max()
        .unwrap_or(0);
    let spilled = spilled_bytes(&facts.launch.program, arrays);
    let sectors = sum(local, 1);
    let traffic = ratio(sectors, sectors + sum(global, 1));
    // Spills cost waits for memory, or issue slots: the larger share counts.
    let share = (traffic * facts.stalled(MEMORY)).max(ratio(instructions, facts.sum("scheduler", "inst_issued")));
    let (kind, text, advice) = match spilled {
        0 if requirements.local_bytes > arrays => (
            "local_memory",
            format!(
                "arrays and call stack in local memory: {} bytes a thread, {:.0} % of the sectors that the L1 serves",
                requirements.local_bytes,
                traffic * 100.0
            ),
            "turn recursion into loops, and index arrays by constants so that they stay in registers".to_owned(),
        ),
        0 => (
            "local_memory",
            format!(
                "arrays in local memory: {arrays} bytes a thread, {:.0} % of the sectors that the L1 serves",
                traffic * 100.0
            ),
            "index arrays by constants so that they stay in registers, or put them in shared memory".to_owned(),
        ),
        _ => (
            "spills",
            format!(
                "spilled registers: {spilled} bytes a thread in local memory, {:.0} % of the sectors that the L1 serves",
                traffic * 100.0
            ),
            format!(
                "allow more than {} registers a thread, or keep fewer values live",
                facts.launch.shape.registers
            ),
        ),
    };
    Some(Cause {
        kind,
        text,
        advice,
        at: None,
        share,
        states: MEMORY,
        is_fault: true,
    })
}

/// The least sectors of an access that moves as many bytes.
fn least_sectors([instructions, _, bytes]: [u64; 3]) -> u64 {
    // An instruction has at least one sector.
    bytes.div_ceil(SECTOR).max(instructions)
}

fn uncoalesced(facts: &Facts<'_>, global: &[Site]) -> Option<Cause> {
    let excess = |site: &Site| site.counts[1].saturating_sub(least_sectors(site.counts));
    // Atomics of a warp often go to scattered addresses by their nature.
    let moves = || global.iter().filter(|site| site.verb() != "atomic");
    let worst = moves().max_by_key(|site| excess(site))?;
    let all: u64 = moves().map(excess).sum();
    let share = ratio(all, sum(global, 1)) * facts.stalled(MEMORY);
    // A request is one warp instruction, as in the profiler's metrics.
    let [requests, sectors, bytes] = worst.counts;
    let least = (bytes as f64 / requests as f64 / SECTOR as f64).ceil().max(1.0);
    (excess(worst) > 0).then(|| Cause {
        kind: "uncoalesced",
        text: format!(
            "uncoalesced {} at {}: {} sectors a request where {least} would do",
            worst.verb(),
            worst.place,
            digits(ratio(sectors, requests))
        ),
        advice: "let neighbouring lanes access neighbouring addresses: swap the indices, change the layout, or go through shared memory"
            .to_owned(),
        at: Some(worst.place.clone()),
        share,
        states: MEMORY,
        is_fault: true,
    })
}

const BANK_ADVICE: &str =
    "pad each row of the tile by one element, or swizzle its columns, so that the lanes of a warp access 32 banks";
const ATOMIC_ADVICE: &str = "let fewer lanes update one word or bank: combine their values in registers or shared memory, or let one lane act for its warp";

fn conflicts(facts: &Facts<'_>) -> Option<Cause> {
    let sites = facts.sites(["shared_inst", "shared_passes", "shared_conflicts"]);
    let worst = sites.iter().max_by_key(|site| site.counts[2])?;
    let [instructions, passes, conflicts] = worst.counts;
    let waits = ratio(sum(&sites, 2), sum(&sites, 1)) * facts.stalled(SHARED);
    // The states have other reasons too: a barrier waits for any work, and MUFU is a short scoreboard. The passes bound what conflicts cost.
    let per_pass = u64::from(facts.config.sm.shared.conflict_latency_per_pass.max(1));
    let lost = ratio(sum(&sites, 2) * per_pass, facts.sum("cta", "active_cycles"));
    let share = waits.min(lost);
    // Passes with conflicts over passes without them.
    let ways = passes as f64 / passes.saturating_sub(conflicts).max(1) as f64;
    // Lanes with an atomic on one word take turns too, and padding cannot help.
    let (conflict, access, advice) = match worst.verb() {
        "atomic" => ("conflict", "an atomic", ATOMIC_ADVICE),
        "store" => ("bank conflict", "a store", BANK_ADVICE),
        "copy" => ("bank conflict", "a copy", BANK_ADVICE),
        _ => ("bank conflict", "a load", BANK_ADVICE),
    };
    (conflicts > 0).then(|| Cause {
        kind: "bank_conflict",
        text: format!(
            "{}-way {conflict} at {}: {} passes {access} where {} would do",
            digits(ways.round()),
            worst.place,
            digits(ratio(passes, instructions)),
            // An access with all lanes off takes no pass.
            digits(ratio(passes - conflicts, instructions).max(1.0))
        ),
        advice: advice.to_owned(),
        at: Some(worst.place.clone()),
        share,
        states: SHARED,
        is_fault: true,
    })
}

/// Atomics on global memory that keep a slice of the L2 busy.
fn contended_slices(facts: &Facts<'_>, global: &[Site]) -> Option<Cause> {
    let slices = facts.launch.counts.each("l2_slice", "atomic_cycles")?;
    let clocks = &facts.config.clocks;
    // The slices count cycles of their own clock.
    let elapsed = facts.launch.cycles as f64 * f64::from(clocks.l2_khz) / f64::from(clocks.core_khz);
    let used = |cycles: &u64| *cycles as f64 / elapsed * 100.0;
    let busiest = slices.iter().map(used).fold(0.0, f64::max);
    let n_busy = slices.iter().filter(|cycles| used(cycles) >= BUSY).count();
    let atomics = global.iter().filter(|site| site.verb() == "atomic");
    let worst = atomics.max_by_key(|site| site.counts[0])?;
    (n_busy > 0).then(|| Cause {
        kind: "atomics",
        text: format!(
            "atomics at {}: {n_busy} of {} are busy with them for up to {busiest:.0} % of the time",
            worst.place,
            count(slices.len() as u64, "L2 slice")
        ),
        advice: ATOMIC_ADVICE.to_owned(),
        at: Some(worst.place.clone()),
        share: busiest / 100.0,
        states: MEMORY,
        is_fault: true,
    })
}

/// Idle lanes: a divergent branch, an early return, or blocks with partial warps.
fn divergence(facts: &Facts<'_>) -> Option<Cause> {
    let lanes = facts.metric("smsp__thread_inst_executed_per_inst_executed.ratio");
    if lanes == 0.0 || lanes > DIVERGED {
        return None;
    }
    let share = (1.0 - lanes / LANES) * (1.0 - facts.stalled(WAITS));
    let fault = divergent_branch(facts, lanes)
        .or_else(|| early_return(facts, lanes))
        .unwrap_or_else(|| partial_warps(facts, lanes));
    Some(Cause {
        kind: fault.kind,
        text: fault.text,
        advice: fault.advice.to_owned(),
        at: fault.at,
        share,
        states: &["branch_resolving"],
        is_fault: true,
    })
}

/// Why lanes are idle.
struct IdleLanes {
    kind: &'static str,
    text: String,
    advice: &'static str,
    at: Option<Place>,
}

/// Lanes of a warp without a thread of the block. They are off whatever the code does.
fn absent_lanes(facts: &Facts<'_>) -> f64 {
    let shape = &facts.launch.shape;
    let warps = shape.threads.div_ceil(facts.config.limits.warp_size).max(1);
    LANES - f64::from(shape.threads) / f64::from(warps)
}

/// The instruction with the highest first counter, if the code causes most of the loss of lanes.
fn worst_site(facts: &Facts<'_>, counters: [&str; 3], lanes: f64) -> Option<Site> {
    let sites = facts.sites(counters);
    let is_at_fault = absent_lanes(facts) < (LANES - lanes) / 2.0;
    sites
        .into_iter()
        .max_by_key(|site| site.counts[0])
        .filter(|_| is_at_fault)
}

/// The lanes of a warp that are active, on average.
fn active(lanes: f64) -> String {
    let lanes = digits(lanes);
    let are = if lanes == "1" { "is" } else { "are" };
    format!("{lanes} of 32 lanes {are} active")
}

fn divergent_branch(facts: &Facts<'_>, lanes: f64) -> Option<IdleLanes> {
    let branch = worst_site(facts, ["branch_divergent", "branch_issues", "branch_issues"], lanes)?;
    Some(IdleLanes {
        kind: "divergence",
        text: format!(
            "divergence: {}; {:.0} % of the branches at {} diverge",
            active(lanes),
            ratio(branch.counts[0], branch.counts[1]) * 100.0,
            branch.place
        ),
        advice: "let all lanes of a warp take the same path: sort the work, or branch on the warp instead of the thread",
        at: Some(branch.place),
    })
}

fn early_return(facts: &Facts<'_>, lanes: f64) -> Option<IdleLanes> {
    let exit = worst_site(facts, ["exit_partial", "exit_issues", "exit_issues"], lanes)?;
    Some(IdleLanes {
        kind: "early_return",
        text: format!(
            "early return: {}; {:.0} % of the returns at {} leave the other lanes of their warp running",
            active(lanes),
            ratio(exit.counts[0], exit.counts[1]) * 100.0,
            exit.place
        ),
        advice: "give work to whole warps: number the items so that neighbouring threads stay, and launch no more threads than items",
        at: Some(exit.place),
    })
}

fn partial_warps(facts: &Facts<'_>, lanes: f64) -> IdleLanes {
    let threads = facts.launch.shape.threads;
    let warps = threads.div_ceil(facts.config.limits.warp_size).max(1);
    let (text, advice) = match absent_lanes(facts) < (LANES - lanes) / 2.0 {
        // Full blocks, and no counter names an instruction.
        true => (
            format!("idle lanes: {}", active(lanes)),
            "give work to all lanes of a warp",
        ),
        false => (
            format!(
                "partial warps: {}; a block of {} has {}",
                active(lanes),
                count(threads.into(), "thread"),
                count(warps.into(), "warp")
            ),
            "use blocks of a multiple of 32 threads",
        ),
    };
    IdleLanes {
        kind: "divergence",
        text,
        advice,
        at: None,
    }
}
