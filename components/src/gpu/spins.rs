//! Finds warps that spin on a location in memory when a launch reaches its limit of cycles.
//!
//! The host samples every warp [`SAMPLES`] times before the limit, every [`STRIDE`] cycles. A warp spins in this case: its loop branches on
//! a value that it loads, and [`SEEN`] samples in a row show the same access with the same address. The loop may count its turns, which a
//! standstill never does.

use std::collections::BTreeMap;

use warpwave_hw::component::Component;
use warpwave_hw::time::Cycle;

use super::hang::{Poll, Polls, find_spin};
use super::standstill::{each_warp, subcores};

/// Samples before the limit.
const SAMPLES: u64 = 16;

/// Cycles between two samples: a prime, so that samples fall on all parts of a loop.
const STRIDE: u64 = 97;

/// Samples in a row with the same access. A loop over an array has another address in each turn.
const SEEN: u32 = 3;

/// The search for spinning warps before the end of a launch.
pub(super) struct SpinSearch {
    next: Cycle,
    end: Cycle,
    /// The access of a warp, and the samples in a row that show it, by sub-core and slot.
    seen: BTreeMap<(usize, usize), (Poll, u32)>,
}

impl SpinSearch {
    /// A search before cycle `end` in a launch from cycle `start` on. Without an end it finds nothing.
    pub(super) fn new(start: Cycle, end: Cycle) -> Self {
        let first = Cycle(end.0.saturating_sub(SAMPLES * STRIDE)).max(start + STRIDE);
        SpinSearch {
            next: if end == Cycle::NEVER || first >= end {
                Cycle::NEVER
            } else {
                first
            },
            end,
            seen: BTreeMap::new(),
        }
    }

    /// The cycle of the next sample.
    pub(super) fn next(&self) -> Cycle {
        self.next
    }

    /// Samples the machine in the cycle [`SpinSearch::next`].
    pub(super) fn sample<'a>(&mut self, now: Cycle, components: impl Iterator<Item = &'a dyn Component> + Clone) {
        for (place, warp, file) in each_warp(&subcores(components)) {
            let Some(poll) = find_spin(place.1, warp, file) else {
                continue;
            };
            let seen = match self.seen.remove(&place) {
                // The load may be in flight now, so the earlier value counts.
                Some((known, n)) if known.is_same_access(&poll) => (poll.or_value_of(&known), n + 1),
                _ => (poll, 1),
            };
            self.seen.insert(place, seen);
        }
        self.next = Some(now + STRIDE)
            .filter(|&next| next < self.end)
            .unwrap_or(Cycle::NEVER);
    }

    /// The spinning warps.
    pub(super) fn polls(self) -> Polls {
        let spins = self.seen.into_iter().filter(|(_, (_, n))| *n >= SEEN);
        spins.map(|(place, (poll, _))| (place, poll)).collect()
    }
}
