//! Outputs of a scheduler: counters, waveform signals, and its warps' stall reasons for the deadlock report.

use warpwave_hw::bits::ones;
use warpwave_hw::probe::{Probe, count_width};
use warpwave_hw::stats::{Indexed, Report};
use warpwave_hw::time::Cycle;
use warpwave_isa::flow::Reconvergence;
use warpwave_isa::lane::LaneMask;

use super::ready::{N_READY_GROUPS, THROTTLES};
use super::{Scheduler, State};
use crate::config::{N_PIPES, PIPES};
use crate::proto::event::EventKind;
use crate::proto::warp::{SLOT_WIDTH, SlotMask};
use crate::sm::subcore::stall::{EMPTY, NAMES, SHOWN, StallCycles, WarpState};

/// Counters of a scheduler.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Warp instructions issued.
    pub instructions: u64,
    /// Active lanes of these instructions, guards not applied.
    pub thread_instructions: u64,
    /// Instructions by pipe.
    pub by_pipe: [u64; N_PIPES],
    /// Branches (BRA) issued.
    pub branches: u64,
    /// Exits (EXIT) issued.
    pub exits: u64,
    /// Branches that some but not all active lanes took.
    pub divergent_branches: u64,
    /// Branches and divergent branches of each instruction, by program counter.
    pub branches_by_pc: Indexed<2>,
    /// Exits, and exits of some but not all active lanes, of each instruction, by program counter.
    pub exits_by_pc: Indexed<2>,
    /// Instructions with a constant operand issued.
    pub constant_requests: u64,
    /// Instructions that waited for a line of a constant operand.
    pub constant_misses: u64,
    /// Cycles with at least one warp resident.
    pub active_cycles: u64,
    /// Eligible warps, summed over the cycles in which one issued.
    pub eligible_warps: u64,
    /// Warps started.
    pub warps: u64,
    /// Warp-cycles by state.
    pub stalls: StallCycles,
}

impl Stats {
    /// Reports every counter.
    pub(super) fn report(&self, report: &mut dyn Report) {
        report.count("inst_issued", self.instructions);
        report.count("thread_inst", self.thread_instructions);
        for (row, &count) in PIPES.iter().zip(&self.by_pipe) {
            report.count(row.counter, count);
        }
        report.count("branches", self.branches);
        report.count("exits", self.exits);
        report.count("divergent_branches", self.divergent_branches);
        self.branches_by_pc
            .report(report, ["branch_issues", "branch_divergent"]);
        self.exits_by_pc.report(report, ["exit_issues", "exit_partial"]);
        report.count("constant_requests", self.constant_requests);
        report.count("constant_misses", self.constant_misses);
        report.count("active_cycles", self.active_cycles);
        report.count("eligible_warps", self.eligible_warps);
        report.count("warps", self.warps);
        report.count("warp_cycles", self.stalls.total());
        self.stalls.report(report);
    }
}

/// Names of the scoreboard's bits, by their lowest register.
const PENDING: [&str; 4] = ["pending_r0", "pending_r64", "pending_r128", "pending_r192"];

impl Scheduler {
    /// The counters up to cycle `until`, with the stalls that have not ended. A run that is stopped has some.
    pub(super) fn stats_until(&self, until: Cycle) -> Stats {
        let state = &self.state;
        let mut stats = state.stats.clone();
        let throttled = until.since(state.charged_until);
        for pipe in ones(state.ready.pipes) {
            let throttle = THROTTLES[pipe % N_READY_GROUPS];
            // A cycle with an issue is charged in its tick, so the deferred cycles had none.
            let cycles = throttled * u64::from(state.ready.count(pipe));
            stats.stalls.charge(throttle, cycles, cycles);
        }
        for (_, warp) in self.resident_warps() {
            if let Some(stall) = warp.stall {
                let issued = state.stats.instructions - warp.issued_before;
                let cycles = until.since(warp.since);
                // After a broken invariant, `until` can be before the last cycle of this tile.
                stats.stalls.charge(stall, cycles, cycles.saturating_sub(issued));
            }
        }
        stats.active_cycles += state.active_since.map_or(0, |since| until.since(since));
        stats
    }
}

impl Scheduler {
    /// Logs the waits that have not ended, up to cycle `until`, in which the run was stopped. Its counters count the same.
    pub fn log_open_waits(&self, until: Cycle) {
        let log = |slot, state: WarpState, cycles| {
            let state = state as u8;
            self.emit(until, slot, EventKind::Wait { state, cycles });
        };
        let ready = &self.state.ready;
        let throttled = until.since(self.state.charged_until);
        for pipe in ones(ready.pipes) {
            ones(ready.of_pipe(pipe)).for_each(|slot| log(slot, THROTTLES[pipe % N_READY_GROUPS], throttled));
        }
        for (slot, warp) in self.resident_warps() {
            if let Some(stall) = warp.stall {
                log(slot, stall, until.since(warp.since));
            }
        }
    }
}

/// An issued instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Issued {
    pub slot: usize,
    pub pc: u32,
    pub lanes: LaneMask,
    /// The instruction's number among the instructions of all kernels.
    pub number: u32,
}

/// Actions of a tick. The waveform derives from them why ready warps did not issue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastTick {
    pub issued: Option<Issued>,
    /// Busy pipes that a ready warp needed, bit i for pipe i.
    pub throttled: u16,
    /// True if a warp was eligible but the dispatch unit had no room.
    pub dispatch_full: bool,
    /// Warps that retired, bit i for slot i.
    pub retired: SlotMask,
}

impl Scheduler {
    pub(super) fn show(&self, probe: &mut dyn Probe) {
        let state = &self.state;
        let issued = state.last_tick.issued.as_ref();
        probe.bit("issue_valid", Some(issued.is_some()));
        probe.code("issue_inst", issued.map(|i| u64::from(i.number)));
        probe.vector("issue_warp", SLOT_WIDTH, issued.map(|i| i.slot as u64));
        probe.vector("issue_pc", 32, issued.map(|i| u64::from(i.pc)));
        probe.vector("issue_active", 32, issued.map(|i| u64::from(i.lanes.0)));
        // A number in every cycle, 0 without an issue: the waveform derives the mean of lanes per issue from its sum.
        probe.vector("issue_lanes", 6, Some(issued.map_or(0, |i| u64::from(i.lanes.count()))));
        probe.vector("ready", self.config.warps as u32, Some(state.ready.warps));
        let credits = count_width(self.config.memory_queue.into());
        probe.vector("memory_credits", credits, Some(u64::from(state.queue_credits)));
        let entries = count_width(self.config.ibuffer_entries.into());
        for (slot, warp) in state.warps.iter().enumerate() {
            probe.enter("warp", slot);
            // A warp is resident in the cycle in which it retires, as its state says.
            let retires = state.last_tick.retired >> slot & 1 == 1;
            probe.bit("resident", Some(warp.is_some() || retires));
            probe.state("state", &SHOWN, Some(self.shown_state(slot)));
            probe.vector("pc", 32, warp.map(|w| u64::from(w.flow.pc())));
            probe.vector("active", 32, warp.map(|w| u64::from(w.flow.active().0)));
            probe.vector("ibuffer", entries, warp.map(|_| u64::from(state.ibuffers.ready(slot))));
            probe.vector("in_flight", 16, warp.map(|w| u64::from(w.in_flight)));
            let (registers, predicates) = warp.map(|w| w.board.pending()).unzip();
            for (n, name) in PENDING.into_iter().enumerate() {
                probe.vector(name, 64, registers.map(|words| words[n]));
            }
            probe.vector("pending_preds", 7, predicates.map(u64::from));
            probe.leave();
        }
    }

    /// The state of a slot's warp in this cycle, as an index into [`SHOWN`].
    fn shown_state(&self, slot: usize) -> usize {
        let LastTick { issued, retired, .. } = self.state.last_tick;
        let state = match self.state.warps.get(slot) {
            // Before `stall`, which is the state of the next cycle already. A warp can retire in the cycle of its EXIT.
            _ if issued.is_some_and(|issued| issued.slot == slot) => WarpState::Selected,
            // The warp is charged for the cycle of its retirement.
            None if retired >> slot & 1 == 1 => WarpState::Drain,
            None => return EMPTY,
            Some(warp) => warp.stall.unwrap_or_else(|| self.ready_state(slot)),
        };
        state as usize
    }

    /// The state of a ready warp that did not issue.
    fn ready_state(&self, slot: usize) -> WarpState {
        let State { ready, last_tick, .. } = &self.state;
        let needs = |pipe: &usize| ready.of_pipe(*pipe) >> slot & 1 == 1;
        // The order of the charges: a busy pipe first, then the dispatch unit, then the choice of the policy.
        match (0..N_READY_GROUPS).find(needs) {
            Some(pipe) if last_tick.throttled >> pipe & 1 == 1 => THROTTLES[pipe],
            _ if last_tick.dispatch_full => WarpState::DispatchStall,
            _ => WarpState::NotSelected,
        }
    }

    pub(super) fn report_waits(&self, say: &mut dyn FnMut(String)) {
        for warp in self.state.warps.iter().flatten() {
            let [x, y, z] = warp.block;
            let state = warp.stall.map_or("nothing", |state| NAMES[state as usize]);
            let pc = warp.flow.pc();
            let line = warp.grid.program.code().get(pc as usize).map_or(0, |inst| inst.line);
            let held = warp.flow.live() & !warp.flow.active();
            let held = match warp.grid.program.reconvergence() {
                Reconvergence::Stack if !held.is_empty() && !warp.flow.active().is_empty() => {
                    format!("; lanes that wait to reconverge with these: {}", held.count())
                }
                _ => String::new(),
            };
            say(format!(
                "{}: block ({x}, {y}, {z}) warp {}: waits for {state} at instruction {pc} (line {line}){held}",
                self.path, warp.index
            ));
        }
    }
}
