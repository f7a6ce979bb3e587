//! A math pipe: INT, FP32 (with IMAD), half, FP64, SFU or tensor. One type serves all, because the instruction selects the operation.
//!
//! ```text
//!   dispatch --WarpInst--> [pipe] --WarpInst, latency - 3 cycles later--> dispatch
//!                                 --WarpInst (HGMMA)--> shared memory
//! ```
//!
//! | Step | Cycles |
//! |---|---|
//! | issue to the pipe's entry | 2 |
//! | entry to the write port | latency - 3, at least 1 |
//! | write port to dependent issue | 1 |
//!
//! The pipe computes the result at entry, and the output link holds it for the remaining cycles. A delay line holds a result that is due
//! later than the link can hold it.
//!
//! The operands of a warp-group matrix product (HGMMA) are in shared memory. The tensor pipe forwards the instruction to shared memory.
//!
//! A search for lanes with equal values (MATCH.ANY) takes `match_per_value` cycles more for each value beyond the first. Results behind it
//! wait.
//!
//! Invariant: results leave in the order in which operands arrived.

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::invariant::Invariants;
use warpwave_hw::link::delay::DelayLine;
use warpwave_hw::link::wires::{LinkObserver, Show};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::time::Cycle;
use warpwave_isa::exec::execute;
use warpwave_isa::inst::VoteMode;
use warpwave_isa::opcode::Opcode;

use super::account::Account;
use crate::proto::warp::{SLOT_WIDTH, WarpInst};

/// The links of a pipe.
pub struct Ports {
    /// Instructions with their operands.
    pub input: InPort<Box<WarpInst>>,
    /// Instructions with their results.
    pub output: OutPort<Box<WarpInst>>,
    /// Tensor pipe only: products of warp groups, to shared memory.
    pub group: Option<OutPort<Box<WarpInst>>>,
}

warpwave_hw::show_ports!(Ports: input, output, group);

warpwave_hw::counters! {
    /// Counters of a pipe.
    pub struct Stats {
        pub instructions: u64,
        /// Cycles in which an instruction occupied the pipe's entry.
        pub busy_cycles: u64,
    }
}

/// A math pipe.
pub struct MathPipe {
    path: Path,
    ports: Ports,
    /// Cycles of MATCH.ANY for each value beyond the first.
    match_per_value: u32,
    /// Account of the instructions inside, in a run that checks invariants.
    account: Option<Account>,
    state: State,
}

/// State that `reset` clears.
#[derive(Default)]
struct State {
    /// Warp and program counter of the instruction that entered in the last tick.
    entered: Option<(u8, u32)>,
    /// Results that are due later than the link can hold them.
    stages: DelayLine<Box<WarpInst>>,
    stats: Stats,
}

impl MathPipe {
    /// An empty pipe.
    pub fn new(path: Path, ports: Ports) -> Self {
        MathPipe {
            path,
            ports,
            match_per_value: 0,
            account: None,
            state: State::default(),
        }
    }

    /// Sets the cycles of MATCH.ANY for each value beyond the first.
    #[must_use]
    pub fn with_match_per_value(self, match_per_value: u32) -> Self {
        MathPipe {
            match_per_value,
            ..self
        }
    }

    /// True if both outputs have room.
    #[inline]
    fn has_room(&self, now: Cycle) -> bool {
        // The output of the next instruction is not known before it is received.
        self.ports.output.has_room(now) && self.ports.group.as_ref().is_none_or(|group| group.has_room(now))
    }
}

/// Number of values beyond the first that a search for equal lanes (MATCH.ANY) has found. 0 for all other instructions.
#[cold]
fn further_values(warp_inst: &WarpInst) -> u32 {
    let inst = warp_inst.inst();
    if inst.op != Opcode::Match || inst.mods.vote != VoteMode::Any {
        return 0;
    }
    // The lowest lane with a value stands for it.
    let sets = &warp_inst.results.words[0].0;
    let stands = |&lane: &usize| sets[lane].trailing_zeros() as usize == lane;
    (warp_inst.lanes.iter().filter(stands).count() as u32).saturating_sub(1)
}

/// Computes the results of an instruction.
#[inline]
pub(super) fn compute(warp_inst: &mut WarpInst) {
    let inst = &warp_inst.grid.program.code()[warp_inst.pc as usize];
    let decoded = &warp_inst.grid.program.decoded()[warp_inst.pc as usize];
    execute(
        inst,
        decoded,
        warp_inst.lanes,
        &warp_inst.operands,
        &mut warp_inst.results,
    );
}

warpwave_hw::warm!(MathPipe: ; ports);

impl Component for MathPipe {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        self.state.entered = None;
        // Held results first: the link must carry them before younger ones.
        self.state.stages.run(&mut self.ports.output, now);
        // The scheduler keeps the issue interval, so the pipe accepts every instruction.
        while self.has_room(now)
            && let Some(mut warp_inst) = self.ports.input.recv(now)
        {
            let timing = warp_inst.timing();
            self.state.stats.instructions += 1;
            self.state.stats.busy_cycles += u64::from(timing.interval);
            self.state.entered = Some((warp_inst.warp, warp_inst.pc));
            if let Some(group) = &mut self.ports.group
                && matches!(warp_inst.inst().op, Opcode::Hgmma | Opcode::HgmmaSp)
            {
                group.send(now, warp_inst);
                continue;
            }
            // All lanes at once: the lane groups of a narrow pipe show only in its issue interval.
            compute(&mut warp_inst);
            // Two cycles follow: the link to the write port, and the release to the scheduler.
            let spent = now.since(warp_inst.issued) + 2;
            let mut latency = timing.latency;
            if self.match_per_value > 0 {
                latency += self.match_per_value * further_values(&warp_inst);
            }
            let extra = u64::from(latency).saturating_sub(spent);
            self.state.stages.send(&mut self.ports.output, now, extra, warp_inst);
        }
        Activity::busy_if(self.ports.input.is_ready(now)).or(self.state.stages.activity(&self.ports.output, now))
    }

    fn reset(&mut self) {
        self.state = State::default();
        self.ports.clear_inputs();
    }

    fn is_quiescent(&self) -> bool {
        self.state.stages.is_empty()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.bit("valid", Some(self.state.entered.is_some()));
        probe.vector("warp", SLOT_WIDTH, self.state.entered.map(|(warp, _)| u64::from(warp)));
        probe.vector("pc", 32, self.state.entered.map(|(_, pc)| u64::from(pc)));
    }

    fn ports(&mut self, observer: &mut dyn LinkObserver) {
        self.ports.show(observer);
    }

    fn arm_invariants(&mut self) {
        let account = Account::default();
        self.ports.input.watch(account.entry());
        self.ports.output.watch(account.exit());
        if let Some(group) = &mut self.ports.group {
            group.watch(account.bypass());
        }
        self.account = Some(account);
    }

    /// Results leave in the order of entry. Instructions inside = instructions in the stages.
    fn invariants(&self, check: &mut Invariants) {
        if let Some(account) = &self.account {
            account.invariants(self.state.stages.len(), check);
        }
    }

    fn stats(&self, report: &mut dyn Report) {
        self.state.stats.report(report);
    }
}
