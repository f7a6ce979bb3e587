//! The load-store unit: takes memory instructions from the sub-cores in turn, and brings back what they load.
//!
//! ```text
//!   dispatch --Flight--> [lsu] --Packet--> l1
//!            <--Flight--       <--Packet--
//!   scheduler <-MemoryNote-    --Flight--> shared (shared memory and shuffles, which use its crossbar)
//!   cta       <-Trap-------
//! ```
//!
//! | what | cycles |
//! |---|---|
//! | between two instructions of the SM, of one sub-core | `accept_interval`, `issue_interval` |
//! | packets to the L1 | one per cycle |
//! | constant load | `constant_latency`, plus one for each further address of the warp |
//!
//! A store or reduction is over for its warp once accepted; the scheduler hears when all its bytes are in the L2. Before the
//! first access of a grid the L1 is told to drop its lines: L1s are not coherent, and an earlier grid may have written elsewhere.
//!
//! # Invariants
//! - Every packet sent is answered once, and comes back to the pool.
//! - Packets of one warp leave in program order.

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::{Latency, Report};
use warpwave_hw::tile::HORIZON;
use warpwave_hw::time::Cycle;
use warpwave_isa::lane::LaneMask;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::Space;

use crate::config;
use crate::proto::launch::Trap;
use crate::proto::mem::{LINE, Packet, PacketKind, Stage, Stamps};
use crate::proto::warp::{Flight, MemoryNote};
use crate::sm::lsu::agu;
use crate::sm::lsu::coalescer::{Part, Parts};
use crate::sm::lsu::data;
use crate::sm::lsu::pending::{Pending, PendingTable};
use crate::sm::timing;

/// Tag of the packet that tells the L1 to drop its lines.
const INVALIDATION: u32 = u32::MAX;

/// Numbers of an LSU.
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of its SM.
    pub sm: u16,
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
}

/// What an LSU counts, by kind of global access.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Accesses {
    /// Warp instructions with at least one lane.
    pub instructions: u64,
    /// Requests (an 8-byte access is two, a 16-byte one four).
    pub requests: u64,
    /// Sectors wanted.
    pub sectors: u64,
    /// Bytes wanted by lanes.
    pub lane_bytes: u64,
}

/// What an LSU counts.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Instructions taken from the sub-cores.
    pub instructions: u64,
    /// Loads from global memory.
    pub loads: Accesses,
    /// Stores to global memory.
    pub stores: Accesses,
    /// Atomics and reductions on global memory.
    pub atomics: Accesses,
    /// Constant loads, and their passes.
    pub constant_loads: (u64, u64),
    /// Packets sent to the L1.
    pub packets: u64,
    /// Issue to use, of packets found in the L1, in the L2, in memory, and of atomics.
    pub l1_hit: Latency,
    /// As above, from the L2.
    pub l2_hit: Latency,
    /// As above, from memory.
    pub hbm: Latency,
    /// As above, of atomics that return a value.
    pub atomic: Latency,
}

/// An access whose packets are being made.
struct Making {
    parts: Parts,
    tag: u32,
    /// Word of a wide local access that the parts are for: each lies in lines of its own.
    word: u32,
}

/// The load-store unit.
pub struct Lsu {
    path: Path,
    config: Config,
    ports: Ports,
    pending: PendingTable,
    making: Option<Making>,
    /// Finished instructions that wait for their link.
    finished: Vec<Box<Flight>>,
    pool: Vec<Box<Packet>>,
    /// Grid of the last global access, and whether the L1 must be told of it.
    grid: Option<u32>,
    invalidate: bool,
    next_accept: Cycle,
    subcore_free: Vec<Cycle>,
    last: usize,
    accepted: Option<(u8, u8, u32)>,
    sent: Option<u64>,
    stats: Stats,
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
            grid: None,
            invalidate: false,
            next_accept: Cycle::ZERO,
            subcore_free: vec![Cycle::ZERO; subcores],
            last: 0,
            accepted: None,
            sent: None,
            stats: Stats::default(),
            path,
            config,
            ports,
        }
    }

    // ---- stage: answers of the L1

    fn take_answers(&mut self, now: Cycle) {
        while let Some(mut packet) = self.ports.answer.recv(now) {
            packet.stamps.note(Stage::Return, now);
            if packet.tag != INVALIDATION {
                self.take_answer(&packet, now);
            }
            self.pool.push(packet);
        }
    }

    fn take_answer(&mut self, packet: &Packet, now: Cycle) {
        let pending = self.pending.get(packet.tag);
        if let Some(flight) = &mut pending.flight {
            match packet.kind {
                PacketKind::Load => data::fill_loaded(flight, packet),
                _ => data::fill_atomic(flight, packet),
            }
            let latency = match packet.kind {
                PacketKind::Load if packet.l1_hit => &mut self.stats.l1_hit,
                PacketKind::Load if packet.l2_hit => &mut self.stats.l2_hit,
                PacketKind::Load => &mut self.stats.hbm,
                _ => &mut self.stats.atomic,
            };
            // Two cycles more bring the value to the write port and the release to the scheduler.
            latency.record(now.since(flight.issued) + 2);
        }
        self.answered(packet.tag, now);
    }

    /// One packet less to wait for, or all packets made.
    fn answered(&mut self, tag: u32, now: Cycle) {
        if let Some(Pending {
            flight,
            subcore,
            warp,
            posted,
            ..
        }) = self.pending.answered(tag)
        {
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
                if is_split(flight) {
                    ports.note[flight.subcore as usize].send(now, MemoryNote::Taken { warp: flight.warp });
                }
                port.send(now, self.finished.remove(n));
            } else {
                n += 1;
            }
        }
    }

    // ---- stage: packets to the L1

    fn send_packet(&mut self, now: Cycle) {
        self.sent = None;
        if !self.ports.l1.has_room(now) {
            return;
        }
        if std::mem::take(&mut self.invalidate) {
            let mut packet = self.blank();
            packet.kind = PacketKind::Invalidate;
            packet.tag = INVALIDATION;
            self.ports.l1.send(now, packet);
            return;
        }
        let Some(making) = &mut self.making else { return };
        let (tag, word) = (making.tag, making.word);
        if let Some(part) = making.parts.take() {
            self.send_part(part, tag, word, now);
        }
        self.make_more(now);
    }

    /// When all parts are sent: goes on to the next word of a wide local access, or ends the making.
    fn make_more(&mut self, now: Cycle) {
        let Some(making) = &mut self.making else { return };
        if !making.parts.is_done() {
            return;
        }
        let pending = self.pending.get(making.tag);
        let flight = pending
            .flight
            .as_ref()
            .expect("a flight stays until its packets are made");
        making.word += 1;
        if making.word < data::lines_apart(flight) {
            let addresses = flight
                .addresses
                .map(|address| address + u64::from(making.word) * LINE as u64);
            making.parts = Parts::of(&addresses, flight.local_lanes, 4);
            return;
        }
        if pending.posted {
            // The packets carry the data: the box goes back.
            self.finished.extend(pending.flight.take());
        }
        let tag = making.tag;
        self.making = None;
        self.answered(tag, now);
    }

    fn send_part(&mut self, part: Part, tag: u32, word: u32, now: Cycle) {
        let mut packet = self.blank();
        let pending = self.pending.get(tag);
        pending.left += 1;
        let flight = pending
            .flight
            .as_ref()
            .expect("a flight stays until its packets are made");
        packet.line = part.line;
        packet.sectors = part.sectors;
        packet.tag = tag;
        packet.cache = flight.inst().mods.cache;
        packet.stamps = Stamps::NONE;
        packet.stamps.note(Stage::Issue, flight.issued);
        packet.stamps.note(Stage::Lsu, now);
        packet.l1_hit = false;
        packet.l2_hit = false;
        data::fill_packet(&mut packet, flight, part.lanes, word as usize);
        self.stats.packets += 1;
        self.sent = Some(part.line);
        self.ports.l1.send(now, packet);
    }

    fn blank(&mut self) -> Box<Packet> {
        let mut packet = self.pool.pop().unwrap_or_else(|| Box::new(Packet::blank()));
        packet.sm = self.config.sm;
        packet
    }

    // ---- stage: instructions of the sub-cores

    fn accept(&mut self, now: Cycle) {
        self.accepted = None;
        if now < self.next_accept || self.making.is_some() || self.invalidate || !self.pending.has_room() {
            return;
        }
        let subcores = self.ports.input.len();
        for n in 1..=subcores {
            let subcore = (self.last + n) % subcores;
            if self.subcore_free[subcore] <= now && self.can_take(subcore, now) {
                self.last = subcore;
                self.take(subcore, now);
                return;
            }
        }
    }

    fn can_take(&mut self, subcore: usize, now: Cycle) -> bool {
        let to_shared = match self.ports.input[subcore].peek(now) {
            None => return false,
            Some(flight) => may_go_to_shared(flight),
        };
        self.ports.note[subcore].has_room(now)
            && self.ports.output[subcore].has_room(now)
            && (!to_shared || self.ports.shared.has_room(now))
    }

    fn take(&mut self, subcore: usize, now: Cycle) {
        let Some(mut flight) = self.ports.input[subcore].recv(now) else {
            return;
        };
        self.next_accept = now + u64::from(self.config.lsu.accept_interval);
        self.subcore_free[subcore] = now + u64::from(self.config.lsu.issue_interval);
        self.accepted = Some((flight.subcore, flight.warp, flight.pc));
        self.stats.instructions += 1;
        let slot = u64::from(self.config.first_local_slot)
            + u64::from(flight.subcore) * u64::from(self.config.warps_per_subcore)
            + u64::from(flight.warp);
        if flight.inst().op == Opcode::Shfl {
            flight.shared_lanes = LaneMask::NONE;
        } else if let Some(trap) = agu::generate(&mut flight, slot) {
            if self.ports.trap.has_room(now) {
                self.ports.trap.send(now, trap);
            }
            return;
        }
        if !is_split(&flight) {
            self.ports.note[subcore].send(now, MemoryNote::Taken { warp: flight.warp });
        }
        if goes_to_shared(&flight) {
            self.ports.shared.send(now, flight);
        } else if flight.inst().op == Opcode::Ldc {
            self.load_constants(flight, now);
        } else {
            self.start_access(flight, now);
        }
    }

    fn load_constants(&mut self, mut flight: Box<Flight>, now: Cycle) {
        let passes = data::load_constants(&mut flight);
        self.stats.constant_loads.0 += 1;
        self.stats.constant_loads.1 += passes;
        let latency = (u64::from(self.config.constant_latency) + passes).saturating_sub(1);
        let spent = now.since(flight.issued) + 2;
        let extra = latency.saturating_sub(spent).min(HORIZON - 2);
        self.ports.output[flight.subcore as usize].send_after(now, extra, flight);
    }

    fn start_access(&mut self, flight: Box<Flight>, now: Cycle) {
        if self.grid != Some(flight.grid.id) {
            self.grid = Some(flight.grid.id);
            self.invalidate = true;
        }
        let inst = flight.inst();
        let bytes = inst.mods.access.total();
        let lanes = data::device_lanes(&flight);
        let mut parts = Parts::of(&flight.addresses, lanes & !flight.local_lanes, bytes);
        parts.add(&flight.addresses, flight.local_lanes, bytes.min(4));
        let accesses = match inst.op {
            Opcode::Ld | Opcode::Ldgsts => &mut self.stats.loads,
            Opcode::St => &mut self.stats.stores,
            _ => &mut self.stats.atomics,
        };
        accesses.instructions += u64::from(!lanes.is_empty());
        accesses.requests += u64::from(parts.requests);
        accesses.sectors += parts
            .all()
            .iter()
            .map(|part| u64::from(part.sectors.count_ones()))
            .sum::<u64>();
        accesses.lane_bytes += u64::from(lanes.count() * bytes);
        let (subcore, warp, posted) = (flight.subcore, flight.warp, timing::is_posted(inst));
        let tag = self.pending.add(Pending {
            flight: Some(flight),
            subcore,
            warp,
            left: 1,
            posted,
        });
        self.making = Some(Making { parts, tag, word: 0 });
        if lanes.is_empty() {
            self.make_more(now);
        }
    }
}

/// Whether an instruction may be for the shared-memory component, its addresses not yet known.
fn may_go_to_shared(flight: &Flight) -> bool {
    let inst = flight.inst();
    matches!(inst.op, Opcode::Shfl | Opcode::Ldsm) || matches!(inst.mods.space, Space::Shared | Space::Generic)
}

/// Whether an instruction is for the shared-memory component.
fn goes_to_shared(flight: &Flight) -> bool {
    let inst = flight.inst();
    let all_shared = inst.mods.space == Space::Shared && !matches!(inst.op, Opcode::Ldc | Opcode::Ldgsts);
    let by_address =
        inst.mods.space == Space::Generic && !flight.lanes.is_empty() && flight.shared_lanes == flight.lanes;
    matches!(inst.op, Opcode::Shfl | Opcode::Ldsm) || all_shared || by_address
}

/// Whether an access by generic addresses goes to device memory first and to shared memory after: its order is settled only then.
fn is_split(flight: &Flight) -> bool {
    let inst = flight.inst();
    inst.mods.space == Space::Generic && !flight.shared_lanes.is_empty() && flight.shared_lanes != flight.lanes
}

impl Component for Lsu {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        self.take_answers(now);
        self.send_finished(now);
        self.send_packet(now);
        self.accept(now);
        let waiting = self.ports.input.iter_mut().any(|port| port.is_ready(now));
        let shown = self.accepted.is_some() || self.sent.is_some();
        Activity::busy_if(waiting || shown || self.making.is_some() || self.invalidate || !self.finished.is_empty())
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
        self.stats = Stats::default();
        self.ports.answer.clear();
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
        probe.vector("packet_line", 48, self.sent);
        probe.vector("pending", 10, Some(self.pending.n_used() as u64));
    }

    fn stats(&self, report: &mut dyn Report) {
        let stats = &self.stats;
        report.count("instructions", stats.instructions);
        for (names, accesses) in [
            (LOADS, &stats.loads),
            (STORES, &stats.stores),
            (ATOMICS, &stats.atomics),
        ] {
            let values = [
                accesses.instructions,
                accesses.requests,
                accesses.sectors,
                accesses.lane_bytes,
            ];
            names
                .iter()
                .zip(values)
                .for_each(|(name, value)| report.count(name, value));
        }
        report.count("constant_loads", stats.constant_loads.0);
        report.count("constant_passes", stats.constant_loads.1);
        report.count("packets", stats.packets);
        report.latency("l1_hit", &stats.l1_hit);
        report.latency("l2_hit", &stats.l2_hit);
        report.latency("hbm", &stats.hbm);
        report.latency("atomic", &stats.atomic);
    }
}

const LOADS: [&str; 4] = [
    "global_ld_inst",
    "global_ld_requests",
    "global_ld_sectors",
    "global_ld_lane_bytes",
];
const STORES: [&str; 4] = [
    "global_st_inst",
    "global_st_requests",
    "global_st_sectors",
    "global_st_lane_bytes",
];
const ATOMICS: [&str; 4] = [
    "global_atom_inst",
    "global_atom_requests",
    "global_atom_sectors",
    "global_atom_lane_bytes",
];
