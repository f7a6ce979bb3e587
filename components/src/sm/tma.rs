//! The bulk copy engine (TMA) of an SM: copies bytes between global and shared memory without registers.
//!
//! ```text
//!   lsu --BulkInst--> [tma] --Packet--> l1 (bypassed)                       and back
//!   dispatch <-WarpInst-    --Packet--> shared (line by line)               and back
//!   cta <-Trap---------     --Packet--> other SMs of the GPC (as for `lsu`) and back
//! ```
//!
//! A job is the copy of one lane. A piece is the part of a copy within one line of global memory and one line of shared memory.
//!
//! | Operation | Cycles |
//! |---|---|
//! | arrival of an instruction to the start of its first copy | `latency`; the first request follows 1 cycle later |
//! | piece to the next piece | 1; at most `pieces` are in flight |
//!
//! | Direction | Path of a piece | End of the instruction |
//! |---|---|---|
//! | to shared memory | L2, shared memory; after the last piece the engine arrives at the mbarrier | when all its copies have begun |
//! | to global memory | shared memory, L2 | when all its copies are complete |
//!
//! A tensor map in global memory is fetched before each copy that uses it (assumed). Bytes outside a tensor read as the map's fill value.
//! They are never written. To reduce a tile, the engine copies it to global memory: each piece becomes a reduction in the L2.
//!
//! A multicast reads each piece once from the L2. Each CTA of the mask gets its own packet, also on the same SM. One packet per cycle
//! leaves through a port of the GPC's network. Only the engine uses this port (assumed).
//!
//! A copy to another CTA that has ended traps. Shared memory refuses its bytes and its arrival at the mbarrier.
//!
//! Invariant: the bytes of a copy are in shared memory before the engine arrives at its mbarrier. Shared memory serves packets in order.

mod job;
mod map_fetch;
mod pieces;

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
use crate::proto::bulk::{self, BulkInst, MapPlace};
use crate::proto::header::{Direction, Header};
use crate::proto::launch::Trap;
use crate::proto::mem::Packet;
use crate::proto::pool::PacketPool;
use crate::proto::warp::WarpInst;
use job::{Destination, Job};
use map_fetch::MapFetch;

/// Depth of the queue to shared memory, in pieces. While it is full, no further piece reads shared memory. Assumed.
const TO_SHARED: usize = 2;

/// Queued packets for other SMs that stop the requests of further pieces. Pieces in flight can make the queue longer. Assumed.
const TO_REMOTE: usize = 16;

/// Parameters of the engine.
#[derive(Clone, Debug)]
pub struct Config {
    /// Latency and depth.
    pub tma: config::Tma,
    /// Number of the SM in its GPC.
    pub sm_in_gpc: u16,
    /// SMs of the GPC.
    pub gpc_sms: u16,
    /// Allocation unit of shared memory, in bytes.
    pub shared_unit: u32,
}

/// The links of the engine.
pub struct Ports {
    /// Copy instructions, from the LSU.
    pub input: InPort<BulkInst>,
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
    /// The links to other SMs.
    pub remote: RemotePorts,
}

warpwave_hw::show_ports!(Ports: input, output, l1, l1_response, shared, shared_response, remote);

/// The links of the engine for clusters.
pub struct RemotePorts {
    /// Requests to the shared memory of other SMs.
    pub request: OutPort<Box<Packet>>,
    /// Their responses.
    pub response: InPort<Box<Packet>>,
    /// Traps, to the CTA manager.
    pub trap: OutPort<Box<Trap>>,
}

warpwave_hw::show_ports!(RemotePorts: request, response, trap);

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
    inst: BulkInst,
    /// First cycle in which its copies may begin.
    begin_at: Cycle,
    /// Lanes whose copy has not begun.
    lanes: LaneMask,
    /// Number of its copies to global memory in flight.
    copies: u32,
}

impl CopyInst {
    fn is_to_global(&self) -> bool {
        // The modifier is the direction bit of a bulk copy.
        self.inst.warp_inst.inst().mods.high
    }

    fn has_ended(&self) -> bool {
        // Copies to shared memory are not in `copies`: the warp waits for them at the mbarrier.
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
    /// The tensor map of the next copy, if it comes from global memory.
    map: Option<MapFetch>,
    /// Packets that wait for the link to shared memory.
    to_shared: VecDeque<Box<Packet>>,
    /// Packets that wait for the link to other SMs.
    to_remote: VecDeque<Box<Packet>>,
    /// Stores and mbarrier arrivals that shared memory, here or in other SMs, has not acknowledged.
    unacknowledged: u32,
    /// Free packets.
    pool: PacketPool,
    /// Global address of the piece that the last tick sent, for the waveform.
    sent: Option<u64>,
    stats: Stats,
}

impl State {
    fn new(config: &Config) -> Self {
        let pieces = config.tma.pieces;
        State {
            insts: VecDeque::new(),
            jobs: VecDeque::new(),
            first_job: 0,
            in_flight: vec![None; pieces as usize],
            free_tags: (0..pieces).collect(),
            map: None,
            to_shared: VecDeque::new(),
            to_remote: VecDeque::new(),
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

    /// Queues a store or an mbarrier arrival for the shared memory of a CTA.
    fn write_shared(&mut self, packet: Box<Packet>, to: Destination) {
        self.unacknowledged += 1;
        match to.sm {
            None => self.to_shared.push_back(packet),
            Some(_) => self.to_remote.push_back(packet),
        }
    }

    /// Removes complete jobs, oldest first. A job to shared memory arrives at its mbarrier.
    fn finish_jobs(&mut self) {
        while let Some(job) = self.jobs.pop_front_if(|job| job.is_complete()) {
            // Pieces name their job by its number since reset, so the numbers stay valid when older jobs leave.
            self.first_job += 1;
            if job.to_global {
                // Jobs begin and leave in the order of their instructions, so the oldest with a copy in flight has this one.
                let inst = self.insts.iter_mut().find(|inst| inst.copies > 0);
                inst.expect("a copy to global memory keeps its instruction").copies -= 1;
            } else {
                for &to in &job.destinations {
                    let mut packet = self.pool.any();
                    job.arrive(&mut packet, to);
                    self.write_shared(packet, to);
                }
            }
        }
    }

    /// True if the queues have room for a piece that is written to shared memory.
    fn has_room_for_writes(&self) -> bool {
        self.to_shared.len() < TO_SHARED && self.to_remote.len() < TO_REMOTE
    }
}

/// The engine.
pub struct Tma {
    path: Path,
    config: Config,
    ports: Ports,
    state: State,
}

impl Tma {
    /// An engine without copies.
    pub fn new(path: Path, config: Config, ports: Ports) -> Self {
        Tma {
            state: State::new(&config),
            path,
            config,
            ports,
        }
    }

    /// Begins the copy of the next lane, once all pieces of the previous job are in flight.
    fn begin_copy(&mut self, now: Cycle) {
        let state = &mut self.state;
        // Copies begin in order, one at a time. Pieces of several copies can be in flight.
        if state.jobs.back().is_some_and(Job::has_more) {
            return;
        }
        let next = state.insts.iter_mut().find(|inst| !inst.lanes.is_empty());
        let Some(inst) = next.filter(|inst| inst.begin_at <= now) else {
            return;
        };
        let warp_inst = &inst.inst.warp_inst;
        let lane = inst.lanes.0.trailing_zeros() as usize;
        let bulk = bulk::of(warp_inst, lane);
        let map = match bulk::map_place(warp_inst, &bulk) {
            MapPlace::None => None,
            MapPlace::Constant(map) => map,
            MapPlace::Global => {
                let Some(fetch) = state.map.take_if(|fetch| fetch.is_complete()) else {
                    // `send_piece` requests the lines of the map. The copy begins once they have arrived.
                    state.map.get_or_insert_with(|| MapFetch::new(bulk.global));
                    return;
                };
                let map = fetch.map();
                if let Some(fault) = bulk::map_fault(warp_inst, &bulk, map.as_ref()) {
                    let trap = fault.trap(warp_inst, lane);
                    // The trap ends the launch, so the other lanes need no copy.
                    inst.lanes = LaneMask::NONE;
                    return send_trap(&mut self.ports.remote.trap, trap, now);
                }
                map
            }
        };
        let job = Job::of(&inst.inst, lane, &bulk, map, self.config.sm_in_gpc);
        // Clears the lowest bit: the copy of that lane begins.
        inst.lanes.0 &= inst.lanes.0 - 1;
        inst.copies += u32::from(inst.is_to_global());
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
        let port = &mut self.ports.output[self.state.insts[n].inst.warp_inst.subcore as usize];
        if port.has_room(now)
            && let Some(inst) = self.state.insts.remove(n)
        {
            port.send(now, inst.inst.warp_inst);
        }
    }

    /// Takes an instruction from the LSU.
    fn take_instruction(&mut self, now: Cycle) {
        if let Some(inst) = self.ports.input.recv(now) {
            self.state.insts.push_back(CopyInst {
                lanes: inst.warp_inst.lanes,
                begin_at: now + u64::from(self.config.tma.latency),
                copies: 0,
                inst,
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

    /// Sends the oldest queued packet to another SM.
    fn send_to_remote(&mut self, now: Cycle) {
        let port = &mut self.ports.remote.request;
        if port.has_room(now)
            && let Some(mut packet) = self.state.to_remote.pop_front()
        {
            // The response returns to this output of the GPC's network: first come those of the LSUs, then those of the engines.
            packet.sm = self.config.gpc_sms + self.config.sm_in_gpc;
            let header = Header::of(&packet, Direction::Request);
            port.send_sideband(now, header.sideband(), packet);
        }
    }

    fn activity(&self, now: Cycle) -> Activity {
        let (state, ports) = (&self.state, &self.ports);
        let has_message = ports.input.is_ready(now)
            || ports.l1_response.is_ready(now)
            || ports.shared_response.is_ready(now)
            || ports.remote.response.is_ready(now);
        // The pulse of `sent` ends in the next cycle.
        let has_signal = state.sent.is_some();
        let has_work = !state.to_shared.is_empty()
            || !state.to_remote.is_empty()
            || !state.insts.is_empty()
            || state.jobs.iter().any(Job::has_more);
        Activity::busy_if(has_message || has_signal || has_work)
    }
}

/// Sends a trap. Later traps are dropped: the first one ends the launch.
#[cold]
fn send_trap(port: &mut OutPort<Box<Trap>>, trap: Box<Trap>, now: Cycle) {
    if port.has_room(now) {
        port.send(now, trap);
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
        self.receive_from_remote(now);
        // Before `begin_copy`: a copy requests its first piece in the cycle after it begins.
        self.send_piece(now);
        self.begin_copy(now);
        self.end_instruction(now);
        self.take_instruction(now);
        // Last, so a packet queued in this tick leaves in it.
        self.send_to_shared(now);
        self.send_to_remote(now);
        self.activity(now)
    }

    fn reset(&mut self) {
        self.state = State::new(&self.config);
        self.ports.clear_inputs();
    }

    fn is_quiescent(&self) -> bool {
        let state = &self.state;
        state.insts.is_empty()
            && state.jobs.is_empty()
            && state.to_shared.is_empty()
            && state.to_remote.is_empty()
            && state.unacknowledged == 0
    }

    fn probe(&self, probe: &mut dyn Probe) {
        let state = &self.state;
        let in_flight = state.in_flight.len() - state.free_tags.len();
        probe.bit("piece_valid", Some(state.sent.is_some()));
        probe.vector("piece_address", 48, state.sent);
        probe.vector("copies", 16, Some(state.jobs.len() as u64));
        let pieces = count_width(self.config.tma.pieces.into());
        probe.vector("pieces_in_flight", pieces, Some(in_flight as u64));
    }

    fn ports(&mut self, observer: &mut dyn LinkObserver) {
        self.ports.show(observer);
    }

    /// Each tag is free or has one piece in flight.
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
