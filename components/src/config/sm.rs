//! Numbers of one streaming multiprocessor, from fetch to L1.

use serde::{Deserialize, Serialize};
use warpwave_isa::flow;

use super::ReplacementPolicy;
use super::pipe::Pipes;

/// Cycles of an L1 hit outside the L1. To the L1: dispatch, LSU in, LSU out, L1. Back: LSU, write port, scheduler.
pub const OUTSIDE_L1: u32 = 7;

/// One streaming multiprocessor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sm {
    /// Sub-cores, each with a scheduler that issues one instruction per cycle.
    pub subcores: u32,
    /// Policy that chooses the warp that issues.
    pub scheduler: SchedulerPolicy,
    /// Progress of the lanes of a warp that have diverged.
    pub reconvergence: Reconvergence,
    /// When an ended warp frees its slot.
    pub slot_release: SlotRelease,
    /// Depth of a warp's ibuffer, instructions.
    pub ibuffer_entries: u32,
    /// Cycles from the fetch of an instruction to its entry into the ibuffer.
    pub fetch_latency: u32,
    /// Cycles from the issue of a branch to the fetch at its target.
    pub branch_latency: u32,
    /// Issued instructions not yet in a pipe, per sub-core: one reads its operands, the others wait in order. At least 2, because one is on
    /// its way from the scheduler.
    pub collector_entries: u32,
    /// Register-file banks per sub-core. The bank of a register is its number modulo the banks.
    pub register_banks: u32,
    /// Warp-wide registers read per bank and cycle.
    pub register_read_ports: u32,
    /// Dependency barriers of a warp, at most 6. The compiler gives each result of variable latency one of them. The first reader waits until
    /// no result in flight holds it. 0: the scoreboard tracks each register.
    pub dependency_barriers: u32,
    /// Arithmetic pipes of a sub-core.
    pub pipes: Pipes,
    /// Load and store path.
    pub lsu: Lsu,
    /// Shared memory.
    pub shared: Shared,
    /// Constant caches.
    pub constant: Constant,
    /// CTA barrier.
    pub barrier: Barrier,
    /// Memory fences.
    pub fence: Fence,
    /// First-level data cache.
    pub l1: L1,
    /// TLB of the accesses that leave the L1.
    pub tlb: Tlb,
    /// Bulk copies.
    pub tma: Tma,
    /// Cycles of an access in the ideal memory that replaces L1, crossbar, L2 and channels. 0: the part has the real ones.
    pub ideal_memory_latency: u32,
}

/// Policy that chooses which ready warp issues, implemented in [`crate::sm::subcore::policy`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulerPolicy {
    /// The next ready warp after the one issued last.
    #[serde(alias = "lrr")]
    LooseRoundRobin,
    /// The warp issued last while it is ready, otherwise the oldest ready one.
    #[serde(alias = "gto")]
    GreedyThenOldest,
    /// The warp issued last while it is ready, otherwise the youngest ready one.
    #[serde(alias = "gty")]
    GreedyThenYoungest,
    /// The oldest ready warp.
    OldestFirst,
}

/// When an ended warp frees its slot. A warp of a cluster always waits until its stores are performed: they may go to shared memory of
/// another block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlotRelease {
    /// When its stores have left the memory queue.
    StoresSent,
    /// When its stores are in the L2.
    StoresPerformed,
}

/// Progress of the lanes of a warp that have diverged, as [`flow::Reconvergence`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reconvergence {
    /// One program counter for a warp, with a stack: before Volta. Lanes that leave a loop wait for the others.
    Stack,
    /// A program counter for each lane: Volta and later.
    Independent,
}

impl From<Reconvergence> for flow::Reconvergence {
    fn from(reconvergence: Reconvergence) -> Self {
        match reconvergence {
            Reconvergence::Stack => flow::Reconvergence::Stack,
            Reconvergence::Independent => flow::Reconvergence::Independent,
        }
    }
}

/// Load/store unit: the path of loads, stores and atomics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lsu {
    /// Depth of a sub-core's memory queue, instructions.
    pub queue_depth: u32,
    /// Cycles of a sub-core's address unit per memory instruction.
    pub issue_interval: u32,
    /// Least cycles between two memory instructions that the LSU accepts, over all sub-cores.
    pub accept_interval: u32,
    /// Maximum number of memory instructions of the SM with accesses in flight.
    pub pending_requests: u32,
    /// Unit in which a load through the L1 moves bytes: a sector, or a line on parts that fetch whole lines.
    pub load_unit: u32,
}

/// Shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shared {
    /// Banks, each with one word per cycle. The model has 32.
    pub banks: u32,
    /// Bytes of a bank's word. The model has 4.
    pub bank_bytes: u32,
    /// Issue to dependent issue of a 32-bit load without bank conflict, cycles.
    pub latency: u32,
    /// Cycles that each pass beyond the first adds to the latency.
    pub conflict_latency_per_pass: u32,
    /// Issue to dependent issue of an atomic that returns the old value, with each lane on a different word, cycles.
    pub atomic_latency: u32,
    /// Longest wait of an mbarrier `try_wait`, cycles.
    pub try_wait_cycles: u32,
}

/// Constant caches. Each sub-core has one for operands, and the SM one for constant loads. The L1.5 of the SM is behind both, then the L2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constant {
    /// Issue to dependent issue of a constant load that hits, one address per warp, cycles.
    pub latency: u32,
    /// Cycles more of a load for each further address of the warp.
    pub latency_per_pass: u32,
    /// Bytes of a line of the two first levels.
    pub line: u32,
    /// Bytes of a sub-core's cache for operands.
    pub immediate_size: u32,
    /// Ways of a set of this cache.
    pub immediate_ways: u32,
    /// Cycles that an issue waits after a miss, if the L1.5 has the line.
    pub immediate_miss_latency: u32,
    /// Bytes of the SM's cache for constant loads.
    pub indexed_size: u32,
    /// Ways of a set of this cache.
    pub indexed_ways: u32,
    /// Maximum number of constant loads that wait for lines.
    pub indexed_loads: u32,
    /// Bytes of the L1.5 for constants. 0: the part has none of these caches, and every constant access hits.
    pub l15_size: u32,
    /// Bytes of a line of the L1.5.
    pub l15_line: u32,
    /// Ways of a set of the L1.5.
    pub l15_ways: u32,
    /// Issue to dependent issue of a constant load that hits in the L1.5, cycles.
    pub l15_latency: u32,
    /// Issue to dependent issue of a constant load that hits in the L2, cycles.
    pub l2_latency: u32,
}

impl Constant {
    /// True if constant accesses can miss.
    pub fn has_misses(&self) -> bool {
        self.l15_size > 0
    }
}

/// Barriers of the CTAs of an SM, and of a warp. One unit counts the arrivals of the warps of all CTAs, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Barrier {
    /// Cycles from the count of the last arrival to the release.
    pub base_latency: u32,
    /// Cycles to count the arrival of one warp.
    pub per_warp: u32,
    /// Issue of a barrier of a warp to the next issue of the warp, in cycles. Lanes apart wait for each other too.
    pub warp_latency: u32,
}

/// Memory fence (MEMBAR): least cycles from its issue to the warp's next issue, by scope. A fence of a wider scope than the CTA also
/// waits for the earlier accesses of the SM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fence {
    /// CTA scope.
    pub cta_latency: u32,
    /// GPU scope and cluster scope.
    pub gpu_latency: u32,
    /// Cycles at the end of `gpu_latency` in which a sub-core has no other such fence. Fences that come meanwhile share the next such
    /// part. 0: any number of fences at a time.
    pub gpu_exclusive: u32,
    /// System scope.
    pub sys_latency: u32,
}

/// First-level data cache. It shares its array with shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct L1 {
    /// Bytes of the unified array. The L1 uses the bytes outside the shared-memory carve-out.
    pub size: u32,
    /// Bytes of a line. The model has 128.
    pub line: u32,
    /// Bytes of a sector. The model has 32.
    pub sector: u32,
    /// Ways of a set beside the carve-out 0. Sets beside it = size / line / associativity.
    pub associativity: u32,
    /// What the carve-out takes from the L1: sets or ways.
    pub carveout_takes: CarveoutTakes,
    /// Policy that chooses the victim in a full set.
    pub replacement: ReplacementPolicy,
    /// Effect of a store on its line.
    pub write_policy: WritePolicy,
    /// Issue to dependent issue of a 32-bit load, all lanes in one line, hit, cycles.
    pub hit_latency: u32,
    /// Maximum number of sectors in flight to the L2.
    pub mshr_entries: u32,
    /// Maximum number of requests that wait for one sector in flight, the first included.
    pub mshr_merges: u32,
    /// Maximum number of requests that wait for sectors in flight, over all sectors.
    pub mshr_targets: u32,
    /// Tag banks, each with one lookup of a line per cycle: 1, 2, 4 or 8.
    pub tag_banks: u32,
    /// Bytes that a hit delivers per cycle.
    pub data_bytes_per_cycle: u32,
    /// Depth of the store queue to the crossbar, sectors.
    pub store_queue: u32,
    /// Depth of the response queue to the LSU, packets. While it is full, the L1 takes no packet from the crossbar.
    pub return_queue: u32,
}

impl L1 {
    /// The smallest part that a carve-out can take, in bytes, and its name in keys.
    pub(super) fn carveout_part(&self) -> (u64, &'static str) {
        let set = u64::from(self.line) * u64::from(self.associativity);
        match self.carveout_takes {
            CarveoutTakes::Sets => (set, "`sm.l1.line` x `sm.l1.associativity`"),
            // A way of every set.
            CarveoutTakes::Ways => {
                let sets = u64::from(self.size).checked_div(set).unwrap_or(1).max(1);
                (sets * u64::from(self.line), "`sm.l1.size` / `sm.l1.associativity`")
            }
        }
    }
}

/// What the carve-out for shared memory takes from the L1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CarveoutTakes {
    /// Whole sets. The others keep `associativity` ways.
    Sets,
    /// The same number of ways from each set.
    Ways,
}

impl CarveoutTakes {
    /// Both choices.
    pub const ALL: [CarveoutTakes; 2] = [Self::Sets, Self::Ways];
}

/// Effect of a store on the lines of the L1. Every store also goes to the L2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WritePolicy {
    /// Changes sectors that are valid.
    WriteThrough,
    /// Invalidates sectors that are valid.
    WriteEvict,
    /// Changes sectors that are valid. A sector written whole becomes valid, and its line is allocated.
    WriteValidate,
}

impl WritePolicy {
    /// All policies.
    pub const ALL: [WritePolicy; 3] = [Self::WriteThrough, Self::WriteEvict, Self::WriteValidate];
}

/// The first TLB of an SM. Only accesses that leave the L1 use it. The ideal memory has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tlb {
    /// Number of entries, with a page each. 0: every page has its translation.
    pub entries: u32,
    /// Bytes of a page, a power of two. The reach of the TLB is `entries` pages.
    pub page: u32,
    /// Cycles that an access waits for its translation after a miss. The next level has the page.
    pub miss_latency: u32,
}

/// The bulk copy engine. A part without clusters has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tma {
    /// Cycles from an instruction's arrival to the begin of its first copy: the extra latency of a copy over an ordinary load.
    pub latency: u32,
    /// Maximum number of pieces of up to 128 bytes in flight.
    pub pieces: u32,
}
