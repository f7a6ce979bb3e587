//! Shared memory: 32 banks of words behind a crossbar, which shuffles use too.
//!
//! ```text
//!   lsu --WarpInst--> [shared] --WarpInst, later--> dispatch of the sub-core
//! ```
//!
//! An access takes as many passes as its worst bank has words to give (see [`super::banks`]); the banks are its own for that
//! long. The next access waits.
//!
//! | what | cycles, issue to dependent issue |
//! |---|---|
//! | load without conflict | `latency` |
//! | each further pass | `conflict_latency_per_pass`, of which the banks are busy for one |
//! | atomic | `atomic_latency`, plus its further passes |
//! | shuffle | `shuffle_latency` |
//! | test of an mbarrier | `latency`; one that may wait: until the phase is over, or `try_wait_cycles` have passed |
//!
//! Other SMs' accesses and bulk copies come line by line (module `lines`); with the SM's own they take turns.
//!
//! Invariant: accesses take effect in the order in which they come.

mod access;
mod count;
mod lines;
mod products;

pub use lines::LinePorts;

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::delay::DelayLines;
use warpwave_hw::link::wires::{LinkObserver, Show};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::{Latency, Report};
use warpwave_hw::time::Cycle;
use warpwave_isa::exec::execute;
use warpwave_isa::opcode::Opcode;

use crate::config;
use crate::proto::event::{EventKind, Log};
use crate::proto::launch::{Route, Timing};
use crate::proto::warp::WarpInst;
use crate::sm::lsu::halves::Halves;
use crate::sm::lsu::mbarrier;
use lines::Lines;
use warpwave_hw::grow::grow;

/// Numbers of shared memory.
#[derive(Clone, Debug)]
pub struct Config {
    /// Bytes: the largest carve-out.
    pub bytes: u32,
    /// Latencies.
    pub shared: config::Shared,
}

/// The links of shared memory.
pub struct Ports {
    /// Accesses and shuffles.
    pub input: InPort<Box<WarpInst>>,
    /// Their ends, to each sub-core.
    pub output: Vec<OutPort<Box<WarpInst>>>,
    /// Products of warp groups, from each tensor pipe, where there are any.
    pub products: Vec<InPort<Box<WarpInst>>>,
    /// Accesses line by line, where there are clusters: of other SMs, of the bulk copy engine.
    pub lines: Vec<LinePorts>,
}

warpwave_hw::show_ports!(Ports: input, output, products, lines);

/// One kind of access.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Accesses {
    /// Warp instructions.
    pub instructions: u64,
    /// Passes that they took.
    pub passes: u64,
    /// Passes beyond those that they would have taken without conflicts.
    pub conflicts: u64,
}

/// What shared memory counts.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Loads, matrix loads among them.
    pub loads: Accesses,
    /// Stores.
    pub stores: Accesses,
    /// Atomics and reductions.
    pub atomics: Accesses,
    /// Shuffles.
    pub shuffles: u64,
    /// Cycles in which the banks were taken.
    pub busy_cycles: u64,
    /// Accesses of other SMs, line by line.
    pub lines: u64,
    /// Products of warp groups, eight columns of a warp at a time.
    pub products: u64,
    /// Issue to use, shuffles left out.
    pub latency: Latency,
}

/// The access that has the banks.
struct Current {
    /// Its last cycle there.
    last: Cycle,
    warp_inst: Box<WarpInst>,
    passes: u32,
    /// What its halves want, where that was quick to see.
    halves: Option<Halves>,
}

/// Shared memory.
pub struct SharedMemory {
    path: Path,
    config: Config,
    ports: Ports,
    /// As far as CTAs used it, and some more: most kernels use little.
    bytes: Vec<u8>,
    current: Option<Current>,
    /// When the banks are free again.
    free: Cycle,
    waiting: mbarrier::Waiting,
    /// Warp, instruction and passes of what had the banks in the last tick.
    shown: Option<(u8, u32, u32)>,
    lines: Lines,
    /// Results that are due later than the link to their sub-core can hold them.
    late: DelayLines<Box<WarpInst>>,
    stats: Stats,
    log: Log,
}

impl SharedMemory {
    /// Shared memory of zeros.
    pub fn new(path: Path, config: Config, ports: Ports) -> Self {
        let lines = Lines::new(ports.lines.len());
        SharedMemory {
            late: DelayLines::new(ports.output.len()),
            path,
            config,
            ports,
            bytes: Vec::new(),
            current: None,
            free: Cycle::ZERO,
            waiting: mbarrier::Waiting::default(),
            shown: None,
            lines,
            stats: Stats::default(),
            log: Log::default(),
        }
    }

    /// Tells the log what happens from now on.
    pub fn subscribe(&mut self, log: Log) {
        self.log = log;
    }

    /// Sees to it that there are bytes up to `end`, as far as the SM has them.
    #[inline]
    fn use_bytes(&mut self, end: usize) {
        if end > self.bytes.len() {
            self.grow(end);
        }
    }

    #[cold]
    fn grow(&mut self, end: usize) {
        let bytes = end.next_power_of_two().min(self.config.bytes as usize);
        grow(&mut self.bytes, bytes, 0);
    }

    /// Ends the access that has the banks in its last cycle there, or later when its link has room.
    fn finish(&mut self, now: Cycle) {
        let Some(current) = &self.current else { return };
        if current.last <= now
            && self.ports.output[current.warp_inst.subcore as usize].has_room(now)
            && let Some(current) = self.current.take()
        {
            self.end(current, now);
        }
    }

    /// Carries an access out, and sends it to its sub-core, which has room.
    fn end(&mut self, current: Current, now: Cycle) {
        let Current {
            mut warp_inst,
            passes,
            halves,
            ..
        } = current;
        let Timing { latency, route, .. } = warp_inst.timing();
        match halves {
            Some(halves) => self.move_halves(&mut warp_inst, halves),
            None => self.perform(&mut warp_inst),
        }
        if route == Route::Other && mbarrier::may_wait(&warp_inst) {
            let gives_up = now + u64::from(self.config.shared.try_wait_cycles);
            self.waiting.hold(warp_inst, gives_up);
            return;
        }
        let spent = now.since(warp_inst.issued) + 2;
        // Bank time beyond the first pass has been spent; what each pass adds beyond that comes on top.
        let further = u64::from(passes - 1);
        let slower = further * u64::from(self.config.shared.conflict_latency_per_pass.saturating_sub(1));
        let wanted = u64::from(latency) + further + slower;
        let extra = wanted.saturating_sub(spent);
        if route != Route::Shuffle {
            self.stats.latency.record(spent + extra);
        }
        self.send_late(warp_inst, extra, now);
    }

    /// Sends a result that takes `extra` cycles more than the link.
    #[inline]
    fn send_late(&mut self, warp_inst: Box<WarpInst>, extra: u64, now: Cycle) {
        let subcore = warp_inst.subcore as usize;
        self.late.send(&mut self.ports.output, subcore, now, extra, warp_inst);
    }

    fn begin(&mut self, now: Cycle) {
        if self.free > now || self.lines.hold_banks(now) {
            return;
        }
        let Some(warp_inst) = self.ports.input.recv(now) else {
            return;
        };
        if warp_inst.timing().route != Route::Shuffle {
            self.use_bytes(end_of_cta(&warp_inst));
        }
        let (passes, halves) = self.count(&warp_inst);
        self.stats.busy_cycles += u64::from(passes);
        self.shown = Some((warp_inst.warp, warp_inst.pc, passes));
        let number = warp_inst.issued.0;
        self.log.emit(
            now,
            warp_inst.subcore,
            warp_inst.warp,
            EventKind::Access { number, passes },
        );
        self.free = now + u64::from(passes);
        let current = Current {
            last: now + u64::from(passes - 1),
            warp_inst,
            passes,
            halves,
        };
        // An access without conflicts has the banks for this one cycle.
        if passes == 1 && self.ports.output[current.warp_inst.subcore as usize].has_room(now) {
            self.end(current, now);
        } else {
            self.current = Some(current);
        }
    }

    /// When to tick next: because of the SM's own accesses, or of what else there may be here.
    fn activity_beside(&self, own: Activity, now: Cycle) -> Activity {
        let mut activity = own.or(self.late.activity(&self.ports.output, now));
        if let Some(gives_up) = self.waiting.until() {
            activity = activity.or(Activity::Until(gives_up.max(now + 1)));
        }
        if self.ports.products.iter().any(|port| port.is_ready(now)) {
            activity = Activity::Busy;
        }
        if !self.ports.lines.is_empty() {
            activity = activity.or(self.lines.activity(&self.ports.lines, now));
        }
        activity
    }

    fn perform(&mut self, warp_inst: &mut WarpInst) {
        match warp_inst.inst().op {
            Opcode::Shfl => {
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
            Opcode::Ldsm => self.load_matrices(warp_inst),
            Opcode::Ld => self.load(warp_inst),
            Opcode::St => self.store(warp_inst),
            Opcode::Ldgsts => self.copy(warp_inst),
            Opcode::Syncs => mbarrier::test(&self.bytes, warp_inst),
            _ => self.atomics(warp_inst),
        }
    }
}

warpwave_hw::warm!(SharedMemory: ; ports);

impl Component for SharedMemory {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        self.late.run(&mut self.ports.output, now);
        match &self.current {
            Some(_) => self.finish(now),
            None => self.shown = None,
        }
        if !self.ports.lines.is_empty() {
            self.run_lines(now);
        }
        if !self.ports.products.is_empty() {
            self.run_products(now);
        }
        if self.current.is_none() {
            self.begin(now);
        }
        if !self.waiting.is_empty() {
            self.waiting.answer(&self.bytes, &mut self.ports.output, now);
        }
        let activity = match &self.current {
            Some(current) if current.last > now => Activity::Until(current.last),
            Some(_) => Activity::Busy,
            None if self.ports.input.is_ready(now) => Activity::Until(self.free.max(now + 1)),
            None => Activity::Idle,
        };
        self.activity_beside(activity, now)
    }

    fn reset(&mut self) {
        self.bytes.clear();
        self.current = None;
        self.free = Cycle::ZERO;
        self.waiting.clear();
        self.late = DelayLines::new(self.ports.output.len());
        self.shown = None;
        self.stats = Stats::default();
        self.ports.input.clear();
        self.lines = Lines::new(self.ports.lines.len());
        self.ports.products.iter_mut().for_each(InPort::clear);
        self.ports.lines.iter_mut().for_each(|lines| lines.input.clear());
    }

    fn is_quiescent(&self) -> bool {
        self.current.is_none() && self.waiting.is_empty() && self.lines.is_empty() && self.late.is_empty()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.bit("busy", Some(self.shown.is_some()));
        probe.vector("warp", 5, self.shown.map(|(warp, ..)| u64::from(warp)));
        probe.vector("pc", 32, self.shown.map(|(_, pc, _)| u64::from(pc)));
        let passes = self.shown.map_or(0, |(.., passes)| u64::from(passes));
        probe.state("banks", &BANK_STATES, Some(bank_state(passes)));
        probe.vector("passes", 6, Some(passes));
    }

    fn ports(&mut self, observer: &mut dyn LinkObserver) {
        self.ports.show(observer);
    }

    fn stats(&self, report: &mut dyn Report) {
        let stats = &self.stats;
        for (names, accesses) in [
            (LOADS, &stats.loads),
            (STORES, &stats.stores),
            (ATOMICS, &stats.atomics),
        ] {
            let values = [accesses.instructions, accesses.passes, accesses.conflicts];
            names
                .iter()
                .zip(values)
                .for_each(|(name, value)| report.count(name, value));
        }
        report.count("shuffles", stats.shuffles);
        report.count("busy_cycles", stats.busy_cycles);
        report.count("cluster_lines", stats.lines);
        report.count("products", stats.products);
        report.latency("shared", &stats.latency);
    }
}

/// Where the shared memory of a warp's CTA ends.
fn end_of_cta(warp_inst: &WarpInst) -> usize {
    warp_inst.shared_base as usize + warp_inst.grid.shared_bytes as usize
}

/// What the banks do, by the passes of the access that has them: a conflict takes more than one.
const BANK_STATES: [&str; 7] = [
    "idle",
    "1_pass",
    "2_passes",
    "to_4_passes",
    "to_8_passes",
    "to_16_passes",
    "to_32_passes",
];

fn bank_state(passes: u64) -> usize {
    match passes {
        0 => 0,
        n => (1 + n.next_power_of_two().trailing_zeros() as usize).min(BANK_STATES.len() - 1),
    }
}

const LOADS: [&str; 3] = ["shared_ld_inst", "shared_ld_passes", "shared_ld_conflicts"];
const STORES: [&str; 3] = ["shared_st_inst", "shared_st_passes", "shared_st_conflicts"];
const ATOMICS: [&str; 3] = ["shared_atom_inst", "shared_atom_passes", "shared_atom_conflicts"];

#[cfg(test)]
mod tests;
