//! Shared memory of an SM: 32 banks of 4-byte words behind a crossbar. Shuffles use the crossbar too.
//!
//! ```text
//!                +--------------------------------------------+
//!   lsu input -->| banks: one access, 1 pass per cycle -------|--> output, to the dispatch unit of each sub-core
//!                |   ^             parked mbarrier tests -----|-->
//!                |   |             warpgroup products --------|-->
//!                +---|----------------------------------^-----+
//!                    v                                  |
//!     lines: other SMs, bulk copy engine       products: tensor pipes
//!     residence: starts and ends of CTAs, from the CTA manager
//! ```
//!
//! A 32-bit access takes a pass for each distinct word on its busiest bank. An atomic takes a pass for each lane on its busiest bank
//! ([`data_banks`](crate::proto::data_banks)). The next access begins after the last pass.
//!
//! | Operation | Cycles, issue to dependent issue |
//! |---|---|
//! | load without conflict | `latency` |
//! | each further pass | adds `conflict_latency_per_pass`; the banks are busy for one of these cycles |
//! | atomic | `atomic_latency`, plus its further passes |
//! | shuffle | `shuffle_latency` |
//! | fence before products and bulk copies | after the accesses before it; the banks are busy for 1 cycle (assumed) |
//! | test of an mbarrier | at least `latency`; a `try_wait` is parked until its phase completes, or for `try_wait_cycles` |
//!
//! An arrival that exceeds the counts of an mbarrier traps, and changes nothing.
//!
//! Other SMs and the bulk copy engine access lines of 128 bytes (`lines`), in turn with the SM's own accesses. An access to a CTA that has
//! ended is refused: it changes nothing, and the requester traps (`residents`).
//!
//! Invariant: accesses of the LSU take effect in order of arrival. Parked tests and lines of other SMs are not in this order.

mod access;
mod atomics;
mod lines;
mod mbarrier;
mod products;
mod residents;
mod stats;

pub use lines::LinePorts;
pub use stats::{Accesses, Stats};

use warpwave_hw::component::{Activity, Component};
use warpwave_hw::grow::grow;
use warpwave_hw::invariant::Invariants;
use warpwave_hw::link::delay::DelayLines;
use warpwave_hw::link::wires::{LinkObserver, Show};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::time::Cycle;
use warpwave_isa::exec::execute;
use warpwave_isa::opcode::Opcode;

use crate::config;
use crate::proto::cluster::CtaResidence;
use crate::proto::event::{EventKind, Log};
use crate::proto::launch::{Route, Timing, Trap};
use crate::proto::timing::RETURN_CYCLES;
use crate::proto::warp::{SLOT_WIDTH, WarpInst};
use lines::Lines;
use mbarrier::ParkedTests;
use residents::Residents;

/// Configuration of shared memory.
#[derive(Clone, Debug)]
pub struct Config {
    /// Capacity in bytes: the largest carve-out.
    pub bytes: u32,
    /// Allocation unit for the shared memory of a CTA, bytes.
    pub shared_unit: u32,
    /// Latencies.
    pub shared: config::Shared,
}

/// The links of shared memory.
pub struct Ports {
    /// Accesses and shuffles, from the LSU.
    pub input: InPort<Box<WarpInst>>,
    /// Complete instructions, to each sub-core.
    pub output: Vec<OutPort<Box<WarpInst>>>,
    /// Warpgroup products (`wgmma`), from the tensor pipe of each sub-core. Empty if the GPU has none.
    pub products: Vec<InPort<Box<WarpInst>>>,
    /// Line accesses of other SMs and of the bulk copy engine. Empty if the GPU has no clusters.
    pub lines: Vec<LinePorts>,
    /// Starts and ends of CTAs, from the CTA manager, on a GPU with clusters.
    pub residence: Option<InPort<CtaResidence>>,
    /// Traps of arrivals at mbarriers, to the CTA manager.
    pub trap: OutPort<Box<Trap>>,
}

warpwave_hw::show_ports!(Ports: input, output, products, lines, residence, trap);

/// The access that occupies the banks.
struct Current {
    warp_inst: Box<WarpInst>,
    passes: u32,
    /// Cycle of the last pass.
    last: Cycle,
}

/// The state that `reset` clears.
struct State {
    /// The bytes, up to the last one that a CTA has used: most kernels use few.
    bytes: Vec<u8>,
    current: Option<Current>,
    /// The SM's own accesses occupy the banks until this cycle, exclusive.
    banks_free_at: Cycle,
    parked: ParkedTests,
    lines: Lines,
    residents: Residents,
    /// Results with a remaining latency above the longest of a link.
    late: DelayLines<Box<WarpInst>>,
    /// Warp, program counter and passes of the access of the last tick, for the waveform.
    shown: Option<(u8, u32, u32)>,
    stats: Stats,
}

impl State {
    fn new(ports: &Ports) -> Self {
        State {
            bytes: Vec::new(),
            current: None,
            banks_free_at: Cycle::ZERO,
            parked: ParkedTests::default(),
            lines: Lines::new(ports.lines.len()),
            residents: Residents::new(),
            late: DelayLines::new(ports.output.len()),
            shown: None,
            stats: Stats::default(),
        }
    }
}

/// Shared memory.
pub struct SharedMemory {
    path: Path,
    config: Config,
    ports: Ports,
    log: Log,
    state: State,
}

warpwave_hw::warm!(SharedMemory: ; ports);

impl SharedMemory {
    /// Shared memory with all bytes zero.
    pub fn new(path: Path, config: Config, ports: Ports) -> Self {
        SharedMemory {
            state: State::new(&ports),
            log: Log::default(),
            path,
            config,
            ports,
        }
    }

    /// The bytes that CTAs have used so far.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.state.bytes
    }

    /// Sends events to `log` from now on.
    pub fn subscribe(&mut self, log: Log) {
        self.log = log;
    }

    /// Ends the current access at its last pass, or later when its link has room.
    fn end_current(&mut self, now: Cycle) {
        let Some(current) = &self.state.current else {
            self.state.shown = None;
            return;
        };
        if current.last <= now
            && self.ports.output[current.warp_inst.subcore as usize].has_room(now)
            && let Some(current) = self.state.current.take()
        {
            self.end(current, now);
        }
    }

    /// Takes the next access, if the banks are free.
    fn begin(&mut self, now: Cycle) {
        let state = &self.state;
        if state.current.is_some() || state.banks_free_at > now || state.lines.hold_banks(now) {
            return;
        }
        let Some(warp_inst) = self.ports.input.recv(now) else {
            return;
        };
        // A shuffle uses the crossbar between banks and lanes, but no bytes.
        if warp_inst.info.route != Route::Shuffle {
            self.use_bytes(end_of_cta(&warp_inst));
        }
        let state = &mut self.state;
        // The banks are reserved for all passes at once. The data moves at the last one.
        let passes = state.stats.count(&warp_inst);
        state.stats.busy_cycles += u64::from(passes);
        state.shown = Some((warp_inst.warp, warp_inst.pc, passes));
        state.banks_free_at = now + u64::from(passes);
        let (subcore, number) = (warp_inst.subcore, warp_inst.issued.0);
        let access = EventKind::Access { number, passes };
        self.log.emit(now, subcore, warp_inst.warp, access);
        let current = Current {
            warp_inst,
            passes,
            last: now + u64::from(passes - 1),
        };
        // Most accesses have one pass. They end in the cycle in which they begin.
        if passes == 1 && self.ports.output[subcore as usize].has_room(now) {
            self.end(current, now);
        } else {
            state.current = Some(current);
        }
    }

    /// Performs an access, and sends it to its sub-core. The link has room.
    fn end(&mut self, current: Current, now: Cycle) {
        let Current {
            mut warp_inst, passes, ..
        } = current;
        let Timing { latency, route, .. } = warp_inst.timing();
        self.perform(&mut warp_inst, now);
        if route == Route::Other && mbarrier::may_wait(&warp_inst) {
            let until = now + u64::from(self.config.shared.try_wait_cycles);
            // The banks are free again: only the test waits.
            return self.state.parked.park(warp_inst, until);
        }
        let spent = now.since(warp_inst.issued) + RETURN_CYCLES;
        // Each further pass adds `conflict_latency_per_pass` cycles: one with busy banks, and the rest.
        let further = u64::from(passes - 1);
        let rest = further * u64::from(self.config.shared.conflict_latency_per_pass.saturating_sub(1));
        let total = u64::from(latency) + further + rest;
        let extra = total.saturating_sub(spent);
        if !matches!(route, Route::Shuffle | Route::Fence) {
            self.state.stats.latency.record(spent + extra);
        }
        let subcore = warp_inst.subcore as usize;
        self.state
            .late
            .send(&mut self.ports.output, subcore, now, extra, warp_inst);
    }

    fn perform(&mut self, warp_inst: &mut WarpInst, now: Cycle) {
        match warp_inst.inst().op {
            Opcode::Shfl => shuffle(warp_inst),
            // All accesses before it have been performed, and it has none.
            Opcode::FenceView | Opcode::Membar => {}
            Opcode::Ldsm => self.load_matrices(warp_inst),
            Opcode::Ld => self.load(warp_inst),
            Opcode::St => self.store(warp_inst),
            Opcode::Ldgsts => self.copy(warp_inst),
            Opcode::Syncs => mbarrier::test(&self.state.bytes, warp_inst),
            _ => self.perform_atomic(warp_inst, now),
        }
    }

    /// Sends a trap. Later traps are dropped: the first one ends the launch.
    #[cold]
    fn send_trap(&mut self, trap: Box<Trap>, now: Cycle) {
        if self.ports.trap.has_room(now) {
            self.ports.trap.send(now, trap);
        }
    }

    /// Allocates host memory for the bytes below `end`.
    #[inline]
    fn use_bytes(&mut self, end: usize) {
        if end > self.state.bytes.len() {
            self.grow(end);
        }
    }

    #[cold]
    fn grow(&mut self, end: usize) {
        // Grows by doubling, so that a kernel with little shared memory costs the host little.
        let bytes = end.next_power_of_two().min(self.config.bytes as usize);
        grow(&mut self.state.bytes, bytes, 0);
    }

    /// When to tick next.
    fn activity(&self, now: Cycle) -> Activity {
        let state = &self.state;
        if self.ports.products.iter().any(|port| port.is_ready(now)) {
            return Activity::Busy;
        }
        let own = match &state.current {
            Some(current) if current.last > now => Activity::Until(current.last),
            Some(_) => Activity::Busy,
            None if self.ports.input.is_ready(now) => Activity::Until(state.banks_free_at.max(now + 1)),
            None => Activity::Idle,
        };
        let mut next = own.or(state.late.activity(&self.ports.output, now));
        if state.parked.is_blocked() {
            return Activity::Busy;
        }
        if let Some(end) = state.parked.next_end() {
            next = next.or(Activity::Until(end.max(now + 1)));
        }
        if !self.ports.lines.is_empty() {
            next = next.or(state.lines.activity(&self.ports.lines, now));
        }
        next
    }
}

impl Component for SharedMemory {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        // From the last stage to the first. Older results take the room in the links first.
        self.state.late.run(&mut self.ports.output, now);
        // Before `begin`: when an access has waited for room in its link, the next one begins in this cycle.
        self.end_current(now);
        if let Some(port) = &mut self.ports.residence {
            // Before the lines: a CTA that has ended is served no more.
            while let Some(residence) = port.recv(now) {
                self.state.residents.change(residence);
            }
        }
        if !self.ports.lines.is_empty() {
            // Before `begin`: when lines have their turn, they take the banks of this cycle.
            self.run_lines(now);
        }
        if !self.ports.products.is_empty() {
            // Before `begin`: warpgroup products read the bytes before an access that begins in this cycle changes them.
            self.run_products(now);
        }
        self.begin(now);
        // Parked tests run after the accesses of this cycle. They see an arrival at an mbarrier in the same cycle.
        if !self.state.parked.is_empty() {
            let State {
                parked, bytes, late, ..
            } = &mut self.state;
            parked.respond(bytes, late, &mut self.ports.output, now);
        }
        self.activity(now)
    }

    fn reset(&mut self) {
        self.state = State::new(&self.ports);
        self.ports.clear_inputs();
    }

    fn is_quiescent(&self) -> bool {
        let state = &self.state;
        state.current.is_none() && state.parked.is_empty() && state.lines.is_empty() && state.late.is_empty()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        let shown = self.state.shown;
        probe.bit("busy", Some(shown.is_some()));
        probe.vector("warp", SLOT_WIDTH, shown.map(|(warp, ..)| u64::from(warp)));
        probe.vector("pc", 32, shown.map(|(_, pc, _)| u64::from(pc)));
        let passes = shown.map_or(0, |(.., passes)| u64::from(passes));
        probe.state("banks", &BANK_STATES, Some(bank_state(passes)));
        probe.vector("passes", 6, Some(passes));
    }

    fn ports(&mut self, observer: &mut dyn LinkObserver) {
        self.ports.show(observer);
    }

    /// The array has at most its capacity. The current access has the banks until its end.
    fn invariants(&self, check: &mut Invariants) {
        check.at_most("bytes", self.state.bytes.len() as u64, self.config.bytes.into());
        let Some(current) = &self.state.current else { return };
        check.at_most("end of the current access", current.last.0, self.state.banks_free_at.0);
    }

    fn stats(&self, report: &mut dyn Report) {
        self.state.stats.report(report);
    }
}

fn shuffle(warp_inst: &mut WarpInst) {
    let (inst, decoded) = warp_inst.grid.instruction(warp_inst.pc);
    execute(
        inst,
        decoded,
        warp_inst.lanes,
        &warp_inst.operands,
        &mut warp_inst.results,
    );
}

/// End of the shared memory of a warp's CTA.
fn end_of_cta(warp_inst: &WarpInst) -> usize {
    warp_inst.shared_base as usize + warp_inst.grid.shared_bytes as usize
}

/// Names of the bank states, by the passes of the current access. More than one pass is a bank conflict.
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

#[cfg(test)]
mod tests;
