//! The first-level data cache (L1) of an SM: lines of 128 bytes, filled and written in sectors of 32 bytes.
//!
//! ```text
//!                    +-------------------------------------------------+
//!   LSU  requests -->| tag --hit---> lines ---> hit pipe ------+       |
//!                    |  |              ^                       +-------|--> responses LSU
//!                    |  +--miss--> MSHR | fill    return queue-+       |
//!                    |  |            |  |              ^               |
//!                    |  |            |  +--------------+---------------|<-- from_xbar
//!                    |  +--bypass----+--> TLB --> crossbar queue ------|--> to_xbar
//!                    +-------------------------------------------------+
//! ```
//!
//! | Port | Carries |
//! |---|---|
//! | `requests` from the LSU | one packet per request and line; the LSU splits a warp access above 4 bytes a lane into several requests |
//! | `responses` to the LSU | the packets of `requests`: loads with bytes, atomics with old values, all others as acknowledgements |
//! | `to_xbar` | misses: new load packets of the L1; bypasses: the packets of the LSU and of the bulk copy engine |
//! | `from_xbar` | the packets of `to_xbar`, served by the L2 |
//! | `bulk` | packets of the bulk copy engine. They bypass the L1 |
//!
//! | Operation | Cycles in an L1 without other work |
//! |---|---|
//! | tag lookup | per cycle, one line in each of `tag_banks` banks ([`tag_banks`](crate::proto::tag_banks)) |
//! | load, every sector valid | response sent `latency` cycles after the request was taken |
//! | load, a sector missing | miss sent to the crossbar 1 cycle after the lookup; response sent 1 cycle after the last fill is taken |
//! | bypass: store, atomic, uncached load | sent to the crossbar 1 cycle after the lookup; response sent 1 cycle after the packet is back |
//! | miss or bypass of a page that is not in the TLB (`tlb`) | sent to the crossbar `miss_latency` cycles later |
//! | [`PacketKind::Invalidate`] | the lookup drops every line; response as for a hit |
//! | data path to the LSU | loads leave together if their lanes' bytes fit `data_bytes_per_cycle`; any other packet takes a cycle |
//!
//! The stages run from the last to the first, so a packet passes one stage per cycle. They are: respond to the LSU, send to the crossbar,
//! take from the crossbar, look up requests, serve the bulk copy engine. The TLB is looked up in the cycle of the tag.
//!
//! Requests are looked up in order. A request that stalls ends the cycle. So does one that needs a bank for a second line.
//!
//! Policy: a load allocates its line at the first fill. Every store goes on to the L2. The write policy (`write_policy`) decides how the
//! store changes the line, and whether it allocates one. An atomic invalidates its line. Loads with [`CacheOp::Global`] or
//! [`CacheOp::Volatile`] bypass the L1. The latter are strong loads: they invalidate their sectors. The L1s of different SMs are not
//! coherent.
//!
//! # Invariants
//! - Misses and bypasses share one first-in first-out queue, and the crossbar keeps its order per slice. So all packets for one line reach
//!   the L2 in the order of this queue. With `check.weak`, packets for different lines may pass each other.
//! - A load sees every store of its SM that passed the L1 before the load (see `mshr`).
//! - Each packet from the LSU gets exactly one response.
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
mod tlb;
mod write_policy;
mod xbar_queue;

pub use stats::Stats;

use std::collections::VecDeque;
use std::sync::Arc;

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::invariant::Invariants;
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
use crate::config::{self, CarveoutTakes, Check, WritePolicy};
use crate::proto::mem::{Packet, PacketKind, SECTORS};
use crate::proto::noc::AddressMap;
use crate::proto::pool::PacketPool;
use crate::proto::tag_banks::Lookups;
use lines::Lines;
use lookup::{L1TagState, TAG_STATES};
use mshr::Mshr;
use tlb::Tlb;
use xbar_queue::{Shuffle, XbarQueue};

/// Parameters of an L1.
#[derive(Clone)]
pub struct Config {
    /// Number of the SM.
    pub sm: u16,
    /// Capacity after a reset, in bytes. A [`PacketKind::Invalidate`] also sets the capacity: the array less the carve-out for shared
    /// memory.
    pub bytes: u32,
    /// Ways of a set, with `bytes` bytes.
    pub associativity: u32,
    /// What a smaller capacity takes from the L1: sets or ways.
    pub carveout_takes: CarveoutTakes,
    /// Replacement policy.
    pub replacement: NewReplacement,
    /// Effect of a store on its line.
    pub write_policy: WritePolicy,
    /// Cycles from taking a request to sending its response on a hit, at least 1.
    pub latency: u32,
    /// Maximum number of sectors in flight to the L2, at least the 4 of a line. Preset key `sm.l1.mshr_entries`.
    pub mshr_sectors: u32,
    /// Maximum number of loads that wait for one sector in flight, including the first. Preset key `sm.l1.mshr_merges`.
    pub mshr_merges: u32,
    /// Maximum number of loads that wait for sectors in flight, over all sectors. Preset key `sm.l1.mshr_targets`.
    pub mshr_targets: u32,
    /// Tag banks, a power of two. Each looks up one line per cycle. The LSU groups its packets by the same banks.
    pub tag_banks: u32,
    /// Width of the data path to the LSU, in bytes per cycle.
    pub data_bytes_per_cycle: u32,
    /// Depth of the crossbar queue, in sectors. It counts only sectors that queued stores and atomics change. Loads take no room.
    pub store_queue: u32,
    /// Preset table `check`: with `check.weak`, packets leave the crossbar queue out of order, which shows missing fences of a program.
    pub disorder: Check,
    /// The TLB of the packets for the crossbar.
    pub tlb: config::Tlb,
    /// Depth of the return queue, in packets. While the queue is full, the L1 takes no packet from the crossbar.
    pub return_queue: u32,
    /// Partition of the L2 in which the SM is.
    pub partition: u32,
    /// Map of lines to L2 slices.
    pub map: Arc<AddressMap>,
}

impl Config {
    /// Maximum number of packets in the hit pipe: `tag_banks` per cycle, over `latency` + 1 cycles.
    fn max_hits(&self) -> usize {
        (self.latency as usize + 1) * self.tag_banks as usize
    }
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
    /// To and from the bulk copy engine. `None` for a GPU without the engine.
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
    /// The outcome of the last lookup. After a stall it says when to repeat the lookup.
    tag: TagStage<L1TagState>,
    /// The banks in use in this cycle, each with its line.
    lookups: Lookups,
    /// The hit pipe: each packet with the due cycle of its response. The latency is constant, so the oldest packet is due first.
    hits: VecDeque<(Cycle, Box<Packet>)>,
    /// The return queue: loads that a fill has completed, and bypassed packets that are back from the L2.
    returned: VecDeque<Box<Packet>>,
    /// Packets of the bulk copy engine that are back from the L2.
    bulk_returned: VecDeque<Box<Packet>>,
    /// `None` for a part without TLB.
    tlb: Option<Tlb>,
    xbar_queue: XbarQueue,
    /// Cycle from which the data path to the LSU is free.
    data_free_at: Cycle,
    /// Packets to reuse for the requests of misses.
    pool: PacketPool,
    stats: Stats,
}

impl State {
    fn new(config: &Config) -> Self {
        let shape = Shape::new(config.bytes, config.associativity);
        State {
            lines: Lines::new(shape, config.carveout_takes, &config.replacement),
            mshr: Mshr::new(config.mshr_sectors, config.mshr_targets, config.mshr_merges),
            tag: TagStage::new(),
            lookups: Lookups::new(config.tag_banks),
            hits: VecDeque::with_capacity(config.max_hits()),
            returned: VecDeque::new(),
            bulk_returned: VecDeque::new(),
            tlb: Tlb::new(config.tlb),
            xbar_queue: XbarQueue::new(config.store_queue, Shuffle::new(config.disorder, config.sm)),
            data_free_at: Cycle::ZERO,
            pool: PacketPool::default(),
            stats: Stats::default(),
        }
    }
}

// Most ticks read these fields. The simulator prefetches them to the host CPU's cache.
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
        // A load takes MSHRs for all its missing sectors at once. With fewer than a line it could stall for ever.
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
        // A packet stays in the link while the return queue is full, or if it came behind the one taken.
        if self.ports.from_xbar.is_ready(now) || self.is_bulk_busy(now) {
            return Activity::Busy;
        }
        let state = &self.state;
        let send = match state.xbar_queue.next_due() {
            Cycle::NEVER => Activity::Idle,
            due if due > now + 1 => Activity::Until(due),
            _ => self.ports.to_xbar.await_room(now),
        };
        // A stalled request needs no tick: the fill, response or room that ends the stall causes one.
        if !state.tag.state().is_stall() && self.ports.requests.is_ready(now) {
            return Activity::Busy;
        }
        let hit_due = state.hits.front().map(|&(due, _)| due);
        // A returned packet has no latency left.
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
        // A response that leaves makes room in the hit pipe or the return queue for the stages below.
        self.respond(now);
        self.send_to_xbar(now);
        // Before the lookups: a load that is looked up in the cycle of a fill already hits.
        self.take_from_xbar(now);
        self.look_up_requests(now);
        if self.ports.bulk.is_some() {
            // Last: the LSU's packets take the room in the crossbar queue first.
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
        // Lines may stay: a cache with lines is quiescent.
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
        let count = |max: u32| count_width(max.into());
        // The L1 takes a fill while the queue is below its depth. One fill can complete all waiting loads.
        let max_returned = u64::from(config.return_queue) + u64::from(config.mshr_targets);
        // If no store or atomic is queued, one with a whole line enters, even if its sectors exceed the depth.
        let store_width = count(config.store_queue.max(SECTORS as u32));
        probe.state("tag", &TAG_STATES, Some(state.tag.state() as usize));
        // A waveform shows addresses in 48 bits.
        probe.vector("line", 48, state.tag.current_line());
        probe.vector(
            "hits",
            count_width(config.max_hits() as u64),
            Some(state.hits.len() as u64),
        );
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
        probe.vector("returned", count_width(max_returned), Some(state.returned.len() as u64));
        // No parameter bounds the loads in this queue. A width of 24 bits is assumed to be enough.
        probe.vector("xbar_queue", 24, Some(state.xbar_queue.len() as u64));
        probe.vector(
            "store_sectors",
            store_width,
            Some(u64::from(state.xbar_queue.changed())),
        );
        probe.vector("tlb_misses", 24, Some(u64::from(state.xbar_queue.tlb_misses())));
    }

    fn ports(&mut self, observer: &mut dyn LinkObserver) {
        self.ports.show(observer);
    }

    /// MSHRs: sectors in flight are counted, and each target waits for one. Hits keep their order. A line has one way and a valid sector. A
    /// page has one TLB entry.
    fn invariants(&self, check: &mut Invariants) {
        let state = &self.state;
        state.mshr.table.invariants(check);
        state.lines.invariants(check);
        if let Some(tlb) = &state.tlb {
            tlb.invariants(check);
        }
        state.xbar_queue.invariants(check);
        let late = state
            .hits
            .iter()
            .zip(state.hits.iter().skip(1))
            .filter(|((a, _), (b, _))| a > b);
        check.equal("hits out of order", late.count() as u64, 0);
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
        let (packets, missed) = (self.state.xbar_queue.len(), self.state.xbar_queue.tlb_misses());
        if packets > 0 {
            say(format!("{path}: {packets} packets wait for the crossbar"));
        }
        if missed > 0 {
            say(format!("{path}: {missed} of them have missed the TLB"));
        }
    }
}

/// True if the L2 serves the packet itself: a store, an atomic or an uncached load. [`PacketKind::Invalidate`] never gets here.
fn bypasses_l1(packet: &Packet) -> bool {
    packet.kind != PacketKind::Load || matches!(packet.cache, CacheOp::Global | CacheOp::Volatile)
}

#[cfg(test)]
mod tests;
