//! Numbers of one streaming multiprocessor, from fetch to L1.

use serde::{Deserialize, Serialize};

use super::ReplacementPolicy;
use super::pipe::Pipes;

/// Cycles of an L1 hit outside the L1. There: dispatch, LSU in, LSU out, L1. Back: LSU, write port, scheduler.
pub const OUTSIDE_L1: u32 = 7;

/// One streaming multiprocessor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sm {
    /// Sub-cores, each with a scheduler that issues one instruction per cycle.
    pub subcores: u32,
    /// Which ready warp a scheduler takes.
    pub scheduler: SchedulerPolicy,
    /// Decoded instructions waiting, per warp.
    pub ibuffer_entries: u32,
    /// Cycles from the fetch of an instruction to its place in the ibuffer.
    pub fetch_latency: u32,
    /// Cycles from the issue of a branch to the fetch at its target.
    pub branch_latency: u32,
    /// Issued instructions not yet in a pipe, per sub-core: one reads its operands, the others wait for it in order. At least 2, as one
    /// is on its way from the scheduler.
    pub collector_entries: u32,
    /// Register-file banks per sub-core; a register's bank is its number modulo this.
    pub register_banks: u32,
    /// Warp-wide registers read per bank and cycle.
    pub register_read_ports: u32,
    /// Arithmetic pipes of a sub-core.
    pub pipes: Pipes,
    /// Load and store path.
    pub lsu: Lsu,
    /// Shared memory.
    pub shared: Shared,
    /// Constant cache.
    pub constant: Constant,
    /// CTA barrier.
    pub barrier: Barrier,
    /// Memory fences.
    pub fence: Fence,
    /// First-level data cache.
    pub l1: L1,
    /// Bulk copies.
    pub tma: Tma,
}

/// Which of the ready warps a scheduler issues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulerPolicy {
    /// The next ready warp after the one issued last.
    LooseRoundRobin,
    /// The warp issued last while it is ready, otherwise the oldest ready one.
    GreedyThenOldest,
    /// The oldest ready warp.
    OldestFirst,
}

/// The path that loads, stores and atomics share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lsu {
    /// Memory instructions waiting, per sub-core.
    pub queue_depth: u32,
    /// Cycles that a sub-core's address unit takes per memory instruction.
    pub issue_interval: u32,
    /// Least cycles between two memory instructions that the SM accepts from its sub-cores.
    pub accept_interval: u32,
    /// Memory instructions of the SM whose accesses are still under way.
    pub pending_requests: u32,
}

/// Shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shared {
    /// Banks, one word each per cycle: 32, what this model has.
    pub banks: u32,
    /// Bytes of a bank's word: 4, what this model has.
    pub bank_bytes: u32,
    /// Issue to dependent issue of a 32-bit load without conflict, cycles.
    pub latency: u32,
    /// Cycles that each pass beyond the first adds.
    pub conflict_latency_per_pass: u32,
    /// Issue to dependent issue of an atomic that returns its old value, no two lanes on one
    /// word, cycles.
    pub atomic_latency: u32,
    /// Cycles after which a test of an mbarrier that may wait gives up.
    pub try_wait_cycles: u32,
}

/// Constant cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constant {
    /// Issue to dependent issue of a constant load that hits, one address per warp, cycles.
    pub latency: u32,
}

/// Barrier of a CTA: the last arrival releases all after `base_latency` + `per_warp` x warps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Barrier {
    /// Cycles whatever the number of warps.
    pub base_latency: u32,
    /// Cycles per warp of the CTA.
    pub per_warp: u32,
}

/// Memory fence (MEMBAR): the fewest cycles from its issue to the warp's next issue, by scope. Beyond the block it also lasts until the
/// SM's accesses before it have been performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fence {
    /// Scope of the block.
    pub cta_latency: u32,
    /// Scope of the GPU, and of a cluster.
    pub gpu_latency: u32,
    /// Scope of the system.
    pub sys_latency: u32,
}

/// First-level data cache; it shares its array with shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct L1 {
    /// Bytes of the unified array; the L1 has what the shared-memory carve-out leaves.
    pub size: u32,
    /// Bytes of a line: 128, what this model has.
    pub line: u32,
    /// Bytes of a sector: 32, what this model has.
    pub sector: u32,
    /// Ways of a set; sets = bytes left to the L1 / line / associativity.
    pub associativity: u32,
    /// Which line of a full set leaves.
    pub replacement: ReplacementPolicy,
    /// What a store does to its line.
    pub write_policy: WritePolicy,
    /// Issue to dependent issue of a 32-bit load, all lanes in one line, hit, cycles.
    pub hit_latency: u32,
    /// Sectors in flight to the L2.
    pub mshr_entries: u32,
    /// Requests that may wait on one sector in flight, the first included.
    pub mshr_merges: u32,
    /// Requests that may wait on sectors in flight, all sectors together.
    pub mshr_targets: u32,
    /// Tag banks of the part: 4. The model looks up one line per cycle and has no use for them, so no other number is accepted.
    pub tag_banks: u32,
    /// Bytes that a hit delivers per cycle.
    pub data_bytes_per_cycle: u32,
    /// Sectors written that wait for the crossbar.
    pub store_queue: u32,
    /// Packets from the crossbar that wait for the LSU. While they are that many, the L1 takes no other from the crossbar.
    pub return_queue: u32,
}

/// What a store does to the lines of the L1. It goes on to the L2 in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WritePolicy {
    /// Changes sectors that are valid.
    WriteThrough,
    /// Invalidates sectors that are valid.
    WriteEvict,
    /// Changes sectors that are valid; a sector written whole becomes valid, and its line is allocated.
    WriteValidate,
}

impl WritePolicy {
    /// All policies.
    pub const ALL: [WritePolicy; 3] = [Self::WriteThrough, Self::WriteEvict, Self::WriteValidate];
}

/// The engine of bulk copies; a part without clusters has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tma {
    /// Cycles from an instruction's arrival to its first request: what a copy takes beyond an ordinary load.
    pub latency: u32,
    /// Pieces of up to 128 bytes under way.
    pub pieces: u32,
}
