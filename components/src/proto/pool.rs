//! A pool of packets: a block that creates packets uses them again.

use crate::proto::mem::{Crossing, Packet, PacketKind, Purpose};
use warpwave_hw::grow::push;

/// Free packets. Once there are as many as were ever in flight, no more are allocated.
#[derive(Default)]
pub(crate) struct PacketPool {
    #[allow(clippy::vec_box, reason = "boxes travel: taking one out must not copy the packet")]
    free: Vec<Box<Packet>>,
}

impl PacketPool {
    /// A packet without stamps. Its bytes are undefined.
    pub(crate) fn take(&mut self, kind: PacketKind, line: u64, sectors: u8, tag: u32, is_timed: bool) -> Box<Packet> {
        let mut packet = self.any();
        packet.kind = kind;
        packet.line = line;
        packet.sectors = sectors;
        packet.tag = tag;
        // The last use may have set it.
        packet.purpose = Purpose::Other;
        packet.crossing = Crossing::Near;
        packet.start_stamps(is_timed);
        packet
    }

    /// A packet with the contents of an earlier use.
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
    fn reused_packet_has_no_old_stamps_if_it_is_timed() {
        let mut pool = PacketPool::default();
        let mut packet = pool.take(PacketKind::Load, 128, 1, 0, true);
        packet.note(Stage::L1, Cycle(5));
        assert_eq!(packet.stamps.at(Stage::L1), Some(Cycle(5)));
        pool.give(packet);
        let mut packet = pool.take(PacketKind::Load, 128, 1, 0, false);
        packet.note(Stage::L1, Cycle(9));
        assert_eq!(
            packet.stamps.at(Stage::L1),
            Some(Cycle(5)),
            "an untimed packet keeps its stamps"
        );
        pool.give(packet);
        let packet = pool.take(PacketKind::Load, 128, 1, 0, true);
        assert_eq!(packet.stamps.at(Stage::L1), None);
    }
}
