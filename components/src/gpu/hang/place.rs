//! Where a warp is when its launch hangs.

use warpwave_isa::exec::guard;
use warpwave_isa::reg::Pred;

use super::{Block, poll};
use crate::sm::subcore::regfile::RegFile;
use crate::sm::subcore::stall::NAMES;
use crate::sm::subcore::warp::Warp;

/// Where a warp is. Lines are of the PTX text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    NotStarted,
    /// Line of its last instruction, unless a later warp has taken its slot.
    Ended(Option<u32>),
    Barrier {
        number: u8,
        line: u32,
    },
    Cluster {
        line: u32,
        has_arrived: bool,
    },
    /// Some lanes wait for other lanes of the warp, and none runs.
    Held {
        line: u32,
    },
    Polls {
        line: u32,
    },
    BranchesToItself {
        line: u32,
    },
    /// A loop that polls nothing, with its first and its last line.
    Repeats {
        lines: [u32; 2],
    },
    Stalled {
        reason: &'static str,
        line: u32,
    },
}

impl Place {
    /// What the warp does, or several warps do.
    pub(super) fn say(self, are_many: bool) -> String {
        let verb = |one: &'static str, many: &'static str| if are_many { many } else { one };
        let (wait, has, poll) = (verb("waits", "wait"), verb("has", "have"), verb("polls", "poll"));
        match self {
            Place::NotStarted => format!("{has} not started"),
            Place::Ended(None) => format!("{has} ended"),
            Place::Ended(Some(line)) => format!("{has} ended at line {line}"),
            Place::Barrier { number, line } => format!("{wait} at barrier {number} in line {line}"),
            Place::Cluster { line, has_arrived } => {
                let never = if has_arrived { "" } else { ", but never arrived there" };
                format!("{wait} at the cluster barrier in line {line}{never}")
            }
            Place::Held { line } => format!("{wait} for lanes of {} own in line {line}", verb("its", "their")),
            Place::Polls { line } => format!("{poll} in line {line}"),
            Place::BranchesToItself { line } => format!(
                "{} for ever in line {line}",
                verb("branches to itself", "branch to themselves")
            ),
            Place::Repeats { lines: [first, last] } if first == last => {
                format!(
                    "{} a loop in line {first}, which polls nothing",
                    verb("repeats", "repeat")
                )
            }
            Place::Repeats { lines: [first, last] } => format!(
                "{} the loop in lines {first} to {last}, which polls nothing",
                verb("repeats", "repeat")
            ),
            Place::Stalled { reason, line } => format!("{wait} for {reason} in line {line}"),
        }
    }

    /// The line that [`Place::say`] names.
    pub(super) fn line(self) -> Option<u32> {
        match self {
            Place::NotStarted => None,
            Place::Ended(line) => line,
            Place::Barrier { line, .. }
            | Place::Cluster { line, .. }
            | Place::Held { line }
            | Place::Polls { line }
            | Place::BranchesToItself { line }
            | Place::Repeats { lines: [_, line] }
            | Place::Stalled { line, .. } => Some(line),
        }
    }
}

impl<'a> Block<'a> {
    /// Sub-core and slot of a warp that has started, with its state, also after its end. `None` if another warp has the slot.
    fn last_warp(&self, index: u32) -> Option<(usize, usize, &'a Warp)> {
        let (subcore, slot) = self.cta.warp_slots[index as usize];
        let (subcore, slot) = (usize::from(subcore), usize::from(slot));
        let warp = self.sm.schedulers.get(subcore)?.last_warp(slot)?;
        // A later warp may have taken the slot.
        let is_it = warp.block == self.cta.block() && warp.index == index && warp.grid.id == self.cta.grid.id;
        is_it.then_some((subcore, slot, warp))
    }

    /// Sub-core, slot and state of a resident warp.
    pub(super) fn warp(&self, index: u32) -> Option<(usize, usize, &'a Warp)> {
        let has_started = index < self.cta.started;
        let found = self.last_warp(index).filter(|_| has_started);
        found.filter(|(.., warp)| !warp.flow.is_done())
    }

    /// Where a warp is.
    pub(super) fn place(&self, index: u32) -> Place {
        if index >= self.cta.started {
            return Place::NotStarted;
        }
        let line = |warp: &Warp, pc: u32| warp.grid.program.code().get(pc as usize).map_or(0, |inst| inst.line);
        let Some((subcore, slot, warp)) = self.warp(index) else {
            let ended = self.last_warp(index).map(|(.., warp)| warp);
            // EXIT has moved the program counter behind itself.
            return Place::Ended(ended.map(|warp| line(warp, warp.flow.pc() - 1)));
        };
        let flow = &warp.flow;
        let waits_at = flow.held().first().map_or(flow.pc(), |held| held.pc);
        if flow.is_at_barrier() && !flow.at_cluster_barrier().is_empty() {
            return Place::Cluster {
                line: line(warp, waits_at),
                has_arrived: warp.cluster.announced,
            };
        }
        if flow.is_at_barrier() {
            let number = warp.barrier.0;
            let line = line(warp, waits_at);
            return Place::Barrier { number, line };
        }
        // After the barriers, where no lane is active either.
        if flow.active().is_empty() {
            let line = line(warp, waits_at);
            return Place::Held { line };
        }
        let registers = self.sm.dispatches[subcore].registers();
        if branches_to_itself(slot, warp, registers) {
            let line = line(warp, flow.pc());
            return Place::BranchesToItself { line };
        }
        if let Some(poll) = poll::find(slot, warp, registers, self.sm.stands_still) {
            return Place::Polls { line: poll.line };
        }
        match poll::lines_of_loop(warp).filter(|_| self.sm.stands_still) {
            Some(lines) => Place::Repeats { lines },
            None => Place::Stalled {
                reason: warp.stall.map_or("its turn", |state| NAMES[state as usize]),
                line: line(warp, flow.pc()),
            },
        }
    }
}

/// True if some running lanes of the warp branch to themselves for ever: no instruction in flight writes the guard of the branch.
pub(in crate::gpu) fn branches_to_itself(slot: usize, warp: &Warp, file: &RegFile) -> bool {
    let (active, pc) = (warp.flow.active(), warp.flow.pc());
    // A warp without active lanes may have a program counter beyond the code.
    if active.is_empty() || !warp.grid.program.branches_to_itself(pc) {
        return false;
    }
    let inst = warp.inst(pc);
    let Pred(number) = inst.guard.pred;
    let is_settled = warp.board.pending().1 >> number & 1 == 0;
    is_settled && !guard(inst, file.predicates(slot), active).is_empty()
}

/// Every warp of a block: the block's position, the warp's index, and where it is.
pub(super) fn each_place(block: &Block<'_>) -> impl Iterator<Item = ([u32; 3], u32, Place)> {
    (0..block.cta.grid.warps()).map(|index| (block.cta.block(), index, block.place(index)))
}
