//! Numbers of the memory system below the L1: crossbar, L2, device memory.

use serde::{Deserialize, Serialize};

/// Core cycles of an idle L2 miss between slice and channel: 1 to leave the slice, 1 for the link each way.
pub(crate) const AROUND_CHANNEL: u32 = 3;

/// Network between SMs and L2, with one port per SM and per slice in each direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Xbar {
    /// Port to port, one way, on an idle network, L2-clock cycles.
    pub latency: u32,
    /// Payload that an SM port sends towards the L2 per L2-clock cycle, bytes.
    pub request_bytes_per_cycle: u32,
    /// Payload that an SM port receives from the L2 per L2-clock cycle, bytes.
    pub response_bytes_per_cycle: u32,
    /// Depth of the queue at each port, packets.
    pub queue_depth: u32,
    /// Packets of an input that may leave out of order to different outputs. 1: the head blocks the others.
    pub input_window: u32,
}

/// Second-level cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct L2 {
    /// Bytes of all slices together.
    pub size: u32,
    /// Slices. Any number, not only powers of two.
    pub slices: u32,
    /// Partitions of the L2, each with an equal share of the slices.
    pub partitions: u32,
    /// Core cycles beyond `hit_latency` of an access to a slice of the other partition. 0 with one partition.
    pub far_latency: u32,
    /// Where the slices keep lines of the other partition.
    pub far_lines: FarLines,
    /// Bytes of a line. The model has 128.
    pub line: u32,
    /// Bytes of a sector. The model has 32.
    pub sector: u32,
    /// Ways of a set. Sets of a slice = size / slices / line / associativity.
    pub associativity: u32,
    /// Policy that chooses the victim in a full set.
    pub replacement: ReplacementPolicy,
    /// Issue to dependent issue of a load that misses the L1 and hits a near slice of the idle L2, core cycles. It is the sum of the stages
    /// on the path.
    pub hit_latency: u32,
    /// Cycles from a slice's tag lookup to its response on a hit, L2 clock. A part of `hit_latency`: latency reports charge it to the
    /// slice, and the rest to the way back.
    pub slice_latency: u32,
    /// Mapping of granules to slices, and of a slice's lines to its sets.
    pub mapping: Mapping,
    /// Bytes of consecutive addresses in one slice, a granule. A power of two, at least `line`.
    pub interleave_bytes: u32,
    /// Maximum number of sectors of a slice in flight to memory.
    pub mshr_entries: u32,
    /// Maximum number of requests of a slice that wait for sectors in flight.
    pub mshr_targets: u32,
    /// Depth of the request queue of a slice.
    pub queue_depth: u32,
    /// Maximum number of fetches and write-backs of a slice in flight to memory.
    pub memory_queue: u32,
    /// Bytes that a slice reads or writes per L2-clock cycle.
    pub bytes_per_cycle: u32,
    /// Hundredths of an L2-clock cycle for an atomic of one sector of a slice. Lanes on one word take as long each.
    pub atomic_centicycles: u32,
    /// Hundredths of an L2-clock cycle between two floating-point additions of one slice on the same sector.
    pub float_add_centicycles: u32,
}

/// Where the slices of an L2 with two partitions keep lines that SMs of the other partition load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FarLines {
    /// In the home slice only: each access of the other partition crosses.
    AtHome,
    /// In the home slice, with a copy in the partition of the SM. A line that both partitions load takes the capacity of two.
    Copied,
}

impl FarLines {
    /// All choices.
    pub const ALL: [FarLines; 2] = [Self::AtHome, Self::Copied];
}

/// Policy that chooses the victim in a full set, implemented in [`crate::cache::replacement`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplacementPolicy {
    /// The least recently used line.
    Lru,
    /// The line to which a binary tree of use bits points.
    TreePlru,
    /// The lowest way whose line is not recently used.
    Nru,
    /// The line allocated first.
    Fifo,
    /// A line drawn with a fixed seed.
    Random,
}

impl ReplacementPolicy {
    /// All policies.
    pub const ALL: [ReplacementPolicy; 5] = [Self::Lru, Self::TreePlru, Self::Nru, Self::Fifo, Self::Random];
}

/// Mapping of line numbers to slices, channels, banks or sets, implemented in [`crate::proto::noc`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mapping {
    /// A polynomial hash: nearly even for every stride.
    Hash,
    /// The remainder: consecutive numbers in turn.
    Modulo,
    /// A permutation of each aligned block of 4,096 numbers, then the hash: as uneven as chance within a block.
    Scatter,
}

impl Mapping {
    /// All mappings.
    pub const ALL: [Mapping; 3] = [Self::Hash, Self::Modulo, Self::Scatter];
}

/// Policy that chooses the request that a memory channel serves next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DramScheduler {
    /// The oldest request to an open row, else the oldest request. Writes wait, and drain in batches.
    FirstReadyFirstCome,
    /// Only the oldest request.
    FirstComeFirstServed,
}

impl DramScheduler {
    /// All schedulers.
    pub const ALL: [DramScheduler; 2] = [Self::FirstReadyFirstCome, Self::FirstComeFirstServed];
}

/// Policy that closes an open row that no waiting request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowPolicy {
    /// The row stays open until a request needs another row of the bank.
    Open,
    /// The row closes as soon as the bank's timing allows.
    Closed,
    /// The row closes after `hbm.row_timeout` idle command cycles.
    Timeout,
}

impl RowPolicy {
    /// All policies.
    pub const ALL: [RowPolicy; 3] = [Self::Open, Self::Closed, Self::Timeout];
}

/// How a memory channel refreshes its banks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefreshMode {
    /// All banks at once, every `hbm.timing.t_refi`.
    AllBanks,
    /// One bank after the other, each once in `hbm.timing.t_refi`. The other banks serve requests.
    SingleBank,
}

impl RefreshMode {
    /// All modes.
    pub const ALL: [RefreshMode; 2] = [Self::AllBanks, Self::SingleBank];
}

/// Longest queue of a channel: its scheduler has a 64-bit mask of requests.
pub const MAX_CHANNEL_QUEUE: u32 = 64;

/// Device memory: channels, each with banks behind a request queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hbm {
    /// Channels, each with its own command and data bus. Any number, not only powers of two.
    pub channels: u32,
    /// Banks of a channel.
    pub banks: u32,
    /// Bank groups of a channel.
    pub bank_groups: u32,
    /// Bytes of a row of one bank.
    pub row_bytes: u32,
    /// Mapping of lines to the channels of a group, and of a channel's lines to its banks.
    pub mapping: Mapping,
    /// Depth of the request queue of a channel, at most 64.
    pub queue_depth: u32,
    /// Policy that chooses the next request.
    pub scheduler: DramScheduler,
    /// Number of waiting writes from which on writes go before reads, under `first-ready-first-come`.
    pub write_drain_start: u32,
    /// Number of waiting writes down to which such a batch of writes goes on. Then reads go first.
    pub write_drain_stop: u32,
    /// Command cycles after which the oldest request goes before all others to its bank, under `first-ready-first-come`.
    pub starved_after: u32,
    /// Policy that closes idle rows.
    pub row_policy: RowPolicy,
    /// Idle command cycles after which a row closes, under `timeout`.
    pub row_timeout: u32,
    /// How the banks are refreshed.
    pub refresh: RefreshMode,
    /// Bytes that one column command moves.
    pub burst_bytes: u32,
    /// Bytes that a channel's data bus moves per command cycle.
    pub bus_bytes_per_command_cycle: u32,
    /// Bursts of data for each burst of check bits, on a part that keeps them in the same memory (ECC). 0: no such bursts.
    pub check_interval: u32,
    /// Issue to dependent issue of a load that misses every cache, with idle memory and a closed row, core cycles. It is the sum of the
    /// stages on the path.
    pub access_latency: u32,
    /// Command cycles in controller and interface from the last data to the response. A part of `access_latency`: the rest that no stage
    /// accounts for lies before the queue.
    pub latency_extra: u32,
    /// Bank timing.
    pub timing: Timing,
}

/// Bank timing, command-clock cycles. The names are those of the JEDEC standards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Activate to column command.
    pub t_rcd: u32,
    /// Precharge to activate.
    pub t_rp: u32,
    /// Activate to precharge.
    pub t_ras: u32,
    /// Activate to activate, same bank.
    pub t_rc: u32,
    /// Activate to activate, different banks.
    pub t_rrd: u32,
    /// Column command to column command, different bank groups.
    pub t_ccd_s: u32,
    /// Column command to column command, same bank group.
    pub t_ccd_l: u32,
    /// Read command to first data.
    pub cl: u32,
    /// Write command to first data.
    pub wl: u32,
    /// End of write data to precharge.
    pub t_wr: u32,
    /// End of write data to read command.
    pub t_wtr: u32,
    /// Read command to precharge.
    pub t_rtp: u32,
    /// Refresh of all banks to next command.
    pub t_rfc: u32,
    /// Mean cycles between two refreshes of a bank.
    pub t_refi: u32,
    /// Refresh of a single bank to next command, same bank.
    pub t_rfcsb: u32,
    /// Refresh of a single bank to activate or such a refresh, other bank.
    pub t_rrefd: u32,
}
