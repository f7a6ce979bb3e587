//! The branch unit of a sub-core: resolves control instructions that read registers.
//!
//! ```text
//!   dispatch --WarpInst--> [branch] --Resolved, branch_latency after issue--> scheduler
//!                                   --WarpInst (to reuse its box)-----------> dispatch
//! ```
//!
//! | Step | Cycles |
//! |---|---|
//! | issue to the arrival of the result at the scheduler | `branch_latency`, at least 3 |

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::invariant::Invariants;
use warpwave_hw::link::delay::DelayLine;
use warpwave_hw::link::wires::{LinkObserver, Show};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::time::Cycle;
use warpwave_isa::lane::LaneMask;
use warpwave_isa::opcode::Opcode;

use super::account::Account;
use crate::proto::warp::{Resolved, SLOT_WIDTH, WarpInst};

/// The links of a branch unit.
pub struct Ports {
    /// Control instructions with their operands.
    pub input: InPort<Box<WarpInst>>,
    /// Lanes and operands of each instruction, to the scheduler.
    pub resolved: OutPort<Resolved>,
    /// The boxes, back to the dispatch unit's pool.
    pub spent: OutPort<Box<WarpInst>>,
}

warpwave_hw::show_ports!(Ports: input, resolved, spent);

/// The branch unit.
pub struct BranchUnit {
    path: Path,
    ports: Ports,
    /// Account of the instructions inside, in a run that checks invariants.
    account: Option<Account>,
    state: State,
}

/// State that `reset` clears.
#[derive(Default)]
struct State {
    /// The last result of the last tick, for the waveform.
    entered: Option<Resolved>,
    /// Results that are due later than the link can hold them.
    stages: DelayLine<Resolved>,
    /// Instructions resolved.
    instructions: u64,
}

impl BranchUnit {
    /// An idle branch unit.
    pub fn new(path: Path, ports: Ports) -> Self {
        BranchUnit {
            path,
            ports,
            account: None,
            state: State::default(),
        }
    }
}

/// Operand `slot` of an instruction: that of the lowest lane. A NANOSLEEP takes the largest of its lanes: the warp sleeps as a whole.
fn operand(warp_inst: &WarpInst, slot: usize) -> u32 {
    let inst = warp_inst.inst();
    if slot >= inst.op.info().src.len() {
        return 0;
    }
    let words = &warp_inst.operands.words[warp_inst.decoded().first_word[slot] as usize].0;
    match inst.op {
        Opcode::Nanosleep => warp_inst.lanes.iter().map(|lane| words[lane]).max().unwrap_or(0),
        _ => words[warp_inst.lanes.lowest().unwrap_or(0)],
    }
}

/// Lanes of a WARPSYNC whose mask differs from the lowest lane's mask.
fn apart(warp_inst: &WarpInst) -> LaneMask {
    if warp_inst.inst().op != Opcode::Warpsync {
        return LaneMask::NONE;
    }
    let masks = &warp_inst.operands.words[warp_inst.decoded().first_word[0] as usize].0;
    let first = warp_inst.lanes.lowest().map_or(0, |lane| masks[lane]);
    warp_inst.lanes.filter(|lane| masks[lane] != first)
}

warpwave_hw::warm!(BranchUnit);

impl Component for BranchUnit {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        self.state.entered = None;
        // Older results first: they take their slots in the link before new ones.
        self.state.stages.run(&mut self.ports.resolved, now);
        while self.ports.resolved.has_room(now)
            && self.ports.spent.has_room(now)
            && let Some(warp_inst) = self.ports.input.recv(now)
        {
            // The scheduler executes a control instruction once for the warp.
            let [a, b] = [0, 1].map(|slot| operand(&warp_inst, slot));
            let resolved = Resolved {
                warp: warp_inst.warp,
                pc: warp_inst.pc,
                lanes: warp_inst.lanes,
                a,
                b,
                // Only a counting barrier (BAR.RED) has a meaning for it.
                count: (warp_inst.lanes & warp_inst.operands.preds[0]).count(),
                apart: apart(&warp_inst),
            };
            self.state.instructions += 1;
            self.state.entered = Some(resolved.clone());
            // Cycles of `branch_latency` that are over when the result arrives by the link alone.
            let spent = now.since(warp_inst.issued) + self.ports.resolved.latency();
            let extra = u64::from(warp_inst.timing().latency).saturating_sub(spent);
            self.state.stages.send(&mut self.ports.resolved, now, extra, resolved);
            self.ports.spent.send(now, warp_inst);
        }
        Activity::busy_if(self.ports.input.is_ready(now)).or(self.state.stages.activity(&self.ports.resolved, now))
    }

    fn reset(&mut self) {
        self.state = State::default();
        self.ports.clear_inputs();
    }

    fn is_quiescent(&self) -> bool {
        self.state.stages.is_empty()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        let entered = self.state.entered.as_ref();
        probe.bit("valid", Some(entered.is_some()));
        probe.vector("warp", SLOT_WIDTH, entered.map(|r| u64::from(r.warp)));
        probe.vector("pc", 32, entered.map(|r| u64::from(r.pc)));
        probe.vector("lanes", 32, entered.map(|r| u64::from(r.lanes.0)));
    }

    fn ports(&mut self, observer: &mut dyn LinkObserver) {
        self.ports.show(observer);
    }

    fn arm_invariants(&mut self) {
        let account = Account::default();
        self.ports.input.watch(account.entry());
        self.ports.resolved.watch(account.exit());
        self.account = Some(account);
    }

    /// Results leave in the order of entry. Instructions inside = instructions in the stages.
    fn invariants(&self, check: &mut Invariants) {
        if let Some(account) = &self.account {
            account.invariants(self.state.stages.len(), check);
        }
    }

    fn stats(&self, report: &mut dyn Report) {
        report.count("instructions", self.state.instructions);
    }
}
