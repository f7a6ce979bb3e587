//! Metrics of time, and metrics that follow from the shape of a launch.

use warpwave_components::config::GpuConfig;
use warpwave_components::occupancy::registers_per_warp;

use super::Row;
use crate::report::metrics::{Inputs, LaunchShape, Value};

fn seconds(i: &Inputs<'_>) -> f64 {
    i.cycles as f64 / (f64::from(i.config.clocks.core_khz) * 1e3)
}

pub(super) const TIME: &[Row] = &[
    (
        "gpu__time_duration.sum",
        "ns",
        "gpu",
        "Time of the launch at the preset's core clock.",
        "gpc__cycles_elapsed.max / core clock",
        |i| Value::Number(seconds(i) * 1e9),
    ),
    (
        "gpc__cycles_elapsed.max",
        "cycle",
        "gpu",
        "Core cycles from the launch until GigaThread has seen its last block end. Idle SMs count too.",
        "end cycle - start cycle",
        |i| i.cycles(),
    ),
    (
        "gpc__cycles_elapsed.avg.per_second",
        "Hz",
        "gpu",
        "Core clock, from the preset.",
        "clocks.core_khz x 1000",
        |i| Value::Number(f64::from(i.config.clocks.core_khz) * 1e3),
    ),
    (
        "sm__cycles_active.avg",
        "cycle",
        "cta",
        "Cycles in which an SM held at least one warp, mean over SMs.",
        "mean of active_cycles",
        |i| i.mean("cta", "active_cycles"),
    ),
    (
        "sm__cycles_active.min",
        "cycle",
        "cta",
        "Cycles with at least one warp, of the SM that was active for the fewest cycles.",
        "least active_cycles",
        |i| i.least("cta", "active_cycles"),
    ),
    (
        "sm__cycles_active.max",
        "cycle",
        "cta",
        "Cycles with at least one warp, of the SM that was active for the most cycles.",
        "greatest active_cycles",
        |i| i.greatest("cta", "active_cycles"),
    ),
    (
        "smsp__cycles_active.avg",
        "cycle",
        "scheduler",
        "Cycles in which a scheduler had at least one warp, mean over schedulers.",
        "mean of active_cycles",
        |i| i.mean("scheduler", "active_cycles"),
    ),
    (
        "sm__ctas_launched.sum",
        "block",
        "cta",
        "Blocks placed on SMs.",
        "sum of ctas of gigathread",
        |i| i.sum("gigathread", "ctas"),
    ),
];

fn limit(allowed: Option<u32>) -> Value {
    // A kernel that does not use the resource has no limit by it.
    allowed.map_or(Value::NotReached, |blocks| Value::of(blocks.into()))
}

/// Registers allocated per thread: a warp's registers rounded up to whole units.
fn allocated_registers(launch: &LaunchShape, config: &GpuConfig) -> u32 {
    registers_per_warp(config, launch.registers) / config.limits.warp_size
}

pub(super) const SHAPE: &[Row] = &[
    (
        "launch__grid_size",
        "block",
        "host",
        "Blocks of the grid.",
        "x * y * z",
        |i| i.launch(|launch| launch.ctas as f64),
    ),
    (
        "launch__block_size",
        "thread",
        "host",
        "Threads of a block.",
        "x * y * z",
        |i| i.launch(|launch| launch.threads.into()),
    ),
    (
        "launch__thread_count",
        "thread",
        "host",
        "Threads of the launch.",
        "launch__grid_size x launch__block_size",
        |i| i.launch(|launch| launch.ctas as f64 * f64::from(launch.threads)),
    ),
    (
        "launch__registers_per_thread",
        "register",
        "host",
        "Registers of a thread: the most that are live at once in the lowered PTX. The vendor's assembler may use more or fewer.",
        "from the program",
        |i| i.launch(|launch| launch.registers.into()),
    ),
    (
        "launch__registers_per_thread_allocated",
        "register",
        "host",
        "Registers of a thread after a warp's registers are rounded up to whole allocation units.",
        "registers x 32 rounded up to limits.register_unit (see `warpwave occupancy`), / 32",
        |i| i.launch(|launch| allocated_registers(launch, i.config).into()),
    ),
    (
        "launch__shared_mem_per_block",
        "B",
        "host",
        "Shared memory of a block: static, dynamic, and the part reserved by the system.",
        "static + dynamic + limits.shared_reserved_per_block",
        |i| i.launch(|launch| f64::from(launch.shared_bytes + i.config.limits.shared_reserved_per_block)),
    ),
    (
        "launch__shared_mem_config_size",
        "B",
        "host",
        "Carve-out: the part of the unified L1 array that serves as shared memory in this launch.",
        "the smallest carve-out that holds all resident blocks",
        |i| i.launch(|launch| launch.occupancy.carveout.into()),
    ),
    (
        "launch__waves_per_multiprocessor",
        "wave",
        "host",
        "Waves: blocks of the grid per blocks that all SMs hold at once.",
        "launch__grid_size / (SMs x blocks per SM)",
        // `blocks` is not 0: the host refuses a block that does not fit an SM.
        |i| i.launch(|launch| launch.ctas as f64 / f64::from(i.config.n_sms() * launch.occupancy.blocks)),
    ),
    (
        "launch__occupancy_limit_registers",
        "block",
        "host",
        "Limit of the blocks per SM by registers.",
        "see `warpwave occupancy`",
        |i| {
            i.launch
                .map_or(Value::NotReached, |launch| limit(launch.occupancy.allowed.registers))
        },
    ),
    (
        "launch__occupancy_limit_shared_mem",
        "block",
        "host",
        "Limit of the blocks per SM by shared memory.",
        "see `warpwave occupancy`",
        |i| {
            i.launch
                .map_or(Value::NotReached, |launch| limit(launch.occupancy.allowed.shared))
        },
    ),
    (
        "launch__occupancy_limit_warps",
        "block",
        "host",
        "Limit of the blocks per SM by warp slots.",
        "limits.max_warps_per_sm / warps of a block",
        |i| i.launch(|launch| launch.occupancy.allowed.warps.into()),
    ),
    (
        "launch__occupancy_limit_blocks",
        "block",
        "host",
        "Limit of the blocks per SM by block slots.",
        "limits.max_blocks_per_sm",
        |i| i.launch(|launch| launch.occupancy.allowed.blocks.into()),
    ),
    (
        "sm__maximum_warps_per_active_cycle_pct",
        "%",
        "host",
        "Theoretical occupancy: warps per SM that the limits allow, in per cent of an SM's warp slots.",
        "resident warps / limits.max_warps_per_sm x 100",
        |i| i.launch(|launch| launch.occupancy.percent),
    ),
    (
        "smsp__maximum_warps_avg_per_active_cycle",
        "warp",
        "host",
        "Theoretical occupancy in warps per scheduler.",
        "resident warps / sm.subcores",
        |i| i.launch(|launch| f64::from(launch.occupancy.warps) / f64::from(i.config.sm.subcores)),
    ),
];
