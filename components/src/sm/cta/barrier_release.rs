//! Release of block barriers: scheduled when the last warp has arrived, sent when the barrier's latency is over.
//!
//! The SM's barrier unit counts one arrival in `per_warp` cycles, and releases the warps `base_latency` cycles after the last count. So
//! n warps that arrive together wait for `base_latency` + n x `per_warp` cycles, and CTAs that meet barriers together share the unit.

use tracing::debug;
use warpwave_hw::time::Cycle;

use super::CtaManager;
use crate::proto::warp::{SlotMask, WarpCommand, WarpInfo};
use crate::sm::barrier::Opened;

/// Part of a barrier's latency that is over when the last arrival is received: the link from the scheduler.
const ARRIVAL_CYCLES: u64 = 1;

/// A complete barrier whose latency is not over.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingRelease {
    /// Cycle of the release.
    pub(super) at: Cycle,
    /// Linear index of the CTA.
    cta: u64,
    /// Index of the barrier in its CTA.
    barrier: u8,
    /// Warp slots to release, for each sub-core.
    warps: [SlotMask; 8],
    /// Result of a counting barrier (BAR.RED): threads whose predicate held.
    count: Option<u32>,
}

impl CtaManager {
    /// Schedules the release of every complete barrier of a CTA.
    pub(super) fn complete_barriers(&mut self, cta: usize, now: Cycle) {
        let state = &mut self.state;
        let Some(resident) = &mut state.ctas[cta] else {
            return;
        };
        while let Some(opened) = resident.barriers.open(resident.live) {
            let Opened {
                number,
                waiting,
                count,
                counted,
            } = opened;
            // A warp that ends can complete a barrier after the count of its last arrival.
            let total = counted.since(now) + u64::from(self.config.barrier.base_latency);
            // At least 1: the link to the scheduler cannot be shorter.
            let wait = total.saturating_sub(ARRIVAL_CYCLES).max(1);
            state.stats.barriers += 1;
            state.stats.barrier_latency.record(total);
            state.releases.push(PendingRelease {
                // The link to the scheduler takes the last cycle.
                at: now + (wait - 1),
                cta: resident.index,
                barrier: number,
                warps: resident.slots_of(waiting),
                count,
            });
        }
    }

    /// Releases each due barrier once all its links have room.
    pub(super) fn release_barriers(&mut self, now: Cycle) {
        let (ports, path) = (&mut self.ports, &self.path);
        self.state.releases.retain(|release| {
            // All sub-cores at once: a full link must not let some warps of the CTA pass before the others.
            let ready = release.at <= now
                && (0..ports.command.len()).all(|s| {
                    // A counting barrier also sends its result to the dispatch unit.
                    let can_count = release.count.is_none() || ports.warp_info[s].has_room(now);
                    release.warps[s] == 0 || (ports.command[s].has_room(now) && can_count)
                });
            if ready {
                let PendingRelease { cta, barrier, .. } = release;
                let warps: u32 = release.warps.iter().map(|warps| warps.count_ones()).sum();
                debug!(cycle = now.0, path = %path, warps, "barrier {barrier} of cta {cta} is released");
                for (s, &warps) in release.warps.iter().enumerate().filter(|(_, warps)| **warps != 0) {
                    ports.command[s].send(now, WarpCommand::Release(warps));
                    if let Some(count) = release.count {
                        ports.warp_info[s].send(now, WarpInfo::Counted { warps, count });
                    }
                }
            }
            !ready
        });
    }
}
