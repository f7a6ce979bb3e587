//! Utilization of each pipe, and of the SM's busiest resource, under a kernel that saturates one pipe.
//!
//! Each sub-core has 8 warps with instructions of one pipe, more than its latency needs. So the pipe takes an instruction as often as its
//! interval allows.

use warpwave_isa::inst::{Inst, MmaShape, Ty};

use crate::worked::Measured;

/// Settings of `tiny`: another interval for each kind of instruction that shares a pipe.
const SETS: &[(&str, &str)] = &[
    ("sm.pipes.imad_interval", "4"),
    ("sm.pipes.mma_interval", "12"),
    ("sm.pipes.mma_f16_interval", "8"),
    ("sm.pipes.mma_int_interval", "6"),
    ("sm.pipes.mma_fp64_interval", "16"),
];

/// Instructions of a warp.
const LENGTH: usize = 256;

/// 8 warps on each of 4 sub-cores of 2 SMs.
const SHAPE: (u32, u32) = (2, 1024);

const THROUGHPUT: &str = "sm__throughput.avg.pct_of_peak_sustained_elapsed";

const TENSOR: &str = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active";

/// Runs a kernel of one instruction, whose result is in R0 and R4 in turn. Returns a finding if a metric is not between 90 and 100 %.
fn finding(inst: &str, pipe: &str) -> Option<String> {
    let pair = ["R0", "R4"].map(|result| inst.replace("R0", result)).join("\n");
    let text = format!("{}EXIT", format!("{pair}\n").repeat(LENGTH / 2));
    let run = Measured::of(&text, SHAPE, SETS);
    let shares = [THROUGHPUT, pipe].map(|metric| run.number(metric));
    let is_full = |share: &f64| (90.0..=100.0).contains(share);
    (!shares.iter().all(is_full)).then(|| format!("{inst}: SM throughput and {pipe}: {shares:?}"))
}

#[test]
fn saturated_pipe_is_busy_for_90_to_100_per_cent() {
    let cases = [
        ("IADD3 R0, PT, R8, R9, RZ, PT", "alu"),
        ("FFMA R0, R8, R9, R10", "fma"),
        ("IMAD R0, R8, R9, R10", "fma"),
        ("IMAD.WIDE R0, R8, R9, R10", "fma"),
        ("HFMA2 R0, R8, R9, R10", "fp16"),
        ("DFMA R0, R8, R10, R12", "fp64"),
        ("MUFU.RCP R0, R8", "xu"),
    ];
    let findings: Vec<String> = cases
        .iter()
        .filter_map(|(inst, pipe)| {
            let pipe = format!("sm__inst_executed_pipe_{pipe}.avg.pct_of_peak_sustained_active");
            finding(inst, &pipe)
        })
        .collect();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn saturated_tensor_pipe_is_busy_for_90_to_100_per_cent_with_each_shape() {
    let mut product: Inst = "MMA.16816F16.F32 R0, R8, R12, R16".parse().unwrap();
    let mut findings = Vec::new();
    for &shape in MmaShape::ALL {
        let types = match shape {
            MmaShape::M8n8k4F64 => &[Ty::F64][..],
            _ if shape.has_integers() => &[Ty::S32],
            _ if shape.has_half_accumulators(Ty::F16) => &[Ty::F32, Ty::F16],
            _ => &[Ty::F32],
        };
        for &ty in types {
            (product.mods.mma, product.mods.ty) = (shape, ty);
            findings.extend(finding(&product.to_string(), TENSOR));
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}
