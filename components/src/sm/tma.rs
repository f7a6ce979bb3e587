//! The bulk copy engine (TMA) of an SM: copies bytes between global and shared memory without registers.
//!
//! ```text
//!   lsu --WarpInst--> [tma] --Packet--> l1 (bypassed)           and back
//!   dispatch <-WarpInst-    --Packet--> shared (line by line)   and back
//! ```
//!
//! A piece is the part of a copy within one line of global memory and one line of shared memory.
//!
//! | Operation | Cycles |
//! |---|---|
//! | arrival of an instruction to its first request | `latency` |
//! | piece to the next piece | 1; at most `pieces` are in flight |
//!
//! | Direction | Path of a piece | End of the instruction |
//! |---|---|---|
//! | to shared memory | L2, shared memory; after the last piece the engine arrives at the mbarrier | when all its copies have begun |
//! | to global memory | shared memory, L2 | when all its copies are complete |
//!
//! Bytes outside a tensor read as zero and are not written.
//!
//! Invariant: the bytes of a copy are in shared memory before the engine arrives at its mbarrier. Shared memory serves packets in order.

mod job;

use std::collections::VecDeque;

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::invariant::Invariants;
use warpwave_hw::link::wires::{LinkObserver, Show};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::{Probe, count_width};
use warpwave_hw::stats::Report;
use warpwave_hw::time::Cycle;
use warpwave_isa::lane::LaneMask;

use crate::config;
use crate::proto::mem::{BULK_TAG, Packet, PacketKind};
use crate::proto::pool::PacketPool;
use crate::proto::warp::WarpInst;
use job::Job;

/// Depth of the queue to shared memory, in pieces. While it is full, no further piece reads shared memory. Assumed.
const TO_SHARED: usize = 2;

/// The links of the engine.
pub struct Ports {
    /// Copy instructions, from the LSU.
    pub input: InPort<Box<WarpInst>>,
    /// Ended instructions, to the dispatch unit of each sub-core.
    pub output: Vec<OutPort<Box<WarpInst>>>,
    /// Requests to the L1.
    pub l1: OutPort<Box<Packet>>,
    /// Responses of the L1.
    pub l1_response: InPort<Box<Packet>>,
    /// Requests to shared memory.
    pub shared: OutPort<Box<Packet>>,
    /// Responses of shared memory.
    pub shared_response: InPort<Box<Packet>>,
}

warpwave_hw::show_ports!(Ports: input, output, l1, l1_response, shared, shared_response);

/// Counters of the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Copies begun, one per lane: first those to shared memory, then those to global memory.
    pub copies: [u64; 2],
    /// Pieces sent.
    pub pieces: u64,
    /// Bytes of the pieces sent.
    pub bytes: u64,
}

/// A copy instruction that has not ended.
struct CopyInst {
    warp_inst: Box<WarpInst>,
    /// First cycle in which its copies may begin.
    begin_at: Cycle,
    /// Lanes whose copy has not begun.
    lanes: LaneMask,
    /// Number of its copies to global memory in flight.
    copies: u32,
}

impl CopyInst {
    fn is_to_global(&self) -> bool {
        self.warp_inst.inst().mods.high
    }

    fn has_ended(&self) -> bool {
        self.lanes.is_empty() && self.copies == 0
    }
}

/// A piece in flight.
#[derive(Clone, Copy)]
struct InFlight {
    /// Number of its job, counted since reset.
    job: u32,
    /// Number of the piece within its job.
    piece: u32,
}

/// The state that `reset` clears.
struct State {
    /// Instructions that have not ended, oldest first.
    insts: VecDeque<CopyInst>,
    /// Jobs with pieces in flight, oldest first. The newest may have pieces to send.
    jobs: VecDeque<Job>,
    /// Number of the oldest job, counted since reset.
    first_job: u32,
    /// The pieces in flight, by tag.
    in_flight: Vec<Option<InFlight>>,
    free_tags: Vec<u32>,
    /// Packets that wait for the link to shared memory.
    to_shared: VecDeque<Box<Packet>>,
    /// Stores and mbarrier arrivals that shared memory has not acknowledged.
    unacknowledged: u32,
    /// Free packets.
    pool: PacketPool,
    /// Global address of the piece that the last tick sent, for the waveform.
    sent: Option<u64>,
    stats: Stats,
}

impl State {
    fn new(config: &config::Tma) -> Self {
        State {
            insts: VecDeque::new(),
            jobs: VecDeque::new(),
            first_job: 0,
            in_flight: vec![None; config.pieces as usize],
            free_tags: (0..config.pieces).collect(),
            to_shared: VecDeque::new(),
            unacknowledged: 0,
            pool: PacketPool::default(),
            sent: None,
            stats: Stats::default(),
        }
    }

    /// The job of a piece in flight.
    fn job(&mut self, piece: InFlight) -> &mut Job {
        &mut self.jobs[(piece.job - self.first_job) as usize]
    }

    /// Queues a store or an mbarrier arrival for shared memory.
    fn write_shared(&mut self, packet: Box<Packet>) {
        self.unacknowledged += 1;
        self.to_shared.push_back(packet);
    }

    /// Removes complete jobs, oldest first. A job to shared memory arrives at its mbarrier.
    fn finish_jobs(&mut self) {
        while let Some(job) = self.jobs.pop_front_if(|job| job.is_complete()) {
            self.first_job += 1;
            if job.to_global {
                // Jobs are complete in order, so this is the oldest instruction with a copy in flight.
                let inst = self.insts.iter_mut().find(|inst| inst.copies > 0);
                inst.expect("a copy to global memory keeps its instruction").copies -= 1;
            } else {
                let mut packet = self.pool.any();
                job.arrive(&mut packet);
                self.write_shared(packet);
            }
        }
    }
}

/// The engine.
pub struct Tma {
    path: Path,
    config: config::Tma,
    ports: Ports,
    state: State,
}

impl Tma {
    /// An engine without copies.
    pub fn new(path: Path, config: config::Tma, ports: Ports) -> Self {
        Tma {
            state: State::new(&config),
            path,
            config,
            ports,
        }
    }

    /// Receives a response of shared memory. Sends the bytes of a load on to global memory.
    fn receive_from_shared(&mut self, now: Cycle) {
        // A load from shared memory becomes a store to the L1 in this tick.
        if !self.ports.l1.has_room(now) {
            return;
        }
        let Some(mut packet) = self.ports.shared_response.recv(now) else {
            return;
        };
        let state = &mut self.state;
        if packet.kind != PacketKind::Load {
            state.unacknowledged -= 1;
            state.pool.give(packet);
            return;
        }
        // The tag stays in use until the L2 has acknowledged the store.
        let tag = (packet.tag & !BULK_TAG) as usize;
        let piece = state.in_flight[tag].expect("a response belongs to a piece in flight");
        state.job(piece).write_global(&mut packet, piece.piece);
        self.ports.l1.send(now, packet);
    }

    /// Receives a response of the L1. Sends the bytes of a load on to shared memory.
    fn receive_from_l1(&mut self, now: Cycle) {
        let Some(mut packet) = self.ports.l1_response.recv(now) else {
            return;
        };
        let state = &mut self.state;
        let tag = packet.tag & !BULK_TAG;
        let piece = state.in_flight[tag as usize].take();
        let piece = piece.expect("a response belongs to a piece in flight");
        state.free_tags.push(tag);
        let job = state.job(piece);
        job.pieces_left -= 1;
        if packet.kind == PacketKind::Load {
            job.write_shared(&mut packet, piece.piece);
            state.write_shared(packet);
        } else {
            state.pool.give(packet);
        }
        state.finish_jobs();
    }

    /// Sends the next piece of the newest job.
    fn send_piece(&mut self, now: Cycle) {
        let state = &mut self.state;
        let number = state.first_job + state.jobs.len() as u32;
        let Some(job) = state.jobs.back_mut().filter(|job| job.has_more()) else {
            return;
        };
        // A piece of zeros needs room in the queue to shared memory, like a read of shared memory.
        let has_room = match job.reads_global_next() {
            true => self.ports.l1.has_room(now),
            false => state.to_shared.len() < TO_SHARED,
        };
        if !has_room || state.free_tags.is_empty() {
            return;
        }
        let (n, piece) = job.take();
        state.stats.pieces += 1;
        state.stats.bytes += u64::from(piece.bytes);
        state.sent = piece.global;
        let mut packet = state.pool.any();
        let Some(job) = state.jobs.back_mut() else { return };
        if !job.to_global && piece.global.is_none() {
            // Outside the tensor there is nothing to read: the piece is complete at once.
            job.write_zeros(&mut packet, piece);
            job.pieces_left -= 1;
            state.write_shared(packet);
            return state.finish_jobs();
        }
        let Some(tag) = state.free_tags.pop() else { return };
        state.in_flight[tag as usize] = Some(InFlight {
            job: number - 1,
            piece: n,
        });
        packet.tag = BULK_TAG | tag;
        if job.to_global {
            job.read_shared(&mut packet, piece);
            state.to_shared.push_back(packet);
        } else {
            job.read_global(&mut packet, piece);
            self.ports.l1.send(now, packet);
        }
    }

    /// Begins the copy of the next lane, once all pieces of the previous job are in flight.
    fn begin_copy(&mut self, now: Cycle) {
        let state = &mut self.state;
        if state.jobs.back().is_some_and(Job::has_more) {
            return;
        }
        let next = state.insts.iter_mut().find(|inst| !inst.lanes.is_empty());
        let Some(inst) = next.filter(|inst| inst.begin_at <= now) else {
            return;
        };
        let lane = inst.lanes.0.trailing_zeros() as usize;
        inst.lanes.0 &= inst.lanes.0 - 1;
        inst.copies += u32::from(inst.is_to_global());
        let job = Job::of(&inst.warp_inst, lane);
        state.stats.copies[usize::from(job.to_global)] += 1;
        state.jobs.push_back(job);
        // A tile that is completely outside its tensor has no piece, so its job is complete at once.
        state.finish_jobs();
    }

    /// Sends the oldest ended instruction to its sub-core.
    fn end_instruction(&mut self, now: Cycle) {
        let Some(n) = self.state.insts.iter().position(CopyInst::has_ended) else {
            return;
        };
        let port = &mut self.ports.output[self.state.insts[n].warp_inst.subcore as usize];
        if port.has_room(now)
            && let Some(inst) = self.state.insts.remove(n)
        {
            port.send(now, inst.warp_inst);
        }
    }

    /// Takes an instruction from the LSU.
    fn take_instruction(&mut self, now: Cycle) {
        if let Some(warp_inst) = self.ports.input.recv(now) {
            self.state.insts.push_back(CopyInst {
                lanes: warp_inst.lanes,
                begin_at: now + u64::from(self.config.latency),
                copies: 0,
                warp_inst,
            });
        }
    }

    /// Sends the oldest queued packet to shared memory.
    fn send_to_shared(&mut self, now: Cycle) {
        if self.ports.shared.has_room(now)
            && let Some(packet) = self.state.to_shared.pop_front()
        {
            self.ports.shared.send(now, packet);
        }
    }

    fn activity(&self, now: Cycle) -> Activity {
        let (state, ports) = (&self.state, &self.ports);
        let has_message =
            ports.input.is_ready(now) || ports.l1_response.is_ready(now) || ports.shared_response.is_ready(now);
        // The pulse of `sent` ends in the next cycle.
        let has_signal = state.sent.is_some();
        let has_work = !state.to_shared.is_empty() || !state.insts.is_empty() || state.jobs.iter().any(Job::has_more);
        Activity::busy_if(has_message || has_signal || has_work)
    }
}

warpwave_hw::warm!(Tma);

impl Component for Tma {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        self.state.sent = None;
        // Pieces in flight get the links before new pieces.
        self.receive_from_shared(now);
        self.receive_from_l1(now);
        self.send_piece(now);
        self.begin_copy(now);
        self.end_instruction(now);
        self.take_instruction(now);
        // Last, so a packet queued in this tick leaves in it.
        self.send_to_shared(now);
        self.activity(now)
    }

    fn reset(&mut self) {
        self.state = State::new(&self.config);
        self.ports.clear_inputs();
    }

    fn is_quiescent(&self) -> bool {
        let state = &self.state;
        state.insts.is_empty() && state.jobs.is_empty() && state.to_shared.is_empty() && state.unacknowledged == 0
    }

    fn probe(&self, probe: &mut dyn Probe) {
        let state = &self.state;
        let in_flight = state.in_flight.len() - state.free_tags.len();
        probe.bit("piece_valid", Some(state.sent.is_some()));
        probe.vector("piece_address", 48, state.sent);
        probe.vector("copies", 16, Some(state.jobs.len() as u64));
        let pieces = count_width(self.config.pieces.into());
        probe.vector("pieces_in_flight", pieces, Some(in_flight as u64));
    }

    fn ports(&mut self, observer: &mut dyn LinkObserver) {
        self.ports.show(observer);
    }

    fn invariants(&self, check: &mut Invariants) {
        let (pieces, free) = (&self.state.in_flight, &self.state.free_tags);
        let used = pieces.iter().flatten().count();
        check.equal(
            "pieces in flight and free tags",
            (used + free.len()) as u64,
            pieces.len() as u64,
        );
        let reused = free.iter().filter(|&&tag| pieces[tag as usize].is_some());
        check.equal("free tags of pieces in flight", reused.count() as u64, 0);
    }

    fn stats(&self, report: &mut dyn Report) {
        let stats = &self.state.stats;
        report.count("tma_loads", stats.copies[0]);
        report.count("tma_stores", stats.copies[1]);
        report.count("tma_pieces", stats.pieces);
        report.count("tma_bytes", stats.bytes);
    }

    fn waits(&self, say: &mut dyn FnMut(String)) {
        let copies = self.state.jobs.len();
        if copies > 0 {
            say(format!("{}: {copies} bulk copies are in flight", self.path));
        }
    }
}

#[cfg(test)]
mod tests;
