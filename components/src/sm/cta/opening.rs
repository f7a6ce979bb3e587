//! Barriers that are complete, and open when their latency is over.

use warpwave_hw::time::Cycle;

use super::CtaManager;
use crate::proto::warp::{WarpCommand, WarpInfo};
use crate::sm::barrier::Opened;

/// Cycles of a barrier's latency that pass outside this component: from the issue of the last arrival to its coming here.
const BARRIER_WAY: u64 = 1;

/// A barrier that opens later.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening {
    pub(super) at: Cycle,
    /// Slots per sub-core.
    warps: [u32; 8],
    /// Threads that it has counted, if it counts.
    count: Option<u32>,
}

impl CtaManager {
    pub(super) fn open_barriers(&mut self, cta: usize, now: Cycle) {
        let Some(resident) = &mut self.residents[cta] else {
            return;
        };
        while let Some(Opened { waiting, count }) = resident.barriers.open(resident.live) {
            let mut warps = [0; 8];
            for index in (0..64).filter(|index| waiting >> index & 1 == 1) {
                let (subcore, slot) = resident.places[index];
                warps[subcore as usize] |= 1 << slot;
            }
            let total = self.config.barrier.base_latency + self.config.barrier.per_warp * resident.grid.warps();
            let wait = u64::from(total).saturating_sub(BARRIER_WAY).max(1);
            self.stats.barriers += 1;
            self.stats.barrier_latency.record(u64::from(total));
            self.openings.push(Opening {
                at: now + (wait - 1),
                warps,
                count,
            });
        }
    }

    pub(super) fn release(&mut self, now: Cycle) {
        let ports = &mut self.ports;
        self.openings.retain(|opening| {
            let ready = opening.at <= now
                && (0..ports.command.len()).all(|s| {
                    let tells = opening.count.is_none() || ports.start[s].has_room(now);
                    opening.warps[s] == 0 || (ports.command[s].has_room(now) && tells)
                });
            if ready {
                for (s, &warps) in opening.warps.iter().enumerate().filter(|(_, warps)| **warps != 0) {
                    ports.command[s].send(now, WarpCommand::Release(warps));
                    if let Some(count) = opening.count {
                        ports.start[s].send(now, WarpInfo::Counted { warps, count });
                    }
                }
            }
            !ready
        });
    }
}
