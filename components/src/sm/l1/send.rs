//! What leaves the L1: answers to the LSU, and packets to the crossbar. Each queue sends its oldest packet, one per cycle.

use warpwave_hw::time::Cycle;

use super::L1;
use crate::proto::header::{Direction, Header};
use crate::proto::mem::{Packet, PacketKind, Stage};

impl L1 {
    /// Sends one answer to the LSU; what came from below goes before hits.
    pub(super) fn answer(&mut self, now: Cycle) {
        if self.returned.is_empty() && self.hits.front().is_none_or(|&(due, _)| due > now) {
            return;
        }
        if self.data_free > now {
            return;
        }
        if !self.ports.answers.has_room(now) {
            self.stats.answer_stall_cycles += 1;
            return;
        }
        let packet = self.returned.pop_front().or_else(|| Some(self.hits.pop_front()?.1));
        let mut packet = packet.expect("one of the two queues has a packet");
        packet.note(Stage::Return, now);
        let cycles = match packet.kind {
            PacketKind::Load => self.data_cycles[packet.n_sectors() as usize],
            _ => 1,
        };
        self.data_free = now + cycles;
        self.stats.data_cycles += cycles;
        self.ports.answers.send(now, packet);
        self.progress = true;
    }

    /// Queues a packet for the crossbar, to which it leaves in the next cycle at the earliest. `changed`: the sectors that it changes.
    pub(super) fn queue_below(&mut self, mut packet: Box<Packet>, changed: u32) {
        packet.sm = self.config.sm;
        packet.slice = self.config.map.home(packet.line).slice;
        let header = Header::of(&packet, Direction::Request);
        self.store_queue.push(packet, header, changed);
    }

    /// Sends one packet to the crossbar.
    pub(super) fn send_below(&mut self, now: Cycle) {
        if self.store_queue.len() == 0 || !self.ports.below.has_room(now) {
            return;
        }
        let Some(mut queued) = self.store_queue.pop() else {
            return;
        };
        if queued.is_timed {
            queued.packet.note(Stage::Request, now);
        }
        self.stats.sectors_written_below += u64::from(queued.header.data_sectors());
        self.ports
            .below
            .send_labelled(now, queued.header.label(), queued.packet);
        self.progress = true;
    }
}
