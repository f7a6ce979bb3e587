//! The LSU's first stage: takes what the L1 answers, and lets go of instructions that have all they asked for.

use warpwave_hw::time::Cycle;
use warpwave_isa::lane::LaneMask;
use warpwave_isa::opcode::Opcode;

use super::{INVALIDATION, Lsu, accept};
use crate::proto::mem::{Packet, PacketKind, Stage};
use crate::proto::warp::LsuAck;
use crate::sm::lsu::data;
use crate::sm::lsu::pending::{Finished, Pending, entry_and_part};
use crate::sm::lsu::texture::{self, is_texture};

impl Lsu {
    pub(super) fn take_answers(&mut self, now: Cycle) {
        while let Some(mut packet) = self.ports.answer.recv(now) {
            if packet.tag != INVALIDATION {
                packet.note(Stage::Return, now);
                let age = now.since(self.take_answer(&packet, now));
                let most = self.answered.map_or(age, |(_, most)| most.max(age));
                self.answered = Some((packet.line, most));
            }
            self.pool.give(packet);
        }
    }

    /// What an access waits for is here; gives the cycle of the access's issue.
    pub(super) fn take_answer(&mut self, packet: &Packet, now: Cycle) -> Cycle {
        let (entry, part) = entry_and_part(packet.tag);
        let (pending, parts) = self.pending.get(entry);
        let issued = pending.issued;
        let grid = self.grid.unwrap_or(0);
        self.log
            .emit_request(packet, grid, (pending.subcore, pending.warp, pending.pc));
        // What is posted takes nothing from its answers, which may come while its last packets are being made.
        if !pending.posted {
            take_data(pending, packet, || parts.lanes_on_line(part));
            // Two cycles more bring the value to the write port and the release to the scheduler.
            self.stats.count_latency(packet, now.since(issued) + 2);
        }
        if pending.answered() {
            self.end(entry, now);
        }
        issued
    }

    /// Every packet is answered.
    #[inline(never)]
    pub(super) fn end(&mut self, entry: u32, now: Cycle) {
        let mut pending = self.pending.take(entry);
        self.fences.end_access(pending.epoch);
        if let Some(warp_inst) = &mut pending.warp_inst
            && !pending.is_device
            && is_texture(warp_inst.inst().op)
        {
            texture::finish(warp_inst);
        }
        self.finished.extend(pending.finish());
        if pending.posted {
            self.ports.ack[pending.subcore as usize].send(now, LsuAck::StoreDone { warp: pending.warp });
        }
    }

    /// Finished instructions leave, or go on to shared memory if that concerns them too.
    pub(super) fn send_finished(&mut self, now: Cycle) {
        let ports = &mut self.ports;
        let mut n = 0;
        while n < self.finished.len() {
            let Finished {
                warp_inst,
                subcore,
                is_device,
            } = &self.finished[n];
            let to_shared = !is_device && (!warp_inst.shared_lanes.is_empty() || warp_inst.inst().op == Opcode::Ldgsts);
            let port = if to_shared {
                &mut ports.shared
            } else {
                &mut ports.output[*subcore as usize]
            };
            if port.has_room(now) {
                if !is_device && accept::is_split(warp_inst) {
                    ports.ack[*subcore as usize].send(now, LsuAck::QueueCredit { warp: warp_inst.warp });
                }
                port.send(now, self.finished.remove(n).warp_inst);
            } else {
                n += 1;
            }
        }
    }
}

/// Takes what the answer to a load or an atomic brings, where it concerns these lanes.
#[inline]
fn take_data(pending: &mut Pending, packet: &Packet, on_line: impl FnOnce() -> LaneMask) {
    let Some(warp_inst) = &mut pending.warp_inst else {
        return;
    };
    match (packet.kind, pending.halves) {
        (PacketKind::Load, Some(halves)) => {
            halves.load_line(packet.line, &packet.bytes, &mut warp_inst.results.words[0]);
        }
        (PacketKind::Load, None) if is_texture(warp_inst.inst().op) => texture::fill(warp_inst, packet),
        (PacketKind::Load, None) => data::fill_loaded(warp_inst, packet, on_line()),
        _ => data::fill_atomic(warp_inst, packet),
    }
}
