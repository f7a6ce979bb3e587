//! The load-store unit: takes memory instructions from the sub-cores in turn, and brings back what they load.
//!
//! ```text
//!   dispatch --Flight--> [lsu] --Packet--> l1
//!            <--Flight--       <--Packet--
//!   scheduler <-MemoryNote-    --Flight--> shared (shared memory and shuffles, which use its crossbar)
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
//!
//! # Invariants
//! - Every packet sent is answered once, and comes back to the pool.
//! - Packets of one warp leave in program order.

mod accept;
mod counts;
mod packets;

pub use counts::{Accesses, Stats};

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::flush::Flush;
use warpwave_hw::link::touch::Touch;
use warpwave_hw::link::wires::{Show, Wires};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::time::Cycle;
use warpwave_isa::opcode::Opcode;

use crate::config;
use crate::proto::cluster::{self, Seated};
use crate::proto::event::{Log, What};
use crate::proto::launch::Trap;
use crate::proto::mem::{Packet, PacketKind, Stage};
use crate::proto::warp::{Flight, MemoryNote};
use crate::sm::lsu::cluster::Clusters;
use crate::sm::lsu::data;
use crate::sm::lsu::pending::{Pending, PendingTable, entry_and_part};
use crate::sm::lsu::texture::{self, is_texture};

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
    /// Place in local memory of the SM's first warp slot.
    pub first_local_slot: u32,
    /// Warp slots of a sub-core.
    pub warps_per_subcore: u32,
}

/// The links of an LSU.
pub struct Ports {
    /// Memory instructions from each sub-core.
    pub input: Vec<InPort<Box<Flight>>>,
    /// Their ends, to each sub-core.
    pub output: Vec<OutPort<Box<Flight>>>,
    /// To each scheduler.
    pub note: Vec<OutPort<MemoryNote>>,
    /// What concerns shared memory, and shuffles.
    pub shared: OutPort<Box<Flight>>,
    /// To the L1.
    pub l1: OutPort<Box<Packet>>,
    /// From the L1.
    pub answer: InPort<Box<Packet>>,
    /// To the CTA manager.
    pub trap: OutPort<Box<Trap>>,
    /// What clusters need, where there are any.
    pub cluster: Option<ClusterPorts>,
    /// To the bulk copy engine, where there is one.
    pub bulk: Option<OutPort<Box<Flight>>>,
}

warpwave_hw::show_ports!(Ports: input, output, note, shared, l1, answer, trap, cluster, bulk);

/// The links of an LSU that clusters alone need.
pub struct ClusterPorts {
    /// From the CTA manager.
    pub seated: InPort<Seated>,
    /// To other SMs' shared memory.
    pub request: OutPort<Box<Packet>>,
    /// From there.
    pub answer: InPort<Box<Packet>>,
}

warpwave_hw::show_ports!(ClusterPorts: seated, request, answer);

/// An access whose packets are being made.
struct Making {
    /// Its entry in the table, which has its parts.
    entry: u32,
    /// Word of a wide local access that the parts are for: each lies in lines of its own.
    word: u32,
}

/// The load-store unit.
#[allow(
    clippy::vec_box,
    reason = "the boxes travel: taking them out must not move what they hold"
)]
pub struct Lsu {
    path: Path,
    config: Config,
    ports: Ports,
    pending: PendingTable,
    making: Option<Making>,
    /// Finished instructions that wait for their link.
    finished: Vec<Box<Flight>>,
    pool: Vec<Box<Packet>>,
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
        Lsu {
            pending: PendingTable::new(config.lsu.pending_requests),
            making: None,
            finished: Vec::with_capacity(config.lsu.pending_requests as usize),
            pool: Vec::new(),
            clusters: Clusters::new(config.cta_slots, config.shared_unit),
            away: 0,
            grid: None,
            invalidate: false,
            l1_bytes: 0,
            next_accept: Cycle::ZERO,
            subcore_free: vec![Cycle::ZERO; subcores],
            last: 0,
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
    pub fn listen(&mut self, log: Log) {
        self.log = log;
    }

    // ---- stage: answers of the L1

    fn take_answers(&mut self, now: Cycle) {
        self.answered = None;
        while let Some(mut packet) = self.ports.answer.recv(now) {
            packet.stamps.note(Stage::Return, now);
            if packet.tag != INVALIDATION {
                let age = packet.stamps.at(Stage::Issue).map_or(0, |issued| now.since(issued));
                let most = self.answered.map_or(age, |(_, most)| most.max(age));
                self.answered = Some((packet.line, most));
                self.take_answer(&packet, now);
            }
            self.pool.push(packet);
        }
    }

    fn take_answer(&mut self, packet: &Packet, now: Cycle) {
        let (entry, part) = entry_and_part(packet.tag);
        let (pending, parts) = self.pending.get(entry);
        let grid = self.grid.unwrap_or(0);
        self.log
            .tell_request(packet, grid, (pending.subcore, pending.warp, pending.pc));
        // What is posted takes nothing from its answers, which may come while its last packets are being made.
        if let Some(flight) = pending.flight.as_mut().filter(|_| !pending.posted) {
            match packet.kind {
                PacketKind::Load if is_texture(flight.inst().op) => texture::fill(flight, packet),
                PacketKind::Load => data::fill_loaded(flight, packet, parts.lanes_on_line(part)),
                _ => data::fill_atomic(flight, packet),
            }
            let latency = match packet.kind {
                _ if cluster::remote(packet.line).is_some() => &mut self.stats.cluster,
                PacketKind::Load if packet.l1_hit => &mut self.stats.l1_hit,
                PacketKind::Load if packet.l2_hit => &mut self.stats.l2_hit,
                PacketKind::Load => &mut self.stats.hbm,
                _ => &mut self.stats.atomic,
            };
            // Two cycles more bring the value to the write port and the release to the scheduler.
            latency.record(now.since(flight.issued) + 2);
        }
        self.answered(entry, now);
    }

    /// One packet less to wait for, or all packets made.
    fn answered(&mut self, entry: u32, now: Cycle) {
        if let Some(Pending {
            mut flight,
            subcore,
            warp,
            posted,
            ..
        }) = self.pending.answered(entry)
        {
            if let Some(flight) = &mut flight
                && is_texture(flight.inst().op)
            {
                texture::finish(flight);
            }
            self.finished.extend(flight);
            if posted {
                self.ports.note[subcore as usize].send(now, MemoryNote::Stored { warp });
            }
        }
    }

    /// Finished instructions leave, or go on to shared memory if that concerns them too.
    fn send_finished(&mut self, now: Cycle) {
        let ports = &mut self.ports;
        let mut n = 0;
        while n < self.finished.len() {
            let flight = &self.finished[n];
            let to_shared = !flight.shared_lanes.is_empty() || flight.inst().op == Opcode::Ldgsts;
            let port = if to_shared {
                &mut ports.shared
            } else {
                &mut ports.output[flight.subcore as usize]
            };
            if port.has_room(now) {
                if accept::is_split(flight) {
                    ports.note[flight.subcore as usize].send(now, MemoryNote::Taken { warp: flight.warp });
                }
                port.send(now, self.finished.remove(n));
            } else {
                n += 1;
            }
        }
    }

    /// What is accepted waits for its packets, what is not for its turn; a full table waits for answers.
    fn activity(&self, now: Cycle) -> Activity {
        if !self.finished.is_empty() {
            Activity::Busy
        } else if self.making.is_some() || self.invalidate {
            self.ports.l1.await_room(now)
        } else if !self.pending.has_room() {
            Activity::Idle
        } else {
            let mut turn = Cycle::NEVER;
            for (port, &free) in self.ports.input.iter().zip(&self.subcore_free) {
                turn = if port.is_ready(now) { turn.min(free) } else { turn };
            }
            if turn == Cycle::NEVER {
                return Activity::Idle;
            }
            Activity::Until(turn.max(self.next_accept).max(now + 1))
        }
    }
}

impl Component for Lsu {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        self.take_answers(now);
        self.take_from_cluster(now);
        self.send_finished(now);
        self.send_packet(now);
        self.accept(now);
        self.activity(now)
    }

    fn reset(&mut self) {
        self.pending.clear();
        self.making = None;
        self.finished.clear();
        self.grid = None;
        self.invalidate = false;
        self.next_accept = Cycle::ZERO;
        self.subcore_free.fill(Cycle::ZERO);
        self.last = 0;
        self.accepted = None;
        self.sent = None;
        self.answered = None;
        self.stats = Stats::default();
        self.ports.answer.clear();
        self.away = 0;
        self.clusters.clear();
        if let Some(ports) = &mut self.ports.cluster {
            ports.seated.clear();
            ports.answer.clear();
        }
        self.ports.input.iter_mut().for_each(InPort::clear);
    }

    fn is_quiescent(&self) -> bool {
        self.pending.n_used() == 0 && self.finished.is_empty() && self.making.is_none()
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
        probe.vector("packet_line", 48, self.sent.map(|(line, _)| line));
        probe.vector("packet_sectors", 4, self.sent.map(|(_, sectors)| u64::from(sectors)));
        probe.bit("answer_valid", Some(self.answered.is_some()));
        probe.vector("answer_line", 48, self.answered.map(|(line, _)| line));
        probe.vector(
            "answer_age",
            24,
            Some(self.answered.map_or(0, |(_, age)| age & 0xff_ffff)),
        );
        probe.vector("pending", 10, Some(self.pending.n_used() as u64));
    }

    fn touch(&self) {
        self.ports.touch();
    }

    fn flush(&mut self) {
        self.ports.flush();
    }

    fn wires(&mut self, wires: &mut dyn Wires) {
        self.ports.show(wires);
    }

    fn stats(&self, report: &mut dyn Report) {
        self.stats.report(report);
    }
}
