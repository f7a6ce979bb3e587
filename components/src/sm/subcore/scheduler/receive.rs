//! The receive stage, which takes messages from other units, and the timers.

use warpwave_hw::bits::ones;
use warpwave_hw::time::Cycle;

use super::ready::{LSU, LSU_GLOBAL};
use super::{ACK, COMMAND, CONSTANT, RELEASE, RESOLVED, Scheduler};
use crate::proto::event::EventKind;
use crate::proto::issue::Release;
use crate::proto::predecoded::{Group, IssueTarget};
use crate::proto::warp::{LsuAck, Resolved, SlotMask, WarpCommand, WarpEvent, WarpStart};
use crate::sm::subcore::stall::WarpState;

impl Scheduler {
    /// Takes the visible messages of all ports.
    #[inline]
    pub(super) fn receive(&mut self, now: Cycle) {
        // Ports without a message in flight are skipped: most cycles have no message.
        let in_flight = self.arrivals.in_flight();
        if in_flight & 1 << COMMAND != 0 {
            self.take_commands(now);
        }
        if in_flight & 1 << ACK != 0 {
            while let Some(ack) = self.ports.ack.recv(now) {
                match ack {
                    LsuAck::QueueCredit { warp } => self.return_credit(warp as usize),
                    LsuAck::StoreDone { warp } => self.store_done(warp as usize),
                }
            }
        }
        if in_flight & 1 << RELEASE != 0 {
            while let Some(release) = self.ports.release.recv(now) {
                self.release(release);
            }
        }
        if in_flight & 1 << RESOLVED != 0 {
            self.take_resolved(now);
        }
        if in_flight & 1 << CONSTANT != 0
            && let Some(ports) = &mut self.ports.constant
        {
            self.state.reevaluate |= self.state.immediate.receive(ports, now);
        }
    }

    #[cold]
    fn take_commands(&mut self, now: Cycle) {
        while let Some(command) = self.ports.command.recv(now) {
            match command {
                WarpCommand::Start(start) => self.start(start, now),
                WarpCommand::Release(warps) => self.open_barrier(warps, now),
                WarpCommand::OpenCluster(warps) => ones(warps).for_each(|slot| self.open_cluster(slot, now)),
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
            let slot = warp as usize;
            let warp = self.state.warp(slot);
            warp.resolving = false;
            warp.in_flight -= 1;
            self.state.retire_candidates |= 1 << slot;
            self.resolve(slot, pc, lanes, apart, [a, b, count], now);
            // Now: the result has taken `branch_latency` on its way through the branch unit.
            self.redirect_fetch(slot, None, now);
        }
    }

    /// Clears the pending registers of a completed instruction.
    #[inline]
    fn release(&mut self, release: Release) {
        let slot = release.warp() as usize;
        let warp = self
            .state
            .warps
            .get_mut(slot)
            .expect("results belong to resident warps");
        let inst = &warp.code[release.pc() as usize];
        let group = inst.group;
        match inst.target {
            IssueTarget::Memory if group == Group::None => warp.loads -= 1,
            IssueTarget::Fence => warp.at_fence = false,
            _ => {}
        }
        if let Some(ledger) = &mut self.ledger {
            ledger.release(slot, release.pc());
        }
        warp.board.release(inst);
        warp.in_flight -= 1;
        warp.end(group, release.group());
        self.state.retire_candidates |= 1 << slot;
        // A ready warp stays ready. The stalls that are left out end at another message, or at a timer.
        self.state.reevaluate |= SlotMask::from(warp.waits_for_completion()) << slot;
    }

    fn start(&mut self, start: WarpStart, now: Cycle) {
        let slot = start.warp as usize;
        let (grid, block, index) = (start.grid.id, start.block, start.index);
        self.emit(now, slot, EventKind::Start { grid, block, index });
        self.selector.add(slot);
        if let Some(ledger) = &mut self.ledger {
            ledger.start(slot, now);
        }
        let state = &mut self.state;
        state.warps.start(start, now, state.stats.instructions);
        // Fetches in flight for the slot's earlier warp are dropped.
        state.ibuffers.jump(slot);
        state.stats.warps += 1;
        state.active_since.get_or_insert(now);
    }

    fn open_barrier(&mut self, warps: SlotMask, now: Cycle) {
        for slot in ones(warps) {
            let warp = self.state.warp(slot);
            assert!(
                warp.flow.waits_at_block_barrier(),
                "cycle {now}: a barrier opened for warp slot {slot}, which does not wait"
            );
            // After a trap of the other lanes the warp stays stopped.
            warp.at_barrier &= !warp.flow.is_at_barrier();
            warp.flow.release();
            self.redirect_fetch(slot, None, now);
        }
    }

    /// Returns a credit: the LSU has taken an instruction from the memory queue.
    #[inline]
    fn return_credit(&mut self, slot: usize) {
        let state = &mut self.state;
        state.queue_credits += 1;
        // Both groups of the LSU share the queue.
        state.pipe_free_at[LSU] = Cycle::ZERO;
        state.pipe_free_at[LSU_GLOBAL] = Cycle::ZERO;
        state.retire_candidates |= 1 << slot;
        let warp = state.warp(slot);
        warp.queued -= 1;
        // Only an instruction with `Order::Queued` waits until the queue is empty.
        if warp.queued == 0 && warp.stall == Some(WarpState::ShortScoreboard) {
            state.reevaluate |= 1 << slot;
        }
    }

    fn store_done(&mut self, slot: usize) {
        let state = &mut self.state;
        let left = state.warps.store_done(slot);
        let Some(warp) = state.warps.get(slot) else {
            // The warp has ended before its stores.
            if left == 0 {
                state.outbox.push(WarpEvent::StoresDone { warp: slot as u8 });
            }
            return;
        };
        state.retire_candidates |= 1 << slot;
        if left == 0 && warp.stall == Some(WarpState::Membar) {
            state.reevaluate |= 1 << slot;
        }
    }

    /// Ends due pauses and waits for guards, and restarts the fetch of warps whose branch latency is over.
    #[inline]
    pub(super) fn run_timers(&mut self, now: Cycle) {
        self.state.reevaluate |= self.state.guard_timers.take_due(now);
        for slot in ones(self.state.resuming) {
            let warp = self.state.warp(slot);
            if warp.resume_at <= now {
                let paused = warp.pause.take().is_some();
                self.state.resuming &= !(1 << slot);
                // A pause keeps the buffered instructions. A taken branch fetches at its target.
                if !paused {
                    self.jump(slot, now);
                }
                self.state.reevaluate |= 1 << slot;
            }
        }
    }

    fn jump(&mut self, slot: usize, now: Cycle) {
        self.emit(now, slot, EventKind::Jump);
        self.state.ibuffers.jump(slot);
    }

    /// Empties the warp's buffer if a control instruction has moved its program counter. Fetching restarts now, or in cycle `from`.
    pub(super) fn redirect_fetch(&mut self, slot: usize, from: Option<Cycle>, now: Cycle) {
        let state = &mut self.state;
        state.reevaluate |= 1 << slot;
        let warp = state
            .warps
            .get_mut(slot)
            .expect("a control instruction's warp is resident");
        // An exited warp keeps its slot while something is in flight, but fetches nothing.
        if warp.flow.is_done() {
            state.ibuffers.stop(slot);
            return;
        }
        let pc = warp.flow.pc();
        // No lane runs, or the buffered instructions are the right ones.
        if warp.flow.active().is_empty() || pc == warp.buffered_pc {
            return;
        }
        warp.buffered_pc = pc;
        match from {
            None => self.jump(slot, now),
            Some(from) => {
                // Until then the warp stalls as branch resolving.
                warp.resume_at = from;
                state.resuming |= 1 << slot;
                state.ibuffers.stop(slot);
            }
        }
    }
}
