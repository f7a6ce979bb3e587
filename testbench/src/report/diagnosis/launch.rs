//! Causes in the shape of the launch: grid, launch latency, tail, warps and bytes in flight.

use super::facts::{Facts, ratio};
use super::{BUSY, Cause, MATTERS, OCCUPIED};
use crate::report::units::{count, digits, scaled};

/// States of warps that wait for a result.
const WAITS: [&str; 3] = ["long_scoreboard", "short_scoreboard", "wait"];

/// All causes found.
pub(super) fn all(facts: &Facts<'_>) -> Vec<Cause> {
    let found = [grid(facts), latency(facts), tail(facts), warps(facts), misses(facts)];
    found.into_iter().flatten().collect()
}

/// Blocks of the grid that all SMs hold at once.
fn waves(facts: &Facts<'_>) -> f64 {
    facts.metric("launch__waves_per_multiprocessor")
}

fn grid(facts: &Facts<'_>) -> Option<Cause> {
    let (blocks, sms) = (facts.launch.shape.ctas, u64::from(facts.config.n_sms()));
    (blocks < sms).then(|| Cause {
        kind: "small_grid",
        text: format!(
            "grid too small: {} on {}, {} waves",
            count(blocks, "block"),
            count(sms, "SM"),
            digits(waves(facts))
        ),
        advice: "give the launch more work, split it into more blocks, or run several kernels at once".to_owned(),
        at: None,
        share: 1.0 - ratio(blocks, sms),
        states: &[],
        is_fault: false,
    })
}

fn latency(facts: &Facts<'_>) -> Option<Cause> {
    let cycles = facts.phases.launch;
    let share = facts.phases.share(cycles);
    (share >= MATTERS).then(|| Cause {
        kind: "launch_latency",
        text: format!(
            "launch latency: {cycles} of {} cycles pass without a block, {:.0} % of the time",
            facts.launch.cycles,
            share * 100.0
        ),
        advice: "do more work in each launch, or join several kernels into one".to_owned(),
        at: None,
        share,
        states: &[],
        is_fault: false,
    })
}

/// SMs that are idle while others run, in a grid with a block for each.
fn tail(facts: &Facts<'_>) -> Option<Cause> {
    let waves = waves(facts);
    // From the first block to the last one on the busiest SM. Afterwards only stores are on their way.
    let running = facts.metric("sm__cycles_active.max");
    // A smaller grid is the cause `small_grid`.
    if facts.launch.shape.ctas < u64::from(facts.config.n_sms()) || running == 0.0 {
        return None;
    }
    let active = facts.metric("sm__cycles_active.avg");
    let share = (1.0 - active / running).max(0.0);
    (share >= MATTERS).then(|| Cause {
        kind: "tail",
        text: format!(
            "tail: SMs are idle for {:.0} % of the time that the busiest SM takes; the grid is {} waves, the tail {:.0} % of the launch",
            share * 100.0,
            digits(waves),
            facts.phases.share(facts.phases.tail) * 100.0
        ),
        advice: "use smaller blocks, a grid of whole waves, or blocks that take work from a queue".to_owned(),
        at: None,
        share,
        states: &[],
        is_fault: false,
    })
}

/// Too few warps, or too few bytes in flight, to hide a latency.
fn warps(facts: &Facts<'_>) -> Option<Cause> {
    let busy = facts
        .metric("sm__throughput.avg.pct_of_peak_sustained_elapsed")
        .max(facts.metric("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"));
    let waits = WAITS.map(|state| (state, facts.stalled(&[state])));
    let (state, waiting) = waits.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    // A busy unit is the bound, so more warps would not help.
    if busy >= BUSY || waiting < MATTERS {
        return None;
    }
    let slots = facts.config.limits.max_warps_per_sm;
    let achieved = facts.achieved();
    let resident = achieved / 100.0 * f64::from(slots);
    let occupancy = &facts.launch.shape.occupancy;
    let waits = format!("{state} is {:.0} % of their time", waiting * 100.0);
    // With fewer warps than schedulers, a scheduler idles whenever its warp waits.
    let is_lone = resident < f64::from(facts.config.sm.subcores);
    let share = waiting * (1.0 - achieved / 100.0);
    let (kind, text, advice) = if achieved >= OCCUPIED {
        if state != "long_scoreboard" {
            return None;
        }
        (
            "bytes_in_flight",
            format!("too few bytes in flight: {}; {waits}", in_flight(facts)),
            BYTES_ADVICE,
        )
    // The limits cause the low occupancy only if the launch comes near them.
    } else if occupancy.percent < OCCUPIED && achieved > occupancy.percent / 2.0 {
        let text = format!(
            "too few warps to hide latency: {} of {slots} fit an SM (limit: {}); {waits}",
            occupancy.warps, occupancy.limiter
        );
        ("few_warps", text, LIMITED_ADVICE)
    } else {
        let text = format!("too few warps to hide latency: {resident:.1} of {slots} on an active SM; {waits}");
        ("few_warps", text, WARPS_ADVICE)
    };
    Some(Cause {
        kind,
        text,
        advice: advice.to_owned(),
        at: None,
        share,
        states: match state {
            "long_scoreboard" => &["long_scoreboard"],
            "short_scoreboard" => &["short_scoreboard"],
            _ => &["wait"],
        },
        is_fault: is_lone,
    })
}

/// An L1 with full MSHRs: no further sector can be requested.
fn misses(facts: &Facts<'_>) -> Option<Cause> {
    let full = ratio(facts.sum("l1", "mshr_stall_cycles"), facts.sum("cta", "active_cycles"));
    let share = full * facts.stalled(&MEMORY_WAITS);
    (full >= MATTERS).then(|| Cause {
        kind: "misses_in_flight",
        text: format!(
            "L1 full of misses: for {:.0} % of the time its {} MSHRs track a sector each, and accesses wait",
            full * 100.0,
            facts.config.sm.l1.mshr_entries
        ),
        advice: "request fewer sectors: reuse values in registers, shared memory and the L1".to_owned(),
        at: None,
        share,
        states: &MEMORY_WAITS,
        is_fault: false,
    })
}

/// States of warps that wait for global or local memory, or for the queue to it.
const MEMORY_WAITS: [&str; 3] = ["long_scoreboard", "lg_throttle", "mio_throttle"];

const BYTES_ADVICE: &str =
    "load more bytes at once: wider loads, several independent loads a thread, or asynchronous copies";
const LIMITED_ADVICE: &str =
    "use fewer registers, less shared memory or another block size, or give each warp independent instructions";
const WARPS_ADVICE: &str = "launch more or larger blocks, or give each warp more independent loads";

/// Bytes in flight to memory by Little's law, and the bytes that fill its channels.
fn in_flight(facts: &Facts<'_>) -> String {
    let loads = facts.launch.counts.latencies().find(|(path, _)| *path == "hbm");
    // The least latency: a loaded memory adds queueing, which more bytes in flight would only lengthen.
    let latency = loads.map_or(0.0, |(_, latency)| latency.histogram().min() as f64);
    let seconds = latency / (f64::from(facts.config.clocks.core_khz) * 1e3);
    let used = facts.metric("dram__bytes.sum.per_second");
    let share = facts.metric("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed");
    let peak = facts.metric("dram__bytes.sum.peak_sustained") * facts.metric("dram__cycles_elapsed.avg.per_second");
    format!(
        "{} where {} would fill the memory channels, {share:.0} % busy",
        scaled(used * seconds, "B"),
        scaled(peak * seconds, "B")
    )
}
