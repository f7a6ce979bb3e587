//! The configuration of one GPU: plain data, constant while the machine runs.
//!
//! A [`GpuConfig`] comes from a preset ([`crate::preset`]). There is no `Default`, so every number has a source.
//! [`GpuConfig::check`] returns all faults at once, as sentences.
//!
//! Units are in the names or the docs of the fields. Cycles are core cycles unless a field names another clock. Issue to dependent
//! issue: cycles from the issue of an instruction to the earliest issue of an instruction that reads its result.

mod check;
pub mod doc;
pub(crate) mod keys;
mod memory;
mod pipe;
mod sm;

pub use check::ConfigFault;
pub(crate) use memory::AROUND_CHANNEL;
pub use memory::{
    DramScheduler, FarLines, Hbm, L2, MAX_CHANNEL_QUEUE, Mapping, RefreshMode, ReplacementPolicy, RowPolicy, Timing,
    Xbar,
};
pub use pipe::{I2fPipe, N_PIPES, PIPE_NAMES, PIPES, PipePreset, PipeRow, PipeTiming, Pipes, pipe_row};
pub use sm::OUTSIDE_L1;
pub use sm::{
    Barrier, CarveoutTakes, Constant, Fence, L1, Lsu, Reconvergence, SchedulerPolicy, Shared, SlotRelease, Sm, Tlb,
    Tma, WritePolicy,
};

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// All numbers of one GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuConfig {
    /// Name of the part, as the command line takes it: `h100-sxm5`.
    pub name: String,
    /// Compute capability, major number: 7 for Volta.
    pub cc_major: u32,
    /// Compute capability, minor number.
    pub cc_minor: u32,
    /// Size of device memory, bytes.
    pub memory_bytes: u64,
    /// The three clock domains.
    pub clocks: Clocks,
    /// Grouping of the SMs.
    pub topology: Topology,
    /// Limits of a launch, and capacities of an SM.
    pub limits: Limits,
    /// The block dispatcher.
    pub gigathread: GigaThread,
    /// The streaming multiprocessor. All SMs of a part are equal.
    pub sm: Sm,
    /// Clusters of CTAs.
    pub cluster: Cluster,
    /// SM to L2 network.
    pub xbar: Xbar,
    /// Second-level cache.
    pub l2: L2,
    /// Device memory.
    pub hbm: Hbm,
    /// Deliberate disorder of memory requests, to test programs.
    pub check: Check,
}

impl GpuConfig {
    /// Compute capability as one number: 80 is 8.0.
    pub fn compute_capability(&self) -> u32 {
        10 * self.cc_major + self.cc_minor
    }

    /// SMs on the chip.
    pub fn n_sms(&self) -> u32 {
        self.topology.tpcs_per_gpc.iter().sum::<u32>() * self.topology.sms_per_tpc
    }

    /// SMs of each GPC, by their numbers on the chip.
    pub fn gpcs(&self) -> Vec<Range<usize>> {
        let mut first = 0;
        let sms = self
            .topology
            .tpcs_per_gpc
            .iter()
            .map(|tpcs| (tpcs * self.topology.sms_per_tpc) as usize);
        sms.map(|n| {
            // SMs are numbered GPC by GPC.
            first += n;
            first - n..first
        })
        .collect()
    }

    /// SMs in the order of `%smid`, which numbers one TPC of each GPC in turn. Source: logs of clusters on an H800 (luo25, grade A). A cluster
    /// of 16 in one of 7 GPCs has `%smid` 2, 3, 16, 17, 30, 31.
    pub fn by_smid(&self) -> Vec<usize> {
        let per_tpc = self.topology.sms_per_tpc as usize;
        let gpcs = self.gpcs();
        let rounds = gpcs.iter().map(|sms| sms.len() / per_tpc).max().unwrap_or(0);
        // Empty if the GPC has fewer TPCs.
        let tpc = |round: usize, sms: &Range<usize>| {
            let first = sms.start + round * per_tpc;
            first..(first + per_tpc).min(sms.end)
        };
        (0..rounds)
            .flat_map(|round| gpcs.iter().flat_map(move |sms| tpc(round, sms)))
            .collect()
    }

    /// `%smid` of an SM.
    pub fn smid(&self, sm: u16) -> u32 {
        let place = self.by_smid().iter().position(|&other| other == usize::from(sm));
        place.expect("every SM has an `%smid`") as u32
    }

    /// SMs of a partition of the L2: they are split over the partitions in order, as slices are.
    pub fn sms_of_partition(&self, partition: u32) -> Range<u16> {
        let first = |partition| (partition * self.n_sms() / self.l2.partitions) as u16;
        first(partition)..first(partition + 1)
    }

    /// The partition of the L2 in which an SM is.
    pub fn partition_of(&self, sm: u16) -> u32 {
        let found = (0..self.l2.partitions).find(|&partition| self.sms_of_partition(partition).contains(&sm));
        found.expect("every SM is in a partition")
    }

    /// The GPC of an SM, and the SM's number in it.
    pub fn place_in_gpc(&self, sm: u16) -> (usize, u16) {
        let gpcs = self.gpcs();
        let gpc = gpcs
            .iter()
            .position(|sms| sms.contains(&sm.into()))
            .expect("every SM is in a GPC");
        (gpc, sm - gpcs[gpc].start as u16)
    }

    /// Bytes of the L1 when shared memory takes `carveout` bytes of the unified array.
    pub fn l1_bytes(&self, carveout: u32) -> u32 {
        // Not negative: `check` refuses a carve-out that takes the whole array.
        self.sm.l1.size - carveout
    }
}

/// Clock frequencies. They are whole kilohertz, so their ratios are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clocks {
    /// Front end and SMs, kHz.
    pub core_khz: u32,
    /// Crossbar and L2 slices, kHz.
    pub l2_khz: u32,
    /// Command clock of the memory channels, kHz. The data rate is a multiple of it.
    pub memory_khz: u32,
}

/// Numbers of GPCs, TPCs and SMs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// GPCs on the chip.
    pub gpcs: u32,
    /// Enabled TPCs of each GPC, one entry per GPC.
    pub tpcs_per_gpc: Vec<u32>,
    /// SMs in one TPC.
    pub sms_per_tpc: u32,
}

/// Limits of a launch and allocation units of an SM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Lanes of a warp; 32 on every part.
    pub warp_size: u32,
    /// Maximum number of threads of a CTA.
    pub max_threads_per_block: u32,
    /// Maximum number of warps resident on one SM.
    pub max_warps_per_sm: u32,
    /// Maximum number of CTAs resident on one SM.
    pub max_blocks_per_sm: u32,
    /// 32-bit registers of one SM.
    pub registers_per_sm: u32,
    /// Maximum number of 32-bit registers of one CTA, with its warps rounded up to the allocation granularity.
    pub registers_per_block: u32,
    /// Maximum number of registers of one thread.
    pub max_registers_per_thread: u32,
    /// Allocation unit for the registers of a warp.
    pub register_unit: u32,
    /// Parts of the register file for allocation. The warps of a CTA are spread evenly over the parts.
    pub warp_allocation_granularity: u32,
    /// Maximum shared memory of one CTA with opt-in, static and dynamic together, bytes.
    pub shared_per_block_max: u32,
    /// Allocation unit for the shared memory of a CTA, bytes.
    pub shared_unit: u32,
    /// Shared memory that the system reserves in each CTA's allocation, bytes.
    pub shared_reserved_per_block: u32,
    /// Sizes that shared memory can take of the unified array, bytes, ascending.
    pub shared_carveouts: Vec<u32>,
    /// Size of the heap of device `malloc`, bytes. CUDA sets it for the process, by `cudaLimitMallocHeapSize`.
    pub heap_bytes: u64,
}

/// The block dispatcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GigaThread {
    /// Cycles from the launch command to the first CTA sent.
    pub launch_latency: u32,
    /// Least cycles from the last CTA sent of a launch to the first CTA sent of the next launch. The time between the end of a launch and
    /// the next launch command does not count. 0: no limit.
    pub launch_interval: u32,
    /// Least cycles between two CTAs, over the whole chip.
    pub dispatch_interval: u32,
    /// Warps that the dispatcher sets up per cycle. A CTA of W warps occupies it for
    /// max(`dispatch_interval`, ceil(W / `warps_per_cycle`)) cycles.
    pub warps_per_cycle: u32,
    /// Cycles of a message from dispatcher to SM, and of a message back.
    pub link_latency: u32,
    /// Least cycles between two CTAs sent to one SM.
    pub sm_interval: u32,
    /// Cycles from the end of a CTA, as the dispatcher receives it, to the next CTA in its slot.
    pub turnover_latency: u32,
    /// Depth of the link to one SM, in CTAs. A CTA holds its place until its credit is back at the dispatcher.
    pub launch_queue: u32,
    /// Policy that chooses the SM of the next CTA.
    pub order: CtaOrder,
    /// Cycles without progress after which the host tests whether a launch can still end. 0: it never tests.
    pub standstill_cycles: u32,
}

/// Deliberate disorder of memory requests. It shows a program that relies on an order that the PTX memory model does not promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Maximum number of cycles for which an L1 holds back a request to the L2, drawn at random. Requests for other lines pass it. 0: none.
    pub weak: u32,
    /// Seed of these cycles.
    pub seed: u32,
}

/// Policy that chooses the SM of the next CTA, implemented in [`crate::front::gigathread`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CtaOrder {
    /// The SM with the most free CTA slots.
    BreadthFirst,
    /// The first SM with a free CTA slot.
    DepthFirst,
}

impl CtaOrder {
    /// All orders.
    pub const ALL: [CtaOrder; 2] = [Self::BreadthFirst, Self::DepthFirst];
}

/// Clusters of CTAs, and the network between the SMs of a GPC for their shared memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// CTAs of the largest cluster. 0 for a part without clusters: the other numbers are then not used.
    pub max_ctas: u32,
    /// Issue to dependent issue of a 32-bit load from another SM's shared memory, if both SMs have distance 0, cycles.
    pub load_latency: u32,
    /// Distance of each SM of a GPC from the network, in order. A load takes the distances of both its SMs more. SMs beyond the list have
    /// its last distance. Cycles.
    pub sm_distances: Vec<u32>,
    /// Payload of an SM's port per cycle, each way, bytes.
    pub bytes_per_cycle: u32,
    /// Last arrival at a cluster's barrier to the release of its warps, cycles.
    pub barrier_latency: u32,
}
