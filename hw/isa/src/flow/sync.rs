//! WARPSYNC: the lanes of a mask wait for each other, wherever they are.

use super::Flow;
use crate::lane::LaneMask;

impl Flow {
    /// Holds the running lanes until every live lane of `mask` waits at a WARPSYNC with this mask.
    ///
    /// The lanes of `apart` have other masks: they become a pending group at the same instruction. `exchanges` is true if the
    /// next instruction exchanges values between lanes.
    pub fn warpsync(&mut self, mask: LaneMask, apart: LaneMask, exchanges: bool) {
        let apart = apart & self.active;
        if !apart.is_empty() {
            // They execute this WARPSYNC again, with their own mask.
            self.push_pending(self.pc, apart);
            self.active &= !apart;
        }
        // Every live lane of the mask is in the running group. No lane waits, as in converged code.
        if (mask & self.live & !self.active).is_empty() {
            self.pc += 1;
            return;
        }
        let lanes = self.hold_active();
        let diverged = self.diverged_mut();
        lanes.iter().for_each(|lane| diverged.sync_mask[lane] = mask);
        self.syncing |= lanes;
        if exchanges {
            self.exchanging |= lanes;
        }
        self.select_group();
    }

    /// Takes the lanes of a complete WARPSYNC.
    pub(super) fn complete_sync(&mut self) -> Option<LaneMask> {
        let live = self.live;
        let mut rest = self.syncing;
        while let Some(lane) = rest.lowest() {
            let (mask, lanes) = self.sync_group(lane);
            if (mask & live & !lanes).is_empty() {
                let exchanging = self.exchanging & lanes;
                self.syncing &= !lanes;
                self.exchanging &= !lanes;
                // Lanes that resume at different instructions run one after the other, so they cannot exchange values.
                if !exchanging.is_empty() && !self.resume_together(lanes) {
                    self.split_exchange |= exchanging;
                }
                return Some(lanes);
            }
            rest &= !lanes;
        }
        None
    }

    /// True if the held lanes all resume at one instruction.
    fn resume_together(&self, lanes: LaneMask) -> bool {
        let resume_at = &self.diverged().resume_at;
        let mut addresses = lanes.iter().map(|lane| resume_at[lane]);
        let first = addresses.next();
        addresses.all(|address| Some(address) == first)
    }

    /// Takes the lanes of a split exchange, with the resume address of the lowest one.
    ///
    /// A split exchange is an error: each group would exchange values only within itself, unlike in PTX.
    ///
    /// ```
    /// use warpwave_isa::flow::Flow;
    /// use warpwave_isa::lane::LaneMask;
    /// let mut flow = Flow::new(0, LaneMask(0b11));
    /// flow.branch(LaneMask(0b10), 5); // 0: lane 1 goes to 5
    /// flow.warpsync(LaneMask(0b11), LaneMask::NONE, true); // 1: lane 0
    /// assert_eq!(flow.take_split_exchange(), None);
    /// flow.warpsync(LaneMask(0b11), LaneMask::NONE, true); // 5: lane 1
    /// assert_eq!(flow.take_split_exchange(), Some((2, LaneMask(0b11))));
    /// ```
    #[inline]
    pub fn take_split_exchange(&mut self) -> Option<(u32, LaneMask)> {
        let lowest = self.split_exchange.lowest()?;
        let lanes = std::mem::take(&mut self.split_exchange);
        Some((self.diverged_mut().resume_at[lowest], lanes))
    }

    /// Returns the WARPSYNC mask of a lane, and the lanes that wait with this mask.
    pub(super) fn sync_group(&self, lane: usize) -> (LaneMask, LaneMask) {
        let masks = &self.diverged().sync_mask;
        let mask = masks[lane];
        (mask, self.syncing.filter(|other| masks[other] == mask))
    }
}
