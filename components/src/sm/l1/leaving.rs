//! What leaves the L1: answers to the LSU, and packets to the crossbar.
//!
//! A packet that comes first in its line leaves in the cycle after it came. Nothing can change that, so it is handed to its link at
//! once ([`OutPort::send_ahead`](warpwave_hw::link::OutPort::send_ahead)), and no tick is needed for it.

use warpwave_hw::time::Cycle;

use super::L1;
use crate::proto::header::{Direction, Header};
use crate::proto::mem::{Packet, PacketKind, Stage};

/// What is settled for the cycle after a tick, so that no tick need come then: to whoever watches it happens in that cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    /// The cycle; [`Cycle::NEVER`] if nothing is settled.
    pub(super) at: Cycle,
    /// Packets that leave for the crossbar, and the sectors that they change.
    pub(super) below: (u32, u32),
    /// Packets that leave for the LSU.
    pub(super) answers: u32,
    /// Whether the next request is held up by the store queue.
    pub(super) stalls: bool,
}

impl Ahead {
    pub(super) const NOTHING: Ahead = Ahead {
        at: Cycle::NEVER,
        below: (0, 0),
        answers: 0,
        stalls: false,
    };
}

impl L1 {
    /// Sends one answer to the LSU; what came from below goes before hits.
    pub(super) fn answer(&mut self, now: Cycle) {
        if self.returned.is_empty() && self.hits.front().is_none_or(|&(due, _)| due > now) {
            return;
        }
        if self.data_free > now {
            return;
        }
        if !self.ports.answers.has_room(now) {
            self.stats.answer_stall_cycles += 1;
            return;
        }
        let packet = self.returned.pop_front().or_else(|| Some(self.hits.pop_front()?.1));
        let mut packet = packet.expect("one of the two queues has a packet");
        self.take_path(&mut packet, now);
        if let Some((_, next)) = self.hits.front() {
            next.prefetch();
        }
        self.ports.answers.send(now, packet);
        self.progress = true;
    }

    /// A packet leaves for the LSU in cycle `at`.
    fn take_path(&mut self, packet: &mut Packet, at: Cycle) {
        packet.note(Stage::Return, at);
        let cycles = match packet.kind {
            PacketKind::Load => self.data_cycles[packet.n_sectors() as usize],
            _ => 1,
        };
        self.data_free = at + cycles;
        self.stats.data_cycles += cycles;
    }

    /// A packet is back from below: it leaves for the LSU in the next cycle, or as soon as it can. If nothing is before it, that is
    /// settled now.
    pub(super) fn bring_back(&mut self, mut packet: Box<Packet>, now: Cycle) {
        if self.returned.is_empty() && self.data_free <= now + 1 && self.ports.answers.has_room(now) {
            self.take_path(&mut packet, now + 1);
            self.ports.answers.send_ahead(now, packet);
            self.ahead.at = now + 1;
            self.ahead.answers += 1;
        } else {
            self.returned.push_back(packet);
        }
    }

    /// Puts a packet in line for the crossbar, to which it leaves in the next cycle or as soon as it can. If nothing is before it, that
    /// is settled now. It changes so many sectors.
    #[inline(always)]
    pub(super) fn queue_below(&mut self, mut packet: Box<Packet>, changed: u32, now: Cycle) {
        packet.sm = self.config.sm;
        packet.slice = self.config.map.home(packet.line).slice;
        let header = Header::of(&packet, Direction::Request);
        if self.sends_ahead && self.store_queue.len() == 0 && self.ports.below.has_room(now) {
            self.stats.sectors_written_below += u64::from(header.data_sectors());
            packet.note(Stage::Request, now + 1);
            self.ports.below.send_labelled_ahead(now, header.label(), packet);
            self.ahead.at = now + 1;
            self.ahead.below = (1, changed);
        } else {
            self.store_queue.push(packet, header, changed);
        }
    }

    /// Sends one packet to the crossbar.
    pub(super) fn send_below(&mut self, now: Cycle) {
        if self.store_queue.len() == 0 || !self.ports.below.has_room(now) {
            return;
        }
        let Some(mut queued) = self.store_queue.pop() else {
            return;
        };
        if queued.is_timed {
            queued.packet.note(Stage::Request, now);
        }
        self.stats.sectors_written_below += u64::from(queued.header.data_sectors());
        self.ports
            .below
            .send_labelled(now, queued.header.label(), queued.packet);
        self.progress = true;
    }

    /// Lets happen what was settled for a cycle before `now`.
    #[inline]
    pub(super) fn settle(&mut self, now: Cycle) {
        if self.ahead.at < now && self.ahead.stalls {
            self.stall(self.ahead.at, now);
        }
        if self.ahead.at <= now {
            self.ahead = Ahead::NOTHING;
        }
    }
}
