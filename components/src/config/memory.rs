//! Numbers of the memory system below the L1: crossbar, L2, device memory.

use serde::{Deserialize, Serialize};

/// Core cycles of an idle miss between slice and channel: one to leave the slice, and a link each way.
pub(crate) const AROUND_CHANNEL: u32 = 3;

/// SM to L2 network, one port per SM and per slice, each way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Xbar {
    /// One way, port to port, without waiting, L2-clock cycles.
    pub latency: u32,
    /// Payload that an SM port sends towards the L2 per L2-clock cycle, bytes.
    pub request_bytes_per_cycle: u32,
    /// Payload that an SM port receives from the L2 per L2-clock cycle, bytes.
    pub response_bytes_per_cycle: u32,
    /// Messages waiting at each port.
    pub queue_depth: u32,
}

/// Second-level cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct L2 {
    /// Bytes of all slices together.
    pub size: u32,
    /// Slices; any count.
    pub slices: u32,
    /// Parts of the chip that hold the slices; each has an equal share.
    pub partitions: u32,
    /// Core cycles that an access to a slice of the other partition takes beyond `hit_latency`;
    /// 0 where there is one partition.
    pub far_latency: u32,
    /// Bytes of a line: 128, what this model has.
    pub line: u32,
    /// Bytes of a sector: 32, what this model has.
    pub sector: u32,
    /// Ways of a set; sets of a slice = size / slices / line / associativity.
    pub associativity: u32,
    /// Which line of a full set of a slice leaves.
    pub replacement: ReplacementPolicy,
    /// Issue to dependent issue of a load that misses the L1 and hits a near slice of the idle L2, core cycles. The stages on the path sum
    /// to it.
    pub hit_latency: u32,
    /// Cycles from a slice's tag lookup to its response on a hit, L2 clock; a part of `hit_latency`. Latency reports charge this part
    /// to the slice, and the rest to the way back.
    pub slice_latency: u32,
    /// How lines are mapped to slices, and the lines of a slice to its sets.
    pub mapping: Mapping,
    /// Sectors in flight to memory, per slice.
    pub mshr_entries: u32,
    /// Requests of a slice that may wait for sectors in flight.
    pub mshr_targets: u32,
    /// Requests waiting at a slice.
    pub queue_depth: u32,
    /// Fetches and write-backs of a slice that may be at memory.
    pub memory_queue: u32,
    /// Bytes that a slice reads or writes per L2-clock cycle.
    pub bytes_per_cycle: u32,
    /// L2-clock cycles between two atomics of one slice on the same word.
    pub atomic_interval: u32,
}

/// Which line of a full set leaves a cache when another comes; the policies are in [`crate::cache::replacement`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplacementPolicy {
    /// The least recently used line.
    Lru,
    /// The line to which a binary tree of use bits points.
    TreePlru,
    /// The line that came first.
    Fifo,
    /// A line drawn with a fixed seed.
    Random,
}

impl ReplacementPolicy {
    /// All policies.
    pub const ALL: [ReplacementPolicy; 4] = [Self::Lru, Self::TreePlru, Self::Fifo, Self::Random];
}

/// How numbers are mapped to places, lines to slices for example; the interleaves are in [`crate::proto::noc`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mapping {
    /// By a polynomial hash: nearly even for every stride.
    Hash,
    /// By the remainder: consecutive numbers in turn.
    Modulo,
}

impl Mapping {
    /// All mappings.
    pub const ALL: [Mapping; 2] = [Self::Hash, Self::Modulo];
}

/// Which waiting request a memory channel serves next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DramScheduler {
    /// The oldest request whose row is open, then the oldest; writes wait until many can go together.
    FirstReadyFirstCome,
    /// The oldest request alone.
    FirstComeFirstServed,
}

impl DramScheduler {
    /// All schedulers.
    pub const ALL: [DramScheduler; 2] = [Self::FirstReadyFirstCome, Self::FirstComeFirstServed];
}

/// When a memory channel closes an open row that no waiting request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowPolicy {
    /// When another row of the bank is wanted.
    Open,
    /// As soon as the timing of the bank allows.
    Closed,
    /// When the row has been idle for `hbm.row_timeout` command cycles.
    Timeout,
}

impl RowPolicy {
    /// All policies.
    pub const ALL: [RowPolicy; 3] = [Self::Open, Self::Closed, Self::Timeout];
}

/// Most requests waiting at a channel. Its scheduler has a 64-bit mask of them.
pub const MAX_CHANNEL_QUEUE: u32 = 64;

/// Device memory: channels of banks behind a request queue each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hbm {
    /// Channels, each with its own command and data bus; any count.
    pub channels: u32,
    /// Banks of a channel.
    pub banks: u32,
    /// Bank groups of a channel.
    pub bank_groups: u32,
    /// Bytes of a row of one bank.
    pub row_bytes: u32,
    /// How lines are mapped to the channels of a group, and the lines of a channel to its banks.
    pub mapping: Mapping,
    /// Requests waiting at a channel, at most [`MAX_CHANNEL_QUEUE`].
    pub queue_depth: u32,
    /// Which waiting request goes next.
    pub scheduler: DramScheduler,
    /// Waiting writes from which on writes go before reads, under `first-ready-first-come`.
    pub write_drain_start: u32,
    /// Waiting writes down to which they do.
    pub write_drain_stop: u32,
    /// Command cycles after which the oldest request goes before all others of its bank, under `first-ready-first-come`.
    pub starved_after: u32,
    /// When an open row that no request needs is closed.
    pub row_policy: RowPolicy,
    /// Idle command cycles after which it is, under `timeout`.
    pub row_timeout: u32,
    /// Bytes that one column command moves.
    pub burst_bytes: u32,
    /// Bytes that a channel's data bus moves per command cycle.
    pub bus_bytes_per_command_cycle: u32,
    /// Issue to dependent issue of a load that misses every cache, with idle memory and a closed row, core cycles. The stages on the path
    /// sum to it.
    pub access_latency: u32,
    /// Command cycles in controller and interface from the last data to the response; a part of `access_latency`. What else the stages
    /// leave of that lies before the queue.
    pub latency_extra: u32,
    /// Bank timing.
    pub timing: Timing,
}

/// Bank timing, command-clock cycles; the names are those of the JEDEC standards.
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
    /// Refresh command to next command.
    pub t_rfc: u32,
    /// Mean distance of two refresh commands.
    pub t_refi: u32,
}
