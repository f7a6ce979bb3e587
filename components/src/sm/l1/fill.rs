//! What comes back from the crossbar: sectors for the packets that wait, and packets that bypassed the L1.

use warpwave_hw::time::Cycle;

use super::lookup::L1TagState;
use super::{L1, bypasses_l1, line_number};
use crate::proto::mem::{BULK_TAG, Packet, PacketKind, SECTOR, Stage, each_sector};

impl L1 {
    /// Takes one packet from the crossbar.
    pub(super) fn take_from_xbar(&mut self, now: Cycle) {
        let state = &mut self.state;
        if state.returned.len() >= self.config.return_queue as usize {
            return;
        }
        let Some(mut packet) = self.ports.from_xbar.recv(now) else {
            return;
        };
        packet.note(Stage::Response, now);
        if state.tag.state() != L1TagState::StallStore {
            // A packet that is back leaves the queue to the crossbar as full as it was.
            state.tag.note_progress();
        }
        if packet.kind == PacketKind::Load {
            state.stats.sectors_read_below += u64::from(packet.n_sectors());
        }
        if !bypasses_l1(&packet) {
            self.fill(&packet);
            self.state.pool.give(packet);
        } else if packet.tag & BULK_TAG != 0 {
            state.bulk_returned.push_back(packet);
        } else {
            state.returned.push_back(packet);
        }
    }

    /// Fills the line with the fillable sectors of a response, and gives all its sectors to the packets that wait.
    fn fill(&mut self, fill: &Packet) {
        let state = &mut self.state;
        let entry = fill.tag;
        let fillable = state.mshr.fillable(entry);
        if fillable != 0 {
            let evicts = state.lines.install(line_number(fill), fillable, &fill.bytes);
            state.stats.lines_evicted += u64::from(evicts);
        }
        for sector in each_sector(fill.sectors) {
            while let Some(slot) = state.mshr.table.next_target(entry, sector) {
                let bytes = sector * SECTOR..(sector + 1) * SECTOR;
                let packet = state.mshr.table.packet(slot);
                packet.bytes[bytes.clone()].copy_from_slice(&fill.bytes[bytes]);
                packet.l2_hit &= fill.l2_hit;
                if let Some(mut packet) = state.mshr.table.arrived(slot, sector) {
                    inherit_stamps(&mut packet, fill);
                    state.returned.push_back(packet);
                }
            }
        }
        state.mshr.close(entry);
    }
}

/// Gives a packet the stamps of the fill that completed it, as far as they came after the packet's own lookup.
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
