//! Line accesses: packets of other SMs of the cluster and of the bulk copy engine. A line is 128 bytes and can begin at any byte.
//!
//! | Access | Cycles |
//! |---|---|
//! | load, store | banks busy for 1; response `latency` after arrival |
//! | atomic | 1 more of each per further lane on the busiest word |
//! | refused, since its CTA has ended | as a load |
//!
//! The sources are served round robin. If the SM's own accesses wait too, both alternate.

use std::collections::VecDeque;

use warpwave_hw::component::Activity;
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::time::Cycle;

use super::SharedMemory;
use super::atomics::{MBARRIER, apply_packet};
use crate::proto::cluster::RemoteByte;
use crate::proto::header::{Direction, Header};
use crate::proto::launch::TrapKind;
use crate::proto::mem::{AtomicLane, LINE, Packet, PacketKind};

/// The links of one source.
pub struct LinePorts {
    /// Packets with accesses.
    pub input: InPort<Box<Packet>>,
    /// The same packets, as responses.
    pub output: OutPort<Box<Packet>>,
    /// Cycles from the arrival of an access to its response.
    pub latency: u32,
}

warpwave_hw::show_ports!(LinePorts: input, output);

/// The line accesses in flight.
#[derive(Debug)]
pub(super) struct Lines {
    /// Responses to each source, with the cycle in which each is due.
    responses: Vec<VecDeque<(Cycle, Box<Packet>)>>,
    /// First cycle in which line accesses leave the banks free.
    banks_free_at: Cycle,
    /// True if it is the turn of the SM's own accesses.
    own_turn: bool,
    /// The source served last.
    last_source: usize,
}

impl Lines {
    /// No accesses.
    pub(super) fn new(sources: usize) -> Self {
        Lines {
            responses: (0..sources).map(|_| VecDeque::new()).collect(),
            banks_free_at: Cycle::ZERO,
            own_turn: false,
            last_source: 0,
        }
    }

    /// True if a line access occupies the banks.
    pub(super) fn hold_banks(&self, now: Cycle) -> bool {
        self.banks_free_at > now
    }

    pub(super) fn is_empty(&self) -> bool {
        self.responses.iter().all(VecDeque::is_empty)
    }

    /// When line accesses need the next tick.
    pub(super) fn activity(&self, ports: &[LinePorts], now: Cycle) -> Activity {
        let first = self.responses.iter().filter_map(VecDeque::front);
        let due = first.map(|&(due, _)| due).min();
        let respond = due.map_or(Activity::Idle, |due| Activity::Until(due.max(now + 1)));
        let has_input = ports.iter().any(|ports| ports.input.is_ready(now));
        Activity::busy_if(has_input || self.hold_banks(now)).or(respond)
    }
}

impl SharedMemory {
    /// Sends due responses. Serves one access, if the banks are free and it is the turn of line accesses.
    pub(super) fn run_lines(&mut self, now: Cycle) {
        self.send_line_responses(now);
        let own_waits = self.ports.input.is_ready(now);
        // A running access keeps the banks. After it, the lines have the next turn.
        let own_runs = self.state.current.is_some() || self.state.banks_free_at > now;
        let lines = &mut self.state.lines;
        if lines.hold_banks(now) {
            return;
        }
        if own_runs || (own_waits && lines.own_turn) {
            lines.own_turn = false;
            return;
        }
        let sources = self.ports.lines.len();
        let is_ready = |n: &usize| self.ports.lines[*n].input.is_ready(now);
        let next = (1..=sources).map(|n| (lines.last_source + n) % sources).find(is_ready);
        let Some(source) = next else { return };
        let Some(mut packet) = self.ports.lines[source].input.recv(now) else {
            return;
        };
        let passes = self.serve_line(&mut packet, now);
        self.state.stats.lines += 1;
        self.state.stats.busy_cycles += passes;
        let lines = &mut self.state.lines;
        lines.last_source = source;
        // So a stream of lines from other SMs cannot starve the SM's own accesses.
        lines.own_turn = true;
        lines.banks_free_at = now + passes;
        // The response leaves after the last pass.
        let due = now + u64::from(self.ports.lines[source].latency) + (passes - 1);
        lines.responses[source].push_back((due, packet));
    }

    fn send_line_responses(&mut self, now: Cycle) {
        for (ports, responses) in self.ports.lines.iter_mut().zip(&mut self.state.lines.responses) {
            if responses.front().is_some_and(|&(due, _)| due <= now)
                && ports.output.has_room(now)
                && let Some((_, packet)) = responses.pop_front()
            {
                // The GPC's network routes by the header. The link to the copy engine ignores it.
                let header = Header::of(&packet, Direction::Response);
                ports.output.send_sideband(now, header.sideband(), packet);
            }
        }
    }

    /// Performs an access. Returns its passes.
    fn serve_line(&mut self, packet: &mut Packet, now: Cycle) -> u64 {
        let to = RemoteByte::of(packet.line).expect("a line access has an address in shared memory");
        if self.state.residents.has_ended(to) {
            packet.refuse();
            return 1;
        }
        let first = to.byte as usize;
        // A line can begin at any byte.
        self.use_bytes(first + LINE);
        let line = &mut self.state.bytes[first..];
        match packet.kind {
            PacketKind::Load => {
                // The capacity can end within the line.
                let n = line.len().min(LINE);
                packet.bytes[..n].copy_from_slice(&line[..n]);
                1
            }
            PacketKind::Store => {
                let masked = line.iter_mut().take(LINE).enumerate();
                let masked = masked.filter(|(n, _)| packet.byte_mask >> n & 1 == 1);
                masked.for_each(|(n, byte)| *byte = packet.bytes[n]);
                self.state.stats.lines_stored += 1;
                1
            }
            PacketKind::Atomic | PacketKind::Reduction => {
                let lanes = packet.atomic.as_mut().expect("an atomic packet has lanes");
                let changed = &mut self.state.stats.atomic_words_changed;
                if let Some((lane, fault)) = apply_packet(lanes, line, changed) {
                    let origin = lanes.origin;
                    // All blocks of a grid have one size, so the remainder is the offset in the block.
                    let size = (origin.shared_bytes as usize).next_multiple_of(self.config.shared_unit as usize);
                    let address = (first + usize::from(lane.offset)) % size.max(1);
                    let kind = TrapKind::Mbarrier(fault);
                    let trap = origin.trap(lane.lane.into(), kind, (address as u64, MBARRIER), "shared::cluster");
                    self.send_trap(trap, now);
                }
                busiest_word(&lanes.lanes[..lanes.n])
            }
            PacketKind::Invalidate { .. } => unreachable!("{}: an invalidation goes to the L1", self.path),
        }
    }
}

/// The most lanes on one word, at least 1.
fn busiest_word(lanes: &[AtomicLane]) -> u64 {
    let mut counts = [0u64; LINE / 4];
    lanes.iter().for_each(|lane| counts[lane.offset as usize / 4] += 1);
    counts.into_iter().max().unwrap_or(0).max(1)
}
