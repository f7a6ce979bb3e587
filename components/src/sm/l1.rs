//! The first-level data cache of an SM: lines of 128 bytes in sectors of 32, filled and written sector by sector.
//!
//! ```text
//!                    +--------------------------------------------+
//!   LSU  requests -->| tag --hit--> data ----- hit pipe ----+      |
//!                    |  |                                   v      |--> answers  LSU
//!                    |  +--miss--> MSHR    returned packets-+      |
//!                    |  +--store, atomic--> store queue            |--> requests crossbar
//!                    |                fill, wake <-----------------|<-- answers  crossbar
//!                    +--------------------------------------------+
//! ```
//!
//! | Port | Carries |
//! |---|---|
//! | `requests` from the LSU | one packet per warp instruction and line |
//! | `answers` to the LSU | the same packets: loads with bytes, atomics with old values, stores as acknowledgement |
//! | `below` to the crossbar | the L1's own load packets; the LSU's stores, atomics and uncached loads themselves |
//! | `returns` from the crossbar | the same packets, answered |
//!
//! | Operation | Cycles |
//! |---|---|
//! | tag lookup | one packet per cycle |
//! | load, every sector there | answer sent `latency` cycles after the request was taken |
//! | load, a sector missing | request to the crossbar 1 cycle after the lookup; answer 1 cycle after the last fill |
//! | store, atomic, uncached load | to the crossbar 1 cycle after the lookup; answer 1 cycle after it is back |
//! | [`PacketKind::Invalidate`] | every line forgotten in the cycle of its lookup; answered as a hit |
//! | answers | one packet per ceil(bytes / `data_bytes_per_cycle`) cycles |
//!
//! Policy: a line is allocated when its first sector is filled; stores write through and change a sector that is there, but
//! bring none in; an atomic drops its line; loads with [`CacheOp::Global`] or [`CacheOp::Volatile`] pass by. Nothing keeps L1s
//! coherent with each other.
//!
//! # Invariants
//! - What one SM sends for one line reaches the L2 in the order of the LSU's packets.
//! - A load never gets bytes older than a store of the same SM that passed the L1 before it (see `mshr`).
//! - Each packet taken from the LSU is answered once; nothing is allocated once the pool has grown to the load.
//!
//! Sources: Khairy et al., "Accel-Sim" (ISCA 2020), for allocation on fill and write-through; Jia et al., "Dissecting the NVIDIA
//! Volta GPU architecture via microbenchmarking" (2018), for latency.

mod bulk;
mod data;
mod fill;
mod lookup;
mod mshr;
mod send;
mod stats;
mod store;
mod tag;

pub use stats::Stats;

use std::collections::VecDeque;
use std::sync::Arc;

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::wires::{Show, Wires};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::time::Cycle;
use warpwave_isa::inst::CacheOp;

use crate::pool::Pool;
use crate::proto::mem::{LINE, Packet, PacketKind, SECTOR, SECTORS};
use crate::proto::noc::AddressMap;
use crate::waiting::Waiting;
use data::Data;
use mshr::Mshr;
use store::StoreQueue;
use tag::Tags;

/// Packets that wait for the LSU before no more are taken from the crossbar.
const RETURN_DEPTH: usize = 8;

/// Shape of an L1.
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of its SM.
    pub sm: u16,
    /// Bytes of lines: what the shared-memory carve-out leaves.
    pub bytes: u32,
    /// Ways of a set.
    pub associativity: u32,
    /// Cycles from taking a request to sending its answer on a hit, at least 1.
    pub latency: u32,
    /// Sectors in flight to the L2, at least those of one line.
    pub mshr_entries: u32,
    /// Packets that may wait for one sector, the first included.
    pub mshr_merges: u32,
    /// LSU packets that may wait for sectors.
    pub waiting: u32,
    /// Bytes that a hit delivers per cycle.
    pub data_bytes_per_cycle: u32,
    /// Sectors written that wait for the crossbar.
    pub store_queue: u32,
    /// Where lines live.
    pub map: Arc<AddressMap>,
}

/// What an L1 is joined to.
pub struct Ports {
    /// From the LSU.
    pub requests: InPort<Box<Packet>>,
    /// To the LSU.
    pub answers: OutPort<Box<Packet>>,
    /// To the crossbar.
    pub below: OutPort<Box<Packet>>,
    /// From the crossbar.
    pub returns: InPort<Box<Packet>>,
    /// To and from the bulk copy engine, where there is one.
    pub bulk: Option<BulkPorts>,
}

/// The links of an L1 to the bulk copy engine, whose packets pass it by.
pub struct BulkPorts {
    /// From the engine.
    pub requests: InPort<Box<Packet>>,
    /// To the engine.
    pub answers: OutPort<Box<Packet>>,
}

warpwave_hw::show_ports!(BulkPorts: requests, answers);
warpwave_hw::show_ports!(Ports: requests, answers, below, returns, bulk);

/// What the tag stage did last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
enum TagState {
    Idle,
    Hit,
    Miss,
    Pass,
    StallMshr,
    StallStore,
    StallAnswer,
}

impl TagState {
    fn is_stall(self) -> bool {
        self >= TagState::StallMshr
    }
}

const TAG_STATES: [&str; 7] = [
    "idle",
    "hit",
    "miss",
    "pass",
    "stall_mshr",
    "stall_store",
    "stall_answer",
];

/// The first-level data cache.
pub struct L1 {
    path: Path,
    config: Config,
    ports: Ports,
    tags: Tags,
    data: Data,
    mshr: Mshr,
    waiting: Waiting,
    store_queue: StoreQueue,
    /// Hits on their way, with the cycle of their answer.
    hits: VecDeque<(Cycle, Box<Packet>)>,
    /// Packets that are back from below.
    returned: VecDeque<Box<Packet>>,
    /// Those of the bulk copy engine.
    bulk_returned: VecDeque<Box<Packet>>,
    /// Cycles of the path to the LSU that an answer of so many sectors takes.
    data_cycles: [u64; SECTORS + 1],
    /// When the path to the LSU is free again.
    data_free: Cycle,
    pool: Pool,
    state: TagState,
    /// When the tag stage entered its state.
    since: Cycle,
    /// Whether anything has left or come back since a request was held up: only then may it go on.
    progress: bool,
    line: u64,
    stats: Stats,
}

impl L1 {
    /// An empty cache.
    ///
    /// # Panics
    /// If the latency is 0 or a line's sectors could not be in flight together.
    pub fn new(path: Path, config: Config, ports: Ports) -> Self {
        assert!(config.latency >= 1, "{path}: a hit takes at least a cycle");
        assert!(
            config.mshr_entries as usize >= SECTORS,
            "{path}: {} sectors in flight are less than a line's {SECTORS}",
            config.mshr_entries
        );
        let tags = Tags::new(config.bytes, config.associativity);
        let cycles = |sectors: usize| (sectors as u64 * SECTOR as u64).div_ceil(config.data_bytes_per_cycle.into());
        L1 {
            data: Data::new(tags.places()),
            tags,
            mshr: Mshr::new(config.mshr_entries, config.mshr_merges),
            waiting: Waiting::new(config.waiting),
            store_queue: StoreQueue::new(config.store_queue),
            hits: VecDeque::with_capacity(config.latency as usize + 1),
            returned: VecDeque::new(),
            bulk_returned: VecDeque::new(),
            data_cycles: std::array::from_fn(cycles),
            data_free: Cycle::ZERO,
            pool: Pool::default(),
            state: TagState::Idle,
            since: Cycle::ZERO,
            progress: false,
            line: 0,
            stats: Stats::default(),
            path,
            config,
            ports,
        }
    }

    /// The counters.
    pub fn counters(&self) -> &Stats {
        &self.stats
    }

    /// A request that is held up by misses or by the store queue waits for a message from below, or for room there, and is no reason
    /// to tick.
    fn activity(&mut self, now: Cycle) -> Activity {
        if self.ports.returns.is_ready(now) || self.is_bulk_busy(now) {
            return Activity::Busy;
        }
        let below = match self.store_queue.len() {
            0 => Activity::Idle,
            _ => self.ports.below.await_room(now),
        };
        if !self.state.is_stall() && self.ports.requests.is_ready(now) {
            return Activity::Busy;
        }
        let hit_due = self.hits.front().map(|&(due, _)| due);
        let answer_due = if self.returned.is_empty() { hit_due } else { Some(now) };
        let answer = answer_due.map_or(Activity::Idle, |due| {
            Activity::Until(due.max(self.data_free).max(now + 1))
        });
        below.or(answer)
    }
}

warpwave_hw::warm!(L1: hits, returned, store_queue, stats; ports);

impl Component for L1 {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        self.answer(now);
        self.send_below(now);
        self.take_return(now);
        self.take_request(now);
        if self.ports.bulk.is_some() {
            self.run_bulk(now);
        }
        self.activity(now)
    }

    fn reset(&mut self) {
        self.ports.requests.clear();
        self.ports.returns.clear();
        self.tags.clear();
        self.mshr.clear();
        self.waiting.clear();
        self.pool.clear();
        self.store_queue.clear();
        self.hits.clear();
        self.returned.clear();
        self.bulk_returned.clear();
        if let Some(bulk) = &mut self.ports.bulk {
            bulk.requests.clear();
        }
        self.data_free = Cycle::ZERO;
        self.state = TagState::Idle;
        self.since = Cycle::ZERO;
        self.progress = false;
        self.line = 0;
        self.stats = Stats::default();
    }

    fn is_quiescent(&self) -> bool {
        self.waiting.len() == 0
            && self.mshr.in_flight() == 0
            && self.store_queue.len() == 0
            && self.hits.is_empty()
            && self.returned.is_empty()
            && self.bulk_returned.is_empty()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.state("tag", &TAG_STATES, Some(self.state as usize));
        probe.vector("line", 48, (self.state != TagState::Idle).then_some(self.line));
        probe.vector("hits", 8, Some(self.hits.len() as u64));
        probe.vector("mshr_sectors", 16, Some(u64::from(self.mshr.in_flight())));
        probe.vector("waiting", 16, Some(self.waiting.len() as u64));
        probe.vector("returned", 16, Some(self.returned.len() as u64));
        probe.vector("below", 16, Some(self.store_queue.len() as u64));
        probe.vector("store_sectors", 16, Some(u64::from(self.store_queue.sectors())));
    }

    fn wires(&mut self, wires: &mut dyn Wires) {
        self.ports.show(wires);
    }

    fn stats(&self, report: &mut dyn Report) {
        self.stats.report(report);
    }

    fn waits(&self, say: &mut dyn FnMut(String)) {
        let (packets, sectors, path) = (self.waiting.len(), self.mshr.in_flight(), &self.path);
        if packets > 0 {
            say(format!(
                "{path}: {packets} packets wait for {sectors} sectors from the L2"
            ));
        }
        let packets = self.store_queue.len();
        if packets > 0 {
            say(format!("{path}: {packets} packets wait for the crossbar"));
        }
    }
}

/// Whether a packet goes to the L2 itself and comes back to the LSU: all but loads that the L1 may keep.
fn is_passed_on(packet: &Packet) -> bool {
    packet.kind != PacketKind::Load || matches!(packet.cache, CacheOp::Global | CacheOp::Volatile)
}

fn line_number(packet: &Packet) -> u32 {
    (packet.line / LINE as u64) as u32
}

#[cfg(test)]
mod tests;
