//! Metrics of the SM: instructions, schedulers, pipes, branches.

use warpwave_components::config::{PIPES, pipe_row};
use warpwave_isa::opcode::Pipe;

use super::{Row, not_modelled};
use crate::report::metrics::{Inputs, Value};
use crate::report::stalls::STATES;

fn active(i: &Inputs<'_>) -> Value {
    i.sum("scheduler", "active_cycles")
}

/// Utilization of a pipe in per cent: its busy cycles over `cycles`, a sum over all sub-cores.
fn busy_share(i: &Inputs<'_>, pipe: Pipe, cycles: Value) -> Value {
    // The pipe adds the interval of each instruction. One pipe has several: those of IMAD, and of each shape of a matrix product.
    i.sum(pipe_row(pipe).name, "busy_cycles") / cycles * 100.0
}

/// Utilization of the LSU in per cent. `cycles` is a sum over SMs, since the sub-cores share the LSU.
fn lsu_share(i: &Inputs<'_>, cycles: Value) -> Value {
    i.sum("lsu", "instructions") * f64::from(i.config.sm.lsu.accept_interval) / cycles * 100.0
}

fn issued_share(i: &Inputs<'_>, cycles: Value) -> Value {
    i.sum("scheduler", "inst_issued") / cycles * 100.0
}

fn throughput(i: &Inputs<'_>) -> Value {
    // The whole launch on every scheduler and every SM, idle or not.
    let elapsed = i.cycles() * i.instances("scheduler", "inst_issued").number().unwrap_or(0.0);
    let sms = i.cycles() * f64::from(i.config.n_sms());
    // The LSU is shared by the sub-cores, so it follows by itself.
    let math = PIPES.iter().filter(|row| row.preset.is_some());
    let shares = math.map(|row| busy_share(i, row.pipe, elapsed));
    Value::greatest(shares.chain([issued_share(i, elapsed), lsu_share(i, sms)]))
}

fn unaccounted(i: &Inputs<'_>) -> Value {
    let states = STATES
        .iter()
        // A state that the model does not have counts as 0.
        .filter_map(|(_, counter)| i.sum("scheduler", counter).number());
    i.sum("scheduler", "warp_cycles") - Value::Number(states.sum())
}

pub(super) const THROUGHPUT: &[Row] = &[(
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "%",
    "scheduler, pipes, lsu",
    "Utilization of the SMs' busiest resource over the whole launch: issue slots, a pipe or the LSU.",
    "greatest of: inst_issued / elapsed cycles; busy_cycles of each pipe / elapsed cycles; LSU instructions x sm.lsu.accept_interval / elapsed cycles; x 100",
    throughput,
)];

pub(super) const SCHEDULER: &[Row] = &[
    (
        "smsp__inst_executed.sum",
        "inst",
        "scheduler",
        "Warp instructions executed, also with a guard that is false in all lanes. Equal to those issued: there are no replays.",
        "sum of inst_issued",
        |i| i.sum("scheduler", "inst_issued"),
    ),
    (
        "inst_executed",
        "inst",
        "scheduler",
        "Warp instructions executed, of all addresses. `--html` shows them line by line.",
        "sum of inst_issued",
        |i| i.sum("scheduler", "inst_issued"),
    ),
    (
        "smsp__pcsamp_sample_count",
        "sample",
        "scheduler",
        "Samples of the program counter. The model takes one of each resident warp in each cycle, so nothing is estimated.",
        "sum of warp_cycles",
        |i| i.sum("scheduler", "warp_cycles"),
    ),
    (
        "smsp__inst_issued.sum",
        "inst",
        "scheduler",
        "Warp instructions issued.",
        "sum of inst_issued",
        |i| i.sum("scheduler", "inst_issued"),
    ),
    (
        "smsp__thread_inst_executed.sum",
        "inst",
        "scheduler",
        "Thread instructions: active lanes, summed over warp instructions. The guard does not count.",
        "sum of thread_inst",
        |i| i.sum("scheduler", "thread_inst"),
    ),
    (
        "sm__inst_executed.avg.per_cycle_active",
        "inst/cycle",
        "scheduler, cta",
        "IPC of an SM, in cycles in which it holds warps.",
        "sum of inst_issued / sum of active_cycles",
        // The cycles of the SM from `cta`: a scheduler counts its own, which may be fewer.
        |i| i.sum("scheduler", "inst_issued") / i.sum("cta", "active_cycles"),
    ),
    (
        "sm__inst_executed.avg.per_cycle_elapsed",
        "inst/cycle",
        "scheduler",
        "IPC of an SM over the whole launch.",
        "sum of inst_issued / (SMs x elapsed cycles)",
        |i| i.sum("scheduler", "inst_issued") / (i.cycles() * f64::from(i.config.n_sms())),
    ),
    (
        "sm__inst_issued.avg.pct_of_peak_sustained_active",
        "%",
        "scheduler",
        "Share of issue slots used, in cycles in which a scheduler holds warps.",
        "sum of inst_issued / sum of active_cycles x 100",
        |i| issued_share(i, active(i)),
    ),
    (
        "smsp__issue_active.avg.per_cycle_active",
        "warp",
        "scheduler",
        "Issues per scheduler and active cycle, 0 to 1.",
        "sum of inst_issued / sum of active_cycles",
        |i| i.sum("scheduler", "inst_issued") / active(i),
    ),
    (
        "smsp__issue_inst0.avg.pct_of_peak_sustained_active",
        "%",
        "scheduler",
        "Share of active cycles in which a scheduler issued nothing.",
        "100 - issue slots used",
        |i| Value::Number(100.0) - issued_share(i, active(i)),
    ),
    (
        "smsp__warps_active.avg.per_cycle_active",
        "warp",
        "scheduler",
        "Resident warps per scheduler and active cycle.",
        "sum of warp_cycles / sum of active_cycles",
        |i| i.sum("scheduler", "warp_cycles") / active(i),
    ),
    (
        "smsp__warps_eligible.avg.per_cycle_active",
        "warp",
        "scheduler",
        "Eligible warps per scheduler and active cycle: a warp that could issue, whether or not it was selected.",
        "sum of eligible_warps / sum of active_cycles",
        |i| i.sum("scheduler", "eligible_warps") / active(i),
    ),
    (
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "%",
        "scheduler, cta",
        "Achieved occupancy: resident warps in per cent of an SM's warp slots, in cycles in which the SM holds warps.",
        "sum of warp_cycles / (limits.max_warps_per_sm x sum of active_cycles) x 100",
        |i| {
            let slots = i.sum("cta", "active_cycles") * f64::from(i.config.limits.max_warps_per_sm);
            i.sum("scheduler", "warp_cycles") / slots * 100.0
        },
    ),
    (
        "smsp__average_warp_latency_per_inst_issued.ratio",
        "cycle/inst",
        "scheduler",
        "Warp-cycles per instruction issued. The ratios of all states add up to it.",
        "sum of warp_cycles / sum of inst_issued",
        |i| i.sum("scheduler", "warp_cycles") / i.sum("scheduler", "inst_issued"),
    ),
    (
        "smsp__average_warps_issue_stalled_misc_per_issue_active.ratio",
        "cycle/inst",
        "scheduler",
        "Warp-cycles without a state per instruction issued. Any value but 0 is a bug of the model.",
        "(sum of warp_cycles - sum of all states) / sum of inst_issued",
        |i| unaccounted(i) / i.sum("scheduler", "inst_issued"),
    ),
    (
        "smsp__thread_inst_executed_per_inst_executed.ratio",
        "thread/inst",
        "scheduler",
        "Active lanes per warp instruction. 32 without divergence, in full warps.",
        "sum of thread_inst / sum of inst_issued",
        |i| i.sum("scheduler", "thread_inst") / i.sum("scheduler", "inst_issued"),
    ),
    (
        "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
        "thread/inst",
        "dispatch",
        "Active lanes with a true guard, per warp instruction sent to a pipe.",
        "sum of thread_inst_pred_on / sum of inst_executed",
        |i| i.sum("dispatch", "thread_inst_pred_on") / i.sum("dispatch", "inst_executed"),
    ),
    (
        "smsp__inst_executed_op_branch.sum",
        "inst",
        "scheduler",
        "Branches and exits. The profiler counts exits too, as an H100 shows.",
        "sum of branches, exits",
        // The machine counts the two apart.
        |i| i.sum("scheduler", "branches") + i.sum("scheduler", "exits"),
    ),
    (
        "smsp__sass_branch_targets_threads_divergent.sum",
        "branch",
        "scheduler",
        "Branches at which a warp diverged.",
        "sum of divergent_branches",
        |i| i.sum("scheduler", "divergent_branches"),
    ),
    (
        "smsp__sass_average_branch_targets_threads_uniform.pct",
        "%",
        "scheduler",
        "Share of branches at which all active lanes took the same direction.",
        "(branches - divergent_branches) / branches x 100",
        |i| {
            let branches = i.sum("scheduler", "branches");
            (branches - i.sum("scheduler", "divergent_branches")) / branches * 100.0
        },
    ),
    (
        "smsp__imc_requests.sum",
        "request",
        "scheduler",
        "Instructions with a constant operand, which the immediate constant cache (IMC) serves.",
        "sum of constant_requests",
        |i| i.sum("scheduler", "constant_requests"),
    ),
    (
        "smsp__imc_request_hit_rate.pct",
        "%",
        "scheduler",
        "Hit rate of the immediate constant cache.",
        "(constant_requests - constant_misses) / constant_requests x 100",
        |i| {
            let requests = i.sum("scheduler", "constant_requests");
            (requests - i.sum("scheduler", "constant_misses")) / requests * 100.0
        },
    ),
    (
        "sm__icc_request_hit_rate.pct",
        "%",
        "none",
        "Hit rate of the instruction cache.",
        "hits / requests x 100",
        not_modelled,
    ),
];

const PIPE_FORMULA: &str = "sum of the pipe's busy_cycles / sum of scheduler active_cycles x 100";

pub(super) const PIPE_USE: &[Row] = &[
    (
        "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active",
        "%",
        "int",
        "Utilization of the integer and logic pipe.",
        PIPE_FORMULA,
        |i| busy_share(i, Pipe::Int, active(i)),
    ),
    (
        "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
        "%",
        "fp32",
        "Utilization of the FP32 multiply-add pipe.",
        PIPE_FORMULA,
        |i| busy_share(i, Pipe::Fp32, active(i)),
    ),
    (
        "sm__inst_executed_pipe_fp16.avg.pct_of_peak_sustained_active",
        "%",
        "half",
        "Utilization of the packed half-precision pipe.",
        PIPE_FORMULA,
        |i| busy_share(i, Pipe::Half, active(i)),
    ),
    (
        "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active",
        "%",
        "fp64",
        "Utilization of the double-precision pipe.",
        PIPE_FORMULA,
        |i| busy_share(i, Pipe::Fp64, active(i)),
    ),
    (
        "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",
        "%",
        "sfu",
        "Utilization of the special-function and conversion pipe.",
        PIPE_FORMULA,
        |i| busy_share(i, Pipe::Sfu, active(i)),
    ),
    (
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
        "%",
        "tensor",
        "Share of active cycles in which the tensor pipe was busy.",
        PIPE_FORMULA,
        |i| busy_share(i, Pipe::Tensor, active(i)),
    ),
    (
        "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active",
        "%",
        "lsu",
        "Utilization of the LSU's input, which the sub-cores share.",
        "instructions x sm.lsu.accept_interval / sum of cta active_cycles x 100",
        |i| lsu_share(i, i.sum("cta", "active_cycles")),
    ),
    (
        "sm__inst_executed_pipe_cbu.avg.pct_of_peak_sustained_active",
        "%",
        "scheduler",
        "Utilization of the control pipe: branches, convergence, barriers.",
        "sum of inst_control / sum of active_cycles x 100",
        // The control pipe has no timing in the preset: one issue per cycle.
        |i| i.sum("scheduler", pipe_row(Pipe::Control).counter) / active(i) * 100.0,
    ),
    (
        "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained",
        "inst/cycle",
        "gpu",
        "FP32 multiply-adds that the chip can start per cycle.",
        "SMs x sm.subcores x 32 / sm.pipes.fp32.interval",
        |i| {
            // Each sub-core starts a warp per interval.
            let starts = i.config.n_sms() * i.config.sm.subcores * i.config.limits.warp_size;
            Value::Number(f64::from(starts) / f64::from(i.config.sm.pipes.fp32.interval))
        },
    ),
];
