//! A math pipe: INT, FP32 (with IMAD), half, FP64, special functions, tensor. They differ in what is sent to them and in time.
//!
//! ```text
//!   dispatch --Flight--> [pipe] --Flight, later--> dispatch
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

use crate::proto::warp::Flight;

/// The links of a pipe.
pub struct Ports {
    /// Instructions with their operands.
    pub input: InPort<Box<Flight>>,
    /// Instructions with their results.
    pub output: OutPort<Box<Flight>>,
    /// Of a tensor pipe, products of warp groups to shared memory.
    pub group: Option<OutPort<Box<Flight>>>,
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
pub(super) fn compute(flight: &mut Flight) {
    let inst = &flight.grid.program.code()[flight.pc as usize];
    let decoded = &flight.grid.program.decoded()[flight.pc as usize];
    execute(inst, decoded, flight.lanes, &flight.operands, &mut flight.results);
}

warpwave_hw::warm!(MathPipe: ; ports);

impl Component for MathPipe {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        self.entered = None;
        while self.has_room(now)
            && let Some(mut flight) = self.ports.input.recv(now)
        {
            if let Some(group) = &mut self.ports.group
                && flight.inst().op == Opcode::Hgmma
            {
                self.stats.instructions += 1;
                self.stats.busy_cycles += u64::from(flight.timing().interval);
                self.entered = Some((flight.warp, flight.pc));
                group.send(now, flight);
                continue;
            }
            compute(&mut flight);
            let timing = flight.timing();
            self.stats.instructions += 1;
            self.stats.busy_cycles += u64::from(timing.interval);
            self.entered = Some((flight.warp, flight.pc));
            let spent = now.since(flight.issued) + 2;
            self.ports
                .output
                .send_after(now, u64::from(timing.latency).saturating_sub(spent), flight);
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
