//! The scheduler's third stage: which warp goes, and what its instruction sets going.

use warpwave_hw::component::Activity;
use warpwave_hw::time::Cycle;
use warpwave_isa::lane::LaneMask;
use warpwave_isa::opcode::{Opcode, Pipe};

use super::{Scheduler, view};
use crate::bits::bits;
use crate::proto::event::What;
use crate::proto::predecoded::{Course, Group};
use crate::proto::warp::Issue;
use crate::sm::subcore::stall::State;

impl Scheduler {
    /// Charges the last `cycles` cycles before `end` in this state to each of these warps, `n` in number.
    #[inline]
    fn charge(&mut self, state: State, warps: u32, n: u32, cycles: u64, end: Cycle) {
        self.stats.stalls.charge(state, cycles * u64::from(n));
        if self.log.is_on() {
            let state = state as u8;
            bits(warps).for_each(|warp| self.tell(end, warp, What::Wait { state, cycles }));
        }
    }

    /// Charges the cycles before `now` that have not been: in each of them every warp that could go waited for its pipe.
    ///
    /// So it is after each cycle without a tick, and while nothing goes; whoever changes which warps could go asks for it before.
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
    fn charge_pipes(&mut self, pipes: u32, cycles: u64, end: Cycle) {
        for pipe in bits(pipes) {
            let wanted = self.ready.wanting(pipe);
            if pipe == Pipe::Lsu as usize {
                let global = wanted & self.ready.global;
                let (n, n_global) = (wanted.count_ones(), global.count_ones());
                self.charge(State::LgThrottle, global, n_global, cycles, end);
                self.charge(State::MioThrottle, wanted & !global, n - n_global, cycles, end);
            } else {
                self.charge(State::MathPipeThrottle, wanted, wanted.count_ones(), cycles, end);
            }
        }
    }

    /// Chooses one of the warps that can go, and sends its instruction on.
    pub(super) fn issue(&mut self, now: Cycle) {
        self.issued = None;
        self.held_back.no_room = false;
        let taken = self.taken_pipes(now);
        self.held_back.pipes = taken as u8;
        let free = self.ready.pipes & !taken;
        // Who listens is told of each cycle in that cycle.
        if free == 0 && !self.log.is_on() {
            return;
        }
        self.charge_throttled(now);
        self.charge_pipes(taken, 1, now + 1);
        self.uncharged = now + 1;
        let eligible = bits(free).fold(0, |warps, pipe| warps | self.ready.wanting(pipe));
        let candidates = eligible.count_ones();
        if !self.ports.issue.has_room(now) {
            self.charge(State::DispatchStall, eligible, candidates, 1, now + 1);
            self.held_back.no_room = true;
            return;
        }
        if eligible == 0 {
            return;
        }
        let slot = self.policy.choose(eligible);
        self.stats.eligible_warps += u64::from(candidates);
        self.stats.stalls.charge(State::Selected, 1);
        self.charge(State::NotSelected, eligible & !(1 << slot), candidates - 1, 1, now + 1);
        self.send(slot, now);
        self.refresh(slot, now + 1);
    }

    /// The pipes that somebody wants and that take nothing in this cycle.
    #[inline]
    fn taken_pipes(&self, now: Cycle) -> u32 {
        bits(self.ready.pipes).fold(0, |taken, pipe| taken | u32::from(self.is_taken(pipe, now)) << pipe)
    }

    fn is_taken(&self, pipe: usize, now: Cycle) -> bool {
        if pipe == Pipe::Lsu as usize {
            self.credits == 0
        } else {
            self.pipe_free[pipe] > now
        }
    }

    /// When a ready warp may find its pipe free, or anything else is due in cycle `next`; the memory queue's places come back with
    /// a message. Who listens is told of each cycle in that cycle.
    pub(super) fn next_issue(&self, now: Cycle, mut next: Cycle) -> Activity {
        if self.log.is_on() && self.ready.warps != 0 {
            return Activity::Busy;
        }
        for pipe in bits(self.ready.pipes) {
            if pipe != Pipe::Lsu as usize {
                next = next.min(self.pipe_free[pipe].max(now + 1));
            } else if self.credits > 0 {
                return Activity::Busy;
            }
        }
        match next {
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
        let goes_on = !matches!(inst.course, Course::Resolved | Course::Close);
        let lanes = active.0;
        self.log
            .tell(now, self.config.subcore, slot as u8, What::Issue { pc, lanes, goes_on });
        self.ibuffers.take(slot);
        warp.buffered_pc = pc + 1;
        match inst.course {
            Course::Math => {
                self.pipe_free[inst.pipe as usize] = now + u64::from(inst.interval);
                warp.in_flight += 1;
            }
            Course::Memory => {
                self.credits -= 1;
                warp.queued += 1;
                warp.in_flight += 1;
            }
            Course::Posted => {
                self.credits -= 1;
                warp.queued += 1;
                warp.stores += 1;
            }
            Course::BranchUnit => {
                warp.in_flight += 1;
                warp.resolving = true;
            }
            Course::Resolved => return self.resolve_at_issue(slot, pc, active, now),
            Course::Close => {
                warp.close(Group::Copies);
                return warp.flow.step();
            }
        }
        let group = inst.group;
        if inst.course != Course::BranchUnit {
            warp.board.issue(inst);
            warp.flow.step();
        }
        let group = warp.begin(group);
        self.ports.issue.send(
            now,
            Issue {
                warp: slot as u8,
                pc,
                active,
                group,
            },
        );
    }

    /// A control instruction that needs no register.
    #[cold]
    fn resolve_at_issue(&mut self, slot: usize, pc: u32, active: LaneMask, now: Cycle) {
        let warp = self.warp(slot);
        let [a, b] = warp.code[pc as usize].operands;
        let is_branch = warp.inst(pc).op == Opcode::Bra;
        self.resolve(slot, pc, active, [a, b, 0], now);
        self.follow(
            slot,
            is_branch.then_some(now + u64::from(self.config.branch_latency)),
            now,
        );
        self.dirty &= !(1 << slot);
    }
}
