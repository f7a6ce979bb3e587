//! Worked values: small programs whose metrics are counted by hand, from the text and the numbers of the preset `tiny`.
//!
//! A program is machine code, one instruction per line, so that no compiler changes it. Each program has its timeline in a comment. In
//! it, t is the cycle in which the warp starts. These rules give every cycle (module docs of `scheduler`, `ibuffer`, `dispatch`, `lsu`):
//!
//! | Rule | Source |
//! |---|---|
//! | a warp fetches in t, t + 1 and t + 2; each issue makes room for one more fetch | `sm.ibuffer_entries` 3 |
//! | a fetched instruction can issue 4 cycles later | `sm.fetch_latency` 4 |
//! | a dependent instruction issues the latency of its producer later | `sm.pipes` |
//! | the next instruction of a pipe issues its interval later | `sm.pipes` |
//! | a warp leaves its slot in the cycle in which a dependent instruction of its last result could issue | `scheduler`, retire |
//!
//! Every metric has a value here or in a module of this one, or is named as not modelled. The file `profiler_rows.txt` lists the metrics of
//! the profiler that a report must have.

use std::collections::BTreeSet;
use std::sync::Arc;

use warpwave::report::counts::Counts;
use warpwave::report::metrics::{self, Inputs, LaunchShape, Value};
use warpwave_components::gpu::Gpu;
use warpwave_components::occupancy::occupancy;
use warpwave_components::preset;
use warpwave_components::proto::launch::Grid;
use warpwave_isa::exec::texture::{AddressMode, TexelOrder, Texture};
use warpwave_isa::inst::Ty;
use warpwave_isa::program::{Program, Requirements};
use warpwave_isa::space::bank0;

mod memory;
mod operations;
mod states;

/// Registers of a thread, and bytes of shared memory of a CTA, in every program.
const REGISTERS: u32 = 32;
const SHARED_BYTES: u32 = 4096;

/// A metric's value.
#[derive(Clone, Copy, Debug)]
enum Is {
    /// A number.
    Number(f64),
    /// A number over the value of another metric: where only the time of a memory access is not counted by hand.
    Over(f64, &'static str),
}

use Is::{Number, Over};

/// A program with its worked values.
struct Worked {
    name: &'static str,
    text: &'static str,
    /// CTAs, and threads of each.
    shape: (u32, u32),
    /// Settings of `tiny`.
    sets: &'static [(&'static str, &'static str)],
    values: &'static [(&'static str, Is)],
}

const PLAIN: Worked = Worked {
    name: "",
    text: "",
    shape: (1, 32),
    sets: &[],
    values: &[],
};

/// Names of the metrics of one state.
macro_rules! stalled {
    ($state:literal) => {
        concat!("smsp__average_warps_issue_stalled_", $state, "_per_issue_active.ratio")
    };
}

const WORKED: &[Worked] = &[
    // t to t+3: no instruction. t+4: EXIT issues, and the warp leaves. 5 cycles, 1 issue.
    Worked {
        name: "one exit",
        text: "EXIT",
        values: &[
            ("smsp__inst_executed.sum", Number(1.0)),
            ("inst_executed", Number(1.0)),
            ("smsp__inst_issued.sum", Number(1.0)),
            ("smsp__thread_inst_executed.sum", Number(32.0)),
            ("sm__ctas_launched.sum", Number(1.0)),
            ("smsp__pcsamp_sample_count", Number(5.0)),
            // One of 2 SMs x 4 schedulers has the warp.
            ("smsp__cycles_active.avg", Number(5.0 / 8.0)),
            ("smsp__issue_active.avg.per_cycle_active", Number(1.0 / 5.0)),
            (
                "smsp__issue_inst0.avg.pct_of_peak_sustained_active",
                Number(100.0 * 4.0 / 5.0),
            ),
            ("smsp__warps_active.avg.per_cycle_active", Number(1.0)),
            ("smsp__warps_eligible.avg.per_cycle_active", Number(1.0 / 5.0)),
            ("smsp__average_warp_latency_per_inst_issued.ratio", Number(5.0)),
            (stalled!("no_instruction"), Number(4.0)),
            (stalled!("selected"), Number(1.0)),
            (stalled!("misc"), Number(0.0)),
            // The SM is active from the admission of the CTA, 2 cycles before t, until the message of its end is there in t+5.
            ("sm__cycles_active.avg", Number(7.0 / 2.0)),
            ("sm__cycles_active.max", Number(7.0)),
            ("sm__cycles_active.min", Number(0.0)),
            ("sm__inst_issued.avg.pct_of_peak_sustained_active", Number(100.0 / 5.0)),
            (
                "sm__inst_executed_pipe_cbu.avg.pct_of_peak_sustained_active",
                Number(100.0 / 5.0),
            ),
            ("sm__inst_executed.avg.per_cycle_active", Number(1.0 / 7.0)),
            // 5 warp-cycles of 64 slots x 7 cycles.
            (
                "sm__warps_active.avg.pct_of_peak_sustained_active",
                Number(100.0 * 5.0 / (64.0 * 7.0)),
            ),
            // On the way there: 1 to GigaThread, 20 launch latency, 8 to the SM, 1 to start the warp, 1 to the scheduler.
            // The issue comes 4 later. On the way back: 1 to the CTA manager, 8 to GigaThread. A cycle is 1 ns.
            ("gpc__cycles_elapsed.max", Number(44.0)),
            ("gpu__time_duration.sum", Number(44.0)),
            ("gpc__cycles_elapsed.avg.per_second", Number(1e9)),
            ("dram__cycles_elapsed.avg.per_second", Number(1e9)),
            ("sm__inst_executed.avg.per_cycle_elapsed", Number(1.0 / (2.0 * 44.0))),
            ("launch__grid_size", Number(1.0)),
            ("launch__block_size", Number(32.0)),
            ("launch__thread_count", Number(32.0)),
            ("launch__registers_per_thread", Number(32.0)),
            // 32 x 32 registers are four units of 256.
            ("launch__registers_per_thread_allocated", Number(32.0)),
            ("launch__shared_mem_per_block", Number(4096.0)),
            // Registers: 65536 / (32 x 32). Shared memory: 49152 / 4096. Warps: 64 / 1. Slots: 32.
            ("launch__occupancy_limit_registers", Number(64.0)),
            ("launch__occupancy_limit_shared_mem", Number(12.0)),
            ("launch__occupancy_limit_warps", Number(64.0)),
            ("launch__occupancy_limit_blocks", Number(32.0)),
            // 12 blocks of 4096 bytes need the largest carve-out.
            ("launch__shared_mem_config_size", Number(49152.0)),
            // The least limit is 12 blocks of one warp, on each of 2 SMs with 4 schedulers and 64 warp slots.
            ("sm__maximum_warps_per_active_cycle_pct", Number(100.0 * 12.0 / 64.0)),
            ("smsp__maximum_warps_avg_per_active_cycle", Number(12.0 / 4.0)),
            ("launch__waves_per_multiprocessor", Number(1.0 / (2.0 * 12.0))),
            // 2 SMs x 4 sub-cores x 32 lanes, one instruction every 2 cycles.
            (
                "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained",
                Number(2.0 * 4.0 * 32.0 / 2.0),
            ),
            // 2 channels x 32 bytes.
            ("dram__bytes.sum.peak_sustained", Number(64.0)),
        ],
        ..PLAIN
    },
    // A chain of 8 adds with a latency of 4: issues in t+4, t+8, ... t+32, each but the first after 3 cycles of wait. EXIT issues in t+33.
    // The last add is complete in t+36, after 3 cycles of drain. 37 cycles, 9 issues.
    Worked {
        name: "chain of adds",
        text: "FADD R0, R0, R0\nFADD R0, R0, R0\nFADD R0, R0, R0\nFADD R0, R0, R0\n\
               FADD R0, R0, R0\nFADD R0, R0, R0\nFADD R0, R0, R0\nFADD R0, R0, R0\nEXIT",
        values: &[
            ("smsp__pcsamp_sample_count", Number(37.0)),
            (stalled!("wait"), Number(7.0 * 3.0 / 9.0)),
            (stalled!("drain"), Number(3.0 / 9.0)),
            (stalled!("no_instruction"), Number(4.0 / 9.0)),
            ("smsp__pcsamp_warps_issue_stalled_wait", Number(21.0)),
            ("smsp__pcsamp_warps_issue_stalled_wait_not_issued", Number(21.0)),
            (
                "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
                Number(8.0 * 32.0),
            ),
            ("smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", Number(0.0)),
            ("smsp__thread_inst_executed_per_inst_executed.ratio", Number(32.0)),
            // 8 issues at an interval of 2.
            (
                "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
                Number(100.0 * 16.0 / 37.0),
            ),
            // EXIT alone takes 44 cycles, of them 5 on the scheduler. The busiest resource of 8 sub-cores is one FP32 pipe.
            ("gpc__cycles_elapsed.max", Number(44.0 + 32.0)),
            (
                "sm__throughput.avg.pct_of_peak_sustained_elapsed",
                Number(100.0 * 16.0 / (8.0 * 76.0)),
            ),
        ],
        ..PLAIN
    },
    // Three multiply-adds and two multiplies that need no result: issues in t+4, t+6, t+8, t+10, t+12, each but the first after a cycle of
    // the busy pipe. EXIT issues in t+13. The last result is complete in t+16. 17 cycles, 6 issues.
    Worked {
        name: "independent multiplies",
        text: "FFMA R0, R9, R10, R11\nFFMA R1, R9, R10, R11\nFFMA R2, R9, R10, R11\nFMUL R3, R9, R10\nFMUL R4, R9, R10\nEXIT",
        values: &[
            (
                "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
                Number(3.0 * 32.0),
            ),
            (
                "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",
                Number(2.0 * 32.0),
            ),
            ("smsp__pcsamp_sample_count", Number(17.0)),
            (stalled!("math_pipe_throttle"), Number(4.0 / 6.0)),
            (stalled!("drain"), Number(3.0 / 6.0)),
        ],
        ..PLAIN
    },
    // Interval 4, latency 8: issues in t+4, t+8, t+12, EXIT in t+13, complete in t+20. 21 cycles, 4 issues.
    Worked {
        name: "double-precision adds",
        text: "DADD R0, R8, R10\nDADD R2, R8, R10\nDADD R4, R8, R10\nEXIT",
        values: &[
            ("smsp__pcsamp_sample_count", Number(21.0)),
            (stalled!("math_pipe_throttle"), Number(6.0 / 4.0)),
            (stalled!("drain"), Number(7.0 / 4.0)),
            (
                "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active",
                Number(100.0 * 12.0 / 21.0),
            ),
        ],
        ..PLAIN
    },
    // Integer adds, interval 2: t+4, t+6. A reciprocal, interval 8 and latency 14: t+7. EXIT in t+8, complete in t+21. 22 cycles, 4 issues.
    Worked {
        name: "integer adds and a reciprocal",
        text: "IADD3 R0, PT, R8, R9, RZ, PT\nIADD3 R1, PT, R8, R9, RZ, PT\nMUFU.RCP R2, R8\nEXIT",
        values: &[
            ("smsp__pcsamp_sample_count", Number(22.0)),
            (
                "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active",
                Number(100.0 * 4.0 / 22.0),
            ),
            (
                "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",
                Number(100.0 * 8.0 / 22.0),
            ),
        ],
        ..PLAIN
    },
    // The product holds its pipe for 8 cycles, and is complete 24 after its issue in t+4. 29 cycles, 2 issues.
    Worked {
        name: "matrix product",
        text: "MMA.16816F16.F32 R16, R4, R8, R16\nEXIT",
        values: &[(
            "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
            Number(100.0 * 8.0 / 29.0),
        )],
        ..PLAIN
    },
    // BRA issues in t+4 and is resolved. The fetch at its target starts in t+8, and EXIT issues in t+12. 13 cycles, 2 issues.
    Worked {
        name: "jump",
        text: "BRA 2\nEXIT\nEXIT",
        values: &[
            ("smsp__pcsamp_sample_count", Number(13.0)),
            (stalled!("branch_resolving"), Number(3.0 / 2.0)),
            (stalled!("no_instruction"), Number(8.0 / 2.0)),
            // BRA and EXIT.
            ("smsp__inst_executed_op_branch.sum", Number(2.0)),
            ("smsp__sass_branch_targets_threads_divergent.sum", Number(0.0)),
            ("smsp__sass_average_branch_targets_threads_uniform.pct", Number(100.0)),
        ],
        ..PLAIN
    },
    // Lanes 0 to 7 take the first branch, and all that meet the second one take it. 8 lanes execute the FADD.
    Worked {
        name: "divergent branch",
        text: "S2R R0, SR_LANEID\nISETP.LT.AND.S32 P0, PT, R0, 0x8, PT, PT\n@P0 FADD R1, R2, R3\n@P0 BRA 5\nEXIT\nBRA 6\nEXIT",
        values: &[
            // Two BRA, and an EXIT on each path.
            ("smsp__inst_executed_op_branch.sum", Number(4.0)),
            ("smsp__sass_branch_targets_threads_divergent.sum", Number(1.0)),
            ("smsp__sass_average_branch_targets_threads_uniform.pct", Number(50.0)),
            // S2R, ISETP, FADD and the first BRA in 32 lanes, EXIT in 24, BRA and EXIT in 8.
            ("smsp__inst_executed.sum", Number(7.0)),
            (
                "smsp__thread_inst_executed_per_inst_executed.ratio",
                Number((4.0 * 32.0 + 24.0 + 2.0 * 8.0) / 7.0),
            ),
            ("smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", Number(8.0)),
        ],
        ..PLAIN
    },
    // A block of 20 threads. The scheduler resolves EXIT itself, so one instruction is sent to a pipe.
    Worked {
        name: "part of a warp",
        text: "FADD R0, R1, R2\nEXIT",
        shape: (1, 20),
        values: &[
            ("smsp__thread_inst_executed_per_inst_executed.ratio", Number(20.0)),
            (
                "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
                Number(20.0),
            ),
            ("launch__block_size", Number(20.0)),
        ],
        ..PLAIN
    },
    // The fence issues in t+4, and the next instruction `sm.fence.gpu_latency` 60 later. 65 cycles, 2 issues.
    Worked {
        name: "fence",
        text: "MEMBAR.GPU\nEXIT",
        values: &[
            ("smsp__pcsamp_sample_count", Number(65.0)),
            (stalled!("membar"), Number(59.0 / 2.0)),
        ],
        ..PLAIN
    },
    // A load from shared memory issues in t+4. Its reader issues 23 later, after 22 cycles, and EXIT in t+28. The reader is complete in
    // t+31. 32 cycles, 3 issues.
    Worked {
        name: "load from shared memory",
        text: "LD.SHARED.B32 R0, [RZ]\nIADD3 R1, PT, R0, RZ, RZ, PT\nEXIT",
        values: &[
            ("smsp__pcsamp_sample_count", Number(32.0)),
            (stalled!("short_scoreboard"), Number(22.0 / 3.0)),
            ("smsp__sass_inst_executed_op_shared_ld.sum", Number(1.0)),
            ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", Number(1.0)),
            ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", Number(0.0)),
        ],
        ..PLAIN
    },
    // The sleep issues in t+4 and ends in t+104: 100 ns are 100 cycles. 105 cycles, 2 issues.
    Worked {
        name: "sleep",
        text: "NANOSLEEP 0x64\nEXIT",
        values: &[
            ("smsp__pcsamp_sample_count", Number(105.0)),
            (stalled!("sleeping"), Number(99.0 / 2.0)),
        ],
        ..PLAIN
    },
    // Five warps: 0 to 3 start in t, one on each sub-core, and 4 in t+1 on sub-core 0. Warp 0 fetches until t+2, so the first fetch for
    // warp 4 is in t+3. The barrier issues in t+4, and for warp 4 in t+7. Counting an arrival takes 2 cycles: the fifth one counts in
    // t+14, and the barrier opens 21 later, in t+35. Four EXITs issue in t+35, and the second one of sub-core 0 in t+36. Barrier:
    // 4 x 30 + 27. No instruction: 4 x 4 + 6. Active: 37 + 3 x 36. 10 issues.
    Worked {
        name: "barrier",
        text: "BAR 0x0, 0x0\nEXIT",
        shape: (1, 160),
        values: &[
            (stalled!("barrier"), Number(147.0 / 10.0)),
            (stalled!("not_selected"), Number(1.0 / 10.0)),
            (stalled!("no_instruction"), Number(22.0 / 10.0)),
            ("smsp__pcsamp_sample_count", Number(180.0)),
            ("smsp__warps_active.avg.per_cycle_active", Number(180.0 / 145.0)),
            ("smsp__issue_active.avg.per_cycle_active", Number(10.0 / 145.0)),
            // Both warps of sub-core 0 are eligible in t+35.
            ("smsp__warps_eligible.avg.per_cycle_active", Number(11.0 / 145.0)),
        ],
        ..PLAIN
    },
    // Stores to shared memory enter the queue in t+4, 5, 6 and 8: the buffer has room for three. The LSU takes the first one 2 cycles after
    // its issue, and one every `sm.lsu.issue_interval` 4 then. A credit is back a cycle later: in t+7, 11, 15. So the fifth store issues in
    // t+9. The sixth one waits for a cycle until t+11, and the seventh one for 3 until t+15. 8 issues.
    Worked {
        name: "stores to shared memory",
        text: "ST.SHARED.B32 [RZ], R4\nST.SHARED.B32 [RZ], R4\nST.SHARED.B32 [RZ], R4\nST.SHARED.B32 [RZ], R4\n\
               ST.SHARED.B32 [RZ], R4\nST.SHARED.B32 [RZ], R4\nST.SHARED.B32 [RZ], R4\nEXIT",
        values: &[
            (stalled!("mio_throttle"), Number(4.0 / 8.0)),
            ("smsp__sass_inst_executed_op_shared_st.sum", Number(7.0)),
        ],
        ..PLAIN
    },
    // Stores to device memory, behind two moves of the address, wait as long. 10 issues.
    Worked {
        name: "stores to device memory",
        text: "MOV R2, c[0][0x160]\nMOV R3, c[0][0x164]\nST.B32 [R2], R4\nST.B32 [R2], R4\nST.B32 [R2], R4\nST.B32 [R2], R4\n\
               ST.B32 [R2], R4\nST.B32 [R2], R4\nST.B32 [R2], R4\nEXIT",
        values: &[
            (stalled!("lg_throttle"), Number(4.0 / 10.0)),
            ("smsp__sass_inst_executed_op_global_st.sum", Number(7.0)),
        ],
        ..PLAIN
    },
    // A memory that answers after 50 cycles: a value is usable 7 cycles later than that. The first access of a grid also invalidates the L1,
    // in a cycle. The moves issue in t+4 and t+6, the first load 4 later in t+10, its reader in t+68. The second load issues in t+69, its
    // reader in t+126, and EXIT in t+127. The reader is complete in t+130. 131 cycles, 7 issues.
    Worked {
        name: "loads from an ideal memory",
        text: "MOV R2, c[0][0x160]\nMOV R3, c[0][0x164]\nLD.B32 R4, [R2]\nIADD3 R5, PT, R4, RZ, RZ, PT\n\
               LD.B32 R6, [R2]\nIADD3 R7, PT, R6, RZ, RZ, PT\nEXIT",
        sets: &[("topology.sms_per_tpc", "1"), ("sm.ideal_memory_latency", "50")],
        values: &[
            ("smsp__pcsamp_sample_count", Number(131.0)),
            (stalled!("long_scoreboard"), Number((57.0 + 56.0) / 7.0)),
            (
                "smsp__warp_issue_stalled_long_scoreboard_per_warp_active.pct",
                Number(100.0 * 113.0 / 131.0),
            ),
            ("smsp__pcsamp_warps_issue_stalled_long_scoreboard", Number(113.0)),
            (
                "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued",
                Number(113.0),
            ),
        ],
        ..PLAIN
    },
    // Lane l uses word l of a line. The first load takes the line from memory, the second one finds it in the L1. The store goes to the
    // next line.
    Worked {
        name: "line loaded twice, line stored",
        text: "S2R R0, SR_LANEID\nIMAD.WIDE.S32 R2, R0, 0x4, c[0][0x160]\nLD.B32 R4, [R2]\nIADD3 R5, PT, R4, RZ, RZ, PT\n\
               LD.B32 R6, [R2]\nST.B32 [R2+0x80], R5\nEXIT",
        values: &[
            ("smsp__sass_inst_executed_op_global_ld.sum", Number(2.0)),
            ("smsp__sass_inst_executed_op_global_st.sum", Number(1.0)),
            ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", Number(2.0)),
            ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", Number(8.0)),
            ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum", Number(4.0)),
            (
                "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_miss.sum",
                Number(4.0),
            ),
            ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", Number(4.0)),
            (
                "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
                Number(4.0),
            ),
            (
                "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio",
                Number(32.0),
            ),
            ("derived__memory_l2_theoretical_sectors_global_excessive", Number(0.0)),
            // 4 of 8 loaded and 4 stored sectors.
            ("l1tex__t_sector_hit_rate.pct", Number(100.0 * 4.0 / 12.0)),
            ("lts__t_sectors.sum", Number(8.0)),
            ("lts__t_sector_hit_rate.pct", Number(0.0)),
            ("dram__bytes_read.sum", Number(128.0)),
            // The L2 writes the line back after the launch.
            ("dram__bytes_write.sum", Number(0.0)),
            ("dram__bytes_write_after_launch.sum", Number(128.0)),
            // A cycle is a nanosecond.
            (
                "dram__bytes.sum.per_second",
                Over(128.0 * 1e9, "gpc__cycles_elapsed.max"),
            ),
            // The LSU takes an instruction every 2 cycles. One of 2 SMs is active.
            (
                "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active",
                Over(100.0 * 3.0 * 2.0 / 2.0, "sm__cycles_active.avg"),
            ),
            // Lookups and responses of the L1: those of three accesses, and of the invalidation at the start of a grid.
            (
                "l1tex__throughput.avg.pct_of_peak_sustained_active",
                Over(100.0 * 4.0 / 2.0, "sm__cycles_active.avg"),
            ),
            // Data array of the L2, 64 bytes per cycle: 2 cycles for the fill and 2 for the store, over 2 slices.
            (
                "lts__throughput.avg.pct_of_peak_sustained_elapsed",
                Over(100.0 * 4.0 / 2.0, "gpc__cycles_elapsed.max"),
            ),
            // Request network, 32 bytes per cycle to a slice: 1 cycle for the load and 4 for the store, over 2 slices.
            (
                "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
                Over(100.0 * 5.0 / 2.0, "gpc__cycles_elapsed.max"),
            ),
        ],
        ..PLAIN
    },
    // The launch has written bank 0 into the L1.5. Both constants are absent from the sub-core's cache, in two lines of 64 bytes: 40 cycles
    // each. 3 issues.
    Worked {
        name: "absent constants",
        text: "FADD R3, R1, c[0][0x160]\nFADD R4, R1, c[0][0x180]\nEXIT",
        sets: &[("sm.constant.l15_size", "2048")],
        values: &[(stalled!("imc_miss"), Number((40.0 + 40.0) / 3.0))],
        ..PLAIN
    },
    // One word of each of 32 lines.
    Worked {
        name: "load with gaps",
        text: "S2R R0, SR_LANEID\nIMAD.WIDE.S32 R2, R0, 0x80, c[0][0x160]\nLD.B32 R4, [R2]\nEXIT",
        values: &[
            ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", Number(1.0)),
            ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", Number(32.0)),
            (
                "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
                Number(32.0),
            ),
            (
                "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio",
                Number(4.0),
            ),
            // 128 bytes fit 4 sectors.
            ("derived__memory_l2_theoretical_sectors_global_excessive", Number(28.0)),
        ],
        ..PLAIN
    },
    // A line of each of these pages of 4 KiB: 0, 1, 2, 0, 1, 1, with two entries. Pages 0 and 1 take the free entries. Page 2 replaces page 0,
    // 0 replaces 1, and 1 replaces 2. The last load hits. No line is loaded twice, so that the L1 has none of them.
    Worked {
        name: "three pages in two TLB entries",
        text: "MOV R2, c[0][0x160]\nMOV R3, c[0][0x164]\nLD.B32 R4, [R2]\nLD.B32 R5, [R2+0x1000]\nLD.B32 R6, [R2+0x2000]\n\
               LD.B32 R7, [R2+0x80]\nLD.B32 R8, [R2+0x1080]\nLD.B32 R9, [R2+0x1100]\nEXIT",
        sets: &[("sm.tlb.entries", "2"), ("sm.tlb.page", "4096")],
        values: &[
            ("l1tex__tlb_lookups_hit.sum", Number(3.0)),
            ("l1tex__tlb_lookups_miss.sum", Number(3.0)),
        ],
        ..PLAIN
    },
    // Every second word: two lanes on each of 16 banks, so two passes for the store and two for the load.
    Worked {
        name: "bank conflicts",
        text: "S2R R0, SR_LANEID\nIMAD R1, R0, 0x8, RZ\nST.SHARED.B32 [R1], R0\nLD.SHARED.B32 R2, [R1]\nEXIT",
        values: &[
            ("smsp__sass_inst_executed_op_shared_ld.sum", Number(1.0)),
            ("smsp__sass_inst_executed_op_shared_st.sum", Number(1.0)),
            ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", Number(4.0)),
            ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", Number(2.0)),
            ("derived__memory_l1_wavefronts_shared_excessive", Number(2.0)),
        ],
        ..PLAIN
    },
    Worked {
        name: "local memory",
        text: "ST.LOCAL.B32 [RZ], R4\nLD.LOCAL.B32 R5, [RZ]\nEXIT",
        values: &[
            ("smsp__sass_inst_executed_op_local_ld.sum", Number(1.0)),
            ("smsp__sass_inst_executed_op_global_ld.sum", Number(0.0)),
        ],
        ..PLAIN
    },
    // One read port for each of 2 register banks. Each instruction reads 3 registers of bank 0: 2 cycles more than without a conflict. So
    // they are collected in t+5, 7, 9, 11, each a cycle after its issue at the earliest. Of `sm.collector_entries` 3 the collector has
    // one, and 2 wait before it. The two pipes take turns, so they hold nothing back. The first three issue in t+4, 5 and 6, and
    // the fourth one is fetched for t+8. Its entry is that of the second one, free in t+8. EXIT could issue in t+9. Its entry is that of the third
    // one, free in t+10: a cycle of stall. 5 issues.
    Worked {
        name: "register bank conflicts",
        text: "FFMA R1, R8, R10, R12\nIADD3 R3, PT, R8, R10, R12, PT\nFFMA R5, R8, R10, R12\nIADD3 R7, PT, R8, R10, R12, PT\nEXIT",
        sets: &[("sm.register_read_ports", "1")],
        values: &[(stalled!("dispatch_stall"), Number(1.0 / 5.0))],
        ..PLAIN
    },
];

/// Every program with worked values.
fn programs() -> impl Iterator<Item = &'static Worked> {
    let parts = [WORKED, operations::WORKED, memory::WORKED, states::WORKED];
    parts.into_iter().flatten()
}

/// Metrics without a counter in the model. There is no instruction cache.
fn not_modelled() -> impl Iterator<Item = String> {
    ["sm__icc_request_hit_rate.pct".to_owned()]
        .into_iter()
        .chain(states::unmodelled_names())
}

/// A run of a program on one machine.
pub(crate) struct Measured {
    counts: Counts,
    gpu: Gpu,
    shape: LaunchShape,
}

impl Worked {
    fn measured(&self) -> Measured {
        Measured::of(self.text, self.shape, self.sets)
    }
}

impl Measured {
    /// Runs a program on `tiny` with these settings. The shape is the number of CTAs, and the threads of each.
    pub(crate) fn of(text: &str, cta_shape: (u32, u32), sets: &[(&str, &str)]) -> Self {
        let sets: Vec<_> = sets
            .iter()
            .map(|&(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        let mut gpu = Gpu::new(preset::load("tiny", &sets).unwrap().config);
        let buffer = gpu.storage().allocate(1 << 16).unwrap();
        let before = Counts::of(gpu.components(), gpu.clock().now());
        let grid = grid(text, cta_shape, buffer, &gpu);
        let shape = LaunchShape {
            ctas: grid.ctas(),
            threads: grid.threads(),
            registers: REGISTERS,
            shared_bytes: SHARED_BYTES,
            occupancy: occupancy(gpu.config(), grid.threads(), REGISTERS, SHARED_BYTES).unwrap(),
        };
        gpu.launch(grid, Some(100_000), &mut |_| true).unwrap();
        let counts = before.next_snapshot(gpu.components(), gpu.clock().now()).since(&before);
        Measured { counts, gpu, shape }
    }

    fn value(&self, name: &str) -> Value {
        let metric = metrics::find(name).unwrap_or_else(|| panic!("{name} is a metric"));
        metric.value(&Inputs {
            counts: &self.counts,
            config: self.gpu.config(),
            cycles: self.gpu.latest().cycles(),
            launch: Some(self.shape),
        })
    }

    pub(crate) fn number(&self, name: &str) -> f64 {
        let value = self.value(name);
        value.number().unwrap_or_else(|| panic!("{name} is {value}"))
    }
}

fn grid(text: &str, (ctas, threads): (u32, u32), buffer: u64, gpu: &Gpu) -> Grid {
    let code = text.lines().map(|line| line.parse().expect(line)).collect();
    let needs = Requirements {
        registers: REGISTERS,
        shared_bytes: SHARED_BYTES,
        local_bytes: 16,
        ..Requirements::default()
    };
    let mut bank = vec![0; 0x200 / 4];
    bank[bank0::BLOCK_SIZE as usize / 4] = threads;
    bank[bank0::PARAMS as usize / 4] = buffer as u32;
    bank[bank0::PARAMS as usize / 4 + 1] = (buffer >> 32) as u32;
    Grid {
        id: 0,
        program: Arc::new(Program::new("worked", code, needs)),
        grid: [ctas, 1, 1],
        block: [threads, 1, 1],
        cluster: [1; 3],
        shared_bytes: SHARED_BYTES,
        dynamic_shared_bytes: 0,
        registers: REGISTERS,
        allocations: gpu.storage().allocations(),
        textures: vec![row_of_floats(buffer)],
        local_base: 0,
        l1_bytes: 0,
        constants: vec![bank],
        ctas_per_sm: occupancy(gpu.config(), threads, REGISTERS, SHARED_BYTES)
            .unwrap()
            .blocks,
        timing: Vec::new(),
        predecoded: Arc::default(),
    }
}

/// An image of 32 floats in a row.
fn row_of_floats(base: u64) -> Texture {
    Texture {
        base,
        width: 32,
        height: 1,
        depth: 1,
        channel: Ty::F32,
        channels: 1,
        address_mode: AddressMode::default(),
        normalized_coords: false,
        linear_filter: false,
        normalized_values: false,
        order: TexelOrder::default(),
    }
}

#[test]
fn every_worked_value_is_that_of_the_hand_count() {
    let mut wrong = Vec::new();
    for case in programs() {
        let run = case.measured();
        for (name, is) in case.values {
            let want = match *is {
                Number(number) => number,
                Over(number, other) => number / run.number(other),
            };
            let found = run.number(name);
            if (found - want).abs() > 1e-9 * want.abs().max(1.0) {
                wrong.push(format!("{}: {name} is {found}, not {want} ({is:?})", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_metric_has_a_worked_value() {
    let values = programs().flat_map(|case| case.values);
    let worked: BTreeSet<&str> = values.map(|(name, _)| *name).collect();
    let of_states = states::worked_names();
    let unmodelled: BTreeSet<String> = not_modelled().collect();
    let is_covered =
        |name: &String| worked.contains(name.as_str()) || of_states.contains(name) || unmodelled.contains(name);
    let names = metrics::all().iter().map(|metric| &metric.name);
    let missing: Vec<&String> = names.filter(|name| !is_covered(name)).collect();
    assert!(missing.is_empty(), "no worked value: {missing:#?}");
}

#[test]
fn every_row_of_the_profilers_list_is_a_metric() {
    let list = include_str!("profiler_rows.txt");
    let rows: Vec<&str> = list.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(rows.iter().collect::<BTreeSet<_>>().len(), 88, "each row once");
    let missing: Vec<_> = rows.iter().filter(|row| metrics::find(row).is_none()).collect();
    assert!(missing.is_empty(), "no metric: {missing:#?}");
}

#[test]
fn rows_without_a_counter_say_so() {
    let run = WORKED[0].measured();
    for row in not_modelled() {
        assert_eq!(run.value(&row), Value::NotModelled, "{row}");
    }
}

#[test]
fn block_of_one_exit_is_resident_for_seven_cycles() {
    // The comment of the first program: from the admission in t-2 until the message of its end is there in t+5.
    let run = WORKED[0].measured();
    let (_, latency) = run.counts.latencies().find(|(name, _)| *name == "cta").unwrap();
    let cycles = latency.histogram();
    assert_eq!((cycles.len(), cycles.min(), cycles.max()), (1, 7, 7));
}
