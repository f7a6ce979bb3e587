//! Sends responses to the LSU and requests to the crossbar, at most one packet each per cycle.

use warpwave_hw::time::Cycle;

use super::L1;
use crate::proto::header::{Direction, Header};
use crate::proto::mem::{Packet, PacketKind, SECTOR, Stage};

impl L1 {
    /// Sends one response to the LSU. Returned packets go before hits.
    pub(super) fn respond(&mut self, now: Cycle) {
        let state = &mut self.state;
        let hit_is_due = state.hits.front().is_some_and(|&(due, _)| due <= now);
        if state.returned.is_empty() && !hit_is_due || state.data_free_at > now {
            return;
        }
        if !self.ports.responses.has_room(now) {
            state.stats.response_stall_cycles += 1;
            return;
        }
        let packet = state.returned.pop_front().or_else(|| Some(state.hits.pop_front()?.1));
        let mut packet = packet.expect("one of the two queues has a packet");
        packet.note(Stage::Return, now);
        let cycles = match packet.kind {
            PacketKind::Load => {
                let bytes = packet.n_sectors() * SECTOR as u32;
                u64::from(bytes.div_ceil(self.config.data_bytes_per_cycle))
            }
            // Old values of an atomic, or an acknowledgement.
            _ => 1,
        };
        // The next response waits until this one has left the data path.
        state.data_free_at = now + cycles;
        state.stats.data_cycles += cycles;
        self.ports.responses.send(now, packet);
        state.tag.note_progress();
    }

    /// Queues a packet for the crossbar. It leaves in the next cycle at the earliest.
    pub(super) fn queue_to_xbar(&mut self, mut packet: Box<Packet>) {
        packet.sm = self.config.sm;
        packet.slice = self.config.map.home(packet.line).slice;
        let header = Header::of(&packet, Direction::Request);
        self.state.xbar_queue.push(packet, header);
    }

    /// Sends one packet to the crossbar.
    pub(super) fn send_to_xbar(&mut self, now: Cycle) {
        let state = &mut self.state;
        if state.xbar_queue.len() == 0 || !self.ports.to_xbar.has_room(now) {
            return;
        }
        let mut queued = state.xbar_queue.pop().expect("a packet waits");
        if queued.is_timed {
            queued.packet.note(Stage::Request, now);
        }
        state.stats.l2_sectors_written += u64::from(queued.header.data_sectors());
        let sideband = queued.header.sideband();
        self.ports.to_xbar.send_sideband(now, sideband, queued.packet);
        state.tag.note_progress();
    }
}
