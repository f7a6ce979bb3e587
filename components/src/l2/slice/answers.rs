//! The answer pipe: packets done, until each is due.
//!
//! Two pipes, as what goes to a far SM takes longer; at most one answer leaves per edge, the one that is due first. The cycles that
//! an answer waits for room are counted when it leaves.

use std::collections::VecDeque;

use warpwave_hw::time::Cycle;

use super::Slice;
use crate::proto::header::{Direction, Header};
use crate::proto::mem::{Packet, Stage};

/// An edge that never comes.
pub(super) const NEVER: u64 = u64::MAX;

/// Answers to near SMs, and to far ones.
pub(super) struct Answers {
    near: Pipe,
    far: Pipe,
    /// Edge from which the next answer waits for room in its link, or [`NEVER`].
    blocked_since: u64,
}

impl Answers {
    /// None, each due so many edges after it is done.
    pub(super) fn new(near: u32, far: u32) -> Self {
        Answers {
            near: Pipe::new(near),
            far: Pipe::new(far),
            blocked_since: NEVER,
        }
    }

    /// Drops all.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.near.latency as u32, self.far.latency as u32);
    }

    /// Answers here.
    pub(super) fn len(&self) -> usize {
        self.near.packets.len() + self.far.packets.len()
    }

    /// Whether a pipe takes no more.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.near.is_full() || self.far.is_full()
    }

    /// Edge at which the next is due, or [`NEVER`].
    #[inline]
    pub(super) fn due(&self) -> u64 {
        self.near.due.min(self.far.due)
    }

    /// Whether the next is due and waits for room.
    #[inline]
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked_since != NEVER
    }

    #[inline]
    fn pop(&mut self) -> Option<(Header, Box<Packet>)> {
        let is_far = self.far.due < self.near.due;
        if is_far { self.far.pop() } else { self.near.pop() }
    }
}

/// A packet of the pipe. By the time it leaves it may be far away in memory: what the crossbar must know of it stands here.
struct Place {
    /// The edge at which it is due, above [`LABEL_BITS`] bits of its header.
    due_and_label: u64,
    packet: Box<Packet>,
}

/// Bits of a header. Those that are left hold the edges until [`Cycle::LAST`] of a clock that is twice as fast.
const LABEL_BITS: u32 = u16::BITS;

impl Place {
    #[inline]
    fn due(&self) -> u64 {
        self.due_and_label >> LABEL_BITS
    }

    #[inline]
    fn header(&self) -> Header {
        Header::from_label(self.due_and_label as u16)
    }
}

/// Packets in the order in which they are due.
struct Pipe {
    /// It grows to the most that are ever in it, then allocates no more.
    packets: VecDeque<Place>,
    /// Edge at which the first is due, or [`NEVER`].
    due: u64,
    /// Edges from done to due.
    latency: u64,
}

impl Pipe {
    fn new(latency: u32) -> Self {
        Pipe {
            packets: VecDeque::new(),
            due: NEVER,
            latency: u64::from(latency),
        }
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.packets.len() as u64 > self.latency
    }

    /// A packet is done, none at a later edge was before it.
    #[inline]
    fn push(&mut self, packet: Box<Packet>, edge: u64) {
        let due = edge + self.latency;
        self.due = self.due.min(due);
        let label = Header::of(&packet, Direction::Response).label();
        self.packets.push_back(Place {
            due_and_label: due << LABEL_BITS | u64::from(label),
            packet,
        });
    }

    #[inline]
    fn pop(&mut self) -> Option<(Header, Box<Packet>)> {
        let place = self.packets.pop_front()?;
        self.due = self.packets.front().map_or(NEVER, Place::due);
        Some((place.header(), place.packet))
    }
}

impl Slice {
    /// Sends the answer that is due, if there is room.
    pub(super) fn send_answer(&mut self, now: Cycle, edge: u64) {
        let since = self.answers.blocked_since.min(edge);
        if !self.ports.answers.has_room(now) {
            self.answers.blocked_since = since;
            return;
        }
        self.answers.blocked_since = NEVER;
        self.stats.answer_stall_cycles += edge - since;
        let (header, packet) = self.answers.pop().expect("an answer is due");
        self.stats.answer_cycles += 1;
        self.progress = true;
        self.ports.answers.send_labelled(now, header.label(), packet);
    }

    /// Every sector is done: the packet enters the answer pipe.
    #[inline(always)]
    pub(super) fn complete(&mut self, mut packet: Box<Packet>, now: Cycle, edge: u64) {
        packet.note(Stage::L2Data, now);
        let pipe = match self.config.near_sms.contains(&packet.sm) {
            true => &mut self.answers.near,
            false => &mut self.answers.far,
        };
        pipe.push(packet, edge);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_comings_and_goings_packets_leave_in_order_each_after_the_latency() {
        let mut pipe = Pipe::new(5);
        let (mut sent, mut random) = (VecDeque::new(), 1u32);
        for edge in 0..500 {
            random = random.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
            for _ in 0..random >> 30 {
                let mut packet = Box::new(Packet::blank());
                packet.tag = random >> 8;
                packet.sm = (random >> 12 & 0xff) as u16;
                sent.push_back((edge + 5, packet.tag));
                pipe.push(packet, edge);
            }
            assert_eq!(pipe.packets.len(), sent.len());
            assert_eq!(pipe.is_full(), sent.len() > 5);
            assert_eq!(pipe.due, sent.front().map_or(NEVER, |&(due, _)| due));
            if random >> 20 & 3 > 0 {
                let first = sent.pop_front().map(|(_, tag)| tag);
                let left = pipe.pop();
                assert_eq!(left.as_ref().map(|(_, packet)| packet.tag), first);
                assert!(left.is_none_or(|(header, packet)| header == Header::of(&packet, Direction::Response)));
            }
        }
    }
}
