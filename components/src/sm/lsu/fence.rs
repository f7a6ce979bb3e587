//! Fences (MEMBAR), and invalidations of the L1 (CCTL.IVALL).
//!
//! The scheduler issues a fence after the warp's loads have returned. The latency of the fence counts from its issue. The warp's stores may
//! be under way then. On an H100 a fence takes 669 cycles behind a store, and 670 behind an atomic.
//! A fence of a wider scope than the CTA waits for all accesses of the SM that the LSU took before it. The LSU counts accesses in epochs,
//! and the fence closes the newest epoch. It ends when the accesses of the closed epochs are complete and its latency is over.
//!
//! On an H100 the last 465 cycles of a fence of GPU scope are exclusive (`sm.fence.gpu_exclusive`): a sub-core has one such part at a time.
//! Fences that come meanwhile share the next one. So 8 or 32 warps that fence together take 930 cycles, and one warp takes 670.
//!
//! A fence before products and bulk copies (FENCE.VIEW) waits for the same accesses. Then it goes to shared memory, behind the accesses
//! that the LSU has sent there. Shared memory performs them in order, and completes the fence after them. In a cluster a MEMBAR of a
//! wider scope takes the same way, since other CTAs access this shared memory too. The way counts in the latency of the MEMBAR.
//!
//! # Invariants
//! - The first epoch has accesses in flight, or is the only one.
//! - A warp has at most one fence in the LSU: it issues nothing until the fence returns.
//! - The exclusive parts of a sub-core do not overlap.

use std::collections::VecDeque;

use warpwave_hw::component::Activity;
use warpwave_hw::time::Cycle;
use warpwave_isa::inst::Scope;
use warpwave_isa::opcode::Opcode;

use super::{Lsu, RETURN_CYCLES};
use crate::proto::warp::WarpInst;

/// A fence that has not ended.
#[derive(Debug)]
struct Fence {
    warp_inst: Box<WarpInst>,
    /// The first epoch that it does not wait for.
    end: u32,
    /// First cycle in which it may end, or in which its exclusive part may begin.
    due: Cycle,
    /// True until its exclusive part has a place.
    awaits_exclusive: bool,
}

/// The exclusive parts of the fences of a sub-core: one runs, and the fences that come meanwhile share the next one.
#[derive(Clone, Copy, Debug, Default)]
struct Exclusive {
    /// End of the part that runs, or that ran last.
    end: Cycle,
    /// True if fences wait for the next part, which begins at `end`.
    has_next: bool,
}

impl Exclusive {
    /// A fence comes. Returns the end of its part of `cycles` cycles.
    fn join(&mut self, now: Cycle, cycles: u64) -> Cycle {
        if self.has_next && now >= self.end {
            self.end += cycles;
            self.has_next = false;
        }
        if now >= self.end {
            self.end = now + cycles;
        }
        // The part begins in this cycle, so the fence is in time.
        if now + cycles == self.end {
            return self.end;
        }
        self.has_next = true;
        self.end + cycles
    }
}

/// The fences of an LSU, and the accesses in flight by epoch.
#[derive(Debug)]
pub(super) struct Fences {
    /// Number of accesses in flight of each epoch, oldest first. The last epoch is open.
    epochs: VecDeque<u32>,
    /// Number of the first epoch. Wraps.
    first: u32,
    waiting: Vec<Fence>,
    /// By sub-core.
    exclusive: Vec<Exclusive>,
}

impl Fences {
    /// No fence and no access. At most `warps` fences wait at a time, of `subcores` sub-cores.
    pub(super) fn new(warps: u32, subcores: u32) -> Self {
        let mut epochs = VecDeque::with_capacity(warps as usize + 1);
        epochs.push_back(0);
        Fences {
            epochs,
            first: 0,
            waiting: Vec::with_capacity(warps as usize),
            exclusive: vec![Exclusive::default(); subcores as usize],
        }
    }

    /// True if no fence waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Counts a new access. Returns its epoch.
    #[inline]
    pub(super) fn begin_access(&mut self) -> u32 {
        let newest = self.epochs.len() - 1;
        self.epochs[newest] += 1;
        self.first.wrapping_add(newest as u32)
    }

    /// Counts a complete access of an epoch.
    #[inline]
    pub(super) fn end_access(&mut self, epoch: u32) {
        // Never negative: an epoch leaves the queue only when it has no accesses.
        self.epochs[epoch.wrapping_sub(self.first) as usize] -= 1;
        // The last epoch is open: it stays even without accesses.
        while self.epochs.len() > 1 && self.epochs[0] == 0 {
            self.epochs.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }

    /// Adds a fence that waits until cycle `due`, and for the accesses in flight if `drains`.
    fn add(&mut self, warp_inst: Box<WarpInst>, drains: bool, due: Cycle) {
        let newest = self.epochs.len() - 1;
        // Without accesses since the last fence, both fences end at the same epoch.
        if drains && self.epochs[newest] > 0 {
            self.epochs.push_back(0);
        }
        let open = self.epochs.len() as u32 - 1;
        self.waiting.push(Fence {
            warp_inst,
            // A fence that does not drain ends at the first epoch, so it waits for no access.
            end: self.first.wrapping_add(if drains { open } else { 0 }),
            due,
            awaits_exclusive: false,
        });
    }

    /// Adds a fence whose exclusive part may begin in cycle `due`. It ends after that part, and after the accesses in flight.
    fn add_exclusive(&mut self, warp_inst: Box<WarpInst>, due: Cycle) {
        self.add(warp_inst, true, due);
        let newest = self.waiting.len() - 1;
        self.waiting[newest].awaits_exclusive = true;
    }

    /// Gives each fence that is due a place for its exclusive part of `cycles` cycles.
    fn place_exclusive(&mut self, now: Cycle, cycles: u64) {
        for n in 0..self.waiting.len() {
            let fence = &self.waiting[n];
            if fence.awaits_exclusive && fence.due <= now {
                let subcore = usize::from(fence.warp_inst.subcore);
                let end = self.exclusive[subcore].join(now, cycles);
                let fence = &mut self.waiting[n];
                (fence.due, fence.awaits_exclusive) = (end, false);
            }
        }
    }

    /// When the next fence can end, unless accesses complete earlier.
    pub(super) fn next_end(&self, now: Cycle) -> Activity {
        // An exclusive part begins without regard to the accesses in flight.
        let can_go_on = |fence: &&Fence| fence.awaits_exclusive || self.is_drained(fence);
        let due = self.waiting.iter().filter(can_go_on).map(|fence| fence.due).min();
        due.map_or(Activity::Idle, |due| Activity::Until(due.max(now + 1)))
    }

    /// Removes a fence that can end, the oldest first. Without `shared_has_room`, a fence that goes on to shared memory stays.
    fn take_ended(&mut self, now: Cycle, shared_has_room: bool) -> Option<Box<WarpInst>> {
        let may_leave = |fence: &Fence| shared_has_room || !goes_on_to_shared(&fence.warp_inst);
        // A fence of a narrow scope can end before an older, wider one of another warp.
        let is_due = |fence: &Fence| !fence.awaits_exclusive && fence.due <= now;
        let has_ended = |fence: &Fence| is_due(fence) && self.is_drained(fence) && may_leave(fence);
        let n = self.waiting.iter().position(has_ended)?;
        Some(self.waiting.remove(n).warp_inst)
    }

    /// True if the accesses that a fence waits for are complete.
    fn is_drained(&self, fence: &Fence) -> bool {
        // Epoch numbers wrap, so their signed distance tells which is earlier.
        self.first.wrapping_sub(fence.end) as i32 >= 0
    }
}

impl Lsu {
    /// Takes a fence or an invalidation. An instruction without active lanes completes at once.
    pub(super) fn take_fence(&mut self, warp_inst: Box<WarpInst>, now: Cycle) {
        self.send_credit(&warp_inst, now);
        let inst = warp_inst.inst();
        if warp_inst.lanes.is_empty() {
            self.state.complete.push(warp_inst);
        } else if inst.op == Opcode::CctlIvall {
            // No latency of its own: the packet to the L1 orders it with earlier and later accesses.
            self.invalidate_l1(&warp_inst);
            self.state.complete.push(warp_inst);
        } else if inst.op == Opcode::FenceView {
            self.state.fences.add(warp_inst, true, now);
        } else {
            let latencies = self.config.fence;
            let (drains, latency) = match inst.mods.scope {
                Scope::Cta => (false, latencies.cta_latency),
                // The accesses of all warps, since a block barrier may have ordered them before the fence.
                Scope::Gpu => (true, latencies.gpu_latency),
                Scope::Sys => (true, latencies.sys_latency),
            };
            let end = warp_inst.issued + u64::from(latency);
            // The latency counts up to the issue of the next instruction, so the return is part of it.
            let way = match goes_on_to_shared(&warp_inst) {
                true => RETURN_CYCLES + self.ports.shared.latency(),
                false => RETURN_CYCLES,
            };
            let due = end.0.saturating_sub(way);
            let exclusive = u64::from(latencies.gpu_exclusive);
            if inst.mods.scope == Scope::Gpu && exclusive > 0 {
                let due = Cycle(due.saturating_sub(exclusive));
                self.state.fences.add_exclusive(warp_inst, due);
            } else {
                self.state.fences.add(warp_inst, drains, Cycle(due));
            }
        }
    }

    /// Queues an invalidation of the L1, with the bytes that the grid's carve-out leaves it.
    pub(super) fn invalidate_l1(&mut self, warp_inst: &WarpInst) {
        self.state.grid = Some(warp_inst.grid.id);
        self.state.invalidation = Some(warp_inst.grid.l1_bytes);
    }

    /// Completes the fences that can end.
    pub(super) fn end_fences(&mut self, now: Cycle) {
        let exclusive = u64::from(self.config.fence.gpu_exclusive);
        self.state.fences.place_exclusive(now, exclusive);
        while !self.state.fences.is_empty() {
            let shared_has_room = self.ports.shared.has_room(now);
            let Some(warp_inst) = self.state.fences.take_ended(now, shared_has_room) else {
                return;
            };
            match goes_on_to_shared(&warp_inst) {
                true => self.ports.shared.send(now, warp_inst),
                false => self.state.complete.push(warp_inst),
            }
        }
    }
}

/// True for a fence that shared memory completes, after the accesses before it.
fn goes_on_to_shared(warp_inst: &WarpInst) -> bool {
    let inst = warp_inst.inst();
    inst.op == Opcode::FenceView || (inst.mods.scope != Scope::Cta && warp_inst.grid.in_clusters())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_ports::grid;

    /// The fence of a warp.
    fn of_warp(warp: u8) -> Box<WarpInst> {
        let mut warp_inst = Box::new(WarpInst::blank(0, grid("MEMBAR.GPU", 1)));
        warp_inst.warp = warp;
        warp_inst
    }

    fn ended(fences: &mut Fences, now: u64) -> Option<u8> {
        fences.take_ended(Cycle(now), true).map(|warp_inst| warp_inst.warp)
    }

    #[test]
    fn fence_without_accesses_in_flight_waits_for_its_latency() {
        let mut fences = Fences::new(4, 2);
        fences.add(of_warp(1), true, Cycle(10));
        assert_eq!(fences.next_end(Cycle(3)), Activity::Until(Cycle(10)));
        assert_eq!(ended(&mut fences, 9), None);
        assert_eq!(ended(&mut fences, 10), Some(1));
        assert!(fences.is_empty());
    }

    #[test]
    fn fence_waits_for_earlier_accesses_and_not_for_later_ones() {
        let mut fences = Fences::new(4, 2);
        let before = [fences.begin_access(), fences.begin_access()];
        fences.add(of_warp(1), true, Cycle(10));
        let later = fences.begin_access();
        fences.add(of_warp(2), true, Cycle(10));
        assert_eq!(fences.next_end(Cycle(20)), Activity::Idle);
        fences.end_access(later);
        assert_eq!(ended(&mut fences, 20), None, "both wait for the earlier accesses");
        fences.end_access(before[1]);
        assert_eq!(ended(&mut fences, 21), None);
        fences.end_access(before[0]);
        assert_eq!([ended(&mut fences, 22), ended(&mut fences, 22)], [Some(1), Some(2)]);
    }

    #[test]
    fn fence_for_shared_memory_waits_for_room_and_lets_others_end() {
        let mut fences = Fences::new(4, 2);
        let mut of_view = Box::new(WarpInst::blank(0, grid("FENCE.VIEW.ASYNC", 1)));
        of_view.warp = 1;
        fences.add(of_view, true, Cycle(0));
        fences.add(of_warp(2), true, Cycle(0));
        let mut ended = |has_room| fences.take_ended(Cycle(5), has_room).map(|warp_inst| warp_inst.warp);
        assert_eq!([ended(false), ended(false), ended(true)], [Some(2), None, Some(1)]);
    }

    #[test]
    fn two_fences_in_a_row_wait_for_the_same_accesses() {
        let mut fences = Fences::new(4, 2);
        let access = fences.begin_access();
        fences.add(of_warp(1), true, Cycle(0));
        fences.add(of_warp(2), true, Cycle(0));
        assert_eq!(ended(&mut fences, 5), None);
        fences.end_access(access);
        assert_eq!([ended(&mut fences, 6), ended(&mut fences, 6)], [Some(1), Some(2)]);
    }

    #[test]
    fn fence_of_cta_scope_waits_for_no_access() {
        let mut fences = Fences::new(4, 2);
        let access = fences.begin_access();
        fences.add(of_warp(1), false, Cycle(4));
        assert_eq!(ended(&mut fences, 4), Some(1));
        fences.add(of_warp(2), true, Cycle(4));
        assert_eq!(ended(&mut fences, 5), None);
        fences.end_access(access);
        assert_eq!(ended(&mut fences, 6), Some(2));
    }

    #[test]
    fn exclusive_parts_of_a_sub_core_follow_each_other_and_share_the_next_one() {
        let mut fences = Fences::new(8, 2);
        let of = |warp: u8, subcore: u8| {
            let mut warp_inst = of_warp(warp);
            warp_inst.subcore = subcore;
            warp_inst
        };
        // Two fences come in cycle 10, and one each in cycles 12 and 20. One comes in cycle 50, in the shared part. The other sub-core has
        // one in cycle 15. A part takes 30 cycles.
        for (warp, subcore, due) in [(1, 0, 10), (2, 0, 10), (3, 0, 12), (4, 0, 20), (5, 1, 15), (7, 0, 50)] {
            fences.add_exclusive(of(warp, subcore), Cycle(due));
        }
        let mut ends = Vec::new();
        for now in 0..200 {
            fences.place_exclusive(Cycle(now), 30);
            while let Some(warp) = ended(&mut fences, now) {
                ends.push((warp, now));
            }
            // A fence that comes after all others begins at once.
            if now == 100 {
                fences.add_exclusive(of(6, 0), Cycle(90));
            }
        }
        assert_eq!(ends, [(1, 40), (2, 40), (5, 45), (3, 70), (4, 70), (7, 100), (6, 131)]);
    }

    #[test]
    fn exclusive_part_runs_while_accesses_are_in_flight_and_the_fence_waits_for_both() {
        let mut fences = Fences::new(4, 1);
        let access = fences.begin_access();
        fences.add_exclusive(of_warp(1), Cycle(5));
        assert_eq!(fences.next_end(Cycle(3)), Activity::Until(Cycle(5)));
        fences.place_exclusive(Cycle(5), 30);
        assert_eq!(fences.next_end(Cycle(5)), Activity::Idle);
        assert_eq!(ended(&mut fences, 40), None);
        fences.end_access(access);
        assert_eq!(ended(&mut fences, 41), Some(1));
    }
}
