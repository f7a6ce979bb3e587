//! Packets that a cache makes itself, used again.

use crate::proto::mem::{Packet, PacketKind};

/// Packets not in use. It grows to the most that are ever under way, then allocates no more.
#[derive(Default)]
pub(crate) struct Pool {
    #[allow(clippy::vec_box, reason = "boxes travel: taking one out must not copy the packet")]
    free: Vec<Box<Packet>>,
}

impl Pool {
    /// A packet that passed no stage; its bytes are anything.
    pub(crate) fn take(&mut self, kind: PacketKind, line: u64, sectors: u8, tag: u32, is_timed: bool) -> Box<Packet> {
        let mut packet = self.free.pop().unwrap_or_else(|| Box::new(Packet::blank()));
        if let Some(next) = self.free.last() {
            next.prefetch();
        }
        packet.kind = kind;
        packet.line = line;
        packet.sectors = sectors;
        packet.tag = tag;
        packet.set_out(is_timed);
        packet
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.free.clear();
    }

    /// Takes a packet back.
    pub(crate) fn give(&mut self, packet: Box<Packet>) {
        self.free.push(packet);
    }
}
