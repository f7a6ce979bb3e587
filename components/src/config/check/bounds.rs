//! The least and the greatest values that the machine can be built with. A limit that is not of GPUs says that it is the simulator's.

use toml::Value;
use warpwave_hw::tile::MAX_COMPONENTS;

use super::{ConfigFault, Faults, GpuConfig};
use crate::config::{MAX_CHANNEL_QUEUE, N_PIPES, keys};
use crate::proto::mem::{LINE, SECTORS};
use crate::storage::BASE;

/// Components of an SM outside its sub-cores: CTA manager, LSU, L1, shared memory, and the copy engine.
const SM_COMPONENTS: usize = 5;

/// Components of a sub-core: scheduler, dispatch unit, branch unit, and all pipes but those of the LSU and of the branch unit.
const SUBCORE_COMPONENTS: usize = 3 + N_PIPES - 2;

/// Cycles of another clock in one of the core clock, at most. The clocks of real parts differ by less than four, and the host
/// simulates every cycle of a busy channel.
const MAX_CLOCK_RATIO: u64 = 1000;

/// Warps of a sub-core, CTAs of an SM, and warps of a CTA are bits of one word.
const MAX_WARPS: u32 = u32::BITS;
const MAX_CTAS: u32 = u64::BITS;
const MAX_BLOCK_THREADS: u32 = 32 * u64::BITS;

/// Instructions of a warp's buffer are counted in a byte.
const MAX_BUFFERED: u32 = u8::MAX as u32;

/// Keys that may be zero.
const MAY_BE_ZERO: [&str; 13] = [
    "cc_minor",
    "cluster.barrier_latency",
    "cluster.bytes_per_cycle",
    "cluster.load_latency",
    "cluster.max_ctas",
    "hbm.latency_extra",
    "hbm.write_drain_stop",
    "l2.far_latency",
    "limits.shared_reserved_per_block",
    "sm.barrier.per_warp",
    "sm.shared.conflict_latency_per_pass",
    "sm.tma.latency",
    "sm.tma.pieces",
];

/// Counts, depths and cycles are at most this many. Whatever comes near is a slip of the pen, and would take all memory there is.
const MOST: u64 = 1 << 16;

/// What is larger on real parts: bytes, registers, frequencies.
fn is_large(key: &str) -> bool {
    let name = key.rsplit('.').next().unwrap_or(key);
    name == "size" || name.ends_with("_khz") || key == "memory_bytes" || key.starts_with("limits.")
}

/// Finds the counts that are 0.
pub(super) fn zeros(config: &GpuConfig) -> Vec<ConfigFault> {
    keys::flatten(config)
        .into_iter()
        .filter(|(key, value)| *value == Value::Integer(0) && !MAY_BE_ZERO.contains(&key.as_str()))
        .map(|(key, _)| ConfigFault::Zero { key })
        .collect()
}

/// Finds the counts beyond any machine's.
pub(super) fn excessive(config: &GpuConfig) -> Vec<ConfigFault> {
    let amounts = keys::flatten(config).into_iter().filter(|(key, _)| !is_large(key));
    let excessive = amounts.filter_map(|(key, value)| match value {
        Value::Integer(value) if value as u64 > MOST => Some(ConfigFault::Excessive {
            key,
            value: value as u64,
            most: MOST,
        }),
        _ => None,
    });
    excessive.collect()
}

/// Checks the numbers that have bounds of their own.
pub(super) fn check_bounds(config: &GpuConfig, faults: &mut Faults) {
    let (limits, sm) = (&config.limits, &config.sm);
    faults.at_most(
        "sm.subcores",
        sm.subcores,
        ((MAX_COMPONENTS - SM_COMPONENTS) / SUBCORE_COMPONENTS) as u64,
        "a limit of the simulator: a tile holds the blocks of no more",
    );
    let fastest = MAX_CLOCK_RATIO * u64::from(config.clocks.core_khz);
    for (key, khz) in [
        ("clocks.l2_khz", config.clocks.l2_khz),
        ("clocks.memory_khz", config.clocks.memory_khz),
    ] {
        faults.at_most(
            key,
            khz,
            fastest,
            "a thousand times `clocks.core_khz`, a limit of the simulator",
        );
    }
    faults.at_most(
        "limits.max_warps_per_sm",
        limits.max_warps_per_sm,
        u64::from(MAX_WARPS) * u64::from(sm.subcores),
        "a limit of the simulator: 32 for each of `sm.subcores`",
    );
    faults.at_most(
        "limits.max_threads_per_block",
        limits.max_threads_per_block,
        MAX_BLOCK_THREADS,
        "a limit of the simulator: 64 warps",
    );
    for (key, value, most) in [
        ("limits.max_blocks_per_sm", limits.max_blocks_per_sm, MAX_CTAS),
        ("sm.ibuffer_entries", sm.ibuffer_entries, MAX_BUFFERED),
    ] {
        faults.at_most(key, value, most, "a limit of the simulator");
    }
    let reach = (1 << u32::BITS) * LINE as u64 - BASE;
    faults.at_most(
        "memory_bytes",
        config.memory_bytes,
        reach,
        "a limit of the simulator: numbers of lines have 32 bits",
    );
    let line = "the sectors of a line";
    faults.at_least("l2.mshr_entries", config.l2.mshr_entries, SECTORS as u64, line);
    faults.at_least("sm.l1.mshr_entries", sm.l1.mshr_entries, SECTORS as u64, line);
    faults.at_most(
        "hbm.queue_depth",
        config.hbm.queue_depth,
        MAX_CHANNEL_QUEUE,
        "a limit of the simulator",
    );
    check_group(config, faults);
}

/// Slices and channels fall into as many equal groups as can be, and a group is built as one.
fn check_group(config: &GpuConfig, faults: &mut Faults) {
    let (slices, channels) = (u64::from(config.l2.slices), u64::from(config.hbm.channels));
    let groups = gcd(slices, channels);
    faults.at_most(
        "hbm.channels",
        (slices + channels) / groups,
        MAX_COMPONENTS as u64 - 1,
        "counted with `l2.slices` over their greatest common divisor, a limit of the simulator: a tile holds no more",
    );
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
