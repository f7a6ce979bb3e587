//! The scheduler's third stage: which warp goes, and what its instruction sets going.

use warpwave_hw::component::Activity;
use warpwave_hw::time::Cycle;
use warpwave_isa::opcode::{Opcode, Pipe};

use super::{Scheduler, view};
use crate::bits::bits;
use crate::proto::event::What;
use crate::proto::warp::Issue;
use crate::sm::subcore::control::immediate_operands;
use crate::sm::subcore::stall::State;

impl Scheduler {
    /// Charges the last `cycles` cycles before `end` in this state to each of these warps.
    #[inline]
    fn charge(&mut self, state: State, warps: u32, cycles: u64, end: Cycle) {
        if warps == 0 {
            return;
        }
        self.stats.stalls.charge(state, cycles * u64::from(warps.count_ones()));
        if self.log.is_on() {
            let state = state as u8;
            bits(warps).for_each(|warp| self.tell(end, warp, What::Wait { state, cycles }));
        }
    }

    /// Charges the cycles in which there was no tick: in each of them every warp that could go waited for its pipe.
    pub(super) fn charge_skipped(&mut self, now: Cycle) {
        let cycles = now.since(self.uncharged);
        self.uncharged = now + 1;
        if cycles > 0 {
            for pipe in bits(self.ready.pipes) {
                self.charge_throttle(pipe, cycles, now);
            }
        }
    }

    /// Chooses one of the warps that can go, and sends its instruction on.
    pub(super) fn issue(&mut self, now: Cycle) {
        self.issued = None;
        self.held_back.pipes = 0;
        self.held_back.no_room = false;
        if self.ready.warps == 0 {
            return;
        }
        let mut eligible = self.ready.warps;
        for pipe in bits(self.ready.pipes) {
            if self.is_taken(pipe, now) {
                eligible &= !self.ready.wanting(pipe);
                self.held_back.pipes |= 1 << pipe;
                self.charge_throttle(pipe, 1, now + 1);
            }
        }
        if !self.ports.issue.has_room(now) {
            self.charge(State::DispatchStall, eligible, 1, now + 1);
            self.held_back.no_room = true;
            return;
        }
        if eligible == 0 {
            return;
        }
        let candidates = u64::from(eligible.count_ones());
        let slot = self.policy.choose(eligible);
        self.stats.eligible_warps += candidates;
        self.stats.stalls.charge(State::Selected, 1);
        self.charge(State::NotSelected, eligible & !(1 << slot), 1, now + 1);
        self.send(slot, now);
        self.refresh(slot, now + 1);
    }

    fn is_taken(&self, pipe: usize, now: Cycle) -> bool {
        if pipe == Pipe::Lsu as usize {
            self.credits == 0
        } else {
            self.pipe_free[pipe] > now
        }
    }

    /// Charges all warps that want a pipe for the last `cycles` cycles before `end`.
    fn charge_throttle(&mut self, pipe: usize, cycles: u64, end: Cycle) {
        let wanted = self.ready.wanting(pipe);
        if pipe == Pipe::Lsu as usize {
            let global = wanted & self.ready.global;
            self.charge(State::LgThrottle, global, cycles, end);
            self.charge(State::MioThrottle, wanted & !global, cycles, end);
        } else {
            self.charge(State::MathPipeThrottle, wanted, cycles, end);
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
        let inst = &warp.grid.program.code()[pc as usize];
        let decoded = &warp.grid.program.decoded()[pc as usize];
        let timing = warp.timing(pc);
        let pipe = decoded.pipe;
        self.stats.instructions += 1;
        self.stats.thread_instructions += u64::from(active.count());
        self.stats.by_pipe[pipe as usize] += 1;
        self.issued = Some(view::Issued {
            slot,
            pc,
            lanes: active,
            number: warp.grid.program.first() + pc,
        });
        let operands = if pipe == Pipe::Control {
            immediate_operands(inst)
        } else {
            None
        };
        let goes_on = operands.is_none() && inst.op != Opcode::Ldgdepbar;
        let lanes = active.0;
        self.log
            .tell(now, self.config.subcore, slot as u8, What::Issue { pc, lanes, goes_on });
        self.ibuffers.take(slot);
        warp.buffered_pc = pc + 1;
        if let Some(operands) = operands {
            let branch = inst.op == Opcode::Bra;
            self.resolve(slot, pc, active, operands, now);
            self.follow(slot, branch.then_some(now + u64::from(self.config.branch_latency)), now);
            self.dirty &= !(1 << slot);
            return;
        }
        if inst.op == Opcode::Ldgdepbar {
            warp.copies.close();
            warp.flow.step();
            return;
        }
        warp.in_flight += 1;
        let group = match inst.op {
            Opcode::Ldgsts => warp.copies.begin(),
            Opcode::Hgmma => warp.products.begin(),
            Opcode::Ublkcp if inst.mods.high => warp.bulk.begin(),
            _ => 0,
        };
        match pipe {
            Pipe::Control => warp.resolving = true,
            Pipe::Lsu => {
                self.credits -= 1;
                warp.queued += 1;
                if timing.is_posted {
                    warp.in_flight -= 1;
                    warp.stores += 1;
                }
                warp.board.issue(decoded, timing.result);
                warp.flow.step();
            }
            _ => {
                self.pipe_free[pipe as usize] = now + u64::from(timing.interval);
                warp.board.issue(decoded, timing.result);
                warp.flow.step();
            }
        }
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
}
