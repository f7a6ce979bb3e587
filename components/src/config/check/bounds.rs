//! Least and greatest values of a configuration. A bound that is not a GPU's says that it is a limit of the simulator.

use toml::Value;
use warpwave_hw::tile::MAX_COMPONENTS;
use warpwave_isa::control::DEP_BARRIERS;

use super::{BEYOND_ANY_PART, Faults, GpuConfig, entry};
use crate::config::{MAX_CHANNEL_QUEUE, N_PIPES, keys};
use crate::proto::cluster::{MAX_CTA_SLOTS, MAX_REMOTE_BYTES};
use crate::proto::mem::{LINE, SECTORS};
use crate::proto::warp::MAX_SLOTS;
use crate::storage::BASE;

/// Components of an SM outside its sub-cores: CTA manager, LSU, L1, shared memory, L1.5 constant cache, copy engine.
const SM_COMPONENTS: usize = 6;

/// Components of a sub-core: scheduler, dispatch unit, branch unit, and a component for each math pipe.
const SUBCORE_COMPONENTS: usize = 3 + N_PIPES - 2;

/// Maximum number of cycles of another clock in one core cycle. Clocks of real parts differ by less than 4 times. Every cycle of a busy
/// channel is simulated.
const MAX_CLOCK_RATIO: u64 = 1000;

/// Width of the bit masks for the warps of a sub-core, the CTAs of an SM, and the warps of a CTA.
const MAX_WARPS: u32 = MAX_SLOTS as u32;
const MAX_CTAS: u32 = MAX_CTA_SLOTS as u32;
const MAX_BLOCK_THREADS: u32 = 32 * u64::BITS;

/// Maximum number of instructions in a warp's buffer: the count is one byte.
const MAX_BUFFERED: u32 = u8::MAX as u32;

/// Minimum of `gigathread.standstill_cycles`: longer than a store is in flight on any part.
const SHORTEST_PERIOD: u64 = 10_000;

/// Bounds of `limits.heap_bytes`. The heap's own data take 256 bytes, and the size of a block has 32 bits.
const SMALLEST_HEAP: u64 = 1 << 10;
const LARGEST_HEAP: u64 = 1 << 30;

/// Keys that may be zero.
const MAY_BE_ZERO: [&str; 25] = [
    "cc_minor",
    "check.seed",
    "check.weak",
    "cluster.barrier_latency",
    "cluster.bytes_per_cycle",
    "cluster.load_latency",
    "cluster.max_ctas",
    "gigathread.launch_interval",
    "gigathread.standstill_cycles",
    "gigathread.turnover_latency",
    "hbm.check_interval",
    "hbm.latency_extra",
    "hbm.write_drain_stop",
    "l2.far_latency",
    "limits.shared_reserved_per_block",
    "sm.barrier.per_warp",
    "sm.constant.l15_size",
    "sm.dependency_barriers",
    "sm.fence.gpu_exclusive",
    "sm.ideal_memory_latency",
    "sm.pipes.match_per_value",
    "sm.shared.conflict_latency_per_pass",
    "sm.tlb.entries",
    "sm.tma.latency",
    "sm.tma.pieces",
];

/// Maximum of a count, depth or number of cycles. A larger number is a typing error, and could exhaust the host's memory.
const MOST: u64 = 1 << 16;

/// True for numbers that may be larger than [`MOST`]: bytes, registers, frequencies, and the cycles of a test by the host.
fn is_large(key: &str) -> bool {
    let name = key.rsplit('.').next().unwrap_or(key);
    matches!(name, "size" | "page")
        || name.ends_with("_khz")
        || key == "memory_bytes"
        || key == "gigathread.standstill_cycles"
        || key.starts_with("limits.")
}

/// Refuses counts that are 0.
pub(super) fn check_zeros(config: &GpuConfig, faults: &mut Faults) {
    for (key, value) in keys::flatten(config) {
        let is_zero = value == Value::Integer(0) && !MAY_BE_ZERO.contains(&key.as_str());
        faults.require(!is_zero, (&key, 0), "be at least 1");
    }
}

/// Refuses counts beyond [`MOST`].
pub(super) fn check_excessive(config: &GpuConfig, faults: &mut Faults) {
    for (key, value) in keys::flatten(config).into_iter().filter(|(key, _)| !is_large(key)) {
        if let Value::Integer(value) = value {
            // Not negative: the fields of a configuration are unsigned.
            faults.at_most((&key, value as u64), MOST, BEYOND_ANY_PART);
        }
    }
}

/// Checks the numbers that have bounds of their own.
pub(super) fn check_bounds(config: &GpuConfig, faults: &mut Faults) {
    let subcores = config.sm.subcores;
    faults.at_most(
        entry!(config.sm.subcores),
        ((MAX_COMPONENTS - SM_COMPONENTS) / SUBCORE_COMPONENTS) as u64,
        "a limit of the simulator: one tile holds all blocks of an SM",
    );
    let fastest = MAX_CLOCK_RATIO * u64::from(config.clocks.core_khz);
    let why = "a thousand times `clocks.core_khz`, a limit of the simulator";
    faults.at_most(entry!(config.clocks.l2_khz), fastest, why);
    faults.at_most(entry!(config.clocks.memory_khz), fastest, why);
    let why = "a limit of the simulator: 64 for each of `sm.subcores`";
    let most = u64::from(MAX_WARPS) * u64::from(subcores);
    faults.at_most(entry!(config.limits.max_warps_per_sm), most, why);
    let why = "a limit of the simulator: 64 warps";
    faults.at_most(entry!(config.limits.max_threads_per_block), MAX_BLOCK_THREADS, why);
    let why = "a limit of the simulator";
    faults.at_most(entry!(config.limits.max_blocks_per_sm), MAX_CTAS, why);
    faults.at_least(
        entry!(config.limits.heap_bytes),
        SMALLEST_HEAP,
        "a limit of the simulator",
    );
    faults.at_most(entry!(config.limits.heap_bytes), LARGEST_HEAP, why);
    faults.at_most(entry!(config.sm.ibuffer_entries), MAX_BUFFERED, why);
    if let (1.., Some(&largest)) = (config.cluster.max_ctas, config.limits.shared_carveouts.last()) {
        let why = "a limit of the simulator: the bytes that a packet between SMs can name";
        faults.at_most(("limits.shared_carveouts", largest.into()), MAX_REMOTE_BYTES, why);
    }
    let why = "the barriers that a control word can name";
    faults.at_most(entry!(config.sm.dependency_barriers), DEP_BARRIERS as u64, why);
    if config.gigathread.standstill_cycles > 0 {
        let why = "a shorter period could end while a store is in flight";
        faults.at_least(entry!(config.gigathread.standstill_cycles), SHORTEST_PERIOD, why);
    }
    let reach = (1 << u32::BITS) * LINE as u64 - BASE;
    let why = "a limit of the simulator: line numbers have 32 bits";
    faults.at_most(entry!(config.memory_bytes), reach, why);
    faults.power_of_two(entry!(config.sm.tlb.page));
    faults.at_least(entry!(config.sm.tlb.page), LINE as u64, "the bytes of a line");
    let why = "the sectors of a line";
    faults.at_least(entry!(config.l2.mshr_entries), SECTORS as u64, why);
    faults.at_least(entry!(config.sm.l1.mshr_entries), SECTORS as u64, why);
    faults.at_most(
        entry!(config.hbm.queue_depth),
        MAX_CHANNEL_QUEUE,
        "a limit of the simulator",
    );
    // Slices and channels form gcd(slices, channels) equal groups. A group is built in one tile.
    let (slices, channels) = (u64::from(config.l2.slices), u64::from(config.hbm.channels));
    faults.at_most(
        ("hbm.channels", (slices + channels) / gcd(slices, channels)),
        MAX_COMPONENTS as u64 - 1,
        "counted with `l2.slices` over their greatest common divisor, a limit of the simulator: one tile holds a group",
    );
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
