//! The scheduler's second stage: what each warp waits for, and warps that are over.

use warpwave_hw::time::Cycle;

use super::Scheduler;
use crate::bits::bits;
use crate::proto::event::What;
use crate::proto::warp::WarpEvent;
use crate::sm::subcore::stall::State;

impl Scheduler {
    pub(super) fn look_at_changed(&mut self, now: Cycle) {
        for slot in bits(std::mem::take(&mut self.dirty)) {
            self.refresh(slot, now);
        }
    }

    /// Finds what the warp waits for from cycle `at` on.
    pub(super) fn refresh(&mut self, slot: usize, at: Cycle) {
        let has_instruction = self.ibuffers.has_instruction(slot);
        let Some(warp) = self.warps.get_mut(slot) else { return };
        let next = warp.next(at, has_instruction);
        let (state, wanted) = match next {
            Ok(next) => (None, Some((next.pipe, next.is_local_or_global))),
            Err(state) => (Some(state), None),
        };
        if let Some(old) = warp.state {
            if state == Some(old) {
                return;
            }
            let cycles = at.since(warp.since);
            self.stats.stalls.charge(old, cycles);
            let state = old as u8;
            self.log
                .tell(at, self.config.subcore, slot as u8, What::Wait { state, cycles });
        }
        warp.state = state;
        warp.since = at;
        self.charge_throttled(at);
        if let Some((pipe, is_local_or_global)) = wanted {
            self.ready.insert(slot, pipe, is_local_or_global);
        } else {
            self.ready.remove(slot);
            self.ending |= u32::from(state == Some(State::Drain)) << slot;
            self.settled |= 1 << slot;
        }
    }

    /// Lets the warps go that have ended and of which nothing is under way.
    #[inline]
    pub(super) fn reap(&mut self, now: Cycle) {
        let settled = std::mem::take(&mut self.settled) & self.ending;
        if settled != 0 {
            self.reap_settled(settled, now);
        }
    }

    fn reap_settled(&mut self, settled: u32, now: Cycle) {
        for slot in bits(settled) {
            let Some(warp) = self.warps.get(slot) else { continue };
            if warp.in_flight > 0 || warp.stores > 0 || warp.queued > 0 {
                continue;
            }
            self.ending &= !(1 << slot);
            if let Some(state) = warp.state {
                let cycles = now.since(warp.since);
                self.stats.stalls.charge(state, cycles);
                let state = state as u8;
                self.tell(now, slot, What::Wait { state, cycles });
            }
            self.tell(now, slot, What::End);
            self.warps.end(slot);
            self.held_back.ended |= 1 << slot;
            self.ready.remove(slot);
            self.policy.remove(slot);
            self.outbox.push(WarpEvent::Done { warp: slot as u8 });
            if self.warps.resident() == 0
                && let Some(since) = self.active_since.take()
            {
                self.stats.active_cycles += now.since(since);
            }
        }
    }
}
