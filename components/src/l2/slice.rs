//! One slice of the L2: a bank of the cache with its queue, its atomic unit and its way to memory.
//!
//! ```text
//!                       +-----------------------------------------------+
//!   crossbar requests ->| tag --hit--> data, atomic unit -- answer pipe |--> answers crossbar
//!                       |  |                ^                 ^         |
//!                       |  +--miss--> fetches (queue per sector)        |
//!   host     commands ->|  |                ^ merge                     |
//!                       |  +--> to memory --|---------------------------|--> channels
//!                       |                   +---------------------------|<-- channels
//!                       +-----------------------------------------------+
//! ```
//!
//! | Port | Carries |
//! |---|---|
//! | `requests` from the crossbar | loads, stores, atomics, reductions |
//! | `answers` to the crossbar | the same packets |
//! | `commands` from the host | write back, invalidate; between launches |
//! | `memory`, a pair per channel of the group | fetches and write-backs, and both come back |
//!
//! | Operation | Cycles of the slice's clock |
//! |---|---|
//! | tag lookup | one packet per cycle while the data array is free |
//! | load, every sector there; store | answer sent `latency` after the request was taken |
//! | load, a sector missing | fetch sent 1 after the lookup; answer `latency` after the last sector came |
//! | data array | ceil(bytes / `bytes_per_cycle`) per access and per fill |
//! | atomic | the array is held `atomic_interval` for each lane that meets in one word |
//!
//! Policy: write-back, write-validate: a store never fetches, it marks the bytes it brings; a load of a sector that is known in
//! part fetches it and keeps the bytes written. Lines are allocated by the access that misses; the least recently used goes.
//!
//! # Invariants
//! - What one SM sends for one sector takes effect in the order in which it arrives.
//! - Each request is answered once; a store when its bytes are here.
//! - A line is in memory, or here with its changed sectors marked, or on its way, in that order.
//!
//! Sources: Khairy et al., "Accel-Sim" (ISCA 2020), for write-validate and sector fetches.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::time::{Cycle, Domain};

use super::atomic;
use super::fetch::Fetches;
use super::lines::{FULL, Found, Lines};
use crate::pool::Pool;
use crate::proto::mem::{LINE, Packet, PacketKind, SECTOR, SECTORS, SliceCommand, Stage, copy_bytes, copy_sectors};
use crate::proto::mem::{byte_mask, each_sector};
use crate::proto::noc::AddressMap;
use crate::waiting::Waiting;

/// Packets on their way to memory before no lookup is made.
const MEMORY_DEPTH: usize = 8;

/// Shape of a slice.
#[derive(Clone, Debug)]
pub struct Config {
    /// Bytes of its lines.
    pub bytes: u32,
    /// Ways of a set.
    pub associativity: u32,
    /// Cycles of its clock from taking a request to sending its answer on a hit, at least 1.
    pub latency: u32,
    /// Cycles more if the SM that asks is on another part of the chip, there and back.
    pub far_latency: u32,
    /// SMs on the slice's own part of the chip.
    pub near_sms: Range<u16>,
    /// Sectors in flight to memory, at least those of one line.
    pub mshr_entries: u32,
    /// Packets that may wait for sectors.
    pub waiting: u32,
    /// Bytes that the data array reads or writes per cycle.
    pub bytes_per_cycle: u32,
    /// Cycles between two atomics on the same word.
    pub atomic_interval: u32,
    /// Its clock.
    pub clock: Domain,
    /// Where lines live.
    pub map: Arc<AddressMap>,
}

/// A pair of ports for one channel.
pub type ChannelPorts = (OutPort<Box<Packet>>, InPort<Box<Packet>>);

/// What a slice is joined to.
pub struct Ports {
    /// From the crossbar.
    pub requests: InPort<Box<Packet>>,
    /// To the crossbar.
    pub answers: OutPort<Box<Packet>>,
    /// From the host.
    pub commands: InPort<SliceCommand>,
    /// To and from each channel of the group.
    pub memory: Vec<ChannelPorts>,
}

/// Events of a slice. A sector that waits for a fetch under way counts as missed too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "the unit is in the name")]
pub struct Stats {
    pub load_requests: u64,
    pub store_requests: u64,
    pub atomic_requests: u64,
    pub reduction_requests: u64,
    pub load_sectors: u64,
    pub load_sectors_hit: u64,
    pub load_sectors_missed: u64,
    pub load_sectors_merged: u64,
    pub store_sectors: u64,
    /// Sectors stored to a line that was there.
    pub store_sectors_hit: u64,
    pub store_sectors_missed: u64,
    /// Sectors of atomics and reductions.
    pub atomic_sectors: u64,
    pub atomic_sectors_hit: u64,
    pub atomic_sectors_missed: u64,
    pub atomic_lanes: u64,
    pub sectors_fetched: u64,
    pub sectors_written_back: u64,
    pub lines_evicted: u64,
    /// Cycles in which a request was looked up.
    pub tag_cycles: u64,
    /// Cycles that the data array was held.
    pub data_cycles: u64,
    /// Cycles in which an answer was sent.
    pub answer_cycles: u64,
    pub fetch_stall_cycles: u64,
    pub pinned_stall_cycles: u64,
    pub memory_stall_cycles: u64,
    pub answer_stall_cycles: u64,
}

/// What the tag stage did last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TagState {
    Idle,
    Hit,
    Miss,
    DataBusy,
    StallFetch,
    StallPinned,
    StallMemory,
    StallAnswer,
}

const TAG_STATES: [&str; 8] = [
    "idle",
    "hit",
    "miss",
    "data_busy",
    "stall_fetch",
    "stall_pinned",
    "stall_memory",
    "stall_answer",
];

/// How the sectors of a request are served.
struct Plan {
    place: usize,
    /// Whether the line is here.
    here: bool,
    /// Sectors that wait for a fetch under way.
    queued: u8,
    /// Sectors to fetch.
    fetched: u8,
}

/// One slice of the L2.
pub struct Slice {
    path: Path,
    config: Config,
    ports: Ports,
    lines: Lines,
    fetches: Fetches,
    waiting: Waiting,
    /// Packets done, with the edge at which they are answered: to near SMs, to far ones.
    answers: [VecDeque<(u64, Box<Packet>)>; 2],
    to_memory: VecDeque<Box<Packet>>,
    pool: Pool,
    /// Edge from which the data array is free.
    data_free: u64,
    /// Channel asked first for its packet.
    turn: usize,
    /// Place from which a write-back of everything goes on.
    write_back: Option<usize>,
    next_edge: u64,
    state: TagState,
    line: u64,
    stats: Stats,
}

impl Slice {
    /// An empty slice.
    ///
    /// # Panics
    /// If the latency is 0 or a line's sectors could not be in flight together.
    pub fn new(path: Path, config: Config, ports: Ports) -> Self {
        assert!(config.latency >= 1, "{path}: a hit takes at least a cycle");
        assert!(
            (SECTORS as u32..u32::from(u16::MAX)).contains(&config.mshr_entries),
            "{path}: sectors in flight must be {SECTORS} to 65534, not {}",
            config.mshr_entries
        );
        Slice {
            lines: Lines::new(config.bytes, config.associativity),
            fetches: Fetches::new(config.mshr_entries),
            waiting: Waiting::new(config.waiting),
            answers: [VecDeque::new(), VecDeque::new()],
            to_memory: VecDeque::with_capacity(MEMORY_DEPTH),
            pool: Pool::default(),
            data_free: 0,
            turn: 0,
            write_back: None,
            next_edge: 0,
            state: TagState::Idle,
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

    fn step(&mut self, now: Cycle, edge: u64) {
        self.send_answer(now, edge);
        self.send_to_memory(now);
        self.take_from_memory(now, edge);
        self.take_command(now);
        self.go_on_writing_back();
        self.take_request(now, edge);
    }

    fn send_answer(&mut self, now: Cycle, edge: u64) {
        let Some((due, pipe)) = self.next_answer() else {
            return;
        };
        if due > edge {
            return;
        }
        if !self.ports.answers.has_room(now) {
            self.stats.answer_stall_cycles += 1;
            return;
        }
        let (_, packet) = self.answers[pipe].pop_front().expect("an answer is due");
        self.stats.answer_cycles += 1;
        self.ports.answers.send(now, packet);
    }

    /// When the next answer is due, and in which pipe.
    fn next_answer(&self) -> Option<(u64, usize)> {
        let due = |pipe: usize| Some((self.answers[pipe].front()?.0, pipe));
        due(0).into_iter().chain(due(1)).min()
    }

    fn send_to_memory(&mut self, now: Cycle) {
        let Some(packet) = self.to_memory.front() else {
            return;
        };
        let channel = self.config.map.channel(packet.line).channel;
        let (port, _) = &mut self.ports.memory[usize::from(channel)];
        if port.has_room(now) {
            port.send(now, self.to_memory.pop_front().expect("a packet is there"));
        }
    }

    fn take_from_memory(&mut self, now: Cycle, edge: u64) {
        if self.answers_full() {
            return;
        }
        let n = self.ports.memory.len();
        for channel in (self.turn..n).chain(0..self.turn) {
            if let Some(packet) = self.ports.memory[channel].1.recv(now) {
                self.turn = (channel + 1) % n;
                if packet.kind == PacketKind::Load {
                    self.fill(&packet, now, edge);
                }
                self.pool.give(packet);
                return;
            }
        }
    }

    /// Takes fetched sectors in and does what waited for them, in order.
    fn fill(&mut self, fill: &Packet, now: Cycle, edge: u64) {
        let place = fill.tag as usize;
        let entry = self
            .lines
            .fetch(place)
            .expect("a line with a fetch under way is pinned");
        for sector in each_sector(fill.sectors) {
            self.lines.merge(place, sector, &fill.bytes);
            while let Some(slot) = self.fetches.next_waiter(entry, sector, &mut self.waiting) {
                let packet = self.waiting.packet(slot);
                perform(packet, &mut self.lines, place, sector);
                if let Some(mut packet) = self.waiting.arrived(slot, sector) {
                    inherit_stamp(&mut packet, fill);
                    self.complete(packet, now, edge);
                }
            }
        }
        self.occupy(edge, self.data_cycles(fill.n_sectors()));
        if self.fetches.finish(entry, fill.sectors) {
            self.lines.set_fetch(place, None);
        }
    }

    fn take_command(&mut self, now: Cycle) {
        if self.write_back.is_some() {
            return;
        }
        match self.ports.commands.recv(now) {
            Some(SliceCommand::WriteBack) => self.write_back = Some(0),
            Some(SliceCommand::Invalidate) => self.invalidate(),
            None => {}
        }
    }

    fn invalidate(&mut self) {
        for place in 0..self.lines.places() {
            if self.lines.dirty(place) == 0 && self.lines.fetch(place).is_none() {
                self.lines.forget(place);
            }
        }
    }

    /// Writes one more changed line back.
    fn go_on_writing_back(&mut self) {
        let Some(first) = self.write_back else {
            return;
        };
        if self.to_memory.len() >= MEMORY_DEPTH {
            return;
        }
        let next = (first..self.lines.places()).find(|&place| self.lines.dirty(place) != 0);
        if let Some(place) = next {
            self.write_line_back(place);
        }
        self.write_back = next.map(|place| place + 1);
    }

    fn take_request(&mut self, now: Cycle, edge: u64) {
        self.state = TagState::Idle;
        let Some(packet) = self.ports.requests.peek(now) else {
            return;
        };
        self.line = packet.line;
        self.state = match self.plan(now, edge) {
            Ok(plan) => self.serve(plan, now, edge),
            Err(stall) => stall,
        };
        match self.state {
            TagState::StallFetch => self.stats.fetch_stall_cycles += 1,
            TagState::StallPinned => self.stats.pinned_stall_cycles += 1,
            TagState::StallMemory => self.stats.memory_stall_cycles += 1,
            TagState::StallAnswer => self.stats.answer_stall_cycles += 1,
            TagState::Hit | TagState::Miss => self.stats.tag_cycles += 1,
            TagState::DataBusy | TagState::Idle => {}
        }
    }

    /// How the request at the head is served, or what it must wait for.
    fn plan(&mut self, now: Cycle, edge: u64) -> Result<Plan, TagState> {
        if self.data_free > edge {
            return Err(TagState::DataBusy);
        }
        if self.answers_full() {
            return Err(TagState::StallAnswer);
        }
        let packet = self.ports.requests.peek(now).expect("a request was seen");
        let (kind, sectors) = (packet.kind, packet.sectors);
        let (place, here) = match self
            .lines
            .find(line_number(packet), self.config.map.home(packet.line).local)
        {
            Found::Line(place) => (place, true),
            Found::Victim(place) => (place, false),
            Found::Pinned => return Err(TagState::StallPinned),
        };
        let fetch = self.lines.fetch(place).filter(|_| here);
        let queued = fetch.map_or(0, |entry| self.fetches.sectors(entry) & sectors);
        let full = if here { self.lines.full(place) } else { 0 };
        let fetched = match kind {
            PacketKind::Store => 0,
            _ => sectors & !queued & !full,
        };
        if queued | fetched != 0 && (self.waiting.is_full() || !self.fetches.has_room(fetched.count_ones())) {
            return Err(TagState::StallFetch);
        }
        if (fetched != 0 || !here) && self.to_memory.len() + 2 > MEMORY_DEPTH {
            return Err(TagState::StallMemory);
        }
        Ok(Plan {
            place,
            here,
            queued,
            fetched,
        })
    }

    fn serve(&mut self, plan: Plan, now: Cycle, edge: u64) -> TagState {
        let Plan { place, here, .. } = plan;
        let mut packet = self.ports.requests.recv(now).expect("a request was seen");
        packet.stamps.note(Stage::L2, now);
        if !here {
            self.replace(place, line_number(&packet));
        }
        self.lines.touch(place, edge);
        self.count(&packet, &plan);
        let rest = plan.queued | plan.fetched;
        for sector in each_sector(packet.sectors & !rest) {
            perform(&mut packet, &mut self.lines, place, sector);
        }
        let cycles = match &packet.atomic {
            Some(atomics) if is_atomic(packet.kind) => atomic::depth(atomics) * self.config.atomic_interval,
            _ => self.data_cycles((packet.sectors & !rest).count_ones()),
        };
        self.occupy(edge, cycles);
        packet.l2_hit = rest == 0 && (here || packet.kind == PacketKind::Store);
        if rest == 0 {
            self.complete(packet, now, edge);
            return TagState::Hit;
        }
        let slot = self.waiting.add(packet, rest);
        self.fetch(place, plan.fetched, now);
        let entry = self
            .lines
            .fetch(place)
            .expect("sectors that a packet waits for are under way");
        self.fetches.wait(entry, rest, slot, &mut self.waiting);
        TagState::Miss
    }

    /// Gives a line the place of another.
    fn replace(&mut self, place: usize, line: u32) {
        if self.lines.line(place).is_some() {
            self.stats.lines_evicted += 1;
            if self.lines.dirty(place) != 0 {
                self.write_line_back(place);
            }
        }
        self.lines.allocate(place, line);
    }

    fn write_line_back(&mut self, place: usize) {
        let line = self.lines.line(place).expect("a changed place holds a line");
        let sectors = self.lines.dirty(place);
        let mut packet = self.pool.take(PacketKind::Store, address(line), sectors, 0);
        packet.byte_mask = self.lines.valid(place) & byte_mask(sectors);
        copy_sectors(self.lines.bytes(place), &mut packet.bytes, sectors);
        self.stats.sectors_written_back += u64::from(sectors.count_ones());
        self.lines.clean(place);
        self.to_memory.push_back(packet);
    }

    fn fetch(&mut self, place: usize, sectors: u8, now: Cycle) {
        if sectors == 0 {
            return;
        }
        let entry = self.lines.fetch(place).unwrap_or_else(|| self.fetches.open());
        self.lines.set_fetch(place, Some(entry));
        self.fetches.start(entry, sectors);
        let line = self.lines.line(place).expect("a line was allocated");
        let mut packet = self.pool.take(PacketKind::Load, address(line), sectors, place as u32);
        packet.stamps.note(Stage::L2, now);
        self.stats.sectors_fetched += u64::from(sectors.count_ones());
        self.to_memory.push_back(packet);
    }

    /// Every sector is done: the packet enters the answer pipe.
    fn complete(&mut self, mut packet: Box<Packet>, now: Cycle, edge: u64) {
        packet.stamps.note(Stage::L2Data, now);
        let near = self.config.near_sms.contains(&packet.sm);
        let far = if near { 0 } else { self.config.far_latency };
        let pipe = &mut self.answers[usize::from(!near)];
        let due = edge + u64::from(self.config.latency + far);
        let due = pipe.back().map_or(due, |&(last, _)| due.max(last));
        pipe.push_back((due, packet));
    }

    fn n_answers(&self) -> usize {
        self.answers.iter().map(VecDeque::len).sum()
    }

    fn answers_full(&self) -> bool {
        let Config {
            latency, far_latency, ..
        } = self.config;
        self.answers[0].len() > latency as usize || self.answers[1].len() > (latency + far_latency) as usize
    }

    fn data_cycles(&self, sectors: u32) -> u32 {
        (sectors * SECTOR as u32).div_ceil(self.config.bytes_per_cycle)
    }

    fn occupy(&mut self, edge: u64, cycles: u32) {
        self.data_free = self.data_free.max(edge) + u64::from(cycles);
        self.stats.data_cycles += u64::from(cycles);
    }

    fn count(&mut self, packet: &Packet, plan: &Plan) {
        let s = &mut self.stats;
        let sectors = u64::from(packet.n_sectors());
        let missed = u64::from((plan.queued | plan.fetched).count_ones());
        match packet.kind {
            PacketKind::Load => {
                s.load_requests += 1;
                s.load_sectors += sectors;
                s.load_sectors_hit += sectors - missed;
                s.load_sectors_missed += missed;
                s.load_sectors_merged += u64::from(plan.queued.count_ones());
            }
            PacketKind::Store => {
                s.store_requests += 1;
                s.store_sectors += sectors;
                *(if plan.here {
                    &mut s.store_sectors_hit
                } else {
                    &mut s.store_sectors_missed
                }) += sectors;
            }
            PacketKind::Atomic | PacketKind::Reduction => {
                *(if packet.kind == PacketKind::Atomic {
                    &mut s.atomic_requests
                } else {
                    &mut s.reduction_requests
                }) += 1;
                s.atomic_sectors += sectors;
                s.atomic_sectors_hit += sectors - missed;
                s.atomic_sectors_missed += missed;
                s.atomic_lanes += packet.atomic.as_ref().map_or(0, |atomics| atomics.n as u64);
            }
            PacketKind::Invalidate => unreachable!("{}: an invalidation stays in the L1", self.path),
        }
    }

    fn activity(&mut self, now: Cycle) -> Activity {
        let busy = self.state != TagState::Idle
            || !self.to_memory.is_empty()
            || self.write_back.is_some()
            || self.ports.requests.is_ready(now)
            || self.ports.commands.is_ready(now)
            || self.ports.memory.iter_mut().any(|(_, port)| port.is_ready(now));
        match self.next_answer() {
            _ if busy => Activity::Busy,
            Some((due, _)) => Activity::Until(self.config.clock.cycle_of(due).max(now + 1)),
            None => Activity::Idle,
        }
    }
}

impl Component for Slice {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        let edges = self.config.clock.edges(now);
        self.next_edge = edges.end;
        for edge in edges {
            self.step(now, edge);
        }
        self.activity(now)
    }

    fn reset(&mut self) {
        self.ports.requests.clear();
        self.ports.commands.clear();
        self.ports.memory.iter_mut().for_each(|(_, port)| port.clear());
        self.lines.clear();
        self.fetches.clear();
        self.waiting.clear();
        self.answers.iter_mut().for_each(VecDeque::clear);
        self.to_memory.clear();
        self.data_free = 0;
        self.turn = 0;
        self.write_back = None;
        self.next_edge = 0;
        self.state = TagState::Idle;
        self.line = 0;
        self.stats = Stats::default();
    }

    fn is_quiescent(&self) -> bool {
        self.waiting.len() == 0
            && self.next_answer().is_none()
            && self.to_memory.is_empty()
            && self.fetches.in_flight() == 0
            && self.write_back.is_none()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.state("tag", &TAG_STATES, Some(self.state as usize));
        let known = self.state != TagState::Idle;
        probe.vector("line", 48, known.then_some(self.line));
        probe.vector("waiting", 16, Some(self.waiting.len() as u64));
        probe.vector("fetch_sectors", 16, Some(u64::from(self.fetches.in_flight())));
        probe.vector("to_memory", 8, Some(self.to_memory.len() as u64));
        probe.vector("answers", 16, Some(self.n_answers() as u64));
        probe.bit("writes_back", Some(self.write_back.is_some()));
    }

    fn stats(&self, report: &mut dyn Report) {
        let s = &self.stats;
        for (name, value) in [
            ("load_requests", s.load_requests),
            ("store_requests", s.store_requests),
            ("atomic_requests", s.atomic_requests),
            ("reduction_requests", s.reduction_requests),
            ("load_sectors", s.load_sectors),
            ("load_sectors_hit", s.load_sectors_hit),
            ("load_sectors_missed", s.load_sectors_missed),
            ("load_sectors_merged", s.load_sectors_merged),
            ("store_sectors", s.store_sectors),
            ("store_sectors_hit", s.store_sectors_hit),
            ("store_sectors_missed", s.store_sectors_missed),
            ("atomic_sectors", s.atomic_sectors),
            ("atomic_sectors_hit", s.atomic_sectors_hit),
            ("atomic_sectors_missed", s.atomic_sectors_missed),
            ("atomic_lanes", s.atomic_lanes),
            ("sectors_fetched", s.sectors_fetched),
            ("sectors_written_back", s.sectors_written_back),
            ("lines_evicted", s.lines_evicted),
            ("tag_cycles", s.tag_cycles),
            ("data_cycles", s.data_cycles),
            ("answer_cycles", s.answer_cycles),
            ("fetch_stall_cycles", s.fetch_stall_cycles),
            ("pinned_stall_cycles", s.pinned_stall_cycles),
            ("memory_stall_cycles", s.memory_stall_cycles),
            ("answer_stall_cycles", s.answer_stall_cycles),
        ] {
            report.count(name, value);
        }
    }

    fn waits(&self, say: &mut dyn FnMut(String)) {
        if self.waiting.len() > 0 {
            let (packets, sectors) = (self.waiting.len(), self.fetches.in_flight());
            say(format!(
                "{}: {packets} packets wait for {sectors} sectors from memory",
                self.path
            ));
        }
        if self.n_answers() > 0 {
            say(format!(
                "{}: {} answers wait for the crossbar",
                self.path,
                self.n_answers()
            ));
        }
    }
}

/// Does what a packet wants of one sector that it may have.
fn perform(packet: &mut Packet, lines: &mut Lines, place: usize, sector: usize) {
    match packet.kind {
        PacketKind::Load => copy_sectors(lines.bytes(place), &mut packet.bytes, 1 << sector),
        PacketKind::Store => {
            let mask = (packet.byte_mask >> (SECTOR * sector)) as u32;
            copy_bytes(
                &packet.bytes,
                lines.bytes_mut(place),
                u128::from(mask) << (SECTOR * sector),
            );
            lines.mark(place, sector, mask);
        }
        PacketKind::Atomic | PacketKind::Reduction => {
            debug_assert_eq!(lines.full(place) >> sector & 1, 1, "an atomic needs all of {FULL:x}");
            if let Some(atomics) = &mut packet.atomic {
                let written = atomic::perform(atomics, sector, lines.bytes_mut(place));
                lines.mark(place, sector, written);
            }
        }
        PacketKind::Invalidate => {}
    }
}

fn is_atomic(kind: PacketKind) -> bool {
    matches!(kind, PacketKind::Atomic | PacketKind::Reduction)
}

/// A packet that waited was at the memory when its fetch was, if it came before that.
fn inherit_stamp(packet: &mut Packet, fill: &Packet) {
    match (fill.stamps.at(Stage::Hbm), packet.stamps.at(Stage::L2)) {
        (Some(at), Some(looked_up)) if at >= looked_up => packet.stamps.note(Stage::Hbm, at),
        _ => {}
    }
}

fn line_number(packet: &Packet) -> u32 {
    (packet.line / LINE as u64) as u32
}

fn address(line: u32) -> u64 {
    u64::from(line) * LINE as u64
}

#[cfg(test)]
mod tests;
