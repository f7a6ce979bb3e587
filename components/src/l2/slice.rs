//! One L2 slice: a cache bank with an atomic unit and links to the memory channels.
//!
//! ```text
//!                       +--------------------------------------------------+
//!   crossbar requests ->| tag --hit--> lines, atomic unit -- response pipe |--> responses crossbar
//!                       |  |                ^                    ^         |
//!                       |  +--miss--> MSHR (target queue per sector)       |
//!   host     commands ->|  |                ^ fill                         |
//!                       |  +--> to memory --|------------------------------|--> channels
//!                       |                   +------------------------------|<-- channels
//!                       +--------------------------------------------------+
//! ```
//!
//! The diagram leaves out the links to the twin.
//!
//! | Port | Carries |
//! |---|---|
//! | `requests` from the crossbar | loads, stores, atomics, reductions |
//! | `responses` to the crossbar | the same packets |
//! | `commands` from the host | write-back and invalidate, between launches only |
//! | `memory`, two links for each channel that the slice can reach | fetches and write-backs out; fills and acknowledgements back |
//! | `twin`, two links each way to a slice of the other partition | fetches of copies, passed requests, recalls ([`twin`]) |
//!
//! | Operation | Cycles of the slice's clock |
//! |---|---|
//! | tag lookup | one packet per cycle while the data array is free |
//! | load or atomic with every sector valid; store without a sector in flight | response sent `latency` after the lookup |
//! | load or atomic with a missing sector | fetch sent 1 cycle after the lookup; response sent `latency` after the last fill is taken |
//! | response to an SM of another partition, without a twin | `far_latency` later |
//! | responses to the crossbar | at most one per edge: the one due first |
//! | data array, load and store | busy for ceil(bytes / `bytes_per_cycle`): of the sectors that hit, and later of each fill |
//! | data array, atomic | busy at its lookup for its rounds: one for each sector, and for each lane on the sector's busiest word ([`AtomicPace`]) |
//!
//! The stages run from the last to the first, so a packet passes one stage per edge. They are: respond, exchange with the twin, send to
//! memory, take from memory, execute a host command, look up a request.
//!
//! Policy: write-back, write-validate. A miss allocates the line at its lookup. A store fetches nothing and marks its bytes valid. A load
//! or atomic on a partly valid sector fetches the sector. The fill keeps the bytes that stores wrote. Any access to a sector in flight
//! waits for the fill, stores included. So a waiting load cannot see a later store.
//!
//! # Invariants
//! - Requests of one SM for one sector take effect in the order of arrival.
//! - Each request gets exactly one response. The response to a store means that its bytes are in the slice.
//! - The newest bytes of a line are in memory, in dirty sectors of its home slice, or in a write-back in flight.
//! - A valid sector of a copy has the bytes of its home ([`twin`]).
//!
//! Sources: Khairy et al., "Accel-Sim" (ISCA 2020), for write-validate and sector fetches.

mod lookup;
mod memory;
mod responses;
mod stats;
mod tag_state;
pub mod twin;

pub use stats::{Stats, TwinStats};

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::invariant::Invariants;
use warpwave_hw::link::arrivals::ArrivalMask;
use warpwave_hw::link::wires::{LinkObserver, Show};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::{Probe, count_width};
use warpwave_hw::stats::Report;
use warpwave_hw::time::{Cycle, Domain};

use self::responses::{NEVER, Responses};
use self::tag_state::{SliceTagState, TAG_STATES};
use self::twin::{Twin, TwinLatency, TwinPorts};
use super::atomic::{AtomicPace, LastFloatAdd};
use super::lines::Lines;
use crate::cache::mshr::MshrTable;
use crate::cache::replacement::NewReplacement;
use crate::cache::tag_stage::TagStage;
use crate::cache::tags::Shape;
use crate::proto::mem::{LINE, Packet, SECTOR, SECTORS, SliceCommand, n_sectors};
use crate::proto::noc::AddressMap;
use crate::proto::pool::PacketPool;

/// Parameters of a slice.
#[derive(Clone)]
pub struct Config {
    /// Capacity, in bytes.
    pub bytes: u32,
    /// Ways of a set.
    pub associativity: u32,
    /// Replacement policy.
    pub replacement: NewReplacement,
    /// Slice-clock cycles from taking a request to sending its response on a hit, at least 1.
    pub latency: u32,
    /// Core cycles from the hit or the last fill to the stamp [`L2Data`](crate::proto::mem::Stage::L2Data). It affects latency reports, not
    /// timing. Preset key `l2.slice_latency`.
    pub l2_data_latency: u32,
    /// Extra slice-clock cycles of a response to an SM of another L2 partition, without a twin. Preset key `l2.far_latency`.
    pub far_latency: u32,
    /// Numbers of the SMs in the slice's own L2 partition. Responses to other SMs take `far_latency` more, or go to the twin.
    pub near_sms: Range<u16>,
    /// Maximum number of sectors in flight, at least the 4 of a line. Preset key `l2.mshr_entries`.
    pub mshr_sectors: u32,
    /// Maximum number of requests that wait for sectors in flight. Preset key `l2.mshr_targets`.
    pub mshr_targets: u32,
    /// Maximum number of fetches and write-backs in flight. It is at least 2: a miss can need both. Preset key `l2.memory_queue`. The link
    /// to each channel has the same depth.
    pub memory_depth: u32,
    /// Width of the data array, in bytes per slice-clock cycle.
    pub bytes_per_cycle: u32,
    /// Pace of the atomic unit.
    pub atomic: AtomicPace,
    /// The slice's clock.
    pub clock: Domain,
    /// Latencies to the twin slice in the other partition. `None` if far lines have no copies (`l2.far_lines`).
    pub twin: Option<TwinLatency>,
    /// Map of lines to slices, sets and channels.
    pub map: Arc<AddressMap>,
}

/// The links of a slice to one channel.
pub struct ChannelPorts {
    /// Fetches and write-backs, to the channel.
    pub requests: OutPort<Box<Packet>>,
    /// Fills and acknowledgements, from the channel.
    pub responses: InPort<Box<Packet>>,
}

warpwave_hw::show_ports!(ChannelPorts: requests, responses);

/// The links of a slice.
pub struct Ports {
    /// From the crossbar.
    pub requests: InPort<Box<Packet>>,
    /// To the crossbar.
    pub responses: OutPort<Box<Packet>>,
    /// From the host.
    pub commands: InPort<SliceCommand>,
    /// To and from each channel that the slice can reach.
    pub memory: Vec<ChannelPorts>,
    /// To and from the twin, with [`Config::twin`].
    pub twin: Option<TwinPorts>,
}

warpwave_hw::show_ports!(Ports: requests, responses, commands, memory, twin);

/// Rare inputs of this tick. Each is tested once, not at every edge of the tick.
#[derive(Clone, Copy)]
struct RareInputs {
    /// A channel has sent a message, which may have arrived.
    memory: bool,
    /// A host command has arrived, or a write-back is running.
    host: bool,
}

/// The state that `reset` clears. Times are edges of the slice's clock.
struct State {
    lines: Lines,
    mshr: MshrTable,
    tag: TagStage<SliceTagState>,
    responses: Responses,
    /// The queue to memory: packets with their channels.
    to_memory: VecDeque<(usize, Box<Packet>)>,
    /// Number of fetches and write-backs without a response yet: queued in `to_memory`, or sent. At most `memory_depth`.
    in_memory: u32,
    /// Index of the channel that the round robin tries first.
    next_channel: usize,
    /// Set in which the host's write-back searches for its next dirty line. `None` if no write-back is running.
    write_back: Option<usize>,
    /// First edge at which the data array is free.
    data_free_at: u64,
    /// Busy time of the atomic unit that is not charged yet, in hundredths of a cycle. Below 100: each atomic is charged whole cycles.
    atomic_centicycles: u32,
    /// The last floating-point addition of the atomic unit.
    last_float_add: LastFloatAdd,
    /// The first edge after this tick.
    next_edge: u64,
    /// Packets to reuse for fetches, write-backs and recalls.
    pool: PacketPool,
    stats: Stats,
    /// Copies, and the traffic with the twin. `None` without a twin.
    twin: Option<Twin>,
}

impl State {
    fn new(config: &Config) -> Self {
        let shape = Shape::new(config.bytes, config.associativity);
        let ways = shape.sets * shape.ways;
        State {
            lines: Lines::new(shape, &config.replacement, config.map.sets(shape.sets as u32)),
            mshr: MshrTable::new(config.mshr_sectors, config.mshr_targets),
            tag: TagStage::new(),
            responses: Responses::new(config.latency, config.latency + config.far_latency),
            to_memory: VecDeque::with_capacity(config.memory_depth as usize),
            in_memory: 0,
            next_channel: 0,
            write_back: None,
            data_free_at: 0,
            atomic_centicycles: 0,
            last_float_add: None,
            next_edge: 0,
            pool: PacketPool::default(),
            stats: Stats::default(),
            twin: config
                .twin
                .map(|latency| Twin::new(latency, ways, config.mshr_sectors, config.mshr_targets)),
        }
    }

    /// Notes that a message has left the slice or come back, so that the next edge repeats the lookup of a stalled request.
    #[inline]
    fn note_progress(&mut self) {
        self.tag.note_progress();
        // The two tag stages share lines, MSHRs and pipes, so progress of one can end a stall of the other.
        if let Some(twin) = &mut self.twin {
            twin.tag.note_progress();
        }
    }
}

/// First address of the line with this number.
fn address(line: u32) -> u64 {
    u64::from(line) * LINE as u64
}

/// One slice of the L2.
pub struct Slice {
    path: Path,
    config: Config,
    ports: Ports,
    /// The channels with a message in flight to the slice.
    memory_arrivals: ArrivalMask,
    state: State,
}

impl Slice {
    /// An empty slice.
    ///
    /// # Panics
    /// If the latency is 0, `mshr_sectors` is less than the sectors of a line, or only one of configuration and ports has a twin.
    pub fn new(path: Path, config: Config, ports: Ports) -> Self {
        assert!(config.latency >= 1, "{path}: the hit latency is at least 1 cycle");
        assert!(
            // One packet can fetch all sectors of its line. With fewer MSHRs it would wait forever.
            config.mshr_sectors as usize >= SECTORS,
            "{path}: the MSHRs hold {} sectors, fewer than the {SECTORS} of a line",
            config.mshr_sectors
        );
        assert_eq!(config.twin.is_some(), ports.twin.is_some(), "{path}: a twin has links");
        let mut memory_arrivals = ArrivalMask::default();
        ports
            .memory
            .iter()
            .for_each(|ports| _ = memory_arrivals.add(&ports.responses));
        Slice {
            memory_arrivals,
            state: State::new(&config),
            path,
            config,
            ports,
        }
    }

    /// The counters.
    pub fn counters(&self) -> &Stats {
        &self.state.stats
    }

    /// The counters of the copies, for a slice with a twin.
    pub fn twin_counters(&self) -> Option<&TwinStats> {
        self.state.twin.as_ref().map(|twin| &twin.stats)
    }

    /// Runs the stages at one edge of the slice's clock, from the last to the first.
    #[inline(always)]
    fn step(&mut self, now: Cycle, edge: u64, inputs: RareInputs) {
        // Each stage runs only if it may have work.
        if self.state.responses.due() <= edge {
            self.respond(now, edge);
        }
        if self.state.twin.is_some() {
            self.exchange_with_twin(now, edge);
        }
        if !self.state.to_memory.is_empty() {
            self.send_to_memory(now);
        }
        if inputs.memory {
            self.take_from_memory(now, edge);
        }
        if inputs.host {
            self.run_host_command(now);
        }
        self.look_up_request(now, edge);
    }

    /// Cycles in which an access to `sectors` keeps the data array busy.
    fn data_cycles(&self, sectors: u8) -> u32 {
        (n_sectors(sectors) * SECTOR as u32).div_ceil(self.config.bytes_per_cycle)
    }

    /// Makes the data array busy for `cycles` more cycles. They start at `edge`, or when the previous access ends, if that is later.
    fn occupy_data(&mut self, edge: u64, cycles: u32) {
        let state = &mut self.state;
        // A fill does not wait for the array: it extends the time for which lookups wait.
        state.data_free_at = state.data_free_at.max(edge) + u64::from(cycles);
        state.stats.data_cycles += u64::from(cycles);
    }

    /// When to tick next. A stalled request needs no tick: the message from memory or the response that ends the stall causes one.
    #[inline]
    fn activity(&mut self, now: Cycle, inputs: RareInputs) -> Activity {
        let state = &self.state;
        let tag = state.tag.state();
        // After a hit or a miss, the next edge looks up the next request, or shows the tag stage idle.
        let busy = matches!(tag, SliceTagState::Hit | SliceTagState::Miss | SliceTagState::Pass)
            || self.is_twin_busy(now)
            || !tag.holds_request() && self.ports.requests.is_ready(now)
            || !state.to_memory.is_empty()
            || inputs.memory && self.ports.memory.iter().any(|ports| ports.responses.is_ready(now))
            || inputs.host && self.has_host_work(now);
        if busy {
            return self.tick_at(state.next_edge);
        }
        // A request that waits for the data array is looked up at the first edge at which the array is free.
        let data_free = match tag {
            SliceTagState::DataBusy => state.data_free_at,
            // The request of the twin waits for the same array.
            _ if state
                .twin
                .as_ref()
                .is_some_and(|twin| twin.tag.state() == SliceTagState::DataBusy) =>
            {
                state.data_free_at
            }
            _ => NEVER,
        };
        let of_twin = self.twin_activity(now);
        // A blocked response is past its due edge. Room in the link wakes the slice.
        if state.responses.is_blocked() {
            return self
                .tick_at(data_free)
                .or(self.ports.responses.await_room(now))
                .or(of_twin);
        }
        self.tick_at(data_free.min(state.responses.due())).or(of_twin)
    }

    /// A tick at `edge`, or at the next edge if `edge` has passed.
    #[inline]
    fn tick_at(&self, edge: u64) -> Activity {
        match edge {
            NEVER => Activity::Idle,
            edge => Activity::Until(self.config.clock.cycle_of(edge.max(self.state.next_edge))),
        }
    }
}

// The simulator prefetches the links into the CPU's cache, not the state.
warpwave_hw::warm!(Slice: ; ports);

impl Component for Slice {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        let edges = self.config.clock.edges(now);
        self.state.next_edge = edges.end;
        let inputs = RareInputs {
            memory: self.memory_arrivals.in_flight() != 0,
            host: self.state.write_back.is_some() || self.ports.commands.is_ready(now),
        };
        // A cycle has no edge of the slice's clock, one, or several.
        for edge in edges {
            self.step(now, edge, inputs);
        }
        self.activity(now, inputs)
    }

    fn reset(&mut self) {
        self.ports.requests.clear();
        self.ports.commands.clear();
        self.ports.memory.iter_mut().for_each(|ports| ports.responses.clear());
        if let Some(twin) = &mut self.ports.twin {
            twin.requests.clear();
            twin.responses.clear();
        }
        self.state = State::new(&self.config);
    }

    fn is_quiescent(&self) -> bool {
        let state = &self.state;
        state.mshr.n_targets() == 0
            && state.mshr.n_in_flight() == 0
            && state.responses.len() == 0
            && state.to_memory.is_empty()
            && state.twin.as_ref().is_none_or(Twin::is_quiescent)
            // `in_memory` is not tested. The MSHRs count each fetch, and a write-back that has left is work of its channel.
            && state.write_back.is_none()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        let state = &self.state;
        let config = &self.config;
        let count = |max: u32| count_width(max.into());
        // An upper bound for both pipes: `latency + far_latency + 1` responses each, and one more per target, as a fill adds them at once.
        let max_responses =
            2 * (u64::from(config.latency) + u64::from(config.far_latency) + u64::from(config.mshr_targets)) + 2;
        probe.state("tag", &TAG_STATES, Some(state.tag.state() as usize));
        // A waveform shows addresses in 48 bits.
        probe.vector("line", 48, state.tag.current_line());
        probe.vector(
            "mshr_targets",
            count(config.mshr_targets),
            Some(state.mshr.n_targets() as u64),
        );
        let in_flight = u64::from(state.mshr.n_in_flight());
        probe.vector("fetch_sectors", count(config.mshr_sectors), Some(in_flight));
        probe.vector(
            "to_memory",
            count(config.memory_depth),
            Some(state.to_memory.len() as u64),
        );
        probe.vector(
            "responses",
            count_width(max_responses),
            Some(state.responses.len() as u64),
        );
        probe.bit("writes_back", Some(state.write_back.is_some()));
        if let Some(twin) = &state.twin {
            twin.probe(config, probe);
        }
    }

    fn ports(&mut self, observer: &mut dyn LinkObserver) {
        self.ports.show(observer);
    }

    /// MSHRs: sectors in flight are counted, and each target waits for one. A line has one way. A dirty sector has a valid byte and is in a
    /// dirty set. Copies of far lines are clean.
    fn invariants(&self, check: &mut Invariants) {
        self.state.mshr.invariants(check);
        self.state.lines.invariants(check);
        if let Some(twin) = &self.state.twin {
            twin.invariants(check);
        }
    }

    fn stats(&self, report: &mut dyn Report) {
        self.state.stats.report(report);
        if let Some(twin) = &self.state.twin {
            twin.stats.report(report);
        }
        report.count("atomic_sectors_changed", self.state.lines.atomic_sectors_changed());
    }

    fn waits(&self, say: &mut dyn FnMut(String)) {
        let State { mshr, responses, .. } = &self.state;
        if mshr.n_targets() > 0 {
            let (packets, sectors) = (mshr.n_targets(), mshr.n_in_flight());
            say(format!(
                "{}: {packets} packets wait for {sectors} sectors from memory",
                self.path
            ));
        }
        if let Some(twin) = &self.state.twin {
            twin.waits(&self.path, say);
        }
        if responses.len() > 0 {
            let packets = responses.len();
            say(format!(
                "{}: {packets} responses are in the pipes to the crossbar",
                self.path
            ));
        }
    }
}

#[cfg(test)]
mod tests;
