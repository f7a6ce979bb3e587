//! What waits for the crossbar: misses, stores and atomics in one line, so that a load never overtakes the store before it.

use std::collections::VecDeque;

use crate::proto::header::Header;
use crate::proto::mem::Packet;

/// A packet on its way down. By the time it goes it may be far away in memory: what is asked of it then stands here.
pub(super) struct Queued {
    pub(super) packet: Box<Packet>,
    pub(super) header: Header,
    /// Sectors that it changes.
    written: u32,
    /// Whether it is timed.
    pub(super) is_timed: bool,
}

/// Packets on their way down, with a limit on the sectors that stores among them write.
pub(super) struct StoreQueue {
    packets: VecDeque<Queued>,
    sectors: u32,
    depth: u32,
}

impl StoreQueue {
    /// At most `depth` written sectors may wait; one packet always may.
    pub(super) fn new(depth: u32) -> Self {
        StoreQueue {
            packets: VecDeque::with_capacity(depth as usize),
            sectors: 0,
            depth,
        }
    }

    /// Packets waiting.
    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    /// Written sectors waiting.
    pub(super) fn sectors(&self) -> u32 {
        self.sectors
    }

    /// Whether a packet that the LSU waits for may follow: one that writes so many sectors, or none.
    pub(super) fn has_room(&self, sectors: u32) -> bool {
        self.sectors == 0 || self.sectors + sectors <= self.depth
    }

    /// Puts a packet at the end, ready to go.
    #[inline]
    pub(super) fn push(&mut self, packet: Box<Packet>, header: Header, written: u32) {
        self.sectors += written;
        self.packets.push_back(Queued {
            is_timed: packet.is_timed,
            packet,
            header,
            written,
        });
    }

    /// Takes the oldest packet.
    pub(super) fn pop(&mut self) -> Option<Queued> {
        let queued = self.packets.pop_front()?;
        self.sectors -= queued.written;
        Some(queued)
    }

    /// Drops all.
    pub(super) fn clear(&mut self) {
        self.packets.clear();
        self.sectors = 0;
    }
}
