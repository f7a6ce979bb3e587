//! Accesses of other SMs of the cluster to this SM's shared memory: packets for a line of 128 bytes, one word of each bank.
//!
//! | what | cycles |
//! |---|---|
//! | a load or store | the banks for one, its answer `line_latency` after it came |
//! | an atomic | the banks for one per lane on the busiest word, its answer as many later |
//!
//! The SM's own accesses and these take turns when both want the banks.

use std::collections::VecDeque;

use warpwave_hw::component::Activity;
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::time::Cycle;
use warpwave_isa::exec::atomic::atomic;

use super::SharedMemory;
use crate::proto::cluster::remote;
use crate::proto::mem::{AtomicLane, AtomicLanes, LINE, Packet, PacketKind};

/// The links to the network of the GPC.
pub struct LinePorts {
    /// Accesses.
    pub input: InPort<Box<Packet>>,
    /// The same packets, answered.
    pub output: OutPort<Box<Packet>>,
}

/// Accesses of other SMs under way here.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Answers, with the cycle in which each leaves.
    answers: VecDeque<(Cycle, Box<Packet>)>,
    /// First cycle in which the banks are free of them.
    banks_free: Cycle,
    /// Whether the SM's own accesses are next.
    own_turn: bool,
}

impl Lines {
    /// Whether they have the banks in this cycle.
    pub(super) fn hold_banks(&self, now: Cycle) -> bool {
        self.banks_free > now
    }

    pub(super) fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    pub(super) fn activity(&self, ports: &mut LinePorts, now: Cycle) -> Activity {
        let next = self
            .answers
            .front()
            .map_or(Activity::Idle, |&(due, _)| Activity::Until(due.max(now + 1)));
        Activity::busy_if(ports.input.is_ready(now) || self.hold_banks(now)).or(next)
    }
}

impl SharedMemory {
    /// Answers what is due, and takes the next access if the banks are free and it is its turn.
    pub(super) fn run_lines(&mut self, now: Cycle) {
        let Some(ports) = &mut self.ports.lines else { return };
        if self.lines.answers.front().is_some_and(|&(due, _)| due <= now)
            && ports.output.has_room(now)
            && let Some((_, packet)) = self.lines.answers.pop_front()
        {
            ports.output.send(now, packet);
        }
        let own_waits = self.ports.input.is_ready(now);
        if self.current.is_some() || self.lines.hold_banks(now) || (own_waits && self.lines.own_turn) {
            self.lines.own_turn = false;
            return;
        }
        let Some(mut packet) = ports.input.recv(now) else {
            return;
        };
        let passes = self.serve_line(&mut packet);
        self.stats.lines += 1;
        self.stats.busy_cycles += passes;
        self.lines.own_turn = true;
        self.lines.banks_free = now + passes;
        let due = now + u64::from(self.config.line_latency) + (passes - 1);
        self.lines.answers.push_back((due, packet));
    }

    /// Carries an access out; the passes that it takes.
    fn serve_line(&mut self, packet: &mut Packet) -> u64 {
        let (_, first) = remote(packet.line).expect("the network of a GPC carries accesses to shared memory");
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
