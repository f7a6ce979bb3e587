//! Packets of the bulk copy engine: they pass the L1 by, behind what the LSU has sent, and change lines that are there.

use warpwave_hw::time::Cycle;

use super::store::written;
use super::{L1, line_number};
use crate::proto::mem::{PacketKind, Stage, byte_mask};

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
            .is_some_and(|packet| self.store_queue.has_room(written(packet)));
        if !takes {
            return;
        }
        let Some(mut packet) = ports.requests.recv(now) else {
            return;
        };
        packet.note(Stage::L1, now);
        if packet.kind == PacketKind::Store {
            let line = line_number(&packet);
            if let Some((place, sectors)) = self.tags.find(line) {
                self.data
                    .write(place, packet.byte_mask & byte_mask(sectors), &packet.bytes);
            }
            self.mshr.spoil(line, packet.sectors);
        }
        self.queue_below(packet, now);
    }

    /// Whether the engine's packets are reason to tick.
    pub(super) fn is_bulk_busy(&self, now: Cycle) -> bool {
        self.ports
            .bulk
            .as_ref()
            .is_some_and(|ports| ports.requests.is_ready(now))
            || !self.bulk_returned.is_empty()
    }
}
