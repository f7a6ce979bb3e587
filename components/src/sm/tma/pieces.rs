//! The pieces of copies: their requests, and what becomes of the responses.

use warpwave_hw::time::Cycle;
use warpwave_isa::exec::bulk::Piece;

use super::{InFlight, TO_REMOTE, Tma, send_trap};
use crate::proto::mem::{BULK_TAG, Packet, PacketKind};

impl Tma {
    /// Receives a response of shared memory. Sends the bytes of a load on to global memory.
    pub(super) fn receive_from_shared(&mut self, now: Cycle) {
        // A load from shared memory becomes a store to the L1 in this tick.
        if !self.ports.l1.has_room(now) {
            return;
        }
        let Some(mut packet) = self.ports.shared_response.recv(now) else {
            return;
        };
        let state = &mut self.state;
        // An acknowledged store or arrival. Neither has an entry in `in_flight`.
        if packet.kind != PacketKind::Load {
            return self.take_acknowledgement(packet, now);
        }
        // The tag stays in use until the L2 has acknowledged the store.
        let tag = (packet.tag & !BULK_TAG) as usize;
        let piece = state.in_flight[tag].expect("a response belongs to a piece in flight");
        state.job(piece).write_global(&mut packet, piece.piece);
        self.ports.l1.send(now, packet);
    }

    /// Receives a response of the L1. Sends the bytes of a load on to shared memory.
    pub(super) fn receive_from_l1(&mut self, now: Cycle) {
        let Some(packet) = self.ports.l1_response.recv(now) else {
            return;
        };
        let state = &mut self.state;
        let tag = packet.tag & !BULK_TAG;
        // The tags after those of the pieces belong to the lines of a tensor map.
        if tag >= self.config.tma.pieces {
            state.map.iter_mut().for_each(|map| map.take_line(&packet));
            return state.pool.give(packet);
        }
        let piece = state.in_flight[tag as usize].take();
        let piece = piece.expect("a response belongs to a piece in flight");
        // A store is acknowledged, or a load has its bytes: the piece leaves the engine's window.
        state.free_tags.push(tag);
        let number = (piece.job - state.first_job) as usize;
        state.jobs[number].pieces_left -= 1;
        if packet.kind == PacketKind::Load {
            let from = packet.bytes;
            for n in 0..state.jobs[number].destinations.len() {
                let mut store = state.pool.any();
                let job = &state.jobs[number];
                let to = job.destinations[n];
                job.write_shared(&mut store, &from, piece.piece, to);
                state.write_shared(store, to);
            }
        }
        state.pool.give(packet);
        state.finish_jobs();
    }

    /// Receives an acknowledgement of another SM.
    pub(super) fn receive_from_remote(&mut self, now: Cycle) {
        if let Some(packet) = self.ports.remote.response.recv(now) {
            self.take_acknowledgement(packet, now);
        }
    }

    /// Takes the response to a store or an arrival. Traps if the CTA has ended.
    fn take_acknowledgement(&mut self, packet: Box<Packet>, now: Cycle) {
        // A refused store needs no trap of its own: the arrival after it is refused too, and names the instruction.
        if packet.is_refused()
            && packet.kind == PacketKind::Reduction
            && let Some(arrival) = &packet.atomic
        {
            let lane = arrival.lanes[0].lane.into();
            let access = (packet.line, u32::from(arrival.ty.bytes()));
            let trap = arrival.origin.refused(lane, access, self.config.shared_unit);
            trap.into_iter()
                .for_each(|trap| send_trap(&mut self.ports.remote.trap, trap, now));
        }
        self.state.unacknowledged -= 1;
        self.state.pool.give(packet);
    }

    /// Requests the next line of the tensor map. Returns false if there is none to request.
    fn send_map_request(&mut self, now: Cycle) -> bool {
        let state = &mut self.state;
        let Some(map) = state.map.as_mut().filter(|map| map.has_request()) else {
            return false;
        };
        if self.ports.l1.has_room(now) {
            let mut packet = state.pool.any();
            packet.tag = BULK_TAG | (self.config.tma.pieces + map.request(&mut packet));
            self.ports.l1.send(now, packet);
        }
        true
    }

    /// Sends the next piece of the newest job.
    pub(super) fn send_piece(&mut self, now: Cycle) {
        // A copy cannot begin without its map, so the map's lines go before pieces.
        if self.send_map_request(now) {
            return;
        }
        let state = &mut self.state;
        let has_room_for_writes = state.has_room_for_writes();
        let number = state.first_job + state.jobs.len() as u32;
        let Some(job) = state.jobs.back_mut().filter(|job| job.has_more()) else {
            return;
        };
        // A piece outside the tensor needs room in the queues to shared memory, like a read of shared memory.
        let has_room = match job.reads_global_next() {
            true => self.ports.l1.has_room(now) && state.to_remote.len() < TO_REMOTE,
            false => has_room_for_writes,
        };
        if !has_room || state.free_tags.is_empty() {
            return;
        }
        let (n, piece) = job.take();
        state.stats.pieces += 1;
        state.stats.bytes += u64::from(piece.bytes);
        // `None` for a piece outside the tensor: it has no address.
        state.sent = piece.global;
        if !job.to_global && piece.global.is_none() {
            return self.fill_piece(piece);
        }
        let mut packet = state.pool.any();
        let Some(job) = state.jobs.back_mut() else { return };
        let Some(tag) = state.free_tags.pop() else { return };
        state.in_flight[tag as usize] = Some(InFlight {
            job: number - 1,
            piece: n,
        });
        packet.tag = BULK_TAG | tag;
        if job.to_global {
            job.read_shared(&mut packet, piece);
            state.to_shared.push_back(packet);
        } else {
            job.read_global(&mut packet, piece);
            self.ports.l1.send(now, packet);
        }
    }

    /// Writes a piece of the newest job that is outside its tensor. There is nothing to read: the piece is complete at once.
    fn fill_piece(&mut self, piece: Piece) {
        let state = &mut self.state;
        let newest = state.jobs.len() - 1;
        state.jobs[newest].pieces_left -= 1;
        for n in 0..state.jobs[newest].destinations.len() {
            let mut packet = state.pool.any();
            let job = &state.jobs[newest];
            let to = job.destinations[n];
            job.write_fill(&mut packet, piece, to);
            state.write_shared(packet, to);
        }
        state.finish_jobs();
    }
}
