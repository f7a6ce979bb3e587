//! What comes back from below: sectors for those that wait, and packets that were passed on.

use warpwave_hw::time::Cycle;

use super::{L1, RETURN_DEPTH, TagState, is_passed_on, line_number};
use crate::proto::mem::{BULK_TAG, Packet, PacketKind, SECTOR, Stage, each_sector};

/// Steps of [`L1::ask_for_fill`].
const LAST_FILL_STEP: u8 = 3;

impl L1 {
    /// Takes one packet from the crossbar.
    pub(super) fn take_return(&mut self, now: Cycle) {
        if self.returned.len() >= RETURN_DEPTH {
            return;
        }
        let Some(mut packet) = self.ports.returns.recv(now) else {
            return;
        };
        self.fill_step = 0;
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
            self.ask_for_fills();
            self.fill(&packet);
            self.pool.give(packet);
        }
    }

    /// Asks for what the next fill will need from when it is under way, one step in each tick.
    #[inline]
    pub(super) fn ask_for_coming_fill(&mut self) {
        if self.fill_step > LAST_FILL_STEP {
            return;
        }
        let step = self.fill_step;
        let Some(packet) = self.ports.returns.coming_message() else {
            return;
        };
        self.fill_step += 1;
        // The packet itself was asked for when it came in sight.
        if step > 0 && !is_passed_on(packet) {
            let (line, sectors, entry) = (line_number(packet), packet.sectors, packet.tag);
            self.ask_for_fill(step, line, sectors, entry);
        }
    }

    /// The same for the next three fills at once, as others have brought them near.
    #[inline]
    fn ask_for_fills(&self) {
        for n in 0..LAST_FILL_STEP {
            match self.ports.returns.ahead(n.into()) {
                Some(packet) if is_passed_on(packet) => {}
                Some(packet) => {
                    self.ask_for_fill(LAST_FILL_STEP - n, line_number(packet), packet.sectors, packet.tag);
                }
                None => return,
            }
        }
    }

    /// First asks for what is known of a fill by its entry, then for who waits for it, then for the packet that waits, each step by what
    /// the one before has brought.
    #[inline]
    fn ask_for_fill(&self, step: u8, line: u32, sectors: u8, entry: u32) {
        if step == 1 {
            self.mshr.prefetch_entry(entry);
            self.tags.prefetch(line);
        } else if let Some(slot) = self.mshr.first_waiter(entry, sectors) {
            match step {
                LAST_FILL_STEP => self.waiting.prefetch_packet(slot),
                _ => self.waiting.prefetch(slot),
            }
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
