//! The answer pipe: packets done, until each is due.
//!
//! Two pipes, as what goes to a far SM takes longer; at most one answer leaves per edge, the one that is due first. The cycles that
//! an answer waits for room are counted when it leaves.

use warpwave_hw::prefetch::prefetch;
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
        self.near.len + self.far.len
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

/// A place of the ring. By the time its packet leaves it may be far away in memory: what the crossbar must know of it stands here.
#[derive(Default)]
struct Place {
    /// Edge at which it is due.
    due: u64,
    packet: Option<(Header, Box<Packet>)>,
}

/// Packets in a ring of a power of two, in the order in which they are due.
struct Pipe {
    ring: Box<[Place]>,
    head: usize,
    len: usize,
    /// Edge at which the first is due, or [`NEVER`].
    due: u64,
    /// Edge at which the last that came is due.
    last: u64,
    /// Edges from done to due.
    latency: u64,
}

impl Pipe {
    fn new(latency: u32) -> Self {
        Pipe {
            ring: Box::new([Place::default()]),
            head: 0,
            len: 0,
            due: NEVER,
            last: 0,
            latency: u64::from(latency),
        }
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.len as u64 > self.latency
    }

    /// A packet is done.
    #[inline]
    fn push(&mut self, packet: Box<Packet>, edge: u64) {
        if self.len == self.ring.len() {
            self.grow();
        }
        self.last = self.last.max(edge + self.latency);
        self.due = self.due.min(self.last);
        let n = (self.head + self.len) & (self.ring.len() - 1);
        self.ring[n] = Place {
            due: self.last,
            packet: Some((Header::of(&packet, Direction::Response), packet)),
        };
        prefetch(&self.ring[(n + 1) & (self.ring.len() - 1)]);
        self.len += 1;
    }

    #[inline]
    fn pop(&mut self) -> Option<(Header, Box<Packet>)> {
        let last = self.ring.len() - 1;
        let packet = self.ring[self.head & last].packet.take()?;
        self.head = (self.head + 1) & last;
        self.len -= 1;
        prefetch(&self.ring[(self.head + 1) & last]);
        self.due = if self.len == 0 { NEVER } else { self.ring[self.head].due };
        Some(packet)
    }

    /// Doubles the ring.
    #[cold]
    fn grow(&mut self) {
        let n = self.ring.len();
        self.ring.rotate_left(self.head);
        let mut ring: Vec<_> = std::mem::take(&mut self.ring).into();
        ring.resize_with(2 * n, Place::default);
        (self.ring, self.head) = (ring.into(), 0);
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
        let (mut sent, mut random) = (std::collections::VecDeque::new(), 1u32);
        for edge in 0..500 {
            random = random.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
            for _ in 0..random >> 30 {
                let mut packet = Box::new(Packet::blank());
                packet.tag = random >> 8;
                sent.push_back((edge + 5, packet.tag));
                pipe.push(packet, edge);
            }
            assert_eq!(pipe.len, sent.len());
            assert_eq!(pipe.is_full(), sent.len() > 5);
            assert_eq!(pipe.due, sent.front().map_or(NEVER, |&(due, _)| due));
            if random >> 20 & 3 > 0 {
                let first = sent.pop_front().map(|(_, tag)| tag);
                assert_eq!(pipe.pop().map(|(_, packet)| packet.tag), first);
            }
        }
    }
}
