//! Packets of the bulk copy engine: they pass the L1 by, behind what the LSU has sent, and change lines that are there.

use warpwave_hw::time::Cycle;

use super::L1;
use crate::proto::mem::{PacketKind, Stage};

impl L1 {
    /// Sends one answer back, and takes one request.
    pub(super) fn run_bulk(&mut self, now: Cycle) {
        let Some(ports) = &mut self.ports.bulk else { return };
        if ports.answers.has_room(now)
            && let Some(packet) = self.bulk_returned.pop_front()
        {
            ports.answers.send(now, packet);
        }
        let takes = ports
            .requests
            .peek(now)
            .is_some_and(|packet| self.store_queue.has_room(packet.n_changed()));
        if !takes {
            return;
        }
        let Some(mut packet) = ports.requests.recv(now) else {
            return;
        };
        packet.note(Stage::L1, now);
        if packet.kind == PacketKind::Store {
            self.store(&packet);
        }
        let changed = packet.n_changed();
        self.queue_below(packet, changed);
    }

    /// Whether the engine's packets are reason to tick.
    pub(super) fn is_bulk_busy(&self, now: Cycle) -> bool {
        let ports = self.ports.bulk.as_ref();
        ports.is_some_and(|ports| ports.requests.is_ready(now) || !self.bulk_returned.is_empty())
    }
}
