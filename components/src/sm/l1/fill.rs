//! What comes back from below: sectors for those that wait, and packets that were passed on.

use warpwave_hw::time::Cycle;

use super::{L1, RETURN_DEPTH, TagState, is_passed_on, line_number};
use crate::proto::mem::{BULK_TAG, Packet, PacketKind, SECTOR, Stage, each_sector};

impl L1 {
    /// Takes one packet from the crossbar.
    pub(super) fn take_return(&mut self, now: Cycle) {
        if self.returned.len() >= RETURN_DEPTH {
            return;
        }
        let Some(mut packet) = self.ports.returns.recv(now) else {
            return;
        };
        packet.note(Stage::Response, now);
        // What is back makes no room in the store queue.
        self.progress |= self.state != TagState::StallStore;
        if packet.kind == PacketKind::Load {
            self.stats.sectors_read_below += u64::from(packet.n_sectors());
        }
        if packet.tag & BULK_TAG != 0 && is_passed_on(&packet) {
            self.bulk_returned.push_back(packet);
        } else if is_passed_on(&packet) {
            self.returned.push_back(packet);
        } else {
            self.fill(&packet);
            self.pool.give(packet);
        }
    }

    /// Installs the fresh sectors of an answered miss and gives all of them to the packets that wait.
    fn fill(&mut self, fill: &Packet) {
        let n = fill.tag;
        let fresh = self.mshr.fresh(n);
        if fresh != 0 {
            let (place, evicted) = self.tags.install(line_number(fill), fresh);
            self.data.fill(place, fresh, &fill.bytes);
            self.stats.lines_evicted += u64::from(evicted);
        }
        for sector in each_sector(fill.sectors) {
            while let Some(slot) = self.mshr.next_waiter(n, sector, &mut self.waiting) {
                let bytes = sector * SECTOR..(sector + 1) * SECTOR;
                let packet = self.waiting.packet(slot);
                packet.bytes[bytes.clone()].copy_from_slice(&fill.bytes[bytes]);
                packet.l2_hit &= fill.l2_hit;
                if let Some(mut packet) = self.waiting.arrived(slot, sector) {
                    inherit_stamps(&mut packet, fill);
                    self.returned.push_back(packet);
                }
            }
        }
        self.mshr.close(n);
    }
}

/// A packet that waited passed the stages of the fill that completed it, as far as they came after its own lookup.
fn inherit_stamps(packet: &mut Packet, fill: &Packet) {
    if !packet.is_timed || !fill.is_timed {
        return;
    }
    let looked_up = packet.stamps.0[Stage::L1 as usize];
    for stage in [Stage::Request, Stage::L2, Stage::Hbm, Stage::L2Data, Stage::Response] {
        match fill.stamps.at(stage) {
            Some(at) if at >= looked_up => packet.note(stage, at),
            _ => {}
        }
    }
}
