//! The evaluate stage, which finds stall reasons, and the retire stage, which ends warps.
//!
//! A warp is evaluated only after an event that can change its hazards. Each such event sets its bit in `State::reevaluate`: a result,
//! a fetched instruction, a barrier, a timer. The warp that issues is evaluated at once, for the next cycle.

use warpwave_hw::bits::ones;
use warpwave_hw::time::Cycle;

use super::ready::LSU_GLOBAL;
use super::{Scheduler, State};
use crate::config::SlotRelease;
use crate::proto::event::EventKind;
use crate::proto::predecoded::Predecoded;
use crate::proto::warp::{SlotMask, WarpEvent};
use crate::sm::subcore::stall::WarpState;

/// The group of the ready set for an instruction.
#[inline]
fn group(next: &Predecoded) -> usize {
    // One queue, two stall reasons: the profiler's name of a full queue depends on the memory that the warp accesses.
    if next.is_local_or_global {
        LSU_GLOBAL
    } else {
        next.pipe as usize
    }
}

impl Scheduler {
    /// Evaluates the changed warps.
    #[inline]
    pub(super) fn evaluate(&mut self, now: Cycle) {
        for slot in ones(std::mem::take(&mut self.state.reevaluate)) {
            self.evaluate_warp(slot, now);
        }
    }

    /// Finds the warp's stall reason from cycle `at` on, or the pipe of its next instruction.
    #[inline]
    pub(super) fn evaluate_warp(&mut self, slot: usize, at: Cycle) {
        let has_instruction = self.state.ibuffers.has_instruction(slot);
        let always_hits = self.ports.constant.is_none();
        let Some(warp) = self.state.warps.get_mut(slot) else {
            return;
        };
        // `None`: no hazard so far, but the constant operands are not looked up. A lookup can miss and send a request, so it comes last.
        let result = match warp.next_or_stall(at, has_instruction) {
            Ok(next) if next.reads_constant && !(always_hits || warp.has_constants) => None,
            Ok(next) => Some((None, group(next))),
            Err(state) => Some((Some(state), 0)),
        };
        if let Some((Some(WarpState::Wait), _)) = result {
            // No message ends a wait for a guard.
            self.state.guard_timers.set(slot, warp.guard_from(), at);
        }
        let before = warp.stall;
        let (state, pipe) = result.unwrap_or_else(|| self.find_constants(slot));
        // An equal state goes on: its charge runs from `Warp::since`.
        if state != before {
            self.change_state(slot, state, at);
        }
        if state.is_none() {
            self.make_ready(slot, pipe, at);
        }
    }

    /// Looks up the constant operands of the warp's next instruction, which nothing else blocks. Returns its stall reason or its pipe.
    fn find_constants(&mut self, slot: usize) -> (Option<WarpState>, usize) {
        let State {
            warps,
            immediate,
            stats,
            ..
        } = &mut self.state;
        let warp = warps.get_mut(slot).expect("the caller has found the warp");
        let pc = warp.flow.pc();
        warp.has_constants = immediate.find(slot, &warp.grid, pc);
        // Remembered until the issue, so that a later eviction of the line delays nothing.
        if warp.has_constants {
            return (None, group(&warp.code[pc as usize]));
        }
        // An instruction with several absent lines counts once: it is in this state from its first miss on.
        stats.constant_misses += u64::from(warp.stall != Some(WarpState::ImcMiss));
        (Some(WarpState::ImcMiss), 0)
    }

    /// Charges the warp's old state up to cycle `at`, the first of the new state.
    fn change_state(&mut self, slot: usize, new: Option<WarpState>, at: Cycle) {
        if let Some(old) = self.state.warp(slot).stall {
            self.charge_stall(slot, old, at);
        }
        let issued = self.state.stats.instructions;
        let warp = self.state.warp(slot);
        (warp.stall, warp.since, warp.issued_before) = (new, at, issued);
        if new.is_some() {
            // Deferred charges count the warps of the ready set, so they come before the change.
            self.charge_throttled(at);
            let state = &mut self.state;
            state.ready.remove(slot);
            state.exited |= SlotMask::from(new == Some(WarpState::Drain)) << slot;
            state.retire_candidates |= 1 << slot;
        }
    }

    /// Charges a warp's stall, from its first cycle up to `end`.
    fn charge_stall(&mut self, slot: usize, state: WarpState, end: Cycle) {
        let issued = self.state.stats.instructions;
        let warp = self.state.warp(slot);
        // At most one issue per cycle, so the cycles without an issue are a difference.
        let (cycles, issues) = (end.since(warp.since), issued - warp.issued_before);
        self.state.stats.stalls.charge(state, cycles, cycles - issues);
        let state = state as u8;
        self.emit(end, slot, EventKind::Wait { state, cycles });
    }

    /// Puts the warp in the ready set of `pipe` from cycle `at` on.
    #[inline]
    fn make_ready(&mut self, slot: usize, pipe: usize, at: Cycle) {
        if self.state.ready.of_pipe(pipe) >> slot & 1 == 0 {
            self.charge_throttled(at);
            self.state.ready.insert(slot, pipe);
        }
    }

    /// Retires exited warps with nothing in flight.
    #[inline]
    pub(super) fn retire(&mut self, at: Cycle) {
        let candidates = std::mem::take(&mut self.state.retire_candidates) & self.state.exited;
        if candidates != 0 {
            self.retire_idle(candidates, at);
        }
    }

    fn retire_idle(&mut self, candidates: SlotMask, at: Cycle) {
        for slot in ones(candidates) {
            let Some(warp) = self.state.warps.get(slot) else {
                continue;
            };
            // Messages name a warp by its slot, so a slot is freed after the last one. That one makes the warp a candidate again. Stores may
            // follow the end, as their count belongs to the slot. In a cluster they may go to shared memory, which must not end first.
            let is_storing = warp.stores > 0;
            let waits_for_stores = self.config.slot_release == SlotRelease::StoresPerformed || warp.grid.in_clusters();
            if warp.in_flight > 0 || warp.queued > 0 || is_storing && waits_for_stores {
                continue;
            }
            if let Some(state) = warp.stall {
                self.charge_stall(slot, state, at);
            }
            self.emit(at, slot, EventKind::End);
            if let Some(ledger) = &mut self.ledger {
                ledger.end(slot, at);
            }
            self.selector.remove(slot);
            let state = &mut self.state;
            state.exited &= !(1 << slot);
            state.last_tick.retired |= 1 << slot;
            state.warps.end(slot);
            state.ready.remove(slot);
            state.outbox.push(WarpEvent::Done {
                warp: slot as u8,
                is_storing,
            });
            if state.warps.resident() == 0
                && let Some(since) = state.active_since.take()
            {
                state.stats.active_cycles += at.since(since);
            }
        }
    }
}
