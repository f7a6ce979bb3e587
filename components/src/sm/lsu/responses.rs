//! The receive stage takes responses, and the return stage sends complete instructions back.

use warpwave_hw::time::Cycle;
use warpwave_isa::opcode::Opcode;

use super::{INVALIDATION, Lsu, RETURN_CYCLES, accept};
use crate::proto::launch::Route;
use crate::proto::mem::{Packet, PacketKind, Stage};
use crate::proto::warp::{LsuAck, WarpInst};
use crate::sm::lsu::pending::{RemoteAccess, entry_and_packet};

impl Lsu {
    /// Takes all responses, and the placements of clusters.
    pub(super) fn receive(&mut self, now: Cycle) {
        while let Some(mut packet) = self.ports.response.recv(now) {
            // An invalidation belongs to no access.
            if packet.tag != INVALIDATION {
                packet.note(Stage::Return, now);
                // Cycles since issue, for the waveform.
                let age = now.since(self.take_response(&packet, now));
                let last = &mut self.state.last_tick.response;
                *last = Some((packet.line, last.map_or(age, |(_, most)| most.max(age))));
            }
            self.state.pool.give(packet);
        }
        if self.ports.cluster.is_some() {
            self.receive_cluster(now);
        }
    }

    fn receive_cluster(&mut self, now: Cycle) {
        let Some(ports) = &mut self.ports.cluster else { return };
        while let Some(placed) = ports.placed.recv(now) {
            self.state.clusters.place(placed);
        }
        while self.state.remote_packets > 0
            && let Some(packet) = self.ports.cluster.as_mut().and_then(|ports| ports.response.recv(now))
        {
            self.state.remote_packets -= 1;
            match packet.is_refused() {
                // The access stays: a trap ends the launch, so nothing waits for its end.
                true => self.trap_refused(&packet, now),
                false => _ = self.take_response(&packet, now),
            }
            self.state.pool.give(packet);
        }
    }

    /// Sends the trap of an access to a CTA that has ended.
    #[cold]
    fn trap_refused(&mut self, packet: &Packet, now: Cycle) {
        let (entry, n) = entry_and_packet(packet.tag);
        let RemoteAccess { origin, bytes } = self.state.pending.remote(entry);
        let pending = self.state.pending.get(entry);
        let lane = pending.packet_lanes[n].lowest().unwrap_or(0);
        let address = match (&pending.warp_inst, &packet.atomic, packet.kind) {
            (_, _, PacketKind::Store) => packet.line + u64::from(packet.byte_mask.trailing_zeros()),
            (Some(warp_inst), _, PacketKind::Load) => warp_inst.addresses.get(lane),
            (_, Some(atomic), _) => packet.line + u64::from(atomic.lanes[0].offset),
            _ => packet.line,
        };
        if let Some(trap) = origin.refused(lane, (address, bytes), self.config.shared_unit) {
            self.send_trap(trap, now);
        }
    }

    /// Copies the data of a response to the results. Returns the issue cycle of the access.
    fn take_response(&mut self, packet: &Packet, now: Cycle) -> Cycle {
        let (entry, n) = entry_and_packet(packet.tag);
        let state = &mut self.state;
        let pending = state.pending.get(entry);
        let issued = pending.issued;
        let of = (pending.subcore, pending.warp, pending.pc);
        self.log.emit_request(packet, state.grid.unwrap_or(0), of);
        // A response of a posted access has no data. Its instruction may still be in the entry, for its last packets.
        if !pending.is_posted {
            if let Some(warp_inst) = &mut pending.warp_inst {
                pending.contents.take(packet, warp_inst, pending.packet_lanes[n]);
            }
            state.stats.count_latency(packet, now.since(issued) + RETURN_CYCLES);
        }
        if pending.complete_one() {
            self.complete_access(entry, now);
        }
        issued
    }

    /// Completes an access after its last response.
    #[inline(never)]
    pub(super) fn complete_access(&mut self, entry: u32, now: Cycle) {
        let state = &mut self.state;
        let pending = state.pending.remove(entry);
        // The access is performed: a fence that waits for its epoch can end in this tick.
        state.fences.end_access(pending.epoch);
        if let Some(mut warp_inst) = pending.warp_inst.take() {
            pending.contents.finish(&mut warp_inst);
            state.complete.push(warp_inst);
        }
        if pending.is_posted {
            self.ports.ack[pending.subcore as usize].send(now, LsuAck::StoreDone { warp: pending.warp });
        }
    }

    /// Sends complete instructions to their sub-cores, or on to shared memory.
    pub(super) fn return_complete(&mut self, now: Cycle) {
        let mut n = 0;
        while n < self.state.complete.len() {
            let warp_inst = &self.state.complete[n];
            // Instructions leave in any order: a full link delays only its own.
            let port = match continues_in_shared(warp_inst) {
                true => &mut self.ports.shared,
                false => &mut self.ports.output[warp_inst.subcore as usize],
            };
            if !port.has_room(now) {
                n += 1;
                continue;
            }
            if accept::is_split(warp_inst) {
                let credit = LsuAck::QueueCredit { warp: warp_inst.warp };
                self.ports.ack[warp_inst.subcore as usize].send(now, credit);
            }
            // `remove` keeps the order, so the oldest of a link leaves first.
            port.send(now, self.state.complete.remove(n));
        }
    }
}

/// True if the instruction goes on to shared memory: a split access, or a copy to shared memory.
fn continues_in_shared(warp_inst: &WarpInst) -> bool {
    warp_inst.info.route == Route::Other
        && (!warp_inst.shared_lanes.is_empty() || warp_inst.inst().op == Opcode::Ldgsts)
}
