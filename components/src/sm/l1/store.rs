//! What waits for the crossbar: misses, stores and atomics in one line, so that a load never overtakes the store before it.

use std::collections::VecDeque;

use crate::proto::mem::{Packet, PacketKind};

/// A packet on its way down, and the sectors that it changes, and stores. By the time it goes the packet may be far away in memory:
/// what is asked of it then stands here.
struct Queued {
    packet: Box<Packet>,
    written: u32,
    stored: u64,
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
    pub(super) fn push(&mut self, packet: Box<Packet>) {
        let written = written(&packet);
        self.sectors += written;
        let queued = Queued {
            stored: stored(&packet, written),
            packet,
            written,
        };
        self.packets.push_back(queued);
    }

    /// Takes the oldest packet, with the sectors that it stores.
    pub(super) fn pop(&mut self) -> Option<(Box<Packet>, u64)> {
        let queued = self.packets.pop_front()?;
        self.sectors -= queued.written;
        Some((queued.packet, queued.stored))
    }

    /// Drops all.
    pub(super) fn clear(&mut self) {
        self.packets.clear();
        self.sectors = 0;
    }
}

/// Of the sectors that a packet changes, those that it stores.
pub(super) fn stored(packet: &Packet, written: u32) -> u64 {
    match packet.kind {
        PacketKind::Store => written.into(),
        _ => 0,
    }
}

/// Sectors that a packet changes.
pub(super) fn written(packet: &Packet) -> u32 {
    match packet.kind {
        PacketKind::Store | PacketKind::Atomic | PacketKind::Reduction => packet.n_sectors(),
        PacketKind::Load | PacketKind::Invalidate { .. } => 0,
    }
}
