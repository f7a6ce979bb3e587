//! The dispatch unit of a sub-core: reads the operands of an issued instruction, sends it into its pipe, and writes results back.
//!
//! ```text
//!   scheduler --Issue--> [collector -> latch] --WarpInst--> int fp32 half fp64 sfu tensor | lsu | branch
//!             <-Release- [register file]      <--WarpInst-- int fp32 half fp64 sfu tensor | lsu, shared | branch
//!   cta --WarpInfo-----> [special registers]
//! ```
//!
//! The stages of `tick`, in this order:
//!
//! | Stage | What it does | Cycles |
//! |---|---|---|
//! | take warp info | takes starts of warps, and results of counting barriers | 0 |
//! | write back | writes results to the register file, and sends a [`Release`] to the scheduler | 1 to the scheduler |
//! | dispatch | sends the instruction in the latch into its pipe | 1 to the pipe |
//! | collect | reads the next issued instruction's operands into the latch, 1 cycle after its issue | 0, plus the register-bank conflicts |
//!
//! Without a bank conflict, an instruction is collected and dispatched in one tick. It reaches its pipe 2 cycles after its issue.
//!
//! Results of math pipes are written in their cycle of arrival, without write-port conflicts. The LSU and shared memory have queues before
//! the write port, and write one result each per cycle (huerta25).
//!
//! # Invariants
//! - The collector holds one instruction: operands are read in the order of issue.
//! - Every instruction's box returns to the pool. Once the pool has its final size, no tick allocates.

mod special_registers;
mod stats;
mod writeback;

pub use stats::Stats;

use std::sync::Arc;

use warpwave_hw::bits::ones;
use warpwave_hw::component::{Activity, Component};
use warpwave_hw::invariant::Invariants;
use warpwave_hw::link::arrivals::ArrivalMask;
use warpwave_hw::link::wires::{LinkObserver, Show};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::{Probe, count_width};
use warpwave_hw::stats::Report;
use warpwave_hw::time::Cycle;
use warpwave_isa::exec::special::WarpContext;
use warpwave_isa::opcode::Pipe;
use warpwave_isa::program::MAX_RESULT_WORDS;

use crate::config::{N_PIPES, PIPE_NAMES};
use crate::proto::event::{EventKind, Log};
use crate::proto::issue::{Issue, Release};
use crate::proto::warp::{IssueInfo, SLOT_WIDTH, WarpInfo, WarpInst, WarpStart};
use crate::sm::subcore::collector::read_operands;
use crate::sm::subcore::regfile::RegFile;
use special_registers::special_registers;

/// Parameters of a dispatch unit. `subcores`, `sm` and `core_khz` are for special registers, such as the number of the warp or SM.
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of the sub-core within the SM.
    pub subcore: u8,
    /// Number of sub-cores of the SM.
    pub subcores: u32,
    /// Warp slots.
    pub warps: usize,
    /// Warp-wide registers of the register file.
    pub warp_registers: usize,
    /// Number of the SM, and count of all SMs of the GPU.
    pub sm: (u32, u32),
    /// Core clock in kHz, for the nanosecond timer.
    pub core_khz: u32,
}

/// The links of a dispatch unit. A further math pipe adds a port to `pipes` and one to `results`, and changes no code here.
pub struct Ports {
    /// Starts of warps and results of counting barriers, from the CTA manager.
    pub warp_info: InPort<WarpInfo>,
    /// Issued instructions, from the scheduler.
    pub issue: InPort<Issue>,
    /// Completed instructions, to the scheduler.
    pub release: OutPort<Release>,
    /// Instructions with operands, to each pipe in the order of [`Pipe`].
    pub pipes: Vec<OutPort<Box<WarpInst>>>,
    /// Results of the math pipes and the branch unit.
    pub results: Vec<InPort<Box<WarpInst>>>,
    /// Results of the LSU and of shared memory.
    pub queued_results: Vec<InPort<Box<WarpInst>>>,
}

warpwave_hw::show_ports!(Ports: warp_info, issue, release, pipes, results, queued_results);

/// Bit of [`Ports::warp_info`] in `arrivals`. The ports of results follow.
const WARP_INFO: u64 = 1;
const FIRST_RESULT: u32 = 1;

/// The dispatch unit.
pub struct Dispatch {
    path: Path,
    config: Config,
    ports: Ports,
    /// The input ports with messages in flight: `warp_info`, then `results`, then `queued_results`.
    arrivals: ArrivalMask,
    log: Log,
    state: State,
}

/// State that `reset` clears.
#[allow(
    clippy::vec_box,
    reason = "the boxes travel: taking one out must not move its contents"
)]
struct State {
    file: RegFile,
    /// The warp of each slot, as the CTA manager started it.
    warps: Vec<Option<WarpStart>>,
    /// Result of the last counting barrier (BAR.RED) of each warp slot.
    barrier_counts: Vec<u32>,
    /// The instruction in the collector, and the cycle in which its operands are complete.
    latch: Option<(Cycle, Box<WarpInst>)>,
    /// Unused boxes.
    pool: Vec<Box<WarpInst>>,
    /// Pipe, warp and program counter of the instruction dispatched in the last tick, for the waveform.
    dispatched: Option<(Pipe, u8, u32)>,
    /// True if the collector waits for operands after the last tick, because of a bank conflict. For the waveform.
    has_conflict: bool,
    /// The last result written in the last tick, for the waveform.
    written: Option<Written>,
    stats: Stats,
}

/// A result that was written to the register file.
#[derive(Clone, Copy, Debug)]
struct Written {
    warp: u8,
    pc: u32,
    /// The first register. Without registers it has no meaning.
    first: u8,
    /// Number of registers. 0 for a result in predicates.
    registers: u8,
}

warpwave_hw::warm!(State: file, latch, stats, warps);

impl State {
    fn new(config: &Config) -> Self {
        State {
            file: RegFile::new(config.warp_registers, config.warps),
            warps: vec![None; config.warps],
            barrier_counts: vec![0; config.warps],
            latch: None,
            pool: Vec::new(),
            dispatched: None,
            has_conflict: false,
            written: None,
            stats: Stats::default(),
        }
    }
}

impl Dispatch {
    /// A dispatch unit with all registers zero.
    pub fn new(path: Path, config: Config, ports: Ports) -> Self {
        assert_eq!(ports.pipes.len(), N_PIPES, "{path}: one link per pipe");
        let mut arrivals = ArrivalMask::default();
        arrivals.add(&ports.warp_info);
        let results = ports.results.iter().chain(&ports.queued_results);
        results.for_each(|port| _ = arrivals.add(port));
        Dispatch {
            state: State::new(&config),
            arrivals,
            log: Log::default(),
            path,
            config,
            ports,
        }
    }

    /// The register file.
    pub(crate) fn registers(&self) -> &RegFile {
        &self.state.file
    }

    /// Sends trace events to `log` from now on.
    pub fn subscribe(&mut self, log: Log) {
        self.log = log;
    }

    #[inline]
    fn emit(&self, at: Cycle, warp: u8, kind: EventKind) {
        self.log.emit(at, self.config.subcore, warp, kind);
    }

    /// The number of a written instruction among the instructions of all kernels.
    fn number_of(&self, written: Written) -> Option<u64> {
        let start = self.state.warps[usize::from(written.warp)].as_ref()?;
        Some(u64::from(start.grid.program.base_index()) + u64::from(written.pc))
    }

    fn take_warp_info(&mut self, now: Cycle) {
        let state = &mut self.state;
        while let Some(info) = self.ports.warp_info.recv(now) {
            match info {
                WarpInfo::Start(start) => {
                    let slot = start.warp as usize;
                    state.file.assign(slot, start.grid.registers as usize);
                    state.warps[slot] = Some(start);
                    state.barrier_counts[slot] = 0;
                }
                WarpInfo::Counted { warps, count } => ones(warps).for_each(|slot| state.barrier_counts[slot] = count),
            }
        }
    }

    /// Sends the instruction in the latch into its pipe, once its operands are complete and the pipe has room.
    fn dispatch(&mut self, now: Cycle) {
        let pipes = &self.ports.pipes;
        let can_go = |(ready, warp_inst): &mut (Cycle, Box<WarpInst>)| {
            *ready <= now && pipes[warp_inst.info.pipe as usize].has_room(now)
        };
        let Some((_, warp_inst)) = self.state.latch.take_if(can_go) else {
            return;
        };
        let pipe = warp_inst.info.pipe;
        self.state.stats.count(warp_inst.inst(), warp_inst.lanes.count());
        self.state.dispatched = Some((pipe, warp_inst.warp, warp_inst.pc));
        // A scheduler issues one instruction per cycle, so the cycle of issue identifies it.
        let number = warp_inst.issued.0;
        self.emit(now, warp_inst.warp, EventKind::Dispatch { number });
        // Without lanes there is nothing to compute. Only the LSU, for its credit, and the branch unit must see such an instruction.
        let skips_pipe = warp_inst.lanes.is_empty() && !matches!(pipe, Pipe::Lsu | Pipe::Control);
        if skips_pipe && self.ports.release.has_room(now) {
            self.complete(warp_inst, now);
        } else {
            // `can_go` has seen room in the pipe, also for an instruction without lanes.
            self.ports.pipes[pipe as usize].send(now, warp_inst);
        }
    }

    /// Takes the next issued instruction and reads its operands into the latch.
    fn collect(&mut self, now: Cycle) {
        let Some(issue) = self.ports.issue.recv(now) else {
            return;
        };
        let (warp, pc) = (issue.warp(), issue.pc());
        // The link from the scheduler takes a cycle.
        let issued = Cycle(now.0 - 1);
        self.emit(now, warp, EventKind::Collect { number: issued.0 });
        let state = &mut self.state;
        let start = state.warps[warp as usize].as_ref().expect("an issued warp has started");
        assert!(
            issue.generation() == start.generation,
            "{}: {issue:?} is of another generation of its slot than the last start there, of warp {:?} of block {:?}",
            self.path,
            start.index,
            start.block
        );
        let grid = &*start.grid;
        let inst = &grid.program.code()[pc as usize];
        let decoded = &grid.program.decoded()[pc as usize];
        let timing = &grid.timing[pc as usize];
        let mut warp_inst = match state.pool.pop() {
            Some(warp_inst) => warp_inst,
            None => Box::new(WarpInst::blank(self.config.subcore, start.grid.clone())),
        };
        // The comparison avoids an update of the reference count, except after a change of grid.
        if !Arc::ptr_eq(&warp_inst.grid, &start.grid) {
            warp_inst.grid = start.grid.clone();
        }
        warp_inst.info = IssueInfo::of(inst, decoded, timing);
        warp_inst.warp = warp;
        warp_inst.pc = pc;
        warp_inst.group = issue.group();
        warp_inst.issued = issued;
        warp_inst.block = start.block;
        warp_inst.index = start.index;
        warp_inst.shared_base = start.shared_base;
        read_operands(&mut warp_inst, (inst, decoded), issue.active(), &state.file, || {
            WarpContext {
                barrier_count: state.barrier_counts[warp as usize],
                ..special_registers(&self.config, start, now)
            }
        });
        // The first of the operand cycles is the collect itself.
        let conflict_cycles = u64::from(timing.operand_cycles) - 1;
        state.stats.bank_conflict_cycles += conflict_cycles;
        // A conflict delays the instruction, and with it every later one.
        state.latch = Some((now + conflict_cycles, warp_inst));
    }

    /// Busy while a result or an issued instruction waits. Else idle until the operands are complete or the pipe has room.
    fn activity(&mut self, now: Cycle) -> Activity {
        if self.has_result(now) {
            return Activity::Busy;
        }
        match &self.state.latch {
            Some((ready, _)) if *ready > now => Activity::Until(*ready),
            Some((_, warp_inst)) => self.ports.pipes[warp_inst.info.pipe as usize].await_room(now),
            None => Activity::busy_if(self.ports.issue.is_ready(now)),
        }
    }
}

warpwave_hw::warm!(Dispatch: ; state, ports);

impl Component for Dispatch {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        self.state.written = None;
        self.state.dispatched = None;
        let in_flight = self.arrivals.in_flight();
        if in_flight & WARP_INFO != 0 {
            // Before `collect`: the first instruction of a warp needs its registers assigned.
            self.take_warp_info(now);
        }
        // Before `collect`, so a result can be read in the cycle of its write (bypass).
        self.write_back(in_flight >> FIRST_RESULT, now);
        // The latch first: it may hold an instruction that a conflict or a full pipe has delayed. Once that is sent, the next is collected.
        self.dispatch(now);
        if self.state.latch.is_none() {
            self.collect(now);
            // Without a bank conflict the operands are complete at once. At most one instruction is dispatched per cycle.
            if self.state.dispatched.is_none() {
                self.dispatch(now);
            }
        }
        self.state.has_conflict = self.state.latch.as_ref().is_some_and(|(ready, _)| *ready > now);
        self.activity(now)
    }

    fn reset(&mut self) {
        self.state = State::new(&self.config);
        self.ports.clear_inputs();
    }

    fn is_quiescent(&self) -> bool {
        self.state.latch.is_none()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        let State {
            dispatched,
            written,
            latch,
            ..
        } = &self.state;
        probe.bit("dispatch_valid", Some(dispatched.is_some()));
        probe.state("dispatch_pipe", &PIPE_NAMES, dispatched.map(|(pipe, ..)| pipe as usize));
        probe.vector(
            "dispatch_warp",
            SLOT_WIDTH,
            dispatched.map(|(_, warp, _)| u64::from(warp)),
        );
        probe.vector("dispatch_pc", 32, dispatched.map(|(.., pc)| u64::from(pc)));
        probe.bit("collector_busy", Some(latch.is_some()));
        probe.bit("collector_conflict", Some(self.state.has_conflict));
        probe.bit("writeback_valid", Some(written.is_some()));
        probe.vector("writeback_warp", SLOT_WIDTH, written.map(|w| u64::from(w.warp)));
        probe.vector("writeback_pc", 32, written.map(|w| u64::from(w.pc)));
        probe.code("writeback_inst", written.and_then(|w| self.number_of(w)));
        let registers = written.filter(|w| w.registers > 0);
        probe.vector("writeback_reg", 8, registers.map(|w| u64::from(w.first)));
        let width = count_width(MAX_RESULT_WORDS as u64);
        probe.vector("writeback_regs", width, written.map(|w| u64::from(w.registers)));
    }

    fn ports(&mut self, observer: &mut dyn LinkObserver) {
        self.ports.show(observer);
    }

    /// The entry of each warp names its slot. The latched instruction is of a warp slot that exists.
    fn invariants(&self, check: &mut Invariants) {
        for (slot, start) in self.state.warps.iter().enumerate() {
            let named = start.as_ref().map_or(slot, |start| usize::from(start.warp));
            check.equal(
                format_args!("slot of the warp in slot {slot}"),
                named as u64,
                slot as u64,
            );
        }
        let latched = self
            .state
            .latch
            .as_ref()
            .map_or(0, |(_, warp_inst)| u64::from(warp_inst.warp));
        check.at_most("slot of the latched instruction", latched, self.config.warps as u64 - 1);
    }

    fn stats(&self, report: &mut dyn Report) {
        self.state.stats.report(report);
    }
}

#[cfg(test)]
mod tests;
