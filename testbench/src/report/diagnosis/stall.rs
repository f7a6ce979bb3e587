//! Causes from busy units and from the largest stall state.

use super::access::MEMORY;
use super::facts::Facts;
use super::{BUSY, Cause, MATTERS};
use crate::report::html::stall_text;
use crate::report::stalls::Stall;
use crate::report::units::scaled;

/// A unit that can be the bound: its name, the metric of its use, and what helps.
type Unit = (&'static str, &'static str, &'static str);

const DRAM: Unit = (
    "memory bandwidth",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "move fewer bytes: reuse values in registers, shared memory and caches, or use smaller types",
);

/// Units besides the memory channels.
const UNITS: [Unit; 10] = [
    (
        "L2 bandwidth",
        "lts__throughput.avg.pct_of_peak_sustained_elapsed",
        "reuse values in shared memory and in the L1",
    ),
    (
        "L1 bandwidth",
        "l1tex__throughput.avg.pct_of_peak_sustained_active",
        "reuse values in registers, and use wider accesses",
    ),
    (
        "issue slots",
        "sm__inst_issued.avg.pct_of_peak_sustained_active",
        "issue fewer instructions: wider accesses, fused operations, less address arithmetic",
    ),
    (
        "tensor pipe",
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
        "the kernel is near the peak: use a smaller type, or sparse products",
    ),
    (
        "FP32 pipe",
        "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
        "the kernel is near the peak: use a smaller type or the tensor cores",
    ),
    (
        "FP64 pipe",
        "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active",
        "use FP32 where its precision is enough",
    ),
    (
        "half-precision pipe",
        "sm__inst_executed_pipe_fp16.avg.pct_of_peak_sustained_active",
        "use the tensor cores",
    ),
    (
        "integer pipe",
        "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active",
        "compute fewer indices: hoist address arithmetic out of loops",
    ),
    (
        "special-function pipe",
        "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",
        "use fewer special functions, conversions and reads of special registers, or polynomials on the FP32 pipe",
    ),
    (
        "LSU",
        "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active",
        "use fewer and wider accesses",
    ),
];

/// The busiest units of the memory path and of the SMs, if they are a bound.
pub(super) fn saturated(facts: &Facts<'_>) -> Vec<Cause> {
    // Memory bandwidth is listed beside the busiest other unit: both can be worth an advice.
    let dram = saturation(facts, &DRAM).map(|mut cause| {
        let used = scaled(facts.metric("dram__bytes.sum.per_second"), "B/s");
        cause.text = format!("{}, {used}", cause.text);
        cause
    });
    let others = UNITS.iter().filter_map(|unit| saturation(facts, unit));
    let busiest = others.max_by(|a, b| a.share.total_cmp(&b.share));
    dram.into_iter().chain(busiest).collect()
}

/// The cause of a busy unit: 60 % of its peak over the whole launch, as for the bound.
fn saturation(facts: &Facts<'_>, (name, metric, advice): &Unit) -> Option<Cause> {
    let used = facts.use_of_launch(metric);
    (used >= BUSY).then(|| Cause {
        kind: "busy_unit",
        text: format!("{name}: {used:.0} % of the peak is used"),
        advice: (*advice).to_owned(),
        at: None,
        share: used / 100.0,
        states: match *name {
            "memory bandwidth" | "L2 bandwidth" => MEMORY,
            "LSU" | "L1 bandwidth" => &["lg_throttle", "mio_throttle"],
            _ => &["math_pipe_throttle"],
        },
        is_fault: false,
    })
}

/// The largest stall state that no other cause explains.
pub(super) fn top(facts: &Facts<'_>, is_explained: impl Fn(&Stall) -> bool) -> Option<Cause> {
    // In these two states the scheduler had work, so the warp did not wait for a unit.
    let is_wait = |stall: &Stall| stall.state != "selected" && stall.state != "not_selected";
    let stalls = facts
        .stalls
        .iter()
        .filter(|stall| is_wait(stall) && !is_explained(stall));
    let top = stalls.max_by_key(|stall| stall.warp_cycles)?;
    let share = top.percent / 100.0;
    let text = stall_text::of(top.state);
    (share >= MATTERS).then(|| Cause {
        kind: "stall",
        text: format!(
            "{}, {:.0} % of the warps' time: the warp {}",
            top.state, top.percent, text.means
        ),
        advice: text.advice.to_owned(),
        at: None,
        share,
        states: &[],
        is_fault: false,
    })
}
