//! The load-store unit: takes memory instructions from the sub-cores in turn, and brings back what they load.
//!
//! ```text
//!   dispatch --WarpInst--> [lsu] --Packet--> l1
//!            <--WarpInst--       <--Packet--
//!   scheduler <-LsuAck-    --WarpInst--> shared (shared memory and shuffles, which use its crossbar)
//!   cta       <-Trap-------    --Packet--> network of the GPC, to other SMs' shared memory, and back
//! ```
//!
//! | what | cycles |
//! |---|---|
//! | between two instructions of the SM, of one sub-core | `accept_interval`, `issue_interval` |
//! | packets to the L1 | one per cycle |
//! | constant load | `constant_latency`, plus one for each further address of the warp |
//!
//! A store or reduction is over for its warp once accepted; the scheduler hears when all its bytes are in the L2. So is a prefetch, which
//! loads whole lines into the L1, or past it, and hands on nothing; the L1 counts it as a load, the LSU does not. Before the
//! first access of a grid the L1 is told to drop its lines: L1s are not coherent, and an earlier grid may have written elsewhere.
//! CCTL.IVALL does the same for a warp that acquires. MEMBAR waits here for the SM's accesses (`fence`).
//!
//! # Invariants
//! - Every packet sent is answered once, and comes back to the pool.
//! - Packets of one warp leave in program order.

mod accept;
mod answers;
mod counts;
mod fence;
mod packets;

pub use counts::{Accesses, Stats};

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::arrivals::ArrivalMask;
use warpwave_hw::link::delay::DelayLines;
use warpwave_hw::link::wires::{LinkObserver, Show};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::{Probe, count_width};
use warpwave_hw::stats::Report;
use warpwave_hw::time::Cycle;
use warpwave_isa::inst::CacheOp;

use crate::config;
use crate::proto::cluster::ClusterPlaced;
use crate::proto::event::{EventKind, Log};
use crate::proto::launch::Trap;
use crate::proto::mem::{Packet, PacketKind, shown};
use crate::proto::pool::PacketPool;
use crate::proto::warp::{LsuAck, WarpInst};
use crate::sm::lsu::cluster::Clusters;
use crate::sm::lsu::data::Filling;
use crate::sm::lsu::pending::{Finished, PendingTable};
use fence::Fences;

/// Tag of the packet that tells the L1 to drop its lines.
const INVALIDATION: u32 = u32::MAX;

/// Numbers of an LSU.
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of its SM.
    pub sm: u16,
    /// Its number within the GPC.
    pub sm_in_gpc: u16,
    /// CTA slots of the SM.
    pub cta_slots: u32,
    /// A CTA's shared memory is rounded up to this many bytes.
    pub shared_unit: u32,
    /// Intervals and table size.
    pub lsu: config::Lsu,
    /// Issue to dependent issue of a constant load.
    pub constant_latency: u32,
    /// Latencies of fences.
    pub fence: config::Fence,
    /// Place in local memory of the SM's first warp slot.
    pub first_local_slot: u32,
    /// Warp slots of a sub-core.
    pub warps_per_subcore: u32,
}

/// The links of an LSU.
pub struct Ports {
    /// Memory instructions from each sub-core.
    pub input: Vec<InPort<Box<WarpInst>>>,
    /// Their ends, to each sub-core.
    pub output: Vec<OutPort<Box<WarpInst>>>,
    /// To each scheduler.
    pub ack: Vec<OutPort<LsuAck>>,
    /// What concerns shared memory, and shuffles.
    pub shared: OutPort<Box<WarpInst>>,
    /// To the L1.
    pub l1: OutPort<Box<Packet>>,
    /// From the L1.
    pub answer: InPort<Box<Packet>>,
    /// To the CTA manager.
    pub trap: OutPort<Box<Trap>>,
    /// What clusters need, where there are any.
    pub cluster: Option<ClusterPorts>,
    /// To the bulk copy engine, where there is one.
    pub bulk: Option<OutPort<Box<WarpInst>>>,
}

warpwave_hw::show_ports!(Ports: input, output, ack, shared, l1, answer, trap, cluster, bulk);

/// The links of an LSU that clusters alone need.
pub struct ClusterPorts {
    /// From the CTA manager.
    pub placed: InPort<ClusterPlaced>,
    /// To other SMs' shared memory.
    pub request: OutPort<Box<Packet>>,
    /// From there.
    pub answer: InPort<Box<Packet>>,
}

warpwave_hw::show_ports!(ClusterPorts: placed, request, answer);

impl Ports {
    /// Whether a packet may go to another SM.
    fn cluster_has_room(&self, now: Cycle) -> bool {
        let ports = self.cluster.as_ref();
        ports.is_some_and(|ports| ports.request.has_room(now))
    }
}

/// An access whose packets are being made, and what they have in common.
struct Making {
    /// Its entry in the table, which has its parts.
    entry: u32,
    /// Word of a wide local access that the parts are for: each lies in lines of its own.
    word: u32,
    /// Words of such an access, one of any other.
    words: u32,
    filling: Filling,
    kind: PacketKind,
    cache: CacheOp,
}

/// The load-store unit.
pub struct Lsu {
    path: Path,
    config: Config,
    ports: Ports,
    /// Which of `ports.input` have instructions.
    arrivals: ArrivalMask,
    pending: PendingTable,
    making: Option<Making>,
    /// Finished instructions that wait for their link.
    finished: Vec<Finished>,
    fences: Fences,
    /// Constant loads that are due later than the link to their sub-core can hold them.
    late: DelayLines<Box<WarpInst>>,
    pool: PacketPool,
    clusters: Clusters,
    /// Packets at other SMs.
    away: u32,
    /// Grid of the last global access, and whether the L1 must be told of it.
    grid: Option<u32>,
    invalidate: bool,
    l1_bytes: u32,
    next_accept: Cycle,
    subcore_free: Vec<Cycle>,
    last: usize,
    /// Sub-cores whose instruction was not taken in this cycle for want of room in shared memory's link alone, bit i for sub-core i.
    held: u64,
    accepted: Option<(u8, u8, u32)>,
    sent: Option<(u64, u8)>,
    /// Line of the last answer, and the most cycles since its issue of any.
    answered: Option<(u64, u64)>,
    stats: Stats,
    log: Log,
}

impl Lsu {
    /// An LSU with nothing under way.
    pub fn new(path: Path, config: Config, ports: Ports) -> Self {
        let subcores = ports.input.len();
        let warps = subcores as u32 * config.warps_per_subcore;
        let mut arrivals = ArrivalMask::default();
        for port in &ports.input {
            arrivals.add(port);
        }
        Lsu {
            arrivals,
            pending: PendingTable::new(config.lsu.pending_requests),
            making: None,
            finished: Vec::with_capacity(config.lsu.pending_requests as usize + warps as usize),
            fences: Fences::new(warps),
            late: DelayLines::new(subcores),
            pool: PacketPool::default(),
            clusters: Clusters::new(config.cta_slots, config.shared_unit),
            away: 0,
            grid: None,
            invalidate: false,
            l1_bytes: 0,
            next_accept: Cycle::ZERO,
            subcore_free: vec![Cycle::ZERO; subcores],
            last: 0,
            held: 0,
            accepted: None,
            sent: None,
            answered: None,
            stats: Stats::default(),
            log: Log::default(),
            path,
            config,
            ports,
        }
    }

    /// Tells the log what happens from now on.
    pub fn subscribe(&mut self, log: Log) {
        self.log = log;
    }

    /// What is accepted waits for its packets, what is not for its turn; a full table waits for answers.
    fn activity(&self, now: Cycle) -> Activity {
        if !self.finished.is_empty() {
            return Activity::Busy;
        }
        let next = if self.making.is_some() || self.invalidate {
            self.ports.l1.await_room(now)
        } else if !self.pending.has_room() {
            Activity::Idle
        } else {
            self.turn(now)
        };
        let next = next.or(self.late.activity(&self.ports.output, now));
        match self.fences.is_empty() {
            true => next,
            false => next.or(self.fences.next(now)),
        }
    }

    /// When the next instruction may be taken: in the turn of its sub-core, or when there is room for it.
    fn turn(&self, now: Cycle) -> Activity {
        let soonest = self.next_accept.max(now + 1);
        let mut turn = Cycle::NEVER;
        let mut waiting = self.arrivals.in_flight();
        while waiting != 0 && turn > soonest {
            let subcore = waiting.trailing_zeros() as usize;
            waiting &= waiting - 1;
            if !self.ports.input[subcore].is_ready(now) {
                continue;
            }
            turn = turn.min(match self.held >> subcore & 1 {
                1 => self.room_in_shared(now),
                _ => self.subcore_free[subcore].max(soonest),
            });
        }
        match turn {
            Cycle::NEVER => Activity::Idle,
            turn => Activity::Until(turn),
        }
    }

    /// When there is room in the link to shared memory, as far as that is known: it is told when there is.
    fn room_in_shared(&self, now: Cycle) -> Cycle {
        match self.ports.shared.await_room(now) {
            Activity::Busy => now + 1,
            Activity::Until(at) => at,
            Activity::Idle => Cycle::NEVER,
        }
    }
}

warpwave_hw::warm!(Lsu: finished, stats; ports);

impl Component for Lsu {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        (self.accepted, self.sent, self.answered) = (None, None, None);
        self.late.run(&mut self.ports.output, now);
        self.take_answers(now);
        if self.ports.cluster.is_some() {
            self.take_from_cluster(now);
        }
        if !self.fences.is_empty() {
            self.end_fences(now);
        }
        if !self.finished.is_empty() {
            self.send_finished(now);
        }
        if self.making.is_some() || self.invalidate {
            self.send_packet(now);
        }
        self.accept(now);
        self.activity(now)
    }

    fn reset(&mut self) {
        self.pending.clear();
        self.pool = PacketPool::default();
        self.making = None;
        self.finished.clear();
        self.fences.clear();
        self.late = DelayLines::new(self.ports.output.len());
        self.grid = None;
        self.invalidate = false;
        self.next_accept = Cycle::ZERO;
        self.arrivals.defer_wakeups(Cycle::ZERO);
        self.subcore_free.fill(Cycle::ZERO);
        self.last = 0;
        self.held = 0;
        self.accepted = None;
        self.sent = None;
        self.answered = None;
        self.stats = Stats::default();
        self.ports.answer.clear();
        self.away = 0;
        self.clusters.clear();
        if let Some(ports) = &mut self.ports.cluster {
            ports.placed.clear();
            ports.answer.clear();
        }
        self.ports.input.iter_mut().for_each(InPort::clear);
    }

    fn is_quiescent(&self) -> bool {
        self.pending.n_used() == 0
            && self.finished.is_empty()
            && self.making.is_none()
            && self.fences.is_empty()
            && self.late.is_empty()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.bit("accept_valid", Some(self.accepted.is_some()));
        probe.vector(
            "accept_subcore",
            3,
            self.accepted.map(|(subcore, ..)| u64::from(subcore)),
        );
        probe.vector("accept_warp", 5, self.accepted.map(|(_, warp, _)| u64::from(warp)));
        probe.vector("accept_pc", 32, self.accepted.map(|(.., pc)| u64::from(pc)));
        probe.bit("packet_valid", Some(self.sent.is_some()));
        probe.vector("packet_line", 48, self.sent.map(|(line, _)| shown(line)));
        probe.vector("packet_sectors", 4, self.sent.map(|(_, sectors)| u64::from(sectors)));
        probe.bit("answer_valid", Some(self.answered.is_some()));
        probe.vector("answer_line", 48, self.answered.map(|(line, _)| line));
        probe.vector(
            "answer_age",
            24,
            Some(self.answered.map_or(0, |(_, age)| age & 0xff_ffff)),
        );
        let requests = count_width(self.config.lsu.pending_requests.into());
        probe.vector("pending", requests, Some(self.pending.n_used() as u64));
    }

    fn ports(&mut self, observer: &mut dyn LinkObserver) {
        self.ports.show(observer);
    }

    fn stats(&self, report: &mut dyn Report) {
        self.stats.report(report);
    }
}

#[cfg(test)]
mod tests;
