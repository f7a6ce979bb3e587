//! The load-store unit (LSU) of an SM: takes memory instructions from the sub-cores, and moves their data to and from memory.
//!
//! ```text
//!                    +--------------------------------------------------+
//!   dispatch input ->| accept: AGU -> coalescer ---> send: packets -----|-> l1, other SMs
//!                    |    |                |             |              |
//!                    |    v                v             v              |
//!                    |  fences        pending request table             |
//!                    |    |                          ^                  |
//!   dispatch output<-| return: complete instructions +- receive <-------|<- l1, other SMs
//!                    +--------------------------------------------------+
//!          also: constant <-> L1.5 constant cache, ack -> scheduler, shared -> shared memory, bulk -> copy engine, trap -> cta
//! ```
//!
//! | Stage of an access | What it does | File |
//! |---|---|---|
//! | accept | takes an instruction of one sub-core in turn, checks its addresses, coalesces it, and routes it | `accept` |
//! | send | builds one packet per line; packets that the L1 can look up together leave in one cycle | `packets` |
//! | receive | takes every response, and copies loaded data to the results | `responses` |
//! | return | sends complete instructions back, or on to shared memory | `responses` |
//!
//! | From, to | Cycles |
//! |---|---|
//! | accept to the next accept, of the SM and of one sub-core | `accept_interval`, `issue_interval` |
//! | first packet of an access to the next access | max(passes of the data banks, lines on the fullest tag bank of the L1) |
//! | issue to dependent issue of a constant load that hits | `constant.latency`, plus 1 per further distinct address of the warp |
//!
//! A posted access (store, reduction, prefetch) is complete for its warp when its last packet is sent. The scheduler gets a `StoreDone`
//! after its last response. The first access of a grid invalidates the L1. A fence waits in the LSU for earlier accesses of the SM
//! (`fence`).
//!
//! # Invariants
//! - Each packet gets one response, and returns to the pool.
//! - The packets of one warp leave in program order.

mod accept;
mod agu;
mod atomic;
mod bulk;
mod cluster;
mod coalescer;
mod constants;
mod data;
mod fault;
mod fence;
mod packets;
mod pending;
mod responses;
mod stats;
mod texture;

pub use constants::Ports as ConstantPorts;
pub use stats::{Accesses, Stats};

use warpwave_hw::bits::ones;
use warpwave_hw::component::{Activity, Component};
use warpwave_hw::invariant::Invariants;
use warpwave_hw::link::arrivals::ArrivalMask;
use warpwave_hw::link::wires::{LinkObserver, Show};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::{Probe, count_width};
use warpwave_hw::stats::Report;
use warpwave_hw::time::Cycle;

use crate::config;
use crate::proto::bulk::BulkInst;
use crate::proto::cluster::ClusterPlaced;
use crate::proto::event::Log;
use crate::proto::launch::Trap;
use crate::proto::mem::{Packet, shown};
use crate::proto::pool::PacketPool;
use crate::proto::tag_banks::Lookups;
use crate::proto::timing::RETURN_CYCLES;
use crate::proto::warp::{LsuAck, SLOT_WIDTH, WarpInst};
use crate::sm::lsu::cluster::Clusters;
use crate::sm::lsu::pending::PendingTable;
use constants::Constants;
use fence::Fences;
use packets::PacketBuilder;

/// Tag of the packet that invalidates the L1.
const INVALIDATION: u32 = u32::MAX;

/// Configuration of an LSU.
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of its SM.
    pub sm: u16,
    /// Number of its SM within the GPC.
    pub sm_in_gpc: u16,
    /// CTA slots of the SM.
    pub cta_slots: u32,
    /// Allocation unit of shared memory, in bytes.
    pub shared_unit: u32,
    /// Intervals and table size.
    pub lsu: config::Lsu,
    /// Tag banks of the L1.
    pub tag_banks: u32,
    /// Constant caches.
    pub constant: config::Constant,
    /// Latencies of fences.
    pub fence: config::Fence,
    /// Slot in local memory of the first warp slot of the SM.
    pub first_local_slot: u32,
    /// Warp slots of a sub-core.
    pub warps_per_subcore: u32,
}

/// The links of an LSU.
pub struct Ports {
    /// Memory instructions, from each sub-core.
    pub input: Vec<InPort<Box<WarpInst>>>,
    /// Complete instructions, to each sub-core.
    pub output: Vec<OutPort<Box<WarpInst>>>,
    /// Credits of the memory queue and acknowledgements of stores, to each scheduler.
    pub ack: Vec<OutPort<LsuAck>>,
    /// Accesses to shared memory, and shuffles, which use its crossbar.
    pub shared: OutPort<Box<WarpInst>>,
    /// Packets, to the L1.
    pub l1: OutPort<Box<Packet>>,
    /// The same packets, from the L1.
    pub response: InPort<Box<Packet>>,
    /// Traps, to the CTA manager.
    pub trap: OutPort<Box<Trap>>,
    /// To and from the L1.5 constant cache, if the SM has one. Without it every constant load hits.
    pub constant: Option<ConstantPorts>,
    /// To and from other SMs, if the GPU has clusters.
    pub cluster: Option<ClusterPorts>,
    /// Bulk copies, to the copy engine, if the SM has one.
    pub bulk: Option<OutPort<BulkInst>>,
}

warpwave_hw::show_ports!(Ports: input, output, ack, shared, l1, response, trap, constant, cluster, bulk);

/// The links of an LSU for clusters.
pub struct ClusterPorts {
    /// Placements of CTAs, from the CTA manager.
    pub placed: InPort<ClusterPlaced>,
    /// Packets, to the shared memory of other SMs.
    pub request: OutPort<Box<Packet>>,
    /// The same packets, from other SMs.
    pub response: InPort<Box<Packet>>,
}

warpwave_hw::show_ports!(ClusterPorts: placed, request, response);

/// The state that `reset` clears.
struct State {
    /// Accesses with packets in flight.
    pending: PendingTable,
    /// The access whose packets are being built.
    builder: PacketBuilder,
    /// The lookups of the packets of this cycle.
    lookups: Lookups,
    /// Complete instructions that wait for room in their link.
    #[allow(
        clippy::vec_box,
        reason = "boxes travel: taking one out must not copy the instruction"
    )]
    complete: Vec<Box<WarpInst>>,
    fences: Fences,
    constants: Constants,
    clusters: Clusters,
    /// Free packets.
    pool: PacketPool,
    /// Number of packets in flight to other SMs.
    remote_packets: u32,
    /// Launch of the last access to device memory. An access of another launch invalidates the L1.
    grid: Option<u32>,
    /// An invalidation to send to the L1: its new capacity in bytes.
    invalidation: Option<u32>,
    /// First cycle in which the LSU may accept.
    next_accept: Cycle,
    /// First cycle in which the next instruction of each sub-core may be accepted.
    subcore_free_at: Vec<Cycle>,
    /// The sub-core accepted last.
    last_subcore: usize,
    /// Sub-cores whose instruction waits only for room in the link to shared memory, bit i for sub-core i.
    shared_blocked: u64,
    last_tick: LastTick,
    stats: Stats,
}

/// Events of the last tick, for the waveform.
#[derive(Default)]
struct LastTick {
    /// Sub-core, warp and program counter of the accepted instruction.
    accepted: Option<(u8, u8, u32)>,
    /// Line and sectors of the last packet sent.
    sent: Option<(u64, u8)>,
    /// Line of the last response, and the most cycles since issue over all responses of the tick.
    response: Option<(u64, u64)>,
}

impl State {
    fn new(config: &Config, subcores: usize) -> Self {
        let warps = subcores as u32 * config.warps_per_subcore;
        State {
            pending: PendingTable::new(config.lsu.pending_requests),
            builder: PacketBuilder::new(config.lsu.load_unit),
            lookups: Lookups::new(config.tag_banks),
            // Room for every access of the table and one fence per warp.
            complete: Vec::with_capacity(config.lsu.pending_requests as usize + warps as usize),
            fences: Fences::new(warps, subcores as u32),
            constants: Constants::new(&config.constant, subcores),
            clusters: Clusters::new(config.cta_slots, config.shared_unit),
            pool: PacketPool::default(),
            remote_packets: 0,
            grid: None,
            invalidation: None,
            next_accept: Cycle::ZERO,
            subcore_free_at: vec![Cycle::ZERO; subcores],
            last_subcore: 0,
            shared_blocked: 0,
            last_tick: LastTick::default(),
            stats: Stats::default(),
        }
    }
}

warpwave_hw::warm!(State: complete, stats);

/// The load-store unit.
pub struct Lsu {
    path: Path,
    config: Config,
    ports: Ports,
    /// The ports of `input` with instructions in flight.
    arrivals: ArrivalMask,
    log: Log,
    state: State,
}

warpwave_hw::warm!(Lsu: ; ports, state);

impl Lsu {
    /// An LSU without instructions.
    pub fn new(path: Path, config: Config, ports: Ports) -> Self {
        let mut arrivals = ArrivalMask::default();
        for port in &ports.input {
            arrivals.add(port);
        }
        Lsu {
            state: State::new(&config, ports.input.len()),
            arrivals,
            log: Log::default(),
            path,
            config,
            ports,
        }
    }

    /// Sends events to `log` from now on.
    pub fn subscribe(&mut self, log: Log) {
        self.log = log;
    }

    /// When to tick next.
    fn activity(&self, now: Cycle) -> Activity {
        let state = &self.state;
        // A complete instruction waits for room in its link, which can come in any cycle.
        if !state.complete.is_empty() {
            return Activity::Busy;
        }
        // Packets before instructions: the accept stage is closed while an access has packets to send.
        let next = if self.has_packet_to_send() {
            self.ports.l1.await_room(now)
        } else if state.pending.has_room() {
            self.next_accept(now)
        } else {
            // A full table waits for a response, which causes a tick.
            Activity::Idle
        };
        let next = next.or(state.constants.activity(&self.ports.output, now));
        match state.fences.is_empty() {
            true => next,
            false => next.or(state.fences.next_end(now)),
        }
    }

    /// When the next instruction may be accepted.
    fn next_accept(&self, now: Cycle) -> Activity {
        let state = &self.state;
        // `accept_interval` counts from the last accept, whichever sub-core it took.
        let soonest = state.next_accept.max(now + 1);
        let mut next = Cycle::NEVER;
        for subcore in ones(self.arrivals.in_flight()) {
            // No other sub-core can be earlier.
            if next <= soonest {
                break;
            }
            // Its message wakes the LSU when it becomes visible.
            if !self.ports.input[subcore].is_ready(now) {
                continue;
            }
            next = next.min(match state.shared_blocked >> subcore & 1 {
                1 => self.room_in_shared(now),
                _ => state.subcore_free_at[subcore].max(soonest),
            });
        }
        match next {
            Cycle::NEVER => Activity::Idle,
            next => Activity::Until(next),
        }
    }

    /// The first cycle with room in the link to shared memory, or `NEVER`.
    fn room_in_shared(&self, now: Cycle) -> Cycle {
        match self.ports.shared.await_room(now) {
            Activity::Busy => now + 1,
            Activity::Until(at) => at,
            // Shared memory wakes the LSU when it takes a message.
            Activity::Idle => Cycle::NEVER,
        }
    }
}

impl Component for Lsu {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        self.state.last_tick = LastTick::default();
        // From the last stage of an access to its first, so an accepted access sends its first packet one cycle later.
        self.state.constants.send_due(&mut self.ports.output, now);
        // Frees entries of the pending request table, which the accept stage tests below.
        self.receive(now);
        self.receive_constants(now);
        // After the responses: the last one that a fence waits for ends it in the same cycle.
        self.end_fences(now);
        // After the stages that complete instructions: they leave in the cycle of their completion.
        self.return_complete(now);
        // Before `accept`: when the last packet of an access leaves, the next access enters in the same cycle.
        self.send(now);
        self.accept(now);
        self.activity(now)
    }

    fn reset(&mut self) {
        self.state = State::new(&self.config, self.ports.input.len());
        // The accept stage defers the wake-ups of instructions: a deferral from before the reset must not outlast it.
        self.arrivals.defer_wakeups(Cycle::ZERO);
        self.ports.clear_inputs();
    }

    fn is_quiescent(&self) -> bool {
        let state = &self.state;
        state.pending.n_used() == 0
            && state.complete.is_empty()
            && !state.builder.is_valid
            && state.fences.is_empty()
            && state.constants.is_empty()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        let last = &self.state.last_tick;
        let (accepted, sent, response) = (last.accepted, last.sent, last.response);
        probe.bit("accept_valid", Some(accepted.is_some()));
        probe.vector("accept_subcore", 3, accepted.map(|(subcore, ..)| u64::from(subcore)));
        probe.vector("accept_warp", SLOT_WIDTH, accepted.map(|(_, warp, _)| u64::from(warp)));
        probe.vector("accept_pc", 32, accepted.map(|(.., pc)| u64::from(pc)));
        probe.bit("packet_valid", Some(sent.is_some()));
        probe.vector("packet_line", 48, sent.map(|(line, _)| shown(line)));
        probe.vector("packet_sectors", 4, sent.map(|(_, sectors)| u64::from(sectors)));
        probe.bit("response_valid", Some(response.is_some()));
        probe.vector("response_line", 48, response.map(|(line, _)| line));
        let age = response.map_or(0, |(_, age)| age & 0xff_ffff);
        probe.vector("response_age", 24, Some(age));
        let width = count_width(self.config.lsu.pending_requests.into());
        probe.vector("pending", width, Some(self.state.pending.n_used() as u64));
    }

    fn ports(&mut self, observer: &mut dyn LinkObserver) {
        self.ports.show(observer);
    }

    /// An access has an entry while a packet of it is outstanding. No constant line is both held and in flight.
    fn invariants(&self, check: &mut Invariants) {
        self.state.pending.invariants(check);
        self.state.constants.invariants(check);
        let is_joined = self.ports.cluster.is_some();
        check.equal(
            "remote packets without a cluster",
            u64::from(self.state.remote_packets > 0 && !is_joined),
            0,
        );
    }

    fn stats(&self, report: &mut dyn Report) {
        self.state.stats.report(report);
    }
}

#[cfg(test)]
mod tests;
