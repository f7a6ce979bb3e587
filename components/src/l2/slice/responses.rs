//! The response pipe: packets that are done, until each is due.
//!
//! Two pipes, as a response to a far SM takes longer. At most one response leaves per edge: the one due first. The cycles that it
//! waits for room are counted when it leaves.

use std::collections::VecDeque;

use warpwave_hw::time::Cycle;

use super::Slice;
use crate::proto::header::{Direction, Header};
use crate::proto::mem::{Packet, Stage};

/// An edge that never comes.
pub(super) const NEVER: u64 = u64::MAX;

/// Responses to near SMs, and to far ones.
pub(super) struct Responses {
    near: Pipe,
    far: Pipe,
    /// Edge from which the next response waits for room in its link, or [`NEVER`].
    blocked_since: u64,
}

impl Responses {
    /// Empty pipes; `near` and `far` are the edges from done to due.
    pub(super) fn new(near: u32, far: u32) -> Self {
        Responses {
            near: Pipe::new(near),
            far: Pipe::new(far),
            blocked_since: NEVER,
        }
    }

    /// Responses in both pipes.
    pub(super) fn len(&self) -> usize {
        self.near.packets.len() + self.far.packets.len()
    }

    /// Whether a pipe takes no more.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.near.is_full() || self.far.is_full()
    }

    /// Edge at which the next response is due, or [`NEVER`].
    #[inline]
    pub(super) fn due(&self) -> u64 {
        self.near.due.min(self.far.due)
    }

    /// Whether a response is due and waits for room.
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

/// A packet of a pipe, with what the crossbar needs of it: by the time it leaves, the packet has left the host's cache.
struct DueResponse {
    /// The edge at which it is due, above [`LABEL_BITS`] bits of its header.
    due_and_label: u64,
    packet: Box<Packet>,
}

/// Bits of a header. The other bits hold the edges until [`Cycle::LAST`] of a clock that is twice as fast.
const LABEL_BITS: u32 = u16::BITS;

impl DueResponse {
    #[inline]
    fn due(&self) -> u64 {
        self.due_and_label >> LABEL_BITS
    }

    #[inline]
    fn header(&self) -> Header {
        Header::from_sideband(self.due_and_label as u16)
    }
}

/// Packets in the order in which they are due.
struct Pipe {
    /// Grows to the most packets that are ever in it, then allocates no more.
    packets: VecDeque<DueResponse>,
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

    /// Appends a packet that is done at `edge`, no earlier than the packets before it.
    #[inline]
    fn push(&mut self, packet: Box<Packet>, edge: u64) {
        let due = edge + self.latency;
        self.due = self.due.min(due);
        let label = Header::of(&packet, Direction::Response).sideband();
        self.packets.push_back(DueResponse {
            due_and_label: due << LABEL_BITS | u64::from(label),
            packet,
        });
    }

    #[inline]
    fn pop(&mut self) -> Option<(Header, Box<Packet>)> {
        let response = self.packets.pop_front()?;
        self.due = self.packets.front().map_or(NEVER, DueResponse::due);
        Some((response.header(), response.packet))
    }
}

impl Slice {
    /// Sends the response that is due, if there is room.
    pub(super) fn respond(&mut self, now: Cycle, edge: u64) {
        let state = &mut self.state;
        let since = state.responses.blocked_since.min(edge);
        if !self.ports.responses.has_room(now) {
            state.responses.blocked_since = since;
            return;
        }
        state.responses.blocked_since = NEVER;
        state.stats.answer_stall_cycles += edge - since;
        let (header, packet) = state.responses.pop().expect("a response is due");
        state.stats.answer_cycles += 1;
        state.tag.note_progress();
        self.ports.responses.send_sideband(now, header.sideband(), packet);
    }

    /// Puts a packet, with every sector done, in the response pipe.
    #[inline(always)]
    pub(super) fn complete(&mut self, mut packet: Box<Packet>, now: Cycle, edge: u64) {
        packet.note(Stage::L2Data, now + u64::from(self.config.slice_cycles));
        let pipe = match self.config.near_sms.contains(&packet.sm) {
            true => &mut self.state.responses.near,
            false => &mut self.state.responses.far,
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
