//! The end of a CTA: it frees its slot, then the stores of its warps end.

use tracing::debug;
use warpwave_hw::bits::ones;
use warpwave_hw::time::Cycle;

use super::CtaManager;
use super::warp_messages::slot_bytes;
use crate::proto::launch::SmEvent;

impl CtaManager {
    /// Frees the slots of CTAs whose warps have all ended.
    pub(super) fn finish(&mut self, now: Cycle) {
        for slot in ones(self.state.ended) {
            // Without room the CTA keeps its slot, and is reported later.
            if !self.ports.event.has_room(now) {
                return;
            }
            let state = &mut self.state;
            let resident = state.ctas[slot].take().expect("a CTA that ends is resident");
            state.ended &= !(1 << slot);
            state.used_slots &= !(1 << slot);
            let bytes = slot_bytes(&resident.grid, self.config.shared_unit);
            state.clusters.changed(slot, resident.member, bytes, false);
            let cycles = now.since(resident.admitted);
            state.stats.cta_latency.record(cycles);
            let (index, slot) = (resident.index, slot as u8);
            debug!(cycle = now.0, path = %self.path, slot, cycles, "cta {index} ends");
            let is_storing = state.storing.iter().any(|&slots| slots != 0);
            state.owes_stores |= is_storing;
            self.ports.event.send(
                now,
                SmEvent::CtaDone {
                    index,
                    slot,
                    is_storing,
                },
            );
        }
    }

    /// Tells GigaThread that the stores of all ended warps are in the L2.
    pub(super) fn end_stores(&mut self, now: Cycle) {
        if self.stores_have_ended() && self.ports.event.has_room(now) {
            self.state.owes_stores = false;
            self.ports.event.send(now, SmEvent::StoresDone);
        }
    }

    /// True if GigaThread waits for stores, and all have ended.
    pub(super) fn stores_have_ended(&self) -> bool {
        self.state.owes_stores && self.state.storing.iter().all(|&slots| slots == 0)
    }
}
