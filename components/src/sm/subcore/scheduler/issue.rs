//! The scheduler's third stage: which warp goes, and what its instruction sets going.

use warpwave_hw::component::Activity;
use warpwave_hw::time::Cycle;
use warpwave_isa::lane::LaneMask;
use warpwave_isa::opcode::Opcode;

use super::ready::{LSU, LSU_GLOBAL, PLACES, THROTTLES};
use super::{Scheduler, view};
use crate::bits::bits;
use crate::proto::event::EventKind;
use crate::proto::issue::Issue;
use crate::proto::predecoded::{Group, IssueTarget};
use crate::sm::subcore::stall::State;

/// What could issue in a cycle.
#[derive(Default)]
struct Choice {
    /// The warps.
    warps: u32,
    /// Their number.
    n: u32,
    /// The pipes that somebody wants and that take nothing.
    taken: u16,
}

impl Scheduler {
    /// Charges the cycles before `now` that have not been: in each of them every warp that could go waited for its pipe.
    ///
    /// So it is in each cycle without a tick, and while nothing goes; whoever changes which warps could go asks for it before.
    #[inline]
    pub(super) fn charge_throttled(&mut self, now: Cycle) {
        let cycles = now.since(self.uncharged);
        if cycles > 0 {
            self.uncharged = now;
            self.charge_pipes(self.ready.pipes, cycles, now);
        }
    }

    /// Charges all warps that want one of these pipes for the last `cycles` cycles before `end`.
    #[inline]
    fn charge_pipes(&mut self, pipes: u16, cycles: u64, end: Cycle) {
        for pipe in bits(pipes) {
            let state = THROTTLES[pipe % PLACES];
            self.stats
                .stalls
                .charge(state, cycles * u64::from(self.ready.count(pipe)));
            if self.log.is_on() {
                self.tell_waits(state, self.ready.wanting(pipe), cycles, end);
            }
        }
    }

    #[cold]
    fn tell_waits(&self, state: State, warps: u32, cycles: u64, end: Cycle) {
        let state = state as u8;
        bits(warps).for_each(|warp| self.emit(end, warp, EventKind::Wait { state, cycles }));
    }

    /// Chooses one of the warps that can go, and sends its instruction on.
    #[inline]
    pub(super) fn issue(&mut self, now: Cycle) {
        let Choice { warps, n, taken } = self.eligible(now);
        self.issued = None;
        self.held_back.pipes = taken;
        self.held_back.no_room = false;
        // Who listens is told of each cycle in that cycle.
        if n == 0 && !self.log.is_on() {
            return;
        }
        self.charge_throttled(now);
        self.charge_pipes(taken, 1, now + 1);
        self.uncharged = now + 1;
        if n > 0 {
            self.issue_one(warps, n, now);
        }
    }

    fn issue_one(&mut self, eligible: u32, n: u32, now: Cycle) {
        let (state, held) = if self.ports.issue.has_room(now) {
            let slot = self.policy.choose(eligible);
            self.stats.eligible_warps += u64::from(n);
            self.stats.stalls.charge(State::Selected, 1);
            self.send(slot, now);
            self.refresh(slot, now + 1);
            (State::NotSelected, eligible & !(1 << slot))
        } else {
            self.held_back.no_room = true;
            (State::DispatchStall, eligible)
        };
        let n_held = n - u32::from(held != eligible);
        self.stats.stalls.charge(state, u64::from(n_held));
        if self.log.is_on() {
            self.tell_waits(state, held, 1, now + 1);
        }
    }

    /// The warps whose pipes take an instruction in this cycle.
    #[inline]
    fn eligible(&self, now: Cycle) -> Choice {
        let mut choice = Choice::default();
        for pipe in bits(self.ready.pipes) {
            if self.pipe_free[pipe % PLACES] > now {
                choice.taken |= 1 << pipe;
            } else {
                choice.warps |= self.ready.wanting(pipe);
                choice.n += self.ready.count(pipe);
            }
        }
        choice
    }

    /// When a ready warp may find its pipe free, or anything else is due in cycle `next`; the memory queue's places come back with
    /// a message. Who listens is told of each cycle in that cycle.
    #[inline]
    pub(super) fn next_issue(&self, now: Cycle, next: Cycle) -> Activity {
        if self.log.is_on() && self.ready.warps != 0 {
            return Activity::Busy;
        }
        let free = bits(self.ready.pipes).map(|pipe| self.pipe_free[pipe % PLACES].max(now + 1));
        match free.fold(next, Cycle::min) {
            Cycle::NEVER => Activity::Idle,
            next => Activity::Until(next),
        }
    }

    fn send(&mut self, slot: usize, now: Cycle) {
        let warp = self.warps.get_mut(slot).expect("the chosen warp is resident");
        let (pc, active) = (warp.flow.pc(), warp.flow.active());
        let inst = &warp.code[pc as usize];
        self.stats.instructions += 1;
        self.stats.thread_instructions += u64::from(active.count());
        self.stats.by_pipe[inst.pipe as usize] += 1;
        self.issued = Some(view::Issued {
            slot,
            pc,
            lanes: active,
            number: inst.number,
        });
        let goes_on = !matches!(inst.target, IssueTarget::Resolved | IssueTarget::Close);
        let lanes = active.0;
        self.log.emit(
            now,
            self.config.subcore,
            slot as u8,
            EventKind::Issue { pc, lanes, goes_on },
        );
        self.ibuffers.take(slot);
        warp.buffered_pc = pc + 1;
        match inst.target {
            IssueTarget::Math => {
                self.pipe_free[inst.pipe as usize] = now + u64::from(inst.interval);
                warp.in_flight += 1;
            }
            IssueTarget::Memory | IssueTarget::Posted | IssueTarget::Fence => {
                self.credits -= 1;
                if self.credits == 0 {
                    self.pipe_free[LSU] = Cycle::NEVER;
                    self.pipe_free[LSU_GLOBAL] = Cycle::NEVER;
                }
                let is_posted = inst.target == IssueTarget::Posted;
                warp.queued += 1;
                warp.stores += u32::from(is_posted);
                warp.in_flight += u32::from(!is_posted);
                warp.loads += u32::from(inst.target == IssueTarget::Memory && inst.group == Group::None);
                warp.at_fence = inst.target == IssueTarget::Fence;
            }
            IssueTarget::BranchUnit => {
                warp.in_flight += 1;
                warp.resolving = true;
            }
            IssueTarget::Resolved => return self.resolve_at_issue(slot, pc, active, now),
            IssueTarget::Close => {
                warp.close(Group::Copies);
                return warp.flow.step();
            }
        }
        let group = inst.group;
        if inst.target != IssueTarget::BranchUnit {
            warp.board.issue(inst);
            warp.flow.step();
        }
        let group = warp.begin(group);
        self.ports.issue.send(now, Issue::new(slot as u8, pc, active, group));
    }

    /// A control instruction that needs no register.
    #[cold]
    fn resolve_at_issue(&mut self, slot: usize, pc: u32, active: LaneMask, now: Cycle) {
        let warp = self.warp(slot);
        let [a, b] = warp.code[pc as usize].operands;
        let is_branch = warp.inst(pc).op == Opcode::Bra;
        self.resolve(slot, pc, active, LaneMask::NONE, [a, b, 0], now);
        self.follow(
            slot,
            is_branch.then_some(now + u64::from(self.config.branch_latency)),
            now,
        );
        self.dirty &= !(1 << slot);
    }
}
