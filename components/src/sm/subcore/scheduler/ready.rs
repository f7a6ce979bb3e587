//! The ready set: the warps without a stall reason, grouped by the pipe that each needs.
//!
//! The scheduler updates it per warp, so a tick tests only the pipes in `pipes`. The LSU's queue counts as two pipes, one per
//! stall reason: `lg_throttle` (local and global memory) and `mio_throttle` (the rest).
//!
//! Invariant: each warp is in one group, and `pipes` has the bits of the groups that are not empty.

use warpwave_hw::invariant::Invariants;
use warpwave_isa::opcode::Pipe;

use crate::config::N_PIPES;
use crate::proto::warp::{MAX_SLOTS, SlotMask};
use crate::sm::subcore::stall::WarpState;

/// Groups of the LSU's queue: shared memory and the rest, and local and global memory.
pub(super) const LSU: usize = Pipe::Lsu as usize;
pub(super) const LSU_GLOBAL: usize = N_PIPES;

// A power of two makes `% N_READY_GROUPS` a mask. Groups above `LSU_GLOBAL` are unused.
/// Number of groups: one per pipe, and a second for the LSU.
pub(super) const N_READY_GROUPS: usize = 16;

/// Stall reason of a ready warp whose pipe is busy, by group.
pub(super) const THROTTLES: [WarpState; N_READY_GROUPS] = {
    let mut throttles = [WarpState::MathPipeThrottle; N_READY_GROUPS];
    throttles[LSU] = WarpState::MioThrottle;
    throttles[LSU_GLOBAL] = WarpState::LgThrottle;
    throttles
};

/// The ready warps.
#[derive(Clone, Debug)]
pub(super) struct Ready {
    /// All ready warps, bit i for slot i.
    pub(super) warps: SlotMask,
    /// Pipes that a ready warp needs, bit i for pipe i.
    pub(super) pipes: u16,
    /// Ready warps of each group, and their number.
    groups: [SlotMask; N_READY_GROUPS],
    counts: [u8; N_READY_GROUPS],
    /// Group of each ready warp.
    pipe_of: [u8; MAX_SLOTS],
}

impl Default for Ready {
    fn default() -> Self {
        Ready {
            warps: 0,
            pipes: 0,
            groups: [0; N_READY_GROUPS],
            counts: [0; N_READY_GROUPS],
            pipe_of: [0; MAX_SLOTS],
        }
    }
}

impl Ready {
    /// The warps that need `pipe`.
    #[inline]
    pub(super) fn of_pipe(&self, pipe: usize) -> SlotMask {
        self.groups[pipe % N_READY_GROUPS]
    }

    /// Number of warps that need `pipe`.
    #[inline]
    pub(super) fn count(&self, pipe: usize) -> u32 {
        u32::from(self.counts[pipe % N_READY_GROUPS])
    }

    /// Checks that each ready warp is in one group.
    pub(super) fn invariants(&self, check: &mut Invariants) {
        let mut all = 0;
        for (pipe, &group) in self.groups.iter().enumerate() {
            check.equal(
                format_args!("warps of group {pipe}"),
                self.counts[pipe].into(),
                group.count_ones().into(),
            );
            check.equal(
                format_args!("bit of group {pipe}"),
                (self.pipes >> pipe & 1).into(),
                (group != 0).into(),
            );
            check.equal(format_args!("warps of group {pipe} and another one"), group & all, 0);
            all |= group;
        }
        check.equal("warps of all groups", all, self.warps);
    }

    /// Adds a warp that needs `pipe`, or moves it there.
    #[inline]
    pub(super) fn insert(&mut self, slot: usize, pipe: usize) {
        let (bit, pipe) = (1 << slot, pipe % N_READY_GROUPS);
        if self.groups[pipe] & bit != 0 {
            return;
        }
        self.remove(slot);
        self.pipe_of[slot] = pipe as u8;
        self.warps |= bit;
        self.pipes |= 1 << pipe;
        self.groups[pipe] |= bit;
        self.counts[pipe] += 1;
    }

    /// Removes a warp, if it is in the set.
    #[inline]
    pub(super) fn remove(&mut self, slot: usize) {
        let bit = 1 << slot;
        if self.warps & bit == 0 {
            return;
        }
        self.warps &= !bit;
        let pipe = self.pipe_of[slot] as usize % N_READY_GROUPS;
        let group = &mut self.groups[pipe];
        *group &= !bit;
        self.counts[pipe] -= 1;
        // An empty group loses its bit, so that the issue stage skips it.
        self.pipes &= !(u16::from(*group == 0) << pipe);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipe_is_needed_until_its_last_warp_is_removed_or_needs_another() {
        const INT: usize = Pipe::Int as usize;
        let mut ready = Ready::default();
        ready.insert(3, LSU);
        ready.insert(5, LSU);
        assert_eq!((ready.warps, ready.pipes), (0b101000, 1 << LSU));
        assert_eq!((ready.of_pipe(LSU), ready.count(LSU)), (0b101000, 2));
        ready.insert(3, INT);
        assert_eq!((ready.of_pipe(LSU), ready.of_pipe(INT)), (0b100000, 0b1000));
        assert_eq!([LSU, INT, LSU_GLOBAL].map(|pipe| ready.count(pipe)), [1, 1, 0]);
        ready.remove(5);
        ready.remove(5);
        assert_eq!((ready.warps, ready.pipes), (0b1000, 1 << INT));
    }

    #[test]
    fn warp_in_two_groups_breaks_invariants() {
        let mut ready = Ready::default();
        ready.insert(3, LSU);
        let broken = |ready: &Ready| Invariants::broken(|check| ready.invariants(check));
        assert!(broken(&ready).is_empty());
        ready.groups[LSU_GLOBAL] = 0b1000;
        let found = broken(&ready);
        assert!(
            found.contains(&format!("warps of group {LSU_GLOBAL} and another one: 8, not 0")),
            "{found:?}"
        );
        ready = Ready::default();
        ready.warps = 1;
        assert_eq!(broken(&ready), ["warps of all groups: 0, not 1"]);
    }

    #[test]
    fn throttle_of_the_lsu_queue_depends_on_the_memory() {
        assert_eq!(THROTTLES[LSU], WarpState::MioThrottle);
        assert_eq!(THROTTLES[LSU_GLOBAL], WarpState::LgThrottle);
        assert_eq!(THROTTLES[Pipe::Fp32 as usize], WarpState::MathPipeThrottle);
    }
}
