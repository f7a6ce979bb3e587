//! The queue to the crossbar: misses, stores and atomics in one queue, so a load never overtakes an earlier store.

use std::collections::VecDeque;

use crate::proto::header::Header;
use crate::proto::mem::Packet;

// The packet has left the host's cache when it leaves the queue, so these fields are copied.
/// A packet in the queue, with copies of the fields that the L1 reads when it sends it.
pub(super) struct Queued {
    pub(super) packet: Box<Packet>,
    pub(super) header: Header,
    /// Sectors that the packet changes.
    changed: u32,
    pub(super) is_timed: bool,
}

/// The queue. Its depth counts the sectors that packets change, so a load always fits.
pub(super) struct XbarQueue {
    packets: VecDeque<Queued>,
    /// Sectors that the packets in the queue change.
    changed: u32,
    depth: u32,
}

impl XbarQueue {
    /// A queue for `depth` changed sectors. One packet always fits.
    pub(super) fn new(depth: u32) -> Self {
        XbarQueue {
            packets: VecDeque::with_capacity(depth as usize),
            changed: 0,
            depth,
        }
    }

    /// Number of packets.
    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    /// Number of sectors that the packets change.
    pub(super) fn changed(&self) -> u32 {
        self.changed
    }

    /// True if a packet that changes `changed` sectors fits.
    pub(super) fn has_room(&self, changed: u32) -> bool {
        // A packet with more sectors than the depth needs a queue without stores.
        self.changed == 0 || self.changed + changed <= self.depth
    }

    /// Appends a packet.
    #[inline]
    pub(super) fn push(&mut self, packet: Box<Packet>, header: Header) {
        let changed = packet.n_changed();
        self.changed += changed;
        self.packets.push_back(Queued {
            is_timed: packet.is_timed,
            packet,
            header,
            changed,
        });
    }

    /// Takes the oldest packet.
    pub(super) fn pop(&mut self) -> Option<Queued> {
        let queued = self.packets.pop_front()?;
        self.changed -= queued.changed;
        Some(queued)
    }
}
