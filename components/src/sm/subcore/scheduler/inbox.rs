//! The scheduler's first stage: what other units say, and warps whose time has come.

use warpwave_hw::time::Cycle;

use super::ready::{LSU, LSU_GLOBAL};
use super::{COMMAND, NOTE, RELEASE, RESOLVED, Scheduler};
use crate::bits::bits;
use crate::proto::event::EventKind;
use crate::proto::issue::Release;
use crate::proto::predecoded::{Group, IssueTarget};
use crate::proto::warp::{LsuAck, Resolved, WarpCommand, WarpStart};
use crate::sm::subcore::stall::State;

impl Scheduler {
    /// Takes what is visible at the ports that have something under way.
    #[inline]
    pub(super) fn take_messages(&mut self, under_way: u64, now: Cycle) {
        if under_way & 1 << COMMAND != 0 {
            self.take_commands(now);
        }
        if under_way & 1 << NOTE != 0 {
            while let Some(note) = self.ports.note.recv(now) {
                match note {
                    LsuAck::QueueCredit { warp } => self.taken(warp as usize),
                    LsuAck::StoreDone { warp } => self.stored(warp as usize),
                }
            }
        }
        if under_way & 1 << RELEASE != 0 {
            while let Some(release) = self.ports.release.recv(now) {
                self.release(release);
            }
        }
        if under_way & 1 << RESOLVED != 0 {
            self.take_resolved(now);
        }
    }

    #[cold]
    fn take_commands(&mut self, now: Cycle) {
        while let Some(command) = self.ports.command.recv(now) {
            match command {
                WarpCommand::Start(start) => self.start(start, now),
                WarpCommand::Release(warps) => self.open_barrier(warps, now),
                WarpCommand::OpenCluster(warps) => bits(warps).for_each(|slot| self.open_cluster(slot, now)),
            }
        }
    }

    #[cold]
    fn take_resolved(&mut self, now: Cycle) {
        while let Some(resolved) = self.ports.resolved.recv(now) {
            let Resolved {
                warp,
                pc,
                lanes,
                a,
                b,
                count,
                apart,
            } = resolved;
            let w = self.warp(warp as usize);
            w.resolving = false;
            w.in_flight -= 1;
            self.settled |= 1 << warp;
            self.resolve(warp as usize, pc, lanes, apart, [a, b, count], now);
            self.follow(warp as usize, None, now);
        }
    }

    #[inline]
    fn release(&mut self, release: Release) {
        let slot = release.warp() as usize;
        let warp = self.warps.get_mut(slot).expect("results come for resident warps only");
        let inst = &warp.code[release.pc() as usize];
        let of = inst.group;
        match inst.target {
            IssueTarget::Memory if of == Group::None => warp.loads -= 1,
            IssueTarget::Fence => warp.at_fence = false,
            _ => {}
        }
        warp.board.release(inst);
        warp.in_flight -= 1;
        warp.end(of, release.group());
        self.settled |= 1 << slot;
        self.dirty |= u32::from(warp.waits_for_results()) << slot;
    }

    fn start(&mut self, start: WarpStart, now: Cycle) {
        let slot = start.warp as usize;
        let (grid, block, index) = (start.grid.id, start.block, start.index);
        self.emit(now, slot, EventKind::Start { grid, block, index });
        self.warps.start(start, now);
        self.policy.add(slot);
        self.ibuffers.jump(slot);
        self.stats.warps += 1;
        self.active_since.get_or_insert(now);
    }

    fn open_barrier(&mut self, warps: u32, now: Cycle) {
        for slot in bits(warps) {
            let warp = self.warp(slot);
            assert!(
                warp.at_barrier,
                "barrier opened in cycle {now} for warp {slot}, which does not wait"
            );
            warp.flow.release();
            warp.at_barrier = false;
            self.follow(slot, None, now);
        }
    }

    #[inline]
    fn taken(&mut self, slot: usize) {
        self.credits += 1;
        self.pipe_free[LSU] = Cycle::ZERO;
        self.pipe_free[LSU_GLOBAL] = Cycle::ZERO;
        self.settled |= 1 << slot;
        let warp = self.warp(slot);
        warp.queued -= 1;
        if warp.queued == 0 && warp.state == Some(State::ShortScoreboard) {
            self.look_again(slot);
        }
    }

    fn stored(&mut self, slot: usize) {
        self.settled |= 1 << slot;
        let warp = self.warp(slot);
        warp.stores -= 1;
        if warp.stores == 0 && warp.state == Some(State::Membar) {
            self.look_again(slot);
        }
    }

    pub(super) fn run_timers(&mut self, now: Cycle) {
        for slot in bits(self.timers) {
            let warp = self.warp(slot);
            if warp.resume_at <= now {
                let slept = std::mem::take(&mut warp.asleep);
                self.timers &= !(1 << slot);
                if !slept {
                    self.jump(slot, now);
                }
                self.look_again(slot);
            }
        }
    }

    fn jump(&mut self, slot: usize, now: Cycle) {
        self.emit(now, slot, EventKind::Jump);
        self.ibuffers.jump(slot);
    }

    /// After a control instruction: if the warp goes on elsewhere, its buffer starts anew there, now or in cycle `from`.
    pub(in crate::sm::subcore) fn follow(&mut self, slot: usize, from: Option<Cycle>, now: Cycle) {
        self.look_again(slot);
        let warp = self.warp(slot);
        if warp.flow.is_done() {
            self.ibuffers.stop(slot);
            return;
        }
        let pc = warp.flow.pc();
        if warp.flow.active().is_empty() || pc == warp.buffered_pc {
            return;
        }
        warp.buffered_pc = pc;
        match from {
            None => self.jump(slot, now),
            Some(from) => {
                warp.resume_at = from;
                self.timers |= 1 << slot;
                self.ibuffers.stop(slot);
            }
        }
    }
}
