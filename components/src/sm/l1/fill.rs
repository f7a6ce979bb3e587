//! Packets from the crossbar: fills with sectors for misses, and returned packets that bypassed the L1.

use warpwave_hw::time::Cycle;

use super::lookup::L1TagState;
use super::{L1, bypasses_l1};
use crate::proto::mem::{BULK_TAG, Packet, PacketKind, SECTOR, Stage, each_sector};

/// The stages that a fill passes after the L1's lookup.
const FILL_STAGES: [Stage; 5] = [Stage::Request, Stage::L2, Stage::Hbm, Stage::L2Data, Stage::Response];

impl L1 {
    /// Takes one packet from the crossbar.
    pub(super) fn take_from_xbar(&mut self, now: Cycle) {
        let state = &mut self.state;
        // Back-pressure on the crossbar: packets of this SM wait in the link.
        if state.returned.len() >= self.config.return_queue as usize {
            return;
        }
        let Some(mut packet) = self.ports.from_xbar.recv(now) else {
            return;
        };
        packet.note(Stage::Response, now);
        if state.tag.state() != L1TagState::StallStore {
            // A returned packet frees no entry of the queue to the crossbar, so it cannot end this stall.
            state.tag.note_progress();
        }
        if packet.kind == PacketKind::Load {
            state.stats.count_read(&packet);
        }
        if !bypasses_l1(&packet) {
            self.fill(&packet);
            self.state.pool.give(packet);
        } else if packet.tag & BULK_TAG != 0 {
            // The engine and the LSU share the port to the crossbar. A tag bit tells their packets apart.
            state.bulk_returned.push_back(packet);
        } else {
            state.returned.push_back(packet);
        }
    }

    /// Fills the line with the fillable sectors of a response, and delivers all its sectors to their targets.
    fn fill(&mut self, fill: &Packet) {
        let state = &mut self.state;
        let entry = fill.tag;
        let fillable = state.mshr.fillable(entry);
        // Stale sectors must not enter the cache.
        if fillable != 0 {
            let evicts = state.lines.install(fill.line_number(), fillable, &fill.bytes);
            state.stats.lines_evicted += u64::from(evicts);
        }
        for sector in each_sector(fill.sectors) {
            while let Some(slot) = state.mshr.table.next_target(entry, sector) {
                let bytes = sector * SECTOR..(sector + 1) * SECTOR;
                let packet = state.mshr.table.packet(slot);
                packet.bytes[bytes.clone()].copy_from_slice(&fill.bytes[bytes]);
                // A load hits in the L2 only if all its fills do.
                packet.l2_hit &= fill.l2_hit;
                if let Some(mut packet) = state.mshr.table.deliver(slot, sector) {
                    packet.inherit_stamps(fill, Stage::L1, &FILL_STAGES);
                    state.returned.push_back(packet);
                }
            }
        }
        // One response brings all sectors of its request, so the entry is complete.
        state.mshr.close(entry);
    }
}
