//! A math pipe: INT, FP32 (with IMAD), half, FP64, special functions, tensor. They differ in what is sent to them and in time.
//!
//! ```text
//!   dispatch --WarpInst--> [pipe] --WarpInst, later--> dispatch
//! ```
//!
//! The result is worked out when the operands come, and leaves so that a dependent instruction can issue `latency` cycles after
//! the issue of this one; the stages in between lie in the link. Whether the pipe can take an instruction (its interval) is the
//! scheduler's business, which knows of every instruction sent here.
//!
//! The operands of a warp group's product lie in shared memory: the tensor pipe hands it on, and shared memory answers in its place.
//!
//! | way of a result | cycles |
//! |---|---|
//! | issue to here | 2 |
//! | here to the write port | latency - 3, at least 1 |
//! | write port to dependent issue | 1 |
//!
//! Invariant: results leave in the order in which operands came.

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::wires::{Show, Wires};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::time::Cycle;
use warpwave_isa::exec::execute;
use warpwave_isa::opcode::Opcode;

use crate::proto::warp::WarpInst;

/// The links of a pipe.
pub struct Ports {
    /// Instructions with their operands.
    pub input: InPort<Box<WarpInst>>,
    /// Instructions with their results.
    pub output: OutPort<Box<WarpInst>>,
    /// Of a tensor pipe, products of warp groups to shared memory.
    pub group: Option<OutPort<Box<WarpInst>>>,
}

warpwave_hw::show_ports!(Ports: input, output, group);

/// What a pipe counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Warp instructions.
    pub instructions: u64,
    /// Cycles in which an instruction held the pipe's entry.
    pub busy_cycles: u64,
}

/// A math pipe.
pub struct MathPipe {
    path: Path,
    ports: Ports,
    /// Warp and program counter of the instruction that entered in the last tick.
    entered: Option<(u8, u32)>,
    stats: Stats,
}

impl MathPipe {
    /// An empty pipe.
    pub fn new(path: Path, ports: Ports) -> Self {
        MathPipe {
            path,
            ports,
            entered: None,
            stats: Stats::default(),
        }
    }
}

impl MathPipe {
    /// Whether an instruction can be taken, wherever it goes.
    #[inline]
    fn has_room(&self, now: Cycle) -> bool {
        self.ports.output.has_room(now) && self.ports.group.as_ref().is_none_or(|group| group.has_room(now))
    }
}

/// Computes what the instruction writes.
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
        self.entered = None;
        while self.has_room(now)
            && let Some(mut warp_inst) = self.ports.input.recv(now)
        {
            if let Some(group) = &mut self.ports.group
                && warp_inst.inst().op == Opcode::Hgmma
            {
                self.stats.instructions += 1;
                self.stats.busy_cycles += u64::from(warp_inst.timing().interval);
                self.entered = Some((warp_inst.warp, warp_inst.pc));
                group.send(now, warp_inst);
                continue;
            }
            compute(&mut warp_inst);
            let timing = warp_inst.timing();
            self.stats.instructions += 1;
            self.stats.busy_cycles += u64::from(timing.interval);
            self.entered = Some((warp_inst.warp, warp_inst.pc));
            let spent = now.since(warp_inst.issued) + 2;
            self.ports
                .output
                .send_after(now, u64::from(timing.latency).saturating_sub(spent), warp_inst);
        }
        Activity::busy_if(self.ports.input.is_ready(now))
    }

    fn reset(&mut self) {
        self.entered = None;
        self.stats = Stats::default();
        self.ports.input.clear();
    }

    fn is_quiescent(&self) -> bool {
        true
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.bit("valid", Some(self.entered.is_some()));
        probe.vector("warp", 5, self.entered.map(|(warp, _)| u64::from(warp)));
        probe.vector("pc", 32, self.entered.map(|(_, pc)| u64::from(pc)));
    }

    fn wires(&mut self, wires: &mut dyn Wires) {
        self.ports.show(wires);
    }

    fn stats(&self, report: &mut dyn Report) {
        report.count("instructions", self.stats.instructions);
        report.count("busy_cycles", self.stats.busy_cycles);
    }
}
