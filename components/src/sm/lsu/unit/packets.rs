//! The LSU's stage that makes packets, for the L1 or for other SMs of the cluster, and takes what those answer.

use warpwave_hw::time::Cycle;

use super::{INVALIDATION, Lsu};
use crate::proto::cluster::remote;
use crate::proto::header::{Direction, Header};
use crate::proto::mem::{LINE, PacketKind, Stage};
use crate::sm::lsu::pending::tag;
use crate::sm::lsu::texture::{self, is_texture};

const FLIGHT_STAYS: &str = "a warp_inst stays until its packets are made";

impl Lsu {
    /// What comes from other SMs, and who sits there.
    pub(super) fn take_from_cluster(&mut self, now: Cycle) {
        let Some(ports) = &mut self.ports.cluster else { return };
        while let Some(placed) = ports.placed.recv(now) {
            self.clusters.placed(placed);
        }
        if self.away == 0 {
            return;
        }
        while let Some(packet) = self.ports.cluster.as_mut().and_then(|ports| ports.answer.recv(now)) {
            self.away -= 1;
            self.take_answer(&packet, now);
            self.pool.give(packet);
        }
    }

    pub(super) fn send_packet(&mut self, now: Cycle) {
        if !self.ports.l1.has_room(now) {
            return;
        }
        if std::mem::take(&mut self.invalidate) {
            let mut packet = self.pool.any();
            packet.sm = self.config.sm;
            (packet.line, packet.sectors) = (0, 0);
            packet.kind = PacketKind::Invalidate { bytes: self.l1_bytes };
            packet.tag = INVALIDATION;
            self.ports.l1.send(now, packet);
            return;
        }
        if !self.send_part(now) {
            self.make_more(now);
        }
    }

    /// When all parts are sent: goes on to the next word of a wide local access, or ends the making.
    pub(super) fn make_more(&mut self, now: Cycle) {
        let Some(making) = &mut self.making else { return };
        let entry = making.entry;
        let (pending, parts) = self.pending.get(entry);
        if !parts.is_done() {
            return;
        }
        making.word += 1;
        if making.word < making.words {
            let warp_inst = pending.warp_inst.as_ref().expect(FLIGHT_STAYS);
            parts.clear();
            if is_texture(warp_inst.inst().op) {
                return texture::add_parts(parts, warp_inst, making.word as usize);
            }
            let addresses = warp_inst
                .addresses
                .map(|address| address + u64::from(making.word) * LINE as u64);
            return parts.add(&addresses, warp_inst.local_lanes, 4);
        }
        if pending.posted {
            // The packets carry the data: the box goes back.
            self.finished.extend(pending.finish());
        }
        self.making = None;
        if pending.answered() {
            self.end(entry, now);
        }
    }

    /// Sends the packet for the next part of the access whose packets are being made, if it may go; whether there are more to send.
    fn send_part(&mut self, now: Cycle) -> bool {
        let Some(making) = &self.making else { return true };
        let (pending, parts) = self.pending.get(making.entry);
        let Some(&part) = parts.peek() else { return false };
        let remote = remote(part.line);
        if remote.is_some() && !self.ports.cluster_has_room(now) {
            return true;
        }
        pending.left += 1;
        let mut packet = self.pool.any();
        packet.sm = self.config.sm;
        packet.line = part.line;
        packet.sectors = part.sectors;
        packet.tag = tag(making.entry, parts.take());
        let has_more = !parts.is_done();
        packet.kind = making.kind;
        packet.cache = making.cache;
        packet.set_out(self.log.is_on());
        packet.note(Stage::Issue, pending.issued);
        packet.note(Stage::Lsu, now);
        packet.l1_hit = false;
        packet.l2_hit = false;
        let warp_inst = pending.warp_inst.as_ref().expect(FLIGHT_STAYS);
        making
            .filling
            .fill(&mut packet, warp_inst, part.lanes, making.word as usize);
        self.stats.packets += 1;
        self.sent = Some((part.line, part.sectors));
        match (remote, &mut self.ports.cluster) {
            (Some((sm, _)), Some(ports)) => {
                packet.slice = sm;
                packet.sm = self.config.sm_in_gpc;
                self.away += 1;
                let header = Header::of(&packet, Direction::Request);
                ports.request.send_sideband(now, header.sideband(), packet);
            }
            _ => self.ports.l1.send(now, packet),
        }
        has_more
    }
}
