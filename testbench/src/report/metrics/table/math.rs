//! Metrics of the instruction mix: operations of the lanes by class, floating-point operations, arithmetic intensity.
//!
//! A guard that is false turns a lane off. The classes are those of the machine's instruction table.

use super::Row;
use super::l2_dram::dram_bytes;
use crate::report::metrics::{Inputs, Value};

/// Counters of an add, a multiply and a multiply-add.
const FP32: [&str; 3] = ["lanes_fadd", "lanes_fmul", "lanes_ffma"];
const FP64: [&str; 3] = ["lanes_dadd", "lanes_dmul", "lanes_dfma"];

fn lanes(i: &Inputs<'_>, counters: &[&'static str]) -> Value {
    let sums = counters.iter().map(|counter| i.sum("dispatch", counter));
    sums.fold(Value::Number(0.0), |all, lanes| all + lanes)
}

/// Floating-point operations: a multiply-add is two.
fn flops(i: &Inputs<'_>, [add, multiply, fused]: [&'static str; 3]) -> Value {
    lanes(i, &[add, multiply]) + i.sum("dispatch", fused) * 2.0
}

fn half_flops(i: &Inputs<'_>) -> Value {
    i.sum("dispatch", "half_operations")
}

fn tensor_flops(i: &Inputs<'_>) -> Value {
    i.sum("dispatch", "tensor_multiply_adds") * 2.0
}

/// Operations of all floating-point types and matrix products.
pub(in crate::report) fn all_flops(i: &Inputs<'_>) -> Value {
    half_flops(i) + flops(i, FP32) + flops(i, FP64) + tensor_flops(i)
}

pub(super) const MATH: &[Row] = &[
    (
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
        "inst",
        "dispatch",
        "FP32 multiply-adds of lanes that were on.",
        "sum of lanes_ffma",
        |i| i.sum("dispatch", "lanes_ffma"),
    ),
    (
        "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
        "inst",
        "dispatch",
        "FP32 adds of lanes that were on.",
        "sum of lanes_fadd",
        |i| i.sum("dispatch", "lanes_fadd"),
    ),
    (
        "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",
        "inst",
        "dispatch",
        "FP32 multiplies of lanes that were on.",
        "sum of lanes_fmul",
        |i| i.sum("dispatch", "lanes_fmul"),
    ),
    (
        "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum",
        "inst",
        "dispatch",
        "FP64 multiply-adds of lanes that were on.",
        "sum of lanes_dfma",
        |i| i.sum("dispatch", "lanes_dfma"),
    ),
    (
        "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum",
        "inst",
        "dispatch",
        "FP64 adds of lanes that were on.",
        "sum of lanes_dadd",
        |i| i.sum("dispatch", "lanes_dadd"),
    ),
    (
        "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum",
        "inst",
        "dispatch",
        "FP64 multiplies of lanes that were on.",
        "sum of lanes_dmul",
        |i| i.sum("dispatch", "lanes_dmul"),
    ),
    (
        "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum",
        "inst",
        "dispatch",
        "Half-precision multiply-adds of lanes that were on. An instruction on two packed halves counts once per lane.",
        "sum of lanes_hfma",
        |i| i.sum("dispatch", "lanes_hfma"),
    ),
    (
        "smsp__sass_thread_inst_executed_op_hadd_pred_on.sum",
        "inst",
        "dispatch",
        "Half-precision adds of lanes that were on. An instruction on two packed halves counts once per lane.",
        "sum of lanes_hadd",
        |i| i.sum("dispatch", "lanes_hadd"),
    ),
    (
        "smsp__sass_thread_inst_executed_op_hmul_pred_on.sum",
        "inst",
        "dispatch",
        "Half-precision multiplies of lanes that were on. An instruction on two packed halves counts once per lane.",
        "sum of lanes_hmul",
        |i| i.sum("dispatch", "lanes_hmul"),
    ),
    (
        "smsp__sass_thread_inst_executed_op_fp16_pred_on.sum",
        "inst",
        "dispatch",
        "Half-precision instructions of lanes that were on, with comparisons.",
        "sum of lanes_hadd, lanes_hmul, lanes_hfma, lanes_fp16",
        // The last class holds all that is neither an add nor a multiply.
        |i| lanes(i, &["lanes_hadd", "lanes_hmul", "lanes_hfma", "lanes_fp16"]),
    ),
    (
        "smsp__sass_thread_inst_executed_op_fp32_pred_on.sum",
        "inst",
        "dispatch",
        "FP32 instructions of lanes that were on, with comparisons and special functions.",
        "sum of lanes_fadd, lanes_fmul, lanes_ffma, lanes_fp32",
        |i| lanes(i, &["lanes_fadd", "lanes_fmul", "lanes_ffma", "lanes_fp32"]),
    ),
    (
        "smsp__sass_thread_inst_executed_op_fp64_pred_on.sum",
        "inst",
        "dispatch",
        "FP64 instructions of lanes that were on, with comparisons.",
        "sum of lanes_dadd, lanes_dmul, lanes_dfma, lanes_fp64",
        |i| lanes(i, &["lanes_dadd", "lanes_dmul", "lanes_dfma", "lanes_fp64"]),
    ),
    (
        "smsp__sass_thread_inst_executed_op_integer_pred_on.sum",
        "inst",
        "dispatch",
        "Integer arithmetic and comparisons of lanes that were on.",
        "sum of lanes_integer",
        |i| i.sum("dispatch", "lanes_integer"),
    ),
    (
        "smsp__sass_thread_inst_executed_op_bit_pred_on.sum",
        "inst",
        "dispatch",
        "Logic, shifts and bit counts of lanes that were on.",
        "sum of lanes_bit",
        |i| i.sum("dispatch", "lanes_bit"),
    ),
    (
        "smsp__sass_thread_inst_executed_op_conversion_pred_on.sum",
        "inst",
        "dispatch",
        "Conversions between types, of lanes that were on.",
        "sum of lanes_conversion",
        |i| i.sum("dispatch", "lanes_conversion"),
    ),
    (
        "smsp__sass_thread_inst_executed_op_memory_pred_on.sum",
        "inst",
        "dispatch",
        "Memory instructions of lanes that were on: loads, stores, atomics, fences, copies.",
        "sum of lanes_memory",
        |i| i.sum("dispatch", "lanes_memory"),
    ),
    (
        "smsp__sass_thread_inst_executed_op_inter_thread_communication_pred_on.sum",
        "inst",
        "dispatch",
        "Shuffles, votes, matches and warp reductions of lanes that were on.",
        "sum of lanes_exchange",
        |i| i.sum("dispatch", "lanes_exchange"),
    ),
    (
        "smsp__sass_thread_inst_executed_op_control_pred_on.sum",
        "inst",
        "dispatch",
        "Branches, barriers and exits of lanes that were on, if the dispatch unit sent them. The scheduler resolves most of them itself.",
        "sum of lanes_control",
        |i| i.sum("dispatch", "lanes_control"),
    ),
    (
        "smsp__sass_thread_inst_executed_op_misc_pred_on.sum",
        "inst",
        "dispatch",
        "Moves, selections and reads of special registers, of lanes that were on.",
        "sum of lanes_misc",
        |i| i.sum("dispatch", "lanes_misc"),
    ),
    (
        "derived__flops_fp16.sum",
        "flop",
        "dispatch",
        "Half-precision operations outside the tensor pipe: one for each half of a lane, and two for a multiply-add.",
        "sum of half_operations",
        half_flops,
    ),
    (
        "derived__flops_fp32.sum",
        "flop",
        "dispatch",
        "FP32 operations outside the tensor pipe: a multiply-add is two operations.",
        "lanes_fadd + lanes_fmul + 2 x lanes_ffma",
        |i| flops(i, FP32),
    ),
    (
        "derived__flops_fp64.sum",
        "flop",
        "dispatch",
        "FP64 operations outside the tensor pipe: a multiply-add is two operations.",
        "lanes_dadd + lanes_dmul + 2 x lanes_dfma",
        |i| flops(i, FP64),
    ),
    (
        "derived__flops_tensor.sum",
        "flop",
        "dispatch",
        "Operations of matrix products, of any type: 2 x m x n x k for each. The zeros of a sparse operand do not count.",
        "2 x tensor_multiply_adds",
        tensor_flops,
    ),
    (
        "derived__flops.sum.per_second",
        "flop/s",
        "dispatch",
        "Operations per second, of all floating-point types and matrix products.",
        "all derived__flops / time of the launch",
        |i| all_flops(i) / Value::Number(i.cycles as f64 / (f64::from(i.config.clocks.core_khz) * 1e3)),
    ),
    (
        "derived__arithmetic_intensity_dram.ratio",
        "flop/B",
        "dispatch, channel",
        "Operations per byte of device memory, read or written: the x axis of a roofline.",
        "all derived__flops / (bytes_read + bytes_written)",
        |i| all_flops(i) / dram_bytes(i),
    ),
];
