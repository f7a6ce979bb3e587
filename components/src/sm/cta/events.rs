//! Events of warps, from the schedulers: arrivals at barriers, ends, traps.

use warpwave_hw::time::Cycle;

use super::warp_messages::trapped;
use super::{Cta, CtaManager};
use crate::proto::warp::{SlotMask, WarpEvent};
use crate::sm::barrier::Arrival;

/// The CTA in a slot. A warp's end is its last event, and a CTA leaves only after the ends of all its warps.
fn resident(ctas: &mut [Option<Cta>], cta: usize) -> &mut Cta {
    ctas[cta].as_mut().expect("a warp's CTA is resident")
}

impl CtaManager {
    pub(super) fn take_events(&mut self, now: Cycle) {
        for subcore in 0..self.config.subcores {
            while let Some(event) = self.ports.warp[subcore].recv(now) {
                self.on_event(subcore, event, now);
            }
        }
    }

    fn on_event(&mut self, subcore: usize, event: WarpEvent, now: Cycle) {
        match event {
            WarpEvent::Arrive {
                warp,
                barrier,
                threads,
                pass,
                count,
            } => {
                let (cta, index) = self.owner(subcore, warp);
                let state = &mut self.state;
                // One unit counts the arrivals of all CTAs, one after the other.
                state.count_free = state.count_free.max(now) + u64::from(self.config.barrier.per_warp);
                let arrival = Arrival {
                    number: barrier,
                    warp: u32::from(index),
                    threads,
                    pass,
                    count,
                    counted: state.count_free,
                };
                resident(&mut state.ctas, cta).barriers.arrive(arrival);
                self.complete_barriers(cta, now);
            }
            WarpEvent::ArriveCluster { warp } => {
                let (cta, index) = self.owner(subcore, warp);
                let state = &mut self.state;
                state.clusters.arrive(resident(&mut state.ctas, cta), index);
            }
            WarpEvent::Done { warp, is_storing } => {
                let (cta, index) = self.owner(subcore, warp);
                let state = &mut self.state;
                // This warp has taken over the stores of earlier ones in its slot.
                let storing = &mut state.storing[subcore];
                *storing = *storing & !(1 << warp) | SlotMask::from(is_storing) << warp;
                let resident = resident(&mut state.ctas, cta);
                resident.live -= 1;
                state.ended |= u64::from(resident.live == 0) << cta;
                state.free_warps[subcore] |= 1 << warp;
                state.clusters.ended(resident, index);
                // A barrier does not wait for ended warps: it may be complete now.
                self.complete_barriers(cta, now);
            }
            WarpEvent::StoresDone { warp } => self.state.storing[subcore] &= !(1 << warp),
            WarpEvent::Trap { warp, pc, lanes } => {
                let (cta, index) = self.owner(subcore, warp);
                let trap = trapped(resident(&mut self.state.ctas, cta), u32::from(index), pc, lanes);
                self.report_trap(trap, now);
            }
        }
    }

    /// CTA slot of a warp, and its number in the CTA.
    fn owner(&self, subcore: usize, warp: u8) -> (usize, u8) {
        let (cta, index) = self.state.owners[subcore][usize::from(warp)];
        (cta.into(), index)
    }
}
