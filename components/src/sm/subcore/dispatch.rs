//! The dispatch unit of a sub-core: reads operands for what the scheduler chose, sends it into its pipe, and stores results.
//!
//! ```text
//!   scheduler --Issue--> [dispatch] --WarpInst--> int fp32 half fp64 sfu tensor | lsu | branch
//!             <-Release-           <--WarpInst--  int fp32 half fp64 sfu tensor | lsu, shared
//! ```
//!
//! Results are stored before operands are read, so what is stored in a cycle is read in the same one (the bypass).
//!
//! | what | cycles |
//! |---|---|
//! | issue to operands in the pipe's latch | 2, plus one for each further turn of the fullest register bank |
//! | result at the write port to the scheduler's release | 1 |
//!
//! Every result of a math pipe is stored when it comes: such pipes never lose the port. Of the units behind queues, the LSU and
//! shared memory, each stores one result a cycle (huerta25).
//!
//! # Invariants
//! - One instruction at a time gathers operands; sources are read in the order of issue.
//! - Boxes go round: as many exist as were ever in flight at once.

mod place;
mod results;
mod stats;

pub use stats::Stats;

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::inbox::Inbox;
use warpwave_hw::link::wires::{Show, Wires};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::time::Cycle;
use warpwave_isa::exec::special::Place;
use warpwave_isa::opcode::Pipe;

use crate::bits::bits;
use crate::config::{N_PIPES, PIPE_NAMES};
use crate::proto::event::{EventKind, Log};
use crate::proto::issue::{Issue, Release};
use crate::proto::warp::{IssueInfo, WarpInfo, WarpInst, WarpStart};
use crate::sm::subcore::collector::gather;
use crate::sm::subcore::regfile::RegFile;
use place::place;

/// Numbers of a dispatch unit.
#[derive(Clone, Debug)]
pub struct Config {
    /// Sub-core in its SM.
    pub subcore: u8,
    /// Sub-cores of the SM.
    pub subcores: u32,
    /// Warp slots.
    pub warps: usize,
    /// Warp-wide registers.
    pub rows: usize,
    /// Number of the SM, and SMs of the machine.
    pub sm: (u32, u32),
    /// Core clock.
    pub core_khz: u32,
}

/// The links of a dispatch unit.
pub struct Ports {
    /// Warps to come, and what their barriers counted.
    pub start: InPort<WarpInfo>,
    /// Chosen instructions.
    pub issue: InPort<Issue>,
    /// Stored results.
    pub release: OutPort<Release>,
    /// To each pipe, in the order of [`Pipe`].
    pub pipes: Vec<OutPort<Box<WarpInst>>>,
    /// Results of the math pipes.
    pub results: Vec<InPort<Box<WarpInst>>>,
    /// Results of the units behind queues: LSU, shared memory.
    pub queued: Vec<InPort<Box<WarpInst>>>,
}

warpwave_hw::show_ports!(Ports: start, issue, release, pipes, results, queued);

/// The dispatch unit.
#[allow(
    clippy::vec_box,
    reason = "the boxes travel: taking them out must not move what they hold"
)]
pub struct Dispatch {
    path: Path,
    config: Config,
    ports: Ports,
    /// Numbers `start`, then the results, then the queued ones.
    inbox: Inbox,
    file: RegFile,
    warps: Vec<Option<WarpStart>>,
    /// What the last counting barrier of each warp counted.
    counted: Vec<u32>,
    pool: Vec<Box<WarpInst>>,
    /// The instruction that gathers operands, and when it has them.
    gathering: Option<(Cycle, Box<WarpInst>)>,
    /// What the last tick did, for the waveform.
    sent: Option<(Pipe, u8, u32)>,
    stored: Option<(u8, u32)>,
    stats: Stats,
    log: Log,
}

impl Dispatch {
    /// A dispatch unit with all registers zero.
    pub fn new(path: Path, config: Config, ports: Ports) -> Self {
        assert_eq!(ports.pipes.len(), N_PIPES, "{path}: one link per pipe");
        let mut inbox = Inbox::default();
        inbox.add(&ports.start);
        let results = ports.results.iter().chain(&ports.queued);
        results.for_each(|port| _ = inbox.add(port));
        Dispatch {
            inbox,
            file: RegFile::new(config.rows, config.warps),
            warps: vec![None; config.warps],
            counted: vec![0; config.warps],
            pool: Vec::new(),
            gathering: None,
            sent: None,
            stored: None,
            stats: Stats::default(),
            log: Log::default(),
            path,
            config,
            ports,
        }
    }

    /// Tells the log what happens from now on.
    pub fn subscribe(&mut self, log: Log) {
        self.log = log;
    }

    #[inline]
    fn emit(&self, at: Cycle, warp: u8, kind: EventKind) {
        self.log.emit(at, self.config.subcore, warp, kind);
    }

    fn note(&mut self, note: WarpInfo) {
        match note {
            WarpInfo::Start(start) => {
                let slot = start.warp as usize;
                self.file.assign(slot, start.grid.registers as usize);
                self.warps[slot] = Some(start);
                self.counted[slot] = 0;
            }
            WarpInfo::Counted { warps, count } => bits(warps).for_each(|slot| self.counted[slot] = count),
        }
    }

    fn send_gathered(&mut self, now: Cycle) {
        let Some((ready, warp_inst)) = &self.gathering else {
            return;
        };
        let pipe = warp_inst.info.pipe;
        if *ready > now || !self.ports.pipes[pipe as usize].has_room(now) {
            return;
        }
        if let Some((_, warp_inst)) = self.gathering.take() {
            self.stats.instructions += 1;
            self.stats.thread_instructions += u64::from(warp_inst.lanes.count());
            self.sent = Some((pipe, warp_inst.warp, warp_inst.pc));
            let number = warp_inst.issued.0;
            self.emit(now, warp_inst.warp, EventKind::Send { number });
            let skipped = warp_inst.lanes.is_empty() && !matches!(pipe, Pipe::Lsu | Pipe::Control);
            if skipped && self.ports.release.has_room(now) {
                self.finish(warp_inst, now);
            } else {
                self.ports.pipes[pipe as usize].send(now, warp_inst);
            }
        }
    }

    fn gather_next(&mut self, now: Cycle) {
        let Some(issue) = self.ports.issue.recv(now) else {
            return;
        };
        let (warp, pc) = (issue.warp(), issue.pc());
        let start = self.warps[warp as usize].as_ref().expect("an issued warp has started");
        let mut warp_inst = match self.pool.pop() {
            Some(warp_inst) => warp_inst,
            None => Box::new(WarpInst::blank(self.config.subcore, start.grid.clone())),
        };
        if !std::sync::Arc::ptr_eq(&warp_inst.grid, &start.grid) {
            warp_inst.grid = start.grid.clone();
        }
        let grid = &*start.grid;
        let inst = &grid.program.code()[pc as usize];
        let decoded = &grid.program.decoded()[pc as usize];
        let timing = &grid.timing[pc as usize];
        warp_inst.info = IssueInfo::of(inst, decoded, timing);
        warp_inst.warp = warp;
        warp_inst.pc = pc;
        warp_inst.group = issue.group();
        warp_inst.issued = Cycle(now.0 - 1);
        self.emit(now, warp, EventKind::Gather { number: now.0 - 1 });
        warp_inst.block = start.block;
        warp_inst.index = start.index;
        warp_inst.shared_base = start.shared_base;
        gather(&mut warp_inst, (inst, decoded), issue.active(), &self.file, || Place {
            barrier_count: self.counted[warp as usize],
            ..place(&self.config, start, now)
        });
        let cycles = u64::from(timing.operand_cycles);
        self.stats.bank_conflict_cycles += cycles - 1;
        self.gathering = Some((now + (cycles - 1), warp_inst));
    }
}

/// Number of the first result's port in the inbox.
const FIRST_RESULT: u32 = 1;

warpwave_hw::warm!(Dispatch: file, gathering, stats, warps; ports);

impl Component for Dispatch {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        self.stored = None;
        self.sent = None;
        let under_way = self.inbox.under_way();
        if under_way & 1 != 0 {
            while let Some(note) = self.ports.start.recv(now) {
                self.note(note);
            }
        }
        if under_way >> FIRST_RESULT != 0 {
            self.take_results(under_way >> FIRST_RESULT, now);
        }
        if self.gathering.is_some() {
            self.send_gathered(now);
        }
        if self.gathering.is_none() {
            self.gather_next(now);
            // A free latch sends in the cycle in which it gathers, so operands are under way after one cycle.
            if self.sent.is_none() {
                self.send_gathered(now);
            }
        }
        if self.has_result(now) {
            return Activity::Busy;
        }
        match &self.gathering {
            Some((ready, _)) if *ready > now => Activity::Until(*ready),
            Some((_, warp_inst)) => self.ports.pipes[warp_inst.info.pipe as usize].await_room(now),
            None => Activity::busy_if(self.ports.issue.is_ready(now)),
        }
    }

    fn reset(&mut self) {
        self.file = RegFile::new(self.config.rows, self.config.warps);
        self.warps.fill(None);
        self.counted.fill(0);
        self.gathering = None;
        self.sent = None;
        self.stored = None;
        self.stats = Stats::default();
        self.ports.start.clear();
        self.ports.issue.clear();
        self.ports
            .results
            .iter_mut()
            .chain(&mut self.ports.queued)
            .for_each(InPort::clear);
    }

    fn is_quiescent(&self) -> bool {
        self.gathering.is_none()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.bit("dispatch_valid", Some(self.sent.is_some()));
        probe.state("dispatch_pipe", &PIPE_NAMES, self.sent.map(|(pipe, ..)| pipe as usize));
        probe.vector("dispatch_warp", 5, self.sent.map(|(_, warp, _)| u64::from(warp)));
        probe.vector("dispatch_pc", 32, self.sent.map(|(.., pc)| u64::from(pc)));
        probe.bit("collector_busy", Some(self.gathering.is_some()));
        probe.bit("writeback_valid", Some(self.stored.is_some()));
        probe.vector("writeback_warp", 5, self.stored.map(|(warp, _)| u64::from(warp)));
        probe.vector("writeback_pc", 32, self.stored.map(|(_, pc)| u64::from(pc)));
    }

    fn wires(&mut self, wires: &mut dyn Wires) {
        self.ports.show(wires);
    }

    fn stats(&self, report: &mut dyn Report) {
        self.stats.report(report);
    }
}
