//! The LSU's fences (MEMBAR) and invalidations of the L1 (CCTL.IVALL).
//!
//! A fence of a scope beyond the block waits for all accesses that the LSU took before it, of every warp. A block barrier may have
//! ordered another warp's store before the fence. The LSU counts accesses in epochs, and such a fence closes the newest epoch. It ends when all
//! accesses of the closed epochs have ended, but not before its latency.
//!
//! # Invariants
//! - The first epoch has accesses under way, or is the only one.
//! - A warp has at most one fence here: it issues nothing until the fence is back.

use std::collections::VecDeque;

use warpwave_hw::component::Activity;
use warpwave_hw::time::Cycle;
use warpwave_isa::inst::Scope;
use warpwave_isa::opcode::Opcode;

use super::Lsu;
use crate::proto::warp::WarpInst;
use crate::sm::lsu::pending::Finished;

/// Cycles from the LSU's last tick with an instruction to the scheduler: two links.
const RETURN: u64 = 2;

/// A fence that is not over.
#[derive(Debug)]
struct Fence {
    warp_inst: Box<WarpInst>,
    /// The epoch after the accesses that it waits for.
    after: u32,
    /// First cycle in which it may go back.
    due: Cycle,
}

/// The fences of an LSU, and the accesses under way that they may wait for.
#[derive(Debug)]
pub(super) struct Fences {
    /// Accesses under way in each epoch, oldest first. The last epoch is open.
    epochs: VecDeque<u32>,
    /// Number of the first epoch.
    first: u32,
    waiting: Vec<Fence>,
}

impl Fences {
    /// No fence and no access; at most `warps` fences will wait at a time.
    pub(super) fn new(warps: u32) -> Self {
        let mut epochs = VecDeque::with_capacity(warps as usize + 1);
        epochs.push_back(0);
        Fences {
            epochs,
            first: 0,
            waiting: Vec::with_capacity(warps as usize),
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.epochs.clear();
        self.epochs.push_back(0);
        self.first = 0;
        self.waiting.clear();
    }

    /// Whether no fence waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// An access begins; gives its epoch.
    #[inline]
    pub(super) fn begin_access(&mut self) -> u32 {
        let newest = self.epochs.len() - 1;
        self.epochs[newest] += 1;
        self.first.wrapping_add(newest as u32)
    }

    /// An access of an epoch has been performed.
    #[inline]
    pub(super) fn end_access(&mut self, epoch: u32) {
        self.epochs[epoch.wrapping_sub(self.first) as usize] -= 1;
        while self.epochs.len() > 1 && self.epochs[0] == 0 {
            self.epochs.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }

    /// A fence waits until cycle `due`, and for the accesses under way if it `drains` them.
    fn add(&mut self, warp_inst: Box<WarpInst>, drains: bool, due: Cycle) {
        let newest = self.epochs.len() - 1;
        if drains && self.epochs[newest] > 0 {
            self.epochs.push_back(0);
        }
        let open = self.epochs.len() as u32 - 1;
        self.waiting.push(Fence {
            warp_inst,
            after: self.first.wrapping_add(if drains { open } else { 0 }),
            due,
        });
    }

    /// When the next fence may be over, if nothing else happens.
    pub(super) fn next(&self, now: Cycle) -> Activity {
        let due = self
            .waiting
            .iter()
            .filter(|fence| self.is_drained(fence))
            .map(|fence| fence.due);
        due.min()
            .map_or(Activity::Idle, |due| Activity::Until(due.max(now + 1)))
    }

    /// Takes a fence that is over, the oldest first.
    fn take_over(&mut self, now: Cycle) -> Option<Box<WarpInst>> {
        let over = |fence: &Fence| fence.due <= now && self.is_drained(fence);
        let n = self.waiting.iter().position(over)?;
        Some(self.waiting.remove(n).warp_inst)
    }

    /// Whether the accesses that a fence waits for have been performed.
    fn is_drained(&self, fence: &Fence) -> bool {
        // Numbers wrap; the two are never farther apart than there are warps.
        self.first.wrapping_sub(fence.after) as i32 >= 0
    }
}

impl Lsu {
    /// Takes a fence or an invalidation; one without lanes does nothing.
    pub(super) fn take_fence(&mut self, warp_inst: Box<WarpInst>, now: Cycle) {
        self.tell_taken(&warp_inst, now);
        let inst = warp_inst.inst();
        if warp_inst.lanes.is_empty() {
            self.give_back(warp_inst);
        } else if inst.op == Opcode::CctlIvall {
            self.invalidate_l1(&warp_inst);
            self.give_back(warp_inst);
        } else {
            let numbers = self.config.fence;
            let (drains, latency) = match inst.mods.scope {
                Scope::Cta => (false, numbers.cta_latency),
                Scope::Gpu => (true, numbers.gpu_latency),
                Scope::Sys => (true, numbers.sys_latency),
            };
            let due = Cycle((warp_inst.issued + u64::from(latency)).0.saturating_sub(RETURN));
            self.fences.add(warp_inst, drains, due);
        }
    }

    /// The L1 is told to drop its lines, and how many bytes the grid leaves it.
    pub(super) fn invalidate_l1(&mut self, warp_inst: &WarpInst) {
        self.grid = Some(warp_inst.grid.id);
        self.l1_bytes = warp_inst.grid.l1_bytes;
        self.invalidate = true;
    }

    /// Fences that are over go back to their warps.
    pub(super) fn end_fences(&mut self, now: Cycle) {
        while let Some(warp_inst) = self.fences.take_over(now) {
            self.give_back(warp_inst);
        }
    }

    fn give_back(&mut self, warp_inst: Box<WarpInst>) {
        let subcore = warp_inst.subcore;
        self.finished.push(Finished {
            warp_inst,
            subcore,
            is_device: true,
        });
    }
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

    fn over(fences: &mut Fences, now: u64) -> Option<u8> {
        fences.take_over(Cycle(now)).map(|warp_inst| warp_inst.warp)
    }

    #[test]
    fn nothing_under_way_a_fence_waits_for_its_latency_alone() {
        let mut fences = Fences::new(4);
        fences.add(of_warp(1), true, Cycle(10));
        assert_eq!(fences.next(Cycle(3)), Activity::Until(Cycle(10)));
        assert_eq!(over(&mut fences, 9), None);
        assert_eq!(over(&mut fences, 10), Some(1));
        assert!(fences.is_empty());
    }

    #[test]
    fn accesses_before_a_fence_hold_it_and_later_ones_do_not() {
        let mut fences = Fences::new(4);
        let before = [fences.begin_access(), fences.begin_access()];
        fences.add(of_warp(1), true, Cycle(10));
        let later = fences.begin_access();
        fences.add(of_warp(2), true, Cycle(10));
        assert_eq!(fences.next(Cycle(20)), Activity::Idle);
        fences.end_access(later);
        assert_eq!(over(&mut fences, 20), None, "both wait for the first accesses");
        fences.end_access(before[1]);
        assert_eq!(over(&mut fences, 21), None);
        fences.end_access(before[0]);
        assert_eq!([over(&mut fences, 22), over(&mut fences, 22)], [Some(1), Some(2)]);
    }

    #[test]
    fn second_fence_without_an_access_between_waits_for_the_same_accesses() {
        let mut fences = Fences::new(4);
        let access = fences.begin_access();
        fences.add(of_warp(1), true, Cycle(0));
        fences.add(of_warp(2), true, Cycle(0));
        assert_eq!(over(&mut fences, 5), None);
        fences.end_access(access);
        assert_eq!([over(&mut fences, 6), over(&mut fences, 6)], [Some(1), Some(2)]);
    }

    #[test]
    fn fence_of_the_block_waits_for_no_access() {
        let mut fences = Fences::new(4);
        let access = fences.begin_access();
        fences.add(of_warp(1), false, Cycle(4));
        assert_eq!(over(&mut fences, 4), Some(1));
        fences.add(of_warp(2), true, Cycle(4));
        assert_eq!(over(&mut fences, 5), None);
        fences.end_access(access);
        assert_eq!(over(&mut fences, 6), Some(2));
    }
}
