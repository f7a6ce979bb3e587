//! Packets of the bulk copy engine: they bypass the L1, in order with the LSU's packets. Their stores change lines in the L1.

use warpwave_hw::time::Cycle;

use super::L1;
use crate::proto::mem::{ALL_SECTORS, PacketKind, Stage};

impl L1 {
    /// Sends one response to the engine, and takes one request.
    pub(super) fn run_bulk(&mut self, now: Cycle) {
        let Some(ports) = &mut self.ports.bulk else { return };
        let state = &mut self.state;
        if ports.responses.has_room(now)
            && let Some(packet) = state.bulk_returned.pop_front()
        {
            ports.responses.send(now, packet);
        }
        // The queue to the crossbar keeps these packets in order with those of the LSU.
        let request = ports.requests.peek(now);
        if request.is_none_or(|packet| !state.xbar_queue.has_room(packet.n_changed())) {
            return;
        }
        let mut packet = ports.requests.take(now);
        packet.note(Stage::L1, now);
        // A valid line must not keep the old bytes.
        match packet.kind {
            PacketKind::Store => _ = self.store(&packet),
            // The L2 computes the new value, so the L1 cannot keep the line.
            PacketKind::Reduction => self.drop_sectors(&packet, ALL_SECTORS),
            _ => {}
        }
        self.queue_to_xbar(packet, now);
    }

    /// True if a packet of the engine needs a tick.
    pub(super) fn is_bulk_busy(&self, now: Cycle) -> bool {
        let ports = self.ports.bulk.as_ref();
        ports.is_some_and(|ports| ports.requests.is_ready(now) || !self.state.bulk_returned.is_empty())
    }
}
