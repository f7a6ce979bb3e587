//! A pool of packets: a cache or the LSU makes packets, and uses them again.

use crate::proto::mem::{Packet, PacketKind};
use warpwave_hw::grow::push;

/// Packets not in use. The pool grows to the most packets that are ever in flight, then allocates no more.
#[derive(Default)]
pub(crate) struct PacketPool {
    #[allow(clippy::vec_box, reason = "boxes travel: taking one out must not copy the packet")]
    free: Vec<Box<Packet>>,
}

impl PacketPool {
    /// A packet that has passed no stage, with arbitrary bytes.
    pub(crate) fn take(&mut self, kind: PacketKind, line: u64, sectors: u8, tag: u32, is_timed: bool) -> Box<Packet> {
        let mut packet = self.any();
        packet.kind = kind;
        packet.line = line;
        packet.sectors = sectors;
        packet.tag = tag;
        packet.set_out(is_timed);
        packet
    }

    /// A packet with the contents of its last use.
    pub(crate) fn any(&mut self) -> Box<Packet> {
        self.free.pop().unwrap_or_else(|| Box::new(Packet::blank()))
    }

    /// Takes a packet back.
    pub(crate) fn give(&mut self, packet: Box<Packet>) {
        push(&mut self.free, packet);
    }
}

#[cfg(test)]
mod tests {
    use warpwave_hw::time::Cycle;

    use super::*;
    use crate::proto::mem::Stage;

    #[test]
    fn packet_used_again_notes_its_stages_only_if_it_is_timed_and_forgets_those_before() {
        let mut pool = PacketPool::default();
        let mut packet = pool.take(PacketKind::Load, 128, 1, 0, true);
        packet.note(Stage::L1, Cycle(5));
        assert_eq!(packet.stamps.at(Stage::L1), Some(Cycle(5)));
        pool.give(packet);
        let mut packet = pool.take(PacketKind::Load, 128, 1, 0, false);
        packet.note(Stage::L1, Cycle(9));
        assert_eq!(packet.stamps.at(Stage::L1), Some(Cycle(5)), "its line is left alone");
        pool.give(packet);
        let packet = pool.take(PacketKind::Load, 128, 1, 0, true);
        assert_eq!(packet.stamps.at(Stage::L1), None);
    }
}
