//! Block barrier and cluster barrier: only lanes that execute the instruction take part.
//!
//! A warp arrives at the block barrier once all its live lanes have come (PTX ISA, `barrier`). Then lanes of an arrive continue, and
//! lanes of a sync wait for the other warps. At the cluster barrier each lane waits by itself.

use super::Flow;
use crate::lane::LaneMask;

impl Flow {
    /// Holds the running lanes of `lanes` at a block barrier, until every live lane has come. Returns true if the warp has arrived now.
    ///
    /// At the warp's arrival, lanes with `waits` keep waiting until the barrier opens. The others continue.
    pub fn arrive(&mut self, lanes: LaneMask, waits: bool) -> bool {
        let lanes = lanes & self.active;
        if lanes.is_empty() {
            self.pc += 1;
            return false;
        }
        if lanes == self.live {
            // The common case: no lane is pending or held, so one resume address is enough.
            if waits {
                self.block_barrier = self.hold_together();
            } else {
                self.pc += 1;
            }
            return true;
        }
        self.arriving |= lanes;
        if !waits {
            self.passing |= lanes;
        }
        self.hold_and_select(lanes);
        self.complete_arrival()
    }

    /// Completes the warp's arrival if every live lane has come. Returns true if it does.
    pub(super) fn complete_arrival(&mut self) -> bool {
        if self.arriving.is_empty() || self.arriving != self.live {
            return false;
        }
        let passing = std::mem::take(&mut self.passing);
        self.block_barrier = std::mem::take(&mut self.arriving) & !passing;
        if !passing.is_empty() {
            self.resume(passing);
        }
        true
    }

    /// Holds the running lanes of `lanes` at the cluster barrier until it opens.
    pub fn wait_for_cluster(&mut self, lanes: LaneMask) {
        let lanes = lanes & self.active;
        if lanes.is_empty() {
            self.pc += 1;
        } else if lanes == self.live {
            self.cluster_barrier = self.hold_together();
        } else {
            self.cluster_barrier |= lanes;
            self.hold_and_select(lanes);
        }
    }

    /// True if every live lane waits for a barrier to open.
    pub fn is_at_barrier(&self) -> bool {
        !self.live.is_empty() && self.block_barrier | self.cluster_barrier == self.live
    }

    /// True if lanes wait at the block barrier, after the warp's arrival.
    pub fn waits_at_block_barrier(&self) -> bool {
        !self.block_barrier.is_empty()
    }

    /// Returns the lanes that wait at the cluster barrier.
    pub fn at_cluster_barrier(&self) -> LaneMask {
        self.cluster_barrier
    }

    /// Opens the block barrier. Lanes that arrived together continue together, others in a group for each resume address.
    pub fn release(&mut self) {
        let lanes = std::mem::take(&mut self.block_barrier);
        self.release_lanes(lanes);
    }

    /// Opens the cluster barrier for the lanes that wait at it.
    pub fn release_cluster(&mut self) {
        let lanes = std::mem::take(&mut self.cluster_barrier);
        self.release_lanes(lanes);
    }

    fn release_lanes(&mut self, lanes: LaneMask) {
        match self.after_barrier.take() {
            Some(pc) => (self.pc, self.active) = (pc, lanes),
            None => self.resume(lanes),
        }
    }

    /// Holds the whole warp at one barrier, with one resume address.
    fn hold_together(&mut self) -> LaneMask {
        self.after_barrier = Some(self.pc + 1);
        std::mem::take(&mut self.active)
    }
}
