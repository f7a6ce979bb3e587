//! Accesses line by line: those of other SMs of the cluster, and of the bulk copy engine. A packet is for 128 bytes from any one on.
//!
//! | what | cycles |
//! |---|---|
//! | a load or store | the banks for one, its answer `latency` after it came |
//! | an atomic | the banks for one per lane on the busiest word, its answer as many later |
//!
//! They take turns among themselves, and with the SM's own accesses when both want the banks.

use std::collections::VecDeque;

use warpwave_hw::component::Activity;
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::time::Cycle;
use warpwave_isa::exec::atomic::atomic;

use super::SharedMemory;
use crate::proto::cluster::remote;
use crate::proto::header::{Direction, Header};
use crate::proto::mem::{AtomicLane, AtomicLanes, LINE, Packet, PacketKind};

/// The links of one source of such accesses.
pub struct LinePorts {
    /// Accesses.
    pub input: InPort<Box<Packet>>,
    /// The same packets, answered.
    pub output: OutPort<Box<Packet>>,
    /// Cycles from the arrival of an access to its answer.
    pub latency: u32,
}

warpwave_hw::show_ports!(LinePorts: input, output);

/// Accesses under way here.
#[derive(Debug)]
pub(super) struct Lines {
    /// Answers of each source, with the cycle in which each leaves.
    answers: Vec<VecDeque<(Cycle, Box<Packet>)>>,
    /// First cycle in which the banks are free of them.
    banks_free: Cycle,
    /// Whether the SM's own accesses are next.
    own_turn: bool,
    /// The source that was served last.
    last: usize,
}

impl Lines {
    /// Of so many sources.
    pub(super) fn new(sources: usize) -> Self {
        Lines {
            answers: (0..sources).map(|_| VecDeque::new()).collect(),
            banks_free: Cycle::ZERO,
            own_turn: false,
            last: 0,
        }
    }

    /// Whether they have the banks in this cycle.
    pub(super) fn hold_banks(&self, now: Cycle) -> bool {
        self.banks_free > now
    }

    pub(super) fn is_empty(&self) -> bool {
        self.answers.iter().all(VecDeque::is_empty)
    }

    pub(super) fn activity(&self, ports: &[LinePorts], now: Cycle) -> Activity {
        let due = self
            .answers
            .iter()
            .filter_map(|answers| answers.front())
            .map(|&(due, _)| due)
            .min();
        let next = due.map_or(Activity::Idle, |due| Activity::Until(due.max(now + 1)));
        Activity::busy_if(ports.iter().any(|ports| ports.input.is_ready(now)) || self.hold_banks(now)).or(next)
    }
}

impl SharedMemory {
    /// Answers what is due, and takes the next access if the banks are free and it is its turn.
    pub(super) fn run_lines(&mut self, now: Cycle) {
        for (ports, answers) in self.ports.lines.iter_mut().zip(&mut self.lines.answers) {
            if answers.front().is_some_and(|&(due, _)| due <= now)
                && ports.output.has_room(now)
                && let Some((_, packet)) = answers.pop_front()
            {
                let header = Header::of(&packet, Direction::Response);
                ports.output.send_sideband(now, header.sideband(), packet);
            }
        }
        let own_waits = self.ports.input.is_ready(now);
        if self.current.is_some() || self.lines.hold_banks(now) || (own_waits && self.lines.own_turn) {
            self.lines.own_turn = false;
            return;
        }
        let sources = self.ports.lines.len();
        let ready = |n: &usize| self.ports.lines[*n].input.is_ready(now);
        let next = (1..=sources).map(|n| (self.lines.last + n) % sources).find(ready);
        let Some(source) = next else { return };
        let Some(mut packet) = self.ports.lines[source].input.recv(now) else {
            return;
        };
        let passes = self.serve_line(&mut packet);
        self.stats.lines += 1;
        self.stats.busy_cycles += passes;
        self.lines.last = source;
        self.lines.own_turn = true;
        self.lines.banks_free = now + passes;
        let due = now + u64::from(self.ports.lines[source].latency) + (passes - 1);
        self.lines.answers[source].push_back((due, packet));
    }

    /// Carries an access out; the passes that it takes.
    fn serve_line(&mut self, packet: &mut Packet) -> u64 {
        let (_, first) = remote(packet.line).expect("these packets are for shared memory");
        self.use_bytes(first + LINE);
        let line = &mut self.bytes[first..];
        match packet.kind {
            PacketKind::Load => {
                let n = line.len().min(LINE);
                packet.bytes[..n].copy_from_slice(&line[..n]);
                1
            }
            PacketKind::Store => {
                for (n, byte) in line.iter_mut().enumerate().take(LINE) {
                    if packet.byte_mask >> n & 1 == 1 {
                        *byte = packet.bytes[n];
                    }
                }
                1
            }
            PacketKind::Atomic | PacketKind::Reduction => {
                let lanes = packet.atomic.as_mut().expect("an atomic packet has lanes");
                apply(lanes, line);
                busiest_word(&lanes.lanes[..lanes.n])
            }
            PacketKind::Invalidate { .. } => unreachable!("{}: an invalidation is for an L1", self.path),
        }
    }
}

/// Applies the lanes in order; their values become the old ones.
fn apply(lanes: &mut AtomicLanes, line: &mut [u8]) {
    let (op, ty) = (lanes.op, lanes.ty);
    let n = ty.bytes() as usize;
    for lane in &mut lanes.lanes[..lanes.n] {
        let place = &mut line[lane.offset as usize..][..n];
        let mut old = [0; 8];
        old[..n].copy_from_slice(place);
        let old = u64::from_le_bytes(old);
        let new = atomic(op, ty, old, lane.value, lane.compare);
        place.copy_from_slice(&new.to_le_bytes()[..n]);
        lane.value = old;
    }
}

/// Lanes on the word that most of them are on, at least 1.
fn busiest_word(lanes: &[AtomicLane]) -> u64 {
    let mut words = [0u64; LINE / 4];
    lanes.iter().for_each(|lane| words[lane.offset as usize / 4] += 1);
    words.into_iter().max().unwrap_or(0).max(1)
}
