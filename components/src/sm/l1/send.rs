//! Sends responses to the LSU, up to the width of the data path, and requests to the crossbar, one per cycle.

use warpwave_hw::time::Cycle;

use super::{L1, State};
use crate::proto::header::{Direction, Header};
use crate::proto::mem::{Packet, PacketKind, Stage};

impl L1 {
    /// Sends responses to the LSU. Returned packets go before hits.
    pub(super) fn respond(&mut self, now: Cycle) {
        let state = &mut self.state;
        if state.data_free_at > now {
            return;
        }
        let width = self.config.data_bytes_per_cycle;
        let mut used = 0;
        while let Some(next) = state.due_response(now) {
            let bytes = match next.kind {
                PacketKind::Load => 4 * u32::from(next.words),
                // Old values of an atomic, or an acknowledgement.
                _ => width,
            };
            // The first response of a cycle may be wider than the data path: it then occupies the path for several cycles.
            if used > 0 && used + bytes > width {
                break;
            }
            if !self.ports.responses.has_room(now) {
                state.stats.response_stall_cycles += 1;
                break;
            }
            used += bytes;
            let mut packet = state.take_response();
            packet.note(Stage::Return, now);
            self.ports.responses.send(now, packet);
            state.tag.note_progress();
        }
        // The next response waits until these have left the data path.
        let cycles = u64::from(used.div_ceil(width));
        state.data_free_at = now + cycles;
        state.stats.data_cycles += cycles;
    }

    /// Translates the address of a packet, and queues it for the crossbar. It leaves in the next cycle at the earliest.
    pub(super) fn queue_to_xbar(&mut self, mut packet: Box<Packet>, now: Cycle) {
        packet.sm = self.config.sm;
        // The header below names the slice, so the line is hashed here.
        (packet.slice, packet.crossing) = self.config.map.route(packet.line, self.config.partition);
        let header = Header::of(&packet, Direction::Request);
        let missed_tlb = self.state.misses_tlb(packet.line);
        let wait = if missed_tlb { self.config.tlb.miss_latency } else { 0 };
        let due = now + 1 + u64::from(wait);
        self.state.xbar_queue.push(packet, header, due, missed_tlb);
    }

    /// Sends one packet to the crossbar.
    pub(super) fn send_to_xbar(&mut self, now: Cycle) {
        let state = &mut self.state;
        if state.xbar_queue.len() == 0 || !self.ports.to_xbar.has_room(now) {
            return;
        }
        // The head may wait for its translation. With `check.weak` all packets may be held back.
        let Some(mut queued) = state.xbar_queue.pop(now) else {
            return;
        };
        if queued.is_timed {
            queued.packet.note(Stage::Request, now);
        }
        state.stats.count_written(&queued.packet, queued.header.data_sectors());
        let sideband = queued.header.sideband();
        self.ports.to_xbar.send_sideband(now, sideband, queued.packet);
        state.tag.note_progress();
    }
}

impl State {
    /// Looks up the page of a line in the TLB, and counts the outcome. True for a miss.
    fn misses_tlb(&mut self, line: u64) -> bool {
        let Some(tlb) = &mut self.tlb else { return false };
        let hits = tlb.look_up(line);
        self.stats.tlb_hits += u64::from(hits);
        self.stats.tlb_misses += u64::from(!hits);
        !hits
    }

    /// The next response, if one is due.
    #[inline]
    fn due_response(&self, now: Cycle) -> Option<&Packet> {
        let hit = || {
            self.hits
                .front()
                .filter(|&&(due, _)| due <= now)
                .map(|(_, packet)| packet)
        };
        // Returned packets first: while they wait, the return queue blocks the link from the crossbar.
        self.returned.front().or_else(hit).map(|packet| &**packet)
    }

    /// Takes the next response.
    #[inline]
    fn take_response(&mut self) -> Box<Packet> {
        let packet = self.returned.pop_front().or_else(|| Some(self.hits.pop_front()?.1));
        packet.expect("the caller has seen a response")
    }
}
