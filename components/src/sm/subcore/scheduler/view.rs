//! What a scheduler shows: its counters, its signals, and what its warps wait for.

use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;

use super::{PIPES, Scheduler};
use crate::sm::subcore::stall::{NAMES, StallCycles, State};

/// Counter names of instructions issued by pipe, in the order of [`Pipe`].
const BY_PIPE: [&str; PIPES] = [
    "inst_int",
    "inst_fma",
    "inst_half",
    "inst_fp64",
    "inst_sfu",
    "inst_tensor",
    "inst_lsu",
    "inst_control",
];

/// What a scheduler counts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Warp instructions issued.
    pub instructions: u64,
    /// Their running lanes, guards not applied.
    pub thread_instructions: u64,
    /// Instructions by pipe.
    pub by_pipe: [u64; PIPES],
    /// Branches (BRA) issued.
    pub branches: u64,
    /// Branches on which the running lanes disagreed.
    pub divergent_branches: u64,
    /// Cycles with at least one warp resident.
    pub active_cycles: u64,
    /// Warps that could have gone, summed over cycles.
    pub eligible_warps: u64,
    /// Warps started.
    pub warps: u64,
    /// Warp-cycles by state.
    pub stalls: StallCycles,
}

impl Stats {
    /// Gives every counter.
    pub(super) fn report(&self, report: &mut dyn Report) {
        report.count("inst_issued", self.instructions);
        report.count("thread_inst", self.thread_instructions);
        for (name, &count) in BY_PIPE.iter().zip(&self.by_pipe) {
            report.count(name, count);
        }
        report.count("branches", self.branches);
        report.count("divergent_branches", self.divergent_branches);
        report.count("active_cycles", self.active_cycles);
        report.count("eligible_warps", self.eligible_warps);
        report.count("warps", self.warps);
        report.count("warp_cycles", self.stalls.total());
        self.stalls.report(report);
    }
}

impl Scheduler {
    pub(super) fn show(&self, probe: &mut dyn Probe) {
        probe.bit("issue_valid", Some(self.issued.is_some()));
        probe.vector("issue_warp", 5, self.issued.map(|(slot, _)| slot as u64));
        probe.vector("issue_pc", 32, self.issued.map(|(_, pc)| u64::from(pc)));
        probe.vector("ready", self.config.warps as u32, Some(u64::from(self.ready)));
        probe.vector("memory_credits", 8, Some(u64::from(self.credits)));
        for (slot, warp) in self.warps.iter().enumerate() {
            let selected = self.issued.is_some_and(|(issued, _)| issued == slot);
            let waiting = warp.as_ref().and_then(|w| w.state).unwrap_or(State::NotSelected);
            let state = if selected { State::Selected } else { waiting };
            probe.enter("warp", slot);
            probe.bit("resident", Some(warp.is_some()));
            probe.state("state", &NAMES, warp.as_ref().map(|_| state as usize));
            probe.vector("pc", 32, warp.as_ref().map(|w| u64::from(w.flow.pc())));
            probe.vector("active", 32, warp.as_ref().map(|w| u64::from(w.flow.active().0)));
            probe.vector(
                "ibuffer",
                4,
                warp.as_ref().map(|_| u64::from(self.ibuffers.ready(slot))),
            );
            probe.vector("in_flight", 8, warp.as_ref().map(|w| u64::from(w.in_flight)));
            probe.leave();
        }
    }

    pub(super) fn say_waits(&self, say: &mut dyn FnMut(String)) {
        for warp in self.warps.iter().flatten() {
            let [x, y, z] = warp.block;
            let state = warp.state.map_or("nothing", |state| NAMES[state as usize]);
            let pc = warp.flow.pc();
            let line = warp.grid.program.code().get(pc as usize).map_or(0, |inst| inst.line);
            say(format!(
                "{}: block ({x}, {y}, {z}) warp {}: waits for {state} at instruction {pc} (line {line})",
                self.path, warp.index
            ));
        }
    }
}
