//! The accept stage: takes an instruction from a sub-core, checks its addresses, and routes it to its unit.

use warpwave_hw::tile::HORIZON;
use warpwave_hw::time::Cycle;
use warpwave_isa::lane::LaneMask;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::Space;

use super::Lsu;
use crate::proto::bulk::BulkInst;
use crate::proto::event::EventKind;
use crate::proto::launch::{Route, Trap};
use crate::proto::warp::{LsuAck, WarpInst};
use crate::sm::lsu::texture::{self, is_texture};
use crate::sm::lsu::{agu, bulk};

impl Lsu {
    /// Accepts one instruction, round robin over the sub-cores.
    pub(super) fn accept(&mut self, now: Cycle) {
        let state = &mut self.state;
        state.shared_blocked = 0;
        // The coalescer holds one access. The next one enters when all packets of the last one have left.
        if now < state.next_accept || !state.pending.has_room() || self.has_packet_to_send() {
            return;
        }
        let arrived = self.arrivals.in_flight();
        let subcores = self.ports.input.len();
        let mut subcore = self.state.last_subcore;
        for _ in 0..subcores {
            subcore = if subcore + 1 < subcores { subcore + 1 } else { 0 };
            if arrived >> subcore & 1 == 1 && self.state.subcore_free_at[subcore] <= now && self.can_take(subcore, now)
            {
                self.state.last_subcore = subcore;
                return self.take(subcore, now);
            }
        }
    }

    /// True if a sub-core has an instruction, and every link that it may need has room.
    fn can_take(&mut self, subcore: usize, now: Cycle) -> bool {
        let Some(warp_inst) = self.ports.input[subcore].peek(now) else {
            return false;
        };
        let (needs_shared, needs_bulk) = match warp_inst.info.route {
            Route::Shuffle | Route::Shared => (true, false),
            Route::Device | Route::Fence => (false, false),
            Route::Other => (may_go_to_shared(warp_inst), bulk::is_bulk(warp_inst.inst().op)),
        };
        // A constant load waits and returns in tables of its own.
        if warp_inst.inst().op == Opcode::Ldc && !self.state.constants.has_room(subcore) {
            return false;
        }
        if needs_bulk && !self.ports.bulk.as_ref().is_some_and(|bulk| bulk.has_room(now)) {
            return false;
        }
        // The credit leaves at once. A full link of results delays new accesses, so complete ones do not pile up.
        if !self.ports.ack[subcore].has_room(now) || !self.ports.output[subcore].has_room(now) {
            return false;
        }
        let is_blocked = needs_shared && !self.ports.shared.has_room(now);
        self.state.shared_blocked |= u64::from(is_blocked) << subcore;
        !is_blocked
    }

    fn take(&mut self, subcore: usize, now: Cycle) {
        let Some(warp_inst) = self.ports.input[subcore].recv(now) else {
            return;
        };
        let (state, config) = (&mut self.state, &self.config.lsu);
        // The sub-cores share one memory pipeline, with an interval of its own beside that of each sub-core.
        let interval = u64::from(config.accept_interval);
        state.next_accept = now + interval;
        // No message can be accepted earlier, so none needs to wake the LSU earlier.
        self.arrivals.defer_wakeups(now + interval.min(HORIZON - 1));
        state.subcore_free_at[subcore] = now + u64::from(config.issue_interval);
        state.last_tick.accepted = Some((warp_inst.subcore, warp_inst.warp, warp_inst.pc));
        state.stats.instructions += 1;
        let number = warp_inst.issued.0;
        self.log
            .emit(now, warp_inst.subcore, warp_inst.warp, EventKind::Take { number });
        match warp_inst.info.route {
            Route::Fence => self.take_fence(warp_inst, now),
            Route::Other if bulk::is_bulk(warp_inst.inst().op) => self.take_bulk(warp_inst, now),
            _ => self.take_access(warp_inst, now),
        }
    }

    /// Computes the addresses of an access, and routes it by their memory.
    fn take_access(&mut self, mut warp_inst: Box<WarpInst>, now: Cycle) {
        let op = warp_inst.inst().op;
        let trap = match warp_inst.info.route {
            Route::Shuffle => {
                warp_inst.shared_lanes = LaneMask::NONE;
                None
            }
            _ if is_texture(op) => texture::generate(&mut warp_inst),
            _ => {
                let local_slot = self.local_slot(&warp_inst);
                agu::generate(&mut warp_inst, local_slot, &self.state.clusters)
            }
        };
        // The instruction is dropped: a trap ends the launch, so nothing waits for its result.
        if let Some(trap) = trap {
            return self.send_trap(trap, now);
        }
        // The credit of a split access returns when its second part goes to shared memory: only then is it in order.
        if !is_split(&warp_inst) {
            self.send_credit(&warp_inst, now);
        }
        if goes_to_shared(&warp_inst) {
            if warp_inst.info.is_posted {
                // The scheduler counts it as a global store, since the address could have been global. Shared memory takes accesses
                // in order, so it is done as far as later accesses can tell.
                let stored = LsuAck::StoreDone { warp: warp_inst.warp };
                self.ports.ack[warp_inst.subcore as usize].send(now, stored);
            }
            self.ports.shared.send(now, warp_inst);
        } else if op == Opcode::Ldc {
            self.load_constants(warp_inst, now);
        } else {
            self.start_access(warp_inst, now);
        }
    }

    /// The slot of a warp in local memory.
    fn local_slot(&self, warp_inst: &WarpInst) -> u64 {
        // Slots of SMs follow each other, then of sub-cores, then of warps.
        u64::from(self.config.first_local_slot)
            + u64::from(warp_inst.subcore) * u64::from(self.config.warps_per_subcore)
            + u64::from(warp_inst.warp)
    }

    /// Returns the credit of an instruction's entry in the memory queue.
    pub(super) fn send_credit(&mut self, warp_inst: &WarpInst, now: Cycle) {
        self.ports.ack[warp_inst.subcore as usize].send(now, LsuAck::QueueCredit { warp: warp_inst.warp });
    }

    #[cold]
    pub(super) fn send_trap(&mut self, trap: Box<Trap>, now: Cycle) {
        // Later traps are dropped: the first one ends the launch.
        if self.ports.trap.has_room(now) {
            self.ports.trap.send(now, trap);
        }
    }

    /// Sends a bulk copy to its engine.
    fn take_bulk(&mut self, warp_inst: Box<WarpInst>, now: Cycle) {
        if let Some(trap) = bulk::check(&warp_inst) {
            return self.send_trap(trap, now);
        }
        self.send_credit(&warp_inst, now);
        // The engine writes to all CTAs of a multicast, so it needs the placement too.
        let (cluster, cta_bytes) = self.state.clusters.placement(&warp_inst);
        let port = self.ports.bulk.as_mut().expect("`can_take` has seen room in the port");
        let inst = BulkInst {
            warp_inst,
            cluster,
            cta_bytes,
        };
        port.send(now, inst);
    }
}

/// True if an instruction may go to shared memory. Its addresses are not known yet.
fn may_go_to_shared(warp_inst: &WarpInst) -> bool {
    let inst = warp_inst.inst();
    // A generic address tells its memory only after the AGU, so room is required in case.
    inst.op == Opcode::Ldsm || matches!(inst.mods.space, Space::Shared | Space::Cluster | Space::Generic)
}

/// True if an instruction goes to shared memory and nowhere else.
fn goes_to_shared(warp_inst: &WarpInst) -> bool {
    let inst = warp_inst.inst();
    match (warp_inst.info.route, inst.mods.space) {
        (Route::Shuffle | Route::Shared, _) => true,
        (Route::Device | Route::Fence, _) => false,
        (Route::Other, _) if inst.op == Opcode::Ldsm => true,
        (Route::Other, Space::Shared) => !matches!(inst.op, Opcode::Ldc | Opcode::Ldgsts),
        (Route::Other, Space::Generic | Space::Cluster) => {
            // Without lanes the LSU completes the access at once.
            !warp_inst.lanes.is_empty() && warp_inst.shared_lanes == warp_inst.lanes
        }
        _ => false,
    }
}

/// True if an access goes to shared memory for some lanes, and to device memory or another SM for the others.
pub(super) fn is_split(warp_inst: &WarpInst) -> bool {
    let shared = warp_inst.shared_lanes;
    warp_inst.info.route == Route::Other
        && matches!(warp_inst.inst().mods.space, Space::Generic | Space::Cluster)
        && !shared.is_empty()
        && shared != warp_inst.lanes
}
