//! The issue stage: the policy chooses an eligible warp, and its instruction goes to its target.
//!
//! A ready warp is eligible if its pipe accepts an instruction. Every ready warp is charged one state per cycle: `selected`,
//! `not_selected`, `dispatch_stall`, or the throttle of its pipe. While all ready warps are throttled, the scheduler does not tick. It
//! charges these cycles later, in one step.

use warpwave_hw::bits::ones;
use warpwave_hw::component::Activity;
use warpwave_hw::time::Cycle;
use warpwave_isa::lane::LaneMask;
use warpwave_isa::opcode::Opcode;

use super::ready::{LSU, LSU_GLOBAL, N_READY_GROUPS, THROTTLES};
use super::view::Issued;
use super::{Scheduler, State};
use crate::proto::event::EventKind;
use crate::proto::issue::Issue;
use crate::proto::predecoded::{Group, IssueTarget};
use crate::proto::warp::{MAX_SLOTS, SlotMask};
use crate::sm::subcore::stall::WarpState;

/// The ready warps of a cycle.
#[derive(Default)]
struct Candidates {
    /// Eligible warps, bit i for slot i.
    eligible: SlotMask,
    /// Number of eligible warps.
    n: u32,
    /// Busy pipes that a ready warp needs, bit i for pipe i.
    throttled: u16,
}

impl Scheduler {
    /// Issues one instruction if a warp is eligible and the dispatch unit has room.
    #[inline]
    pub(super) fn issue(&mut self, now: Cycle) {
        let Candidates { eligible, n, throttled } = self.candidates(now);
        self.state.last_tick.throttled = throttled;
        // A subscriber gets each event in its cycle, so with one no charge is deferred.
        if n == 0 && !self.log.is_on() {
            return;
        }
        // First the deferred cycles before this one, then this cycle.
        self.charge_throttled(now);
        let issues = n > 0 && self.ports.issue.has_room(now);
        self.charge_pipes(throttled, (1, u64::from(!issues)), now + 1);
        self.state.charged_until = now + 1;
        if n > 0 {
            self.issue_one(eligible, n, now);
        }
    }

    #[inline]
    fn candidates(&self, now: Cycle) -> Candidates {
        let State {
            ready, pipe_free_at, ..
        } = &self.state;
        let mut candidates = Candidates::default();
        // A test per pipe, not per warp: all warps of a group wait for the same pipe.
        for pipe in ones(ready.pipes) {
            if pipe_free_at[pipe % N_READY_GROUPS] > now {
                candidates.throttled |= 1 << pipe;
            } else {
                candidates.eligible |= ready.of_pipe(pipe);
                candidates.n += ready.count(pipe);
            }
        }
        candidates
    }

    fn issue_one(&mut self, eligible: SlotMask, n: u32, now: Cycle) {
        // Room is tested before the policy, whose state may change with each choice.
        let (stall, others) = if self.ports.issue.has_room(now) {
            let slot = self.selector.choose(eligible);
            assert!(
                slot < MAX_SLOTS && eligible >> slot & 1 == 1,
                "{}: in cycle {now} the scheduling policy chose slot {slot}, not one of the eligible slots {eligible:#b}",
                self.path
            );
            self.state.stats.eligible_warps += u64::from(n);
            self.state.stats.stalls.charge(WarpState::Selected, 1, 0);
            self.issue_warp(slot, now);
            // The issued warp's next instruction may have a hazard: its state changes from the next cycle on.
            self.evaluate_warp(slot, now + 1);
            (WarpState::NotSelected, eligible & !(1 << slot))
        } else {
            self.state.last_tick.dispatch_full = true;
            (WarpState::DispatchStall, eligible)
        };
        let n_others = u64::from(n - u32::from(others != eligible));
        // The cycle has an issue, unless the dispatch unit was full.
        let unissued = if stall == WarpState::DispatchStall { n_others } else { 0 };
        self.state.stats.stalls.charge(stall, n_others, unissued);
        if self.log.is_on() {
            self.emit_waits(stall, others, 1, now + 1);
        }
    }

    /// Issues the warp's next instruction: takes it from the buffer, marks its results as pending, and sends it on.
    fn issue_warp(&mut self, slot: usize, now: Cycle) {
        let state = &mut self.state;
        let warp = state.warps.get_mut(slot).expect("the chosen warp is resident");
        let (pc, active) = (warp.flow.pc(), warp.flow.active());
        let inst = &warp.code[pc as usize];
        state.stats.instructions += 1;
        state.stats.thread_instructions += u64::from(active.count());
        state.stats.by_pipe[inst.pipe as usize] += 1;
        state.last_tick.issued = Some(Issued {
            slot,
            pc,
            lanes: active,
            number: inst.number,
        });
        let goes_on = !matches!(inst.target, IssueTarget::Resolved | IssueTarget::Close);
        let lanes = active.0;
        let event = EventKind::Issue { pc, lanes, goes_on };
        self.log.emit(now, self.config.subcore, slot as u8, event);
        state.ibuffers.take(slot);
        warp.buffered_pc = pc + 1;
        warp.has_constants = false;
        state.stats.constant_requests += u64::from(inst.reads_constant);
        match inst.target {
            // A pipe with fewer than 32 lanes accepts a warp over several cycles: its issue interval.
            IssueTarget::Math => {
                state.pipe_free_at[inst.pipe as usize] = now + u64::from(inst.interval);
                warp.in_flight += 1;
            }
            IssueTarget::Memory | IssueTarget::Posted | IssueTarget::Fence => {
                // The LSU returns the credit when it takes the instruction from the queue.
                state.queue_credits -= 1;
                if state.queue_credits == 0 {
                    state.pipe_free_at[LSU] = Cycle::NEVER;
                    state.pipe_free_at[LSU_GLOBAL] = Cycle::NEVER;
                }
                let is_posted = inst.target == IssueTarget::Posted;
                warp.queued += 1;
                warp.stores += u32::from(is_posted);
                warp.in_flight += u32::from(!is_posted);
                // Asynchronous operations have waits of their own, by group.
                warp.loads += u32::from(inst.target == IssueTarget::Memory && inst.group == Group::None);
                warp.at_fence = inst.target == IssueTarget::Fence;
            }
            IssueTarget::BranchUnit => {
                warp.in_flight += 1;
                // The warp stalls until the branch unit's result.
                warp.resolving = true;
            }
            IssueTarget::Resolved => return self.resolve_at_issue(slot, pc, active, now),
            // A commit is complete at issue: no other unit sees it.
            IssueTarget::Close => return warp.close(Group::Copies),
        }
        let group = inst.group;
        // A control instruction writes no register, and the branch unit's result moves the program counter.
        if inst.target != IssueTarget::BranchUnit {
            if let Some(ledger) = &mut self.ledger {
                ledger.issue(slot, pc, inst, now);
            }
            warp.board.issue(inst, now + u64::from(self.config.guard_latency));
            warp.flow.step();
        }
        // The number comes back with the release, and tells which group of the warp has one operation less.
        let group = warp.begin(group);
        let generation = warp.generation;
        self.ports.issue.send(
            now,
            Issue::new(slot as u8, pc, active, group).with_generation(generation),
        );
    }

    /// Resolves a control instruction that reads no register.
    #[cold]
    fn resolve_at_issue(&mut self, slot: usize, pc: u32, active: LaneMask, now: Cycle) {
        let warp = self.state.warp(slot);
        // Both operands are immediates or RZ. An instruction that reads a register or a predicate goes to the branch unit.
        let [a, b] = warp.code[pc as usize].operands;
        let is_branch = warp.inst(pc).op == Opcode::Bra;
        self.resolve(slot, pc, active, LaneMask::NONE, [a, b, 0], now);
        // Only a branch pays `branch_latency`.
        let fetch_at = is_branch.then_some(now + u64::from(self.config.branch_latency));
        self.redirect_fetch(slot, fetch_at, now);
        // `issue_one` evaluates the warp for the next cycle.
        self.state.reevaluate &= !(1 << slot);
    }

    /// Makes the deferred charges for the cycles before `now`: every ready warp was throttled in each. Call it before the ready set
    /// changes.
    #[inline]
    pub(super) fn charge_throttled(&mut self, now: Cycle) {
        let cycles = now.since(self.state.charged_until);
        if cycles > 0 {
            self.state.charged_until = now;
            // A tick that issues makes its charge at once, so none of these cycles has an issue.
            self.charge_pipes(self.state.ready.pipes, (cycles, cycles), now);
        }
    }

    /// Charges the ready warps of `pipes` with the throttle of their pipe, for the `cycles` cycles before `end`. In `unissued` of these
    /// the scheduler issued nothing.
    #[inline]
    fn charge_pipes(&mut self, pipes: u16, (cycles, unissued): (u64, u64), end: Cycle) {
        for pipe in ones(pipes) {
            let throttle = THROTTLES[pipe % N_READY_GROUPS];
            let warps = u64::from(self.state.ready.count(pipe));
            self.state
                .stats
                .stalls
                .charge(throttle, cycles * warps, unissued * warps);
            if self.log.is_on() {
                self.emit_waits(throttle, self.state.ready.of_pipe(pipe), cycles, end);
            }
        }
    }

    #[cold]
    fn emit_waits(&self, state: WarpState, warps: SlotMask, cycles: u64, end: Cycle) {
        let state = state as u8;
        ones(warps).for_each(|slot| self.emit(end, slot, EventKind::Wait { state, cycles }));
    }

    /// The next cycle to tick: `next`, or the first in which a ready warp's pipe is free. A memory-queue credit is a message, which wakes
    /// the scheduler.
    #[inline]
    pub(super) fn next_issue(&self, now: Cycle, next: Cycle) -> Activity {
        let State {
            ready, pipe_free_at, ..
        } = &self.state;
        // A subscriber gets an event for each cycle of a throttled warp.
        if self.log.is_on() && ready.warps != 0 {
            return Activity::Busy;
        }
        let free = ones(ready.pipes).map(|pipe| pipe_free_at[pipe % N_READY_GROUPS].max(now + 1));
        match free.fold(next, Cycle::min) {
            Cycle::NEVER => Activity::Idle,
            next => Activity::Until(next),
        }
    }
}
