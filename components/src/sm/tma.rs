//! The bulk copy engine (TMA) of an SM: copies between global and shared memory, piece by piece, without a register.
//!
//! ```text
//!   lsu --WarpInst--> [tma] --Packet--> l1 (which they pass by)      and back
//!   dispatch <-WarpInst-    --Packet--> shared (line by line)        and back
//! ```
//!
//! | what | cycles |
//! |---|---|
//! | an instruction's arrival to its first request | `latency` |
//! | pieces | one per cycle, at most `pieces` under way |
//!
//! A copy towards shared memory reads each piece from the L2, writes it, and then arrives at its mbarrier with the bytes; its warp went
//! on when the engine had taken it. One towards global memory reads shared memory and writes to the L2; its instruction ends with it.
//! What lies outside a tensor is zero, and is not written.
//!
//! Invariant: a copy's bytes are in shared memory before its mbarrier hears of them, because shared memory serves packets in order.

mod job;

use std::collections::VecDeque;

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::wires::{Show, Wires};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::time::Cycle;

use crate::config;
use crate::proto::mem::{BULK_TAG, Packet, PacketKind};
use crate::proto::warp::WarpInst;
use job::Job;

/// The links of the engine.
pub struct Ports {
    /// Copies.
    pub input: InPort<Box<WarpInst>>,
    /// Their ends, to each sub-core.
    pub output: Vec<OutPort<Box<WarpInst>>>,
    /// To the L1.
    pub l1: OutPort<Box<Packet>>,
    /// From the L1.
    pub answer: InPort<Box<Packet>>,
    /// To shared memory.
    pub shared: OutPort<Box<Packet>>,
    /// From shared memory.
    pub shared_answer: InPort<Box<Packet>>,
}

warpwave_hw::show_ports!(Ports: input, output, l1, answer, shared, shared_answer);

/// What the engine counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Copies of lanes begun towards shared memory, and towards global memory.
    pub copies: [u64; 2],
    /// Pieces moved.
    pub pieces: u64,
    /// Bytes moved.
    pub bytes: u64,
}

/// An instruction that the engine holds: until its copies have begun, or until they are over.
struct Held {
    warp_inst: Box<WarpInst>,
    /// The cycle from which its copies may begin.
    from: Cycle,
    /// Lanes whose copy has not begun.
    lanes: u32,
    /// Copies under way that it waits for.
    copies: u32,
}

/// The engine.
#[allow(
    clippy::vec_box,
    reason = "the boxes travel: taking them out must not move what they hold"
)]
pub struct Tma {
    path: Path,
    config: config::Tma,
    ports: Ports,
    held: VecDeque<Held>,
    /// The copies whose pieces are under way, and the one that makes pieces, in order.
    jobs: VecDeque<Job>,
    /// Number of the first of them since the start.
    first_job: u32,
    /// For each piece under way its job's number and its place there.
    under_way: Vec<Option<(u32, u32)>>,
    free: Vec<u32>,
    /// Packets for shared memory that wait for the link.
    to_shared: VecDeque<Box<Packet>>,
    /// Packets at shared memory whose answer nobody waits for.
    written: u32,
    pool: Vec<Box<Packet>>,
    moved: Option<u64>,
    stats: Stats,
}

impl Tma {
    /// An engine with nothing to copy.
    pub fn new(path: Path, config: config::Tma, ports: Ports) -> Self {
        Tma {
            held: VecDeque::new(),
            jobs: VecDeque::new(),
            first_job: 0,
            under_way: vec![None; config.pieces as usize],
            free: (0..config.pieces).collect(),
            to_shared: VecDeque::new(),
            written: 0,
            pool: Vec::new(),
            moved: None,
            stats: Stats::default(),
            path,
            config,
            ports,
        }
    }

    fn take(&mut self, now: Cycle) {
        if let Some(warp_inst) = self.ports.input.recv(now) {
            self.held.push_back(Held {
                lanes: warp_inst.lanes.0,
                from: now + u64::from(self.config.latency),
                copies: 0,
                warp_inst,
            });
        }
    }

    /// Begins the copy of the next lane of the first instruction that has one left, once all pieces of the one before are under way.
    fn begin(&mut self, now: Cycle) {
        if self.jobs.back().is_some_and(Job::has_more) {
            return;
        }
        let Some(n) = self.held.iter().position(|held| held.lanes != 0) else {
            return;
        };
        let held = &mut self.held[n];
        if held.from > now {
            return;
        }
        let lane = held.lanes.trailing_zeros() as usize;
        held.lanes &= held.lanes - 1;
        held.copies += 1;
        let job = Job::of(&held.warp_inst, lane);
        self.stats.copies[usize::from(job.to_global)] += 1;
        self.jobs.push_back(job);
        self.finish_jobs();
    }

    /// Hands back the first instruction of which nothing is left: its copies have begun (towards shared memory) or are over.
    fn end(&mut self, now: Cycle) {
        let is_over = |held: &Held| held.lanes == 0 && !(held.warp_inst.inst().mods.high && held.copies > 0);
        let Some(n) = self.held.iter().position(is_over) else {
            return;
        };
        let port = &mut self.ports.output[self.held[n].warp_inst.subcore as usize];
        if port.has_room(now)
            && let Some(held) = self.held.remove(n)
        {
            port.send(now, held.warp_inst);
        }
    }

    /// Sends the next piece of the copy that makes them on its first way.
    fn send_piece(&mut self, now: Cycle) {
        self.moved = None;
        let Some(job) = self.jobs.back_mut().filter(|job| job.has_more()) else {
            return;
        };
        let room = match job.next_is_global() {
            true => self.ports.l1.has_room(now),
            false => self.to_shared.len() < 2,
        };
        if !room || self.free.is_empty() {
            return;
        }
        let number = self.first_job + self.jobs.len() as u32 - 1;
        let Some(job) = self.jobs.back_mut() else { return };
        let (n, piece) = job.take();
        self.stats.pieces += 1;
        self.stats.bytes += u64::from(piece.bytes);
        self.moved = piece.global;
        let mut packet = self.pool.pop().unwrap_or_else(|| Box::new(Packet::blank()));
        if !job.to_global && piece.global.is_none() {
            job.write_zeros(&mut packet, piece);
            job.left -= 1;
            self.write_shared(packet);
            self.finish_jobs();
            return;
        }
        let Some(tag) = self.free.pop() else { return };
        self.under_way[tag as usize] = Some((number, n));
        packet.tag = BULK_TAG | tag;
        if job.to_global {
            job.read_shared(&mut packet, piece);
            self.to_shared.push_back(packet);
        } else {
            job.read_global(&mut packet, piece);
            self.ports.l1.send(now, packet);
        }
    }

    /// Puts a packet for shared memory in line whose answer nobody waits for.
    fn write_shared(&mut self, packet: Box<Packet>) {
        self.written += 1;
        self.to_shared.push_back(packet);
    }

    /// What the L1 answers: bytes read, which go to shared memory, or bytes written.
    fn take_answer(&mut self, now: Cycle) {
        let Some(mut packet) = self.ports.answer.recv(now) else {
            return;
        };
        let tag = packet.tag & !BULK_TAG;
        let (number, n) = self.under_way[tag as usize]
            .take()
            .expect("an answer belongs to a piece");
        self.free.push(tag);
        let job = &mut self.jobs[(number - self.first_job) as usize];
        job.left -= 1;
        if packet.kind == PacketKind::Load {
            job.write_shared(&mut packet, n);
            self.write_shared(packet);
        } else {
            self.pool.push(packet);
        }
        self.finish_jobs();
    }

    /// What shared memory answers: bytes read, which go on to global memory.
    fn take_shared_answer(&mut self, now: Cycle) {
        if !self.ports.l1.has_room(now) {
            return;
        }
        let Some(mut packet) = self.ports.shared_answer.recv(now) else {
            return;
        };
        if packet.kind != PacketKind::Load {
            self.written -= 1;
            self.pool.push(packet);
            return;
        }
        let tag = (packet.tag & !BULK_TAG) as usize;
        let (number, n) = self.under_way[tag].expect("an answer belongs to a piece");
        self.jobs[(number - self.first_job) as usize].write_global(&mut packet, n);
        self.ports.l1.send(now, packet);
    }

    /// Copies that are over, from the first on: one towards shared memory arrives at its mbarrier, one towards global memory lets its
    /// instruction end.
    fn finish_jobs(&mut self) {
        while self.jobs.front().is_some_and(|job| job.left == 0 && !job.has_more())
            && let Some(job) = self.jobs.pop_front()
        {
            self.first_job += 1;
            if job.to_global {
                let held = self
                    .held
                    .iter_mut()
                    .find(|held| held.warp_inst.inst().mods.high && held.copies > 0);
                held.expect("a copy towards global memory keeps its instruction").copies -= 1;
            } else {
                let mut packet = self.pool.pop().unwrap_or_else(|| Box::new(Packet::blank()));
                job.arrive(&mut packet);
                self.write_shared(packet);
            }
        }
    }

    fn send_shared(&mut self, now: Cycle) {
        if self.ports.shared.has_room(now)
            && let Some(packet) = self.to_shared.pop_front()
        {
            self.ports.shared.send(now, packet);
        }
    }
}

warpwave_hw::warm!(Tma);

impl Component for Tma {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        self.take_shared_answer(now);
        self.take_answer(now);
        self.send_piece(now);
        self.begin(now);
        self.end(now);
        self.take(now);
        self.send_shared(now);
        let waits = self.ports.answer.is_ready(now) || self.ports.shared_answer.is_ready(now);
        let unread = self.ports.input.is_ready(now) || waits || !self.to_shared.is_empty() || self.moved.is_some();
        Activity::busy_if(unread || !self.held.is_empty() || self.jobs.iter().any(Job::has_more))
    }

    fn reset(&mut self) {
        self.held.clear();
        self.jobs.clear();
        self.first_job = 0;
        self.under_way.fill(None);
        self.free = (0..self.config.pieces).collect();
        self.to_shared.clear();
        self.pool.clear();
        self.written = 0;
        self.moved = None;
        self.stats = Stats::default();
        self.ports.input.clear();
        self.ports.answer.clear();
        self.ports.shared_answer.clear();
    }

    fn is_quiescent(&self) -> bool {
        self.held.is_empty() && self.jobs.is_empty() && self.to_shared.is_empty() && self.written == 0
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.bit("piece_valid", Some(self.moved.is_some()));
        probe.vector("piece_address", 48, self.moved);
        probe.vector("copies", 16, Some(self.jobs.len() as u64));
        probe.vector(
            "pieces_under_way",
            8,
            Some(u64::from(self.config.pieces) - self.free.len() as u64),
        );
    }

    fn ports(&mut self, wires: &mut dyn Wires) {
        self.ports.show(wires);
    }

    fn stats(&self, report: &mut dyn Report) {
        report.count("tma_loads", self.stats.copies[0]);
        report.count("tma_stores", self.stats.copies[1]);
        report.count("tma_pieces", self.stats.pieces);
        report.count("tma_bytes", self.stats.bytes);
    }

    fn waits(&self, say: &mut dyn FnMut(String)) {
        if !self.jobs.is_empty() {
            say(format!("{}: {} bulk copies under way", self.path, self.jobs.len()));
        }
    }
}

#[cfg(test)]
mod tests;
