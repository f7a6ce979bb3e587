//! The response pipes: complete packets, until each is due at the crossbar.
//!
//! One pipe leads to near SMs, and a longer one to far SMs. A slice with a twin sends responses to far SMs to the twin instead
//! ([`twin`](super::twin)). At most one response leaves for the crossbar per edge: the one due first. The cycles for which a response was
//! blocked are counted when it leaves.

use std::collections::VecDeque;

use warpwave_hw::time::Cycle;

use super::{Slice, State};
use crate::proto::header::{Direction, Header};
use crate::proto::mem::{Packet, Stage};

/// An edge that never comes.
pub(super) const NEVER: u64 = u64::MAX;

/// The responses to near and to far SMs.
pub(super) struct Responses {
    near: Pipe,
    far: Pipe,
    /// Edge from which the response due first has waited for room in the link, or [`NEVER`].
    blocked_since: u64,
}

impl Responses {
    /// Empty pipes. `near` and `far` are their latencies in edges.
    pub(super) fn new(near: u32, far: u32) -> Self {
        Responses {
            near: Pipe::new(near),
            far: Pipe::new(far),
            blocked_since: NEVER,
        }
    }

    /// Number of responses in both pipes.
    pub(super) fn len(&self) -> usize {
        self.near.packets.len() + self.far.packets.len()
    }

    /// True if the pipe to the near SMs is full.
    #[inline]
    pub(super) fn is_near_full(&self) -> bool {
        self.near.is_full()
    }

    /// True if a pipe is full.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.near.is_full() || self.far.is_full()
    }

    /// Edge at which the next response is due, or [`NEVER`].
    #[inline]
    pub(super) fn due(&self) -> u64 {
        self.near.due.min(self.far.due)
    }

    /// True if a response is due and waits for room.
    #[inline]
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked_since != NEVER
    }

    /// Takes the response that is due first.
    #[inline]
    fn pop(&mut self) -> Option<(Header, Box<Packet>)> {
        // If both are due at one edge, the near one goes first.
        let is_far = self.far.due < self.near.due;
        if is_far { self.far.pop() } else { self.near.pop() }
    }
}

// The packet has left the host's cache when it is due, so the header is kept beside it.
/// A packet of a pipe, with its due edge and its header.
struct DueResponse {
    /// The due edge, above the [`HEADER_BITS`] bits of the header.
    due_and_header: u64,
    packet: Box<Packet>,
}

/// Bits of a header. The other 48 bits hold any edge up to [`Cycle::LAST`] of a clock that is twice as fast.
const HEADER_BITS: u32 = u16::BITS;

impl DueResponse {
    #[inline]
    fn due(&self) -> u64 {
        self.due_and_header >> HEADER_BITS
    }

    #[inline]
    fn header(&self) -> Header {
        Header::from_sideband(self.due_and_header as u16)
    }
}

/// A pipe of fixed latency.
pub(super) struct Pipe {
    /// The packets, oldest first. The queue keeps its allocation, so it stops to allocate once it has held its most packets.
    packets: VecDeque<DueResponse>,
    /// Edge at which the first packet is due, or [`NEVER`].
    due: u64,
    /// Edges from [`Pipe::push`] to due.
    latency: u64,
}

impl Pipe {
    pub(super) fn new(latency: u32) -> Self {
        Pipe {
            packets: VecDeque::new(),
            due: NEVER,
            latency: u64::from(latency),
        }
    }

    /// Number of packets.
    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    /// Edge at which the first packet is due, or [`NEVER`].
    #[inline]
    pub(super) fn due(&self) -> u64 {
        self.due
    }

    /// True if no lookup or fill may begin. A fill that has begun adds a packet for each target, beyond this limit.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        // One packet per edge of latency, and the one that is due.
        self.packets.len() as u64 > self.latency
    }

    /// Appends a packet that is complete at `edge`. Edges never decrease.
    #[inline]
    pub(super) fn push(&mut self, packet: Box<Packet>, edge: u64) {
        let due = edge + self.latency;
        // Edges never decrease, so this changes an empty pipe only.
        self.due = self.due.min(due);
        let header = Header::of(&packet, Direction::Response).sideband();
        self.packets.push_back(DueResponse {
            due_and_header: due << HEADER_BITS | u64::from(header),
            packet,
        });
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<(Header, Box<Packet>)> {
        let response = self.packets.pop_front()?;
        self.due = self.packets.front().map_or(NEVER, DueResponse::due);
        Some((response.header(), response.packet))
    }
}

impl Slice {
    /// Sends the response that is due, if there is room.
    pub(super) fn respond(&mut self, now: Cycle, edge: u64) {
        let state = &mut self.state;
        // `NEVER` is the largest edge: a response that was not blocked waits from this edge on.
        let since = state.responses.blocked_since.min(edge);
        if !self.ports.responses.has_room(now) {
            state.responses.blocked_since = since;
            return;
        }
        state.responses.blocked_since = NEVER;
        state.stats.response_stall_cycles += edge - since;
        let (header, packet) = state.responses.pop().expect("a response is due");
        state.stats.response_cycles += 1;
        state.note_progress();
        self.ports.responses.send_sideband(now, header.sideband(), packet);
    }

    /// Puts a complete packet in its response pipe.
    #[inline(always)]
    pub(super) fn complete(&mut self, mut packet: Box<Packet>, now: Cycle, edge: u64) {
        packet.note(Stage::L2Data, now + u64::from(self.config.l2_data_latency));
        let State { responses, twin, .. } = &mut self.state;
        // The SM decides, also for a fetch of the twin: it has the SM of the load that needs it.
        let pipe = match self.config.near_sms.contains(&packet.sm) {
            true => &mut responses.near,
            false => twin.as_mut().map_or(&mut responses.far, |twin| &mut twin.responses),
        };
        pipe.push(packet, edge);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_leave_in_order_after_the_latency() {
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
