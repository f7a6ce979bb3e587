//! The LSU's last stage: takes an instruction from a sub-core's queue, and sends it where its addresses lead.

use warpwave_hw::tile::HORIZON;
use warpwave_hw::time::Cycle;
use warpwave_isa::lane::LaneMask;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::Space;

use super::{EventKind, Lsu, Making};
use crate::proto::launch::{Route, Trap};
use crate::proto::warp::{LsuAck, WarpInst};
use crate::sm::lsu::data::{self, Filling};
use crate::sm::lsu::halves::Halves;
use crate::sm::lsu::pending::Pending;
use crate::sm::lsu::{agu, bulk, texture};

impl Lsu {
    pub(super) fn accept(&mut self, now: Cycle) {
        self.held = 0;
        if now < self.next_accept || self.making.is_some() || self.invalidate || !self.pending.has_room() {
            return;
        }
        let waiting = self.arrivals.in_flight();
        let mut subcore = self.last;
        for _ in 0..self.ports.input.len() {
            subcore = self.after(subcore);
            if waiting >> subcore & 1 == 1 && self.subcore_free[subcore] <= now && self.can_take(subcore, now) {
                self.last = subcore;
                self.take(subcore, now);
                return;
            }
        }
    }

    /// The sub-core whose turn it is after another's.
    #[inline]
    fn after(&self, subcore: usize) -> usize {
        match subcore + 1 {
            next if next < self.ports.input.len() => next,
            _ => 0,
        }
    }

    fn can_take(&mut self, subcore: usize, now: Cycle) -> bool {
        let Some(warp_inst) = self.ports.input[subcore].peek(now) else {
            return false;
        };
        let (to_shared, is_bulk) = match warp_inst.info.route {
            Route::Shuffle | Route::Shared => (true, false),
            Route::Device | Route::Fence => (false, false),
            Route::Other => (may_go_to_shared(warp_inst), warp_inst.inst().op == Opcode::Ublkcp),
        };
        if is_bulk && !self.ports.bulk.as_ref().is_some_and(|bulk| bulk.has_room(now)) {
            return false;
        }
        if !self.ports.ack[subcore].has_room(now) || !self.ports.output[subcore].has_room(now) {
            return false;
        }
        let has_room = !to_shared || self.ports.shared.has_room(now);
        self.held |= u64::from(!has_room) << subcore;
        has_room
    }

    fn take(&mut self, subcore: usize, now: Cycle) {
        let Some(mut warp_inst) = self.ports.input[subcore].recv(now) else {
            return;
        };
        let interval = u64::from(self.config.lsu.accept_interval);
        self.next_accept = now + interval;
        self.arrivals.defer_wakeups(now + interval.min(HORIZON - 1));
        self.subcore_free[subcore] = now + u64::from(self.config.lsu.issue_interval);
        self.accepted = Some((warp_inst.subcore, warp_inst.warp, warp_inst.pc));
        self.stats.instructions += 1;
        let number = warp_inst.issued.0;
        self.log
            .emit(now, warp_inst.subcore, warp_inst.warp, EventKind::Take { number });
        match warp_inst.info.route {
            Route::Shuffle => {
                warp_inst.shared_lanes = LaneMask::NONE;
                self.pass_to_shared(warp_inst, now);
            }
            Route::Shared => match agu::generate_shared(&mut warp_inst) {
                Some(trap) => self.trap(trap, now),
                None => self.pass_to_shared(warp_inst, now),
            },
            Route::Device => match agu::generate_device(&mut warp_inst, &self.clusters) {
                Err(trap) => self.trap(trap, now),
                Ok(halves) => {
                    self.tell_taken(&warp_inst, now);
                    self.start_access(warp_inst, halves, now);
                }
            },
            Route::Fence => self.take_fence(warp_inst, now),
            Route::Other => self.take_other(warp_inst, now),
        }
    }

    /// Goes where kind and addresses lead.
    fn take_other(&mut self, mut warp_inst: Box<WarpInst>, now: Cycle) {
        let op = warp_inst.inst().op;
        if op == Opcode::Ublkcp {
            return self.start_bulk(warp_inst, now);
        }
        let slot = u64::from(self.config.first_local_slot)
            + u64::from(warp_inst.subcore) * u64::from(self.config.warps_per_subcore)
            + u64::from(warp_inst.warp);
        if let Some(trap) = agu::generate(&mut warp_inst, slot, &self.clusters) {
            return self.trap(trap, now);
        }
        if !is_split(&warp_inst) {
            self.tell_taken(&warp_inst, now);
        }
        if goes_to_shared(&warp_inst) {
            if warp_inst.info.is_posted {
                // Stored by an address that may be anywhere: what this SM sends from now on comes after it, and nobody else sees it.
                let stored = LsuAck::StoreDone { warp: warp_inst.warp };
                self.ports.ack[warp_inst.subcore as usize].send(now, stored);
            }
            self.ports.shared.send(now, warp_inst);
        } else if op == Opcode::Ldc {
            self.load_constants(warp_inst, now);
        } else {
            self.start_access(warp_inst, None, now);
        }
    }

    fn pass_to_shared(&mut self, warp_inst: Box<WarpInst>, now: Cycle) {
        self.tell_taken(&warp_inst, now);
        self.ports.shared.send(now, warp_inst);
    }

    pub(super) fn tell_taken(&mut self, warp_inst: &WarpInst, now: Cycle) {
        self.ports.ack[warp_inst.subcore as usize].send(now, LsuAck::QueueCredit { warp: warp_inst.warp });
    }

    #[cold]
    fn trap(&mut self, trap: Box<Trap>, now: Cycle) {
        if self.ports.trap.has_room(now) {
            self.ports.trap.send(now, trap);
        }
    }

    /// A bulk copy goes to its engine, if it may be.
    fn start_bulk(&mut self, warp_inst: Box<WarpInst>, now: Cycle) {
        if let Some(trap) = bulk::check(&warp_inst) {
            return self.trap(trap, now);
        }
        self.tell_taken(&warp_inst, now);
        let port = self.ports.bulk.as_mut().expect("the engine's room was asked for");
        port.send(now, warp_inst);
    }

    fn load_constants(&mut self, mut warp_inst: Box<WarpInst>, now: Cycle) {
        let passes = data::load_constants(&mut warp_inst);
        self.stats.constant_loads.0 += 1;
        self.stats.constant_loads.1 += passes;
        let latency = (u64::from(self.config.constant_latency) + passes).saturating_sub(1);
        let spent = now.since(warp_inst.issued) + 2;
        let extra = latency.saturating_sub(spent);
        let subcore = warp_inst.subcore as usize;
        self.late.send(&mut self.ports.output, subcore, now, extra, warp_inst);
    }

    /// Begins to make packets of an access; of a word in each lane, what its halves want may be known.
    fn start_access(&mut self, warp_inst: Box<WarpInst>, halves: Option<Halves>, now: Cycle) {
        if self.grid != Some(warp_inst.grid.id) {
            self.invalidate_l1(&warp_inst);
        }
        let lanes = data::device_lanes(&warp_inst);
        let (subcore, warp, pc, issued) = (warp_inst.subcore, warp_inst.warp, warp_inst.pc, warp_inst.issued);
        let filling = Filling::of(&warp_inst, halves);
        let mut making = Making {
            entry: 0,
            word: 0,
            words: data::lines_apart(&warp_inst),
            filling,
            kind: filling.kind(),
            cache: warp_inst.inst().mods.cache,
        };
        let (posted, is_device) = (warp_inst.info.is_posted, warp_inst.info.route == Route::Device);
        making.entry = self.pending.add(Pending {
            warp_inst: Some(warp_inst),
            halves,
            issued,
            subcore,
            warp,
            pc,
            left: 1,
            epoch: self.fences.begin_access(),
            posted,
            is_device,
        });
        self.coalesce(making.entry, lanes, halves);
        self.making = Some(making);
        if lanes.is_empty() {
            self.make_more(now);
        }
    }

    /// Works out and counts the parts of an access that is new in the table.
    fn coalesce(&mut self, entry: u32, lanes: LaneMask, halves: Option<Halves>) {
        let (pending, parts) = self.pending.get(entry);
        let Some(warp_inst) = &pending.warp_inst else { return };
        let inst = warp_inst.inst();
        // A prefetch says where, not how much.
        let bytes = inst.mods.access.total().max(1);
        match (inst.op, halves) {
            (_, Some(halves)) => parts.add_halves(halves),
            (Opcode::Tex | Opcode::Suld, _) => texture::add_parts(parts, warp_inst, 0),
            _ => {
                parts.add(&warp_inst.addresses, lanes & !warp_inst.local_lanes, bytes);
                if !warp_inst.local_lanes.is_empty() {
                    parts.add(&warp_inst.addresses, warp_inst.local_lanes, bytes.min(4));
                }
            }
        }
        let accesses = match inst.op {
            Opcode::Ld | Opcode::Ldgsts | Opcode::Tex | Opcode::Suld => &mut self.stats.loads,
            Opcode::St | Opcode::Sust => &mut self.stats.stores,
            Opcode::Cctl => return,
            _ => &mut self.stats.atomics,
        };
        accesses.count(parts, lanes, bytes);
    }
}

/// Whether an instruction may be for the shared-memory component, its addresses not yet known.
fn may_go_to_shared(warp_inst: &WarpInst) -> bool {
    let inst = warp_inst.inst();
    matches!(inst.op, Opcode::Shfl | Opcode::Ldsm)
        || matches!(inst.mods.space, Space::Shared | Space::Cluster | Space::Generic)
}

/// Whether an instruction is for the shared-memory component.
fn goes_to_shared(warp_inst: &WarpInst) -> bool {
    let inst = warp_inst.inst();
    let all_shared = inst.mods.space == Space::Shared && !matches!(inst.op, Opcode::Ldc | Opcode::Ldgsts);
    let by_address =
        is_by_address(inst.mods.space) && !warp_inst.lanes.is_empty() && warp_inst.shared_lanes == warp_inst.lanes;
    matches!(inst.op, Opcode::Shfl | Opcode::Ldsm) || all_shared || by_address
}

/// Whether each lane's address says which memory it is in.
fn is_by_address(space: Space) -> bool {
    matches!(space, Space::Generic | Space::Cluster)
}

/// Whether an access goes to device memory or another SM first and to shared memory after: its order is settled only then.
pub(super) fn is_split(warp_inst: &WarpInst) -> bool {
    let inst = warp_inst.inst();
    is_by_address(inst.mods.space) && !warp_inst.shared_lanes.is_empty() && warp_inst.shared_lanes != warp_inst.lanes
}
