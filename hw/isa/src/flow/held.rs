//! The lanes of a warp that wait for other lanes, for the report of a launch that hangs.

use super::Flow;
use crate::lane::LaneMask;

/// What held lanes wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hold {
    /// The block barrier, for the other lanes of the warp.
    Arrival,
    /// The block barrier, for other warps.
    Barrier,
    /// The cluster barrier.
    Cluster,
    /// A WARPSYNC with this mask.
    Warpsync(LaneMask),
    /// A BSYNC with these members.
    Reconvergence(LaneMask),
}

/// Lanes that wait together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// What they wait for.
    pub by: Hold,
    /// The lanes.
    pub lanes: LaneMask,
    /// The instruction that holds the lowest of them.
    pub pc: u32,
}

impl Flow {
    /// Returns the groups of held lanes: at the barriers, at each WARPSYNC mask, at each BSYNC.
    ///
    /// ```
    /// use warpwave_isa::flow::{Flow, Hold};
    /// use warpwave_isa::lane::LaneMask;
    /// let mut flow = Flow::new(0, LaneMask(0b11));
    /// flow.branch(LaneMask(0b10), 5); // 0: lane 1 goes to 5
    /// flow.warpsync(LaneMask(0b11), LaneMask::NONE, false); // 1: lane 0 waits for lane 1
    /// flow.arrive(LaneMask::ALL, true); // 5: lane 1 waits at the barrier
    /// let held: Vec<_> = flow.held().into_iter().map(|held| (held.by, held.lanes.0, held.pc)).collect();
    /// assert_eq!(held, [(Hold::Arrival, 0b10, 5), (Hold::Warpsync(LaneMask(0b11)), 0b01, 1)]);
    /// ```
    pub fn held(&self) -> Vec<Held> {
        let mut groups = Vec::new();
        let mut add = |by, lanes: LaneMask| {
            groups.extend(lanes.lowest().map(|lowest| Held {
                by,
                lanes,
                pc: self.held_at(by, lowest),
            }));
        };
        add(Hold::Arrival, self.arriving);
        add(Hold::Barrier, self.block_barrier);
        add(Hold::Cluster, self.cluster_barrier);
        let mut rest = self.syncing;
        while let Some(lane) = rest.lowest() {
            let (mask, lanes) = self.sync_group(lane);
            add(Hold::Warpsync(mask), lanes);
            rest &= !lanes;
        }
        for convergence in &self.conv_barriers {
            add(Hold::Reconvergence(convergence.members), convergence.arrived);
        }
        groups
    }

    /// Returns the live lanes that are in no group or in several ones, and the ended lanes in a group: none, if the invariants hold.
    pub fn misplaced_lanes(&self) -> LaneMask {
        let pending = self.diverged().pending[..self.n_pending as usize]
            .iter()
            .map(|(_, lanes)| *lanes);
        let held = self.held().into_iter().map(|held| held.lanes);
        let (mut all, mut twice) = (self.active, LaneMask::NONE);
        for lanes in pending.chain(held) {
            twice |= all & lanes;
            all |= lanes;
        }
        // The second term has live lanes in no group, and ended lanes in a group.
        twice | LaneMask(all.0 ^ self.live.0)
    }

    /// The instruction that holds a lane: the one before its resume address. 0 for a lane without one, as in a broken state.
    fn held_at(&self, by: Hold, lane: usize) -> u32 {
        // A converged warp arrives with one resume address for all its lanes (`Flow::arrive`).
        let together = self
            .after_barrier
            .filter(|_| matches!(by, Hold::Barrier | Hold::Cluster));
        together
            .unwrap_or_else(|| self.diverged().resume_at[lane])
            .saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lane_in_two_groups_or_in_none_is_astray() {
        let mut flow = Flow::new(0, LaneMask(0b111));
        flow.branch(LaneMask(0b100), 5);
        flow.warpsync(LaneMask(0b111), LaneMask::NONE, false);
        assert_eq!(flow.misplaced_lanes(), LaneMask::NONE);
        flow.block_barrier = LaneMask(0b100);
        assert_eq!(flow.misplaced_lanes(), LaneMask(0b100));
        flow.block_barrier = LaneMask::NONE;
        flow.syncing = LaneMask(0b001);
        assert_eq!(flow.misplaced_lanes(), LaneMask(0b010));
    }
}
