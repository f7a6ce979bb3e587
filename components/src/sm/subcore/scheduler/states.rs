//! The scheduler's second stage: what each warp waits for, and warps that are over.

use warpwave_hw::time::Cycle;

use super::Scheduler;
use super::ready::LSU_GLOBAL;
use crate::bits::bits;
use crate::proto::event::EventKind;
use crate::proto::warp::WarpEvent;
use crate::sm::subcore::stall::State;

impl Scheduler {
    pub(super) fn look_at_changed(&mut self, now: Cycle) {
        for slot in bits(std::mem::take(&mut self.dirty)) {
            self.refresh(slot, now);
        }
    }

    /// Finds what the warp waits for from cycle `at` on.
    #[inline]
    pub(super) fn refresh(&mut self, slot: usize, at: Cycle) {
        let has_instruction = self.ibuffers.has_instruction(slot);
        let Some(warp) = self.warps.get_mut(slot) else { return };
        let (state, pipe) = match warp.next(at, has_instruction) {
            Ok(next) if next.is_local_or_global => (None, LSU_GLOBAL),
            Ok(next) => (None, next.pipe as usize),
            Err(state) => (Some(state), 0),
        };
        if state != warp.state {
            self.change_state(slot, state, at);
        }
        if state.is_none() {
            self.want(slot, pipe, at);
        }
    }

    /// The warp waits for something else from cycle `at` on, or for nothing any more.
    fn change_state(&mut self, slot: usize, state: Option<State>, at: Cycle) {
        let warp = self.warp(slot);
        let (old, cycles) = (warp.state, at.since(warp.since));
        (warp.state, warp.since) = (state, at);
        if let Some(old) = old {
            self.stats.stalls.charge(old, cycles);
            let state = old as u8;
            self.emit(at, slot, EventKind::Wait { state, cycles });
        }
        if state.is_some() {
            self.charge_throttled(at);
            self.ready.remove(slot);
            self.ending |= u32::from(state == Some(State::Drain)) << slot;
            self.settled |= 1 << slot;
        }
    }

    /// The warp could go from cycle `at` on, if this pipe takes it.
    #[inline]
    fn want(&mut self, slot: usize, pipe: usize, at: Cycle) {
        if self.ready.wanting(pipe) >> slot & 1 == 0 {
            self.charge_throttled(at);
            self.ready.insert(slot, pipe);
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
                self.emit(now, slot, EventKind::Wait { state, cycles });
            }
            self.emit(now, slot, EventKind::End);
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
