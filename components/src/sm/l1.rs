//! The first-level data cache (L1) of an SM: lines of 128 bytes, filled and written in sectors of 32 bytes.
//!
//! ```text
//!                    +--------------------------------------------+
//!   LSU  requests -->| tag --hit--> lines ---- hit pipe ----+     |
//!                    |  |                                   v     |--> responses LSU
//!                    |  +--miss--> MSHR    returned packets-+     |
//!                    |  |            |                            |
//!                    |  +--bypass----+--> queue to the crossbar --|--> to_xbar
//!                    |           fill, targets <----------------|<-- from_xbar
//!                    +--------------------------------------------+
//! ```
//!
//! | Port | Carries |
//! |---|---|
//! | `requests` from the LSU | one packet per request and line; a warp access above 4 bytes a lane is several requests |
//! | `responses` to the LSU | the same packets: loads with bytes, atomics with old values, stores as acknowledgement |
//! | `to_xbar` | load packets of the L1 for misses; the LSU's packets of stores, atomics and uncached loads |
//! | `from_xbar` | the same packets, served by the L2 |
//! | `bulk` | packets of the bulk copy engine, which bypass the L1 |
//!
//! | Operation, idle L1 | Cycles |
//! |---|---|
//! | tag lookup | one packet per cycle |
//! | load, every sector valid | response sent `latency` cycles after the request was taken |
//! | load, a sector missing | request to the crossbar 1 cycle after the lookup; response 1 cycle after the last fill |
//! | store, atomic, uncached load | to the crossbar 1 cycle after the lookup; response 1 cycle after it is back |
//! | [`PacketKind::Invalidate`] | the lookup drops every line; response as for a hit |
//! | responses | one packet per ceil(bytes / `data_bytes_per_cycle`) cycles |
//!
//! The stages run from the last to the first, so a packet passes one stage per cycle. They are: respond to the LSU, send to the crossbar,
//! take from the crossbar, look up a request, serve the bulk copy engine.
//!
//! Policy: a line is allocated when its first sector is filled. Every store goes on to the L2. The `write_policy` says how it changes the
//! line here. An atomic drops its line. Loads with [`CacheOp::Global`] or [`CacheOp::Volatile`] bypass the L1. Nothing keeps L1s coherent
//! with each other.
//!
//! # Invariants
//! - The packets of one SM for one line reach the L2 in the order in which the LSU sent them.
//! - A load never gets bytes older than a store of the same SM that passed the L1 before it (see `mshr`).
//! - Each packet from the LSU gets one response. The packet pool grows to the most misses ever in flight, then allocates no more.
//!
//! Sources: Khairy et al., "Accel-Sim" (ISCA 2020), for allocation on fill; Jia et al., "Dissecting the NVIDIA Volta GPU
//! architecture via microbenchmarking" (2018), for latency.

mod bulk;
mod fill;
mod lines;
mod lookup;
mod mshr;
mod send;
mod stats;
mod write_policy;
mod xbar_queue;

pub use stats::Stats;

use std::collections::VecDeque;
use std::sync::Arc;

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::wires::{LinkObserver, Show};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::{Probe, count_width};
use warpwave_hw::stats::Report;
use warpwave_hw::time::Cycle;
use warpwave_isa::inst::CacheOp;

use crate::cache::replacement::NewReplacement;
use crate::cache::tag_stage::{TagStage, TagState};
use crate::cache::tags::Shape;
use crate::config::WritePolicy;
use crate::proto::mem::{Packet, PacketKind, SECTORS};
use crate::proto::noc::AddressMap;
use crate::proto::pool::PacketPool;
use lines::Lines;
use lookup::{L1TagState, TAG_STATES};
use mshr::Mshr;
use xbar_queue::XbarQueue;

/// Shape and policies of an L1.
#[derive(Clone)]
pub struct Config {
    /// Number of its SM.
    pub sm: u16,
    /// Capacity in bytes: the rest of the carve-out for shared memory.
    pub bytes: u32,
    /// Ways of a set.
    pub associativity: u32,
    /// Replacement policy.
    pub replacement: NewReplacement,
    /// Effect of a store on its line.
    pub write_policy: WritePolicy,
    /// Cycles from taking a request to sending its response on a hit, at least 1.
    pub latency: u32,
    /// Most sectors in flight to the L2, at least the 4 of a line. Preset key `sm.l1.mshr_entries`.
    pub mshr_sectors: u32,
    /// Most packets that wait for one sector, the first miss included.
    pub mshr_merges: u32,
    /// Most LSU packets that wait for sectors.
    pub mshr_targets: u32,
    /// Bytes of a response per cycle, on the data path to the LSU.
    pub data_bytes_per_cycle: u32,
    /// Most sectors that the stores and atomics in the crossbar queue may change. Loads always fit.
    pub store_queue: u32,
    /// Depth of the queue of returned packets. While it is full, the L1 takes none from the crossbar.
    pub return_queue: u32,
    /// Map of lines to L2 slices.
    pub map: Arc<AddressMap>,
}

/// The links of an L1.
pub struct Ports {
    /// From the LSU.
    pub requests: InPort<Box<Packet>>,
    /// To the LSU.
    pub responses: OutPort<Box<Packet>>,
    /// To the crossbar.
    pub to_xbar: OutPort<Box<Packet>>,
    /// From the crossbar.
    pub from_xbar: InPort<Box<Packet>>,
    /// To and from the bulk copy engine, where there is one.
    pub bulk: Option<BulkPorts>,
}

/// The links of an L1 to the bulk copy engine.
pub struct BulkPorts {
    /// From the engine.
    pub requests: InPort<Box<Packet>>,
    /// To the engine.
    pub responses: OutPort<Box<Packet>>,
}

warpwave_hw::show_ports!(BulkPorts: requests, responses);
warpwave_hw::show_ports!(Ports: requests, responses, to_xbar, from_xbar, bulk);

/// The state that `reset` clears.
struct State {
    lines: Lines,
    mshr: Mshr,
    tag: TagStage<L1TagState>,
    /// The hit pipe: packets, each with the cycle in which its response is due.
    hits: VecDeque<(Cycle, Box<Packet>)>,
    /// Packets for the LSU that a fill has completed, or that bypassed the L1 and have returned.
    returned: VecDeque<Box<Packet>>,
    /// Packets of the bulk copy engine that have returned.
    bulk_returned: VecDeque<Box<Packet>>,
    xbar_queue: XbarQueue,
    /// Cycle from which the data path to the LSU is free.
    data_free_at: Cycle,
    /// Free packets for misses.
    pool: PacketPool,
    stats: Stats,
}

impl State {
    fn new(config: &Config) -> Self {
        State {
            lines: Lines::new(Shape::new(config.bytes, config.associativity), &config.replacement),
            mshr: Mshr::new(config.mshr_sectors, config.mshr_targets, config.mshr_merges),
            tag: TagStage::new(),
            hits: VecDeque::with_capacity(config.latency as usize + 1),
            returned: VecDeque::new(),
            bulk_returned: VecDeque::new(),
            xbar_queue: XbarQueue::new(config.store_queue),
            data_free_at: Cycle::ZERO,
            pool: PacketPool::default(),
            stats: Stats::default(),
        }
    }
}

warpwave_hw::warm!(State: hits, returned, xbar_queue, stats);

/// The first-level data cache.
pub struct L1 {
    path: Path,
    config: Config,
    ports: Ports,
    state: State,
}

warpwave_hw::warm!(L1: ; ports, state);

impl L1 {
    /// An empty cache.
    ///
    /// # Panics
    /// If the latency is 0, or `mshr_sectors` is less than the sectors of a line.
    pub fn new(path: Path, config: Config, ports: Ports) -> Self {
        assert!(config.latency >= 1, "{path}: the hit latency is at least 1 cycle");
        assert!(
            config.mshr_sectors as usize >= SECTORS,
            "{path}: the MSHRs hold {} sectors, fewer than the {SECTORS} of a line",
            config.mshr_sectors
        );
        L1 {
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

    /// When to tick next.
    fn activity(&mut self, now: Cycle) -> Activity {
        if self.ports.from_xbar.is_ready(now) || self.is_bulk_busy(now) {
            return Activity::Busy;
        }
        let state = &self.state;
        let send = match state.xbar_queue.len() {
            0 => Activity::Idle,
            _ => self.ports.to_xbar.await_room(now),
        };
        // A stalled request needs no tick: the fill, response or room that ends the stall causes one.
        if !state.tag.state().is_stall() && self.ports.requests.is_ready(now) {
            return Activity::Busy;
        }
        let hit_due = state.hits.front().map(|&(due, _)| due);
        // Returned packets are due at once.
        let response_due = if state.returned.is_empty() { hit_due } else { Some(now) };
        let respond = response_due.map_or(Activity::Idle, |due| {
            Activity::Until(due.max(state.data_free_at).max(now + 1))
        });
        send.or(respond)
    }
}

impl Component for L1 {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        // From the last stage to the first, so a packet passes one stage per cycle.
        self.respond(now);
        self.send_to_xbar(now);
        self.take_from_xbar(now);
        self.look_up_request(now);
        if self.ports.bulk.is_some() {
            self.run_bulk(now);
        }
        self.activity(now)
    }

    fn reset(&mut self) {
        self.ports.requests.clear();
        self.ports.from_xbar.clear();
        if let Some(bulk) = &mut self.ports.bulk {
            bulk.requests.clear();
        }
        self.state = State::new(&self.config);
    }

    fn is_quiescent(&self) -> bool {
        let state = &self.state;
        state.mshr.table.n_targets() == 0
            && state.mshr.table.n_in_flight() == 0
            && state.xbar_queue.len() == 0
            && state.hits.is_empty()
            && state.returned.is_empty()
            && state.bulk_returned.is_empty()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        let (state, config) = (&self.state, &self.config);
        let table = &state.mshr.table;
        let count = |most: u32| count_width(most.into());
        // One fill can complete every target.
        let returned = u64::from(config.return_queue) + u64::from(config.mshr_targets);
        // One packet always fits, even with more sectors than the depth.
        let changed = count(config.store_queue.max(SECTORS as u32));
        probe.state("tag", &TAG_STATES, Some(state.tag.state() as usize));
        probe.vector("line", 48, state.tag.shown_line());
        probe.vector("hits", count(config.latency + 1), Some(state.hits.len() as u64));
        probe.vector(
            "mshr_sectors",
            count(config.mshr_sectors),
            Some(u64::from(table.n_in_flight())),
        );
        probe.vector(
            "mshr_targets",
            count(config.mshr_targets),
            Some(table.n_targets() as u64),
        );
        probe.vector("returned", count_width(returned), Some(state.returned.len() as u64));
        probe.vector("xbar_queue", 24, Some(state.xbar_queue.len() as u64));
        probe.vector("store_sectors", changed, Some(u64::from(state.xbar_queue.changed())));
    }

    fn ports(&mut self, observer: &mut dyn LinkObserver) {
        self.ports.show(observer);
    }

    fn stats(&self, report: &mut dyn Report) {
        self.state.stats.report(report);
    }

    fn waits(&self, say: &mut dyn FnMut(String)) {
        let (table, path) = (&self.state.mshr.table, &self.path);
        let (packets, sectors) = (table.n_targets(), table.n_in_flight());
        if packets > 0 {
            say(format!(
                "{path}: {packets} load packets wait for {sectors} sectors from the L2"
            ));
        }
        let packets = self.state.xbar_queue.len();
        if packets > 0 {
            say(format!("{path}: {packets} packets wait for the crossbar"));
        }
    }
}

/// True if the packet goes on to the L2 and back to the LSU: all except loads that the L1 may cache.
fn bypasses_l1(packet: &Packet) -> bool {
    packet.kind != PacketKind::Load || matches!(packet.cache, CacheOp::Global | CacheOp::Volatile)
}

#[cfg(test)]
mod tests;
