//! Finds the cycles in which warps issue chosen instructions.

use std::collections::BTreeMap;

use warpwave_components::proto::event::{Event, EventKind};
use warpwave_hw::time::Cycle;

use super::Listener;

/// A warp of a launch: launch, CTA in the grid, warp in the CTA.
type WarpName = (u32, [u32; 3], u32);

/// One execution of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Execution {
    /// Index of the launch.
    pub launch: u32,
    /// CTA in the grid.
    pub block: [u32; 3],
    /// Warp in the CTA.
    pub warp: u32,
    /// The instruction.
    pub pc: u32,
    /// Executions of the instruction by this warp, up to this one. The first is 1.
    pub nth: u32,
}

/// Finds the issue cycles of chosen executions.
pub struct Issues {
    /// The chosen executions, each with the cycle of its issue, once it is issued.
    wanted: BTreeMap<Execution, Option<Cycle>>,
    /// Issues so far, by warp and instruction. Holds only the instructions of `wanted`.
    issued: BTreeMap<(WarpName, u32), u32>,
    /// The warp in each slot, by SM, sub-core and slot.
    slots: BTreeMap<(u16, u8, u8), WarpName>,
}

impl Issues {
    /// Waits for these executions.
    pub fn new(wanted: impl IntoIterator<Item = Execution>) -> Self {
        let wanted: BTreeMap<_, _> = wanted.into_iter().map(|execution| (execution, None)).collect();
        let instruction = |of: &Execution| ((of.launch, of.block, of.warp), of.pc);
        Issues {
            issued: wanted.keys().map(|execution| (instruction(execution), 0)).collect(),
            wanted,
            slots: BTreeMap::new(),
        }
    }

    /// The cycle in which an execution was issued. `None` if it was not chosen, or not issued.
    pub fn cycle(&self, execution: &Execution) -> Option<Cycle> {
        self.wanted.get(execution).copied().flatten()
    }
}

impl Listener for Issues {
    fn event(&mut self, sm: u16, event: &Event) {
        let slot = (sm, event.subcore, event.warp);
        match event.kind {
            EventKind::Start { grid, block, index } => {
                // The next warp of a slot replaces the earlier one.
                self.slots.insert(slot, (grid, block, index));
            }
            EventKind::Issue { pc, .. } => {
                let Some(&warp) = self.slots.get(&slot) else { return };
                // Most issues are of no interest: one look-up tells.
                let Some(n) = self.issued.get_mut(&(warp, pc)) else {
                    return;
                };
                *n += 1;
                let (launch, block, warp) = warp;
                let execution = Execution {
                    launch,
                    block,
                    warp,
                    pc,
                    nth: *n,
                };
                if let Some(cycle) = self.wanted.get_mut(&execution) {
                    *cycle = Some(event.at);
                }
            }
            _ => {}
        }
    }
}
