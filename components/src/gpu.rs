//! The GPU: builds all blocks from a configuration, wires them, and runs grids. The only module that names every block.
//!
//! ```text
//!   host <-> front tile: gigathread
//!               |  one tile per SM: cta, 4 x subcore, lsu, shared, l1
//!               |  on a part with clusters, one tile per GPC: the network among its SMs, the cluster barrier
//!               |     one tile per crossbar network: requests, responses
//!               |        one tile per memory partition: L2 slices, HBM channels
//! ```

mod build;
mod engine;
mod events;
mod factory;
mod fault;
mod gpc;
mod hang;
mod invariants;
mod launch_log;
mod memory;
mod sm;
mod spins;
mod standstill;
mod subcore;
mod wiring;

pub use factory::{BeforeL1Ports, Factory};
pub use fault::{FaultReport, InjectError};
pub use hang::Hang;

use std::ops::Range;
use std::sync::Arc;

use thiserror::Error;
use warpwave_hw::clock::{Clock, Pause, Stop};
use warpwave_hw::component::Component;
use warpwave_hw::error::SimError;
use warpwave_hw::link::audit::LinkAudit;
use warpwave_hw::link::fault::{FaultKind, LinkCheck};
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::time::Cycle;

use crate::config::GpuConfig;
use crate::occupancy::occupancy;
use crate::proto::issue::MAX_INSTRUCTIONS;
use crate::proto::launch::{Grid, GridEvent, Trap};
use crate::proto::mem::{LINE, SliceCommand};
use crate::proto::predecoded;
use crate::sm::timing;
use crate::storage::Storage;
use hang::Polls;
use spins::SpinSearch;
use standstill::StandstillSearch;

// The host sees the end of a grid only after a quantum. Without the alignment, the next launch would depend on the quantum.
/// Alignment of the first cycle of a launch, in cycles. Longer than the longest quantum and the host's links together.
pub const LAUNCH_ALIGNMENT: u64 = 64;

/// A simulated GPU.
pub struct Gpu {
    config: GpuConfig,
    clock: Clock,
    storage: Arc<Storage>,
    grids: OutPort<Arc<Grid>>,
    events: InPort<GridEvent>,
    slices: Vec<OutPort<SliceCommand>>,
    /// Address and size in bytes of the allocation for local memory.
    local: (u64, u64),
    /// Grids launched so far: the id of the next grid. An SM invalidates its L1 when the id of its grid changes.
    launches: u32,
    /// Cycles of the latest launch.
    latest: Launched,
    /// The checks of the links with faults.
    faults: Vec<LinkCheck>,
    /// The paths of these links, with their faults.
    faulty_links: Vec<(String, FaultKind)>,
    /// Why the latest launch hangs, if it does.
    hang: Option<Hang>,
    /// True while a cancelled launch may run on to find what its warps poll.
    explains_cancel: fn() -> bool,
    /// The audits of all links, in a run that checks invariants.
    audits: Option<Vec<LinkAudit>>,
}

/// First and last cycle of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Launched {
    /// Cycle in which the host sent the grid.
    pub start: Cycle,
    /// Cycle in which GigaThread received the end of the last CTA, or in which the launch was stopped.
    pub end: Cycle,
}

impl Launched {
    /// Cycles from start to end.
    pub fn cycles(&self) -> u64 {
        self.end.since(self.start)
    }
}

/// Reason why a launch failed or stopped.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum LaunchError {
    /// A thread trapped.
    #[error("{} at instruction {} (line {})", .0.kind, .0.pc, .0.line)]
    Trap(Box<Trap>),
    /// Deadlock, standstill, or the cycle limit was reached.
    #[error(transparent)]
    Sim(SimError),
    /// Device memory has no room for the local memory of all resident threads.
    #[error("device memory has no room for {bytes} bytes of local memory")]
    LocalMemory {
        /// Bytes for the threads of every warp slot.
        bytes: u64,
    },
    /// The program has more than [`MAX_INSTRUCTIONS`] instructions.
    #[error("the program has {instructions} instructions, the limit is {MAX_INSTRUCTIONS}")]
    TooLong {
        /// Instructions of the program.
        instructions: usize,
    },
    /// The caller asked to stop.
    #[error("cancelled in cycle {0}")]
    Cancelled(Cycle),
    /// The sample ended. The value is the cycle after its last one.
    #[error("the sample ended before cycle {0}")]
    Sampled(Cycle),
    /// The check of a faulty link found a violation, or the fault broke an invariant of a component.
    #[error("{0}")]
    Fault(FaultReport),
}

/// Reads the machine at the first cycle of a sample.
pub type ReadGpu<'a> = dyn FnMut(&Gpu, Cycle) + 'a;

/// The part of a launch that the host samples.
pub struct Sample<'a> {
    /// Cycles of the clock. The launch stops at the end.
    pub cycles: Range<Cycle>,
    /// Called once, at the first cycle of the sample or of the launch, whichever is later. The machine has run all cycles before it.
    /// `None` if the sample began in an earlier launch.
    pub begin: Option<&'a mut ReadGpu<'a>>,
}

impl Gpu {
    /// Builds the machine from a configuration without faults ([`GpuConfig::check`]).
    pub fn new(config: GpuConfig) -> Self {
        Gpu::with_factory(config, &Factory::new())
    }

    /// Builds the machine with the parts that `factory` replaces.
    pub fn with_factory(config: GpuConfig, factory: &Factory) -> Self {
        let storage = Arc::new(Storage::new(config.memory_bytes));
        let machine = build::build_machine(&config, factory, &storage);
        Gpu {
            clock: machine.clock,
            storage,
            grids: machine.grids,
            events: machine.events,
            slices: machine.slices,
            local: (0, 0),
            launches: 0,
            latest: Launched {
                start: Cycle::ZERO,
                end: Cycle::ZERO,
            },
            faults: Vec::new(),
            faulty_links: Vec::new(),
            hang: None,
            explains_cancel: || false,
            audits: None,
            config,
        }
    }

    /// The configuration.
    pub fn config(&self) -> &GpuConfig {
        &self.config
    }

    /// Device memory, for the host between launches.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Cycles of the latest launch, finished or stopped.
    pub fn latest(&self) -> Launched {
        self.latest
    }

    /// Why the latest launch hangs: a deadlock, or a standstill. After the cycle limit or a cancel: what its warps poll. `None` for any
    /// other end.
    pub fn hang(&self) -> Option<&Hang> {
        self.hang.as_ref()
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The clock, to set threads and quantum, and to watch components.
    pub fn clock_mut(&mut self) -> &mut Clock {
        &mut self.clock
    }

    /// Lets a cancelled launch run on while `goes_on` is true, for about 1,500 cycles at most. Then [`Gpu::hang`] says what its warps poll.
    pub fn explain_cancel(&mut self, goes_on: fn() -> bool) {
        self.explains_cancel = goes_on;
    }

    /// Every component, in the order in which the machine was built.
    pub fn components(&self) -> impl Iterator<Item = &dyn Component> + Clone {
        self.clock
            .tiles()
            .iter()
            .flat_map(|tile| tile.components())
            .map(|component| component.as_ref())
    }

    /// Runs one grid to its end, for at most `limit` cycles. Calls `each_quantum` with the current cycle after every quantum; `false`
    /// stops the run.
    ///
    /// Afterwards, device memory holds all writes of the grid. After an error the machine is reset, and device memory holds only the lines
    /// that were already written back.
    pub fn launch(
        &mut self,
        grid: Grid,
        limit: Option<u64>,
        each_quantum: &mut dyn FnMut(Cycle) -> bool,
    ) -> Result<Launched, LaunchError> {
        let result = self.launch_or_freeze(grid, limit, None, &mut |pause| each_quantum(pause.now()));
        if result.is_err() {
            self.reset();
        }
        result
    }

    /// Runs one grid as [`Gpu::launch`] does, but without a reset after an error: the counters can be read. `each_quantum` can read the
    /// components. After an error, call [`Gpu::reset`] before the next launch.
    ///
    /// A `sample` changes no cycle before its end, where the launch stops with [`LaunchError::Sampled`].
    pub fn launch_or_freeze(
        &mut self,
        mut grid: Grid,
        limit: Option<u64>,
        sample: Option<Sample<'_>>,
        each_quantum: &mut dyn FnMut(&Pause<'_>) -> bool,
    ) -> Result<Launched, LaunchError> {
        let instructions = grid.program.code().len();
        if instructions > MAX_INSTRUCTIONS {
            return Err(LaunchError::TooLong { instructions });
        }
        self.hang = None;
        grid.id = self.launches;
        self.launches += 1;
        let _span = launch_log::enter_launch(&grid, self.clock.now());
        // Once per launch: the blocks look instructions up by program counter.
        grid.timing = timing::table(&grid.program, &self.config.sm);
        grid.predecoded = predecoded::table(&grid.program, &grid.timing);
        grid.l1_bytes = self.l1_bytes(&grid);
        grid.local_base = self.local_memory(grid.program.requirements().local_bytes)?;
        // The L2 may hold stale copies of lines that the host has written.
        if self.storage.take_host_wrote() {
            self.guarded(|gpu| gpu.command_slices(SliceCommand::Invalidate))?;
        }
        let start = self.clock.now();
        let end = limit.map_or(Cycle::NEVER, |cycles| start + cycles);
        launch_log::launch_begins(&grid, start);
        self.grids.send(start, Arc::new(grid));
        let ended = self.guarded(|gpu| gpu.run_grid(start, end, sample, each_quantum));
        let stopped = self.clock.now();
        let mut result = ended.and_then(|result| self.fault_report(None).map_or(result, Err));
        self.latest = *result.as_ref().unwrap_or(&Launched { start, end: stopped });
        launch_log::launch_ends(self.launches - 1, start, stopped, &result);
        if result.is_err() {
            self.log_open_waits(stopped);
        }
        if let Ok(launched) = result {
            self.guarded(|gpu| gpu.drain(launched.end))?;
            // A bulk copy can outlive the blocks of its grid, and trap.
            if let Some(GridEvent::Trap(trap)) = self.events.recv(self.clock.now()) {
                return Err(LaunchError::Trap(trap));
            }
            self.assert_invariants_at_rest();
            // Messages that were in flight at the end have arrived now.
            result = self.fault_report(None).map_or(result, Err);
        }
        result
    }

    /// Runs a part of the simulation. A fault may break an invariant of a component, which panics: the error is its report.
    fn guarded<R>(&mut self, run: impl FnOnce(&mut Self) -> R) -> Result<R, LaunchError> {
        match self.faults.is_empty() {
            true => Ok(run(self)),
            false => fault::broken_invariant(|| run(self))
                .map_err(|broken| self.fault_report(Some(broken)).expect("an invariant broke")),
        }
    }

    /// Runs the clock from `start` until the grid has ended, nothing can move, `end`, or the end of `sample`.
    fn run_grid(
        &mut self,
        start: Cycle,
        limit: Cycle,
        sample: Option<Sample<'_>>,
        each_quantum: &mut dyn FnMut(&Pause<'_>) -> bool,
    ) -> Result<Launched, LaunchError> {
        let Sample { cycles, mut begin } = sample.unwrap_or(Sample {
            cycles: Cycle::ZERO..Cycle::NEVER,
            begin: None,
        });
        let mut end = limit.min(cycles.end);
        let mut event = None;
        let (mut cancelled, mut is_last_search) = (false, false);
        let explains = self.explains_cancel;
        let mut search = StandstillSearch::new(&self.config, start);
        // A sample that ends first is no failure, so nothing is searched for.
        let mut spins = SpinSearch::new(start, if limit <= cycles.end { limit } else { Cycle::NEVER });
        let mut standstill = None;
        let stop = loop {
            let audits = self.audits.as_deref();
            // The clock also pauses to search for a standstill or spins, and where a sample begins. A pause changes no cycle.
            let until = end.min(search.next()).min(spins.next());
            let until = begin.as_ref().map_or(until, |_| until.min(cycles.start.max(start)));
            let stop = self.clock.run_observed(until, |pause| {
                if let Some(audits) = audits {
                    invariants::assert_invariants(pause, audits);
                }
                event = self.events.recv(pause.now());
                cancelled |= !each_quantum(pause);
                let is_faulty = fault::finding(&self.faults, pause.now(), false).is_some();
                event.is_some() || is_faulty || cancelled && !(is_last_search && explains())
            });
            if cancelled && !is_last_search && event.is_none() && explains() {
                is_last_search = true;
                end = spins.search_on(self.clock.now(), end);
                continue;
            }
            if stop == Stop::Idle {
                // Where an idle clock stops depends on its windows. After this it does not.
                self.clock.settle(end);
            }
            // A launch that ended before the sample is not in it. The pause that shows its end may be at any later cycle.
            let at = cycles.start.max(start);
            if stop != Stop::Condition
                && self.clock.now() >= at
                && let Some(begin) = begin.take()
            {
                begin(self, at);
            }
            if stop != Stop::Limit || self.clock.now() >= end {
                break stop;
            }
            if self.clock.now() >= spins.next() {
                spins.sample(self.clock.now(), self.components());
            }
            if self.clock.now() < search.next() {
                continue;
            }
            standstill = search.check(self.clock.now(), self.components());
            if standstill.is_some() {
                break stop;
            }
        };
        match (event, stop, standstill) {
            // The event first: a grid that ended in the last window has met no limit and no deadlock.
            (Some(GridEvent::Done { at, .. }), ..) => Ok(Launched { start, end: at }),
            (Some(GridEvent::Trap(trap)), ..) => Err(LaunchError::Trap(trap)),
            (None, Stop::Condition | Stop::Limit, None) if cancelled => {
                self.explain_spins(spins.loops(), &spins.polls());
                Err(LaunchError::Cancelled(self.clock.now()))
            }
            (None, _, Some(since)) => Err(LaunchError::Sim(SimError::Standstill {
                since,
                waits: self.explain_hang(Some(&search.polls())),
            })),
            (None, Stop::Limit, None) if self.clock.now() >= cycles.end => Err(LaunchError::Sampled(cycles.end)),
            (None, Stop::Limit, None) => Err(LaunchError::Sim(SimError::CycleLimit {
                limit: end,
                waits: self.explain_spins(spins.loops(), &spins.polls()),
            })),
            (None, _, None) => Err(LaunchError::Sim(SimError::Deadlock {
                at: self.clock.now(),
                waits: self.explain_hang(None),
            })),
        }
    }

    /// Bytes of the L1 during a grid: the unified array less the carve-out that the grid's occupancy needs ([`occupancy`]).
    fn l1_bytes(&self, grid: &Grid) -> u32 {
        let fit = occupancy(&self.config, grid.threads(), grid.registers, grid.shared_bytes);
        // The host refuses a grid that does not fit. A grid launched without that check gets the smallest L1.
        let largest = self.config.limits.shared_carveouts.iter().copied().max().unwrap_or(0);
        self.config.l1_bytes(fit.map_or(largest, |fit| fit.carveout))
    }

    /// Address of local memory with `bytes` for each thread of every warp slot. The allocation is kept for later launches.
    fn local_memory(&mut self, bytes: u32) -> Result<u64, LaunchError> {
        let slots = u64::from(self.config.n_sms() * self.config.limits.max_warps_per_sm);
        // Local memory is interleaved: one word of all 32 lanes fills a line.
        let total = slots * u64::from(bytes.div_ceil(4)) * LINE as u64;
        // A larger need gets a new allocation. The smaller one stays, since device memory is never freed.
        if total > self.local.1 {
            let address = self
                .storage
                .allocate(total)
                .ok_or(LaunchError::LocalMemory { bytes: total })?;
            self.local = (address, total);
        }
        Ok(self.local.0)
    }

    /// Runs until nothing is in flight and the L2 is written back. Ends at a cycle at which a launch may begin.
    fn drain(&mut self, end: Cycle) {
        // All steps are multiples of the alignment, so the end does not depend on the quantum.
        let at = Cycle((end.0 + LAUNCH_ALIGNMENT).next_multiple_of(LAUNCH_ALIGNMENT));
        self.clock.run(at, |_| false);
        self.clock.skip_to(at);
        self.clock.run_until_quiescent(LAUNCH_ALIGNMENT);
        self.write_back();
    }

    /// Writes every changed line of the L2 to device memory. No grid may be in flight.
    pub fn write_back(&mut self) {
        self.command_slices(SliceCommand::WriteBack);
    }

    fn command_slices(&mut self, command: SliceCommand) {
        let now = self.clock.now();
        launch_log::slices_commanded(command, now);
        self.slices.iter_mut().for_each(|slice| slice.send(now, command));
        self.clock.run_until_quiescent(LAUNCH_ALIGNMENT);
        launch_log::slices_done(command, self.clock.now());
    }

    /// Explains a launch that hangs: its wait-for graph, then what each component waits for. `polls` are those of a standstill.
    fn explain_hang(&mut self, polls: Option<&Polls>) -> Vec<String> {
        let n_sms = self.config.n_sms() as usize;
        let tiles = self.clock.tiles();
        // The front tile comes first, then one tile per SM.
        let hang = Hang::explain(&tiles[0], &tiles[1..=n_sms], polls);
        let waits = hang.reasons.iter().cloned().chain(self.waits()).collect();
        self.hang = Some(hang);
        waits
    }

    /// Explains a launch at the limit of cycles, or after a cancel. First come polls and loops of its warps, then what each component waits
    /// for.
    fn explain_spins(&mut self, loops: Vec<(u32, String)>, spins: &Polls) -> Vec<String> {
        let n_sms = self.config.n_sms() as usize;
        let hang = Hang::explain_spins(&self.clock.tiles()[1..=n_sms], spins, loops);
        let waits = hang.reasons.iter().cloned().chain(self.waits()).collect();
        self.hang = (!hang.reasons.is_empty()).then_some(hang);
        waits
    }

    fn waits(&self) -> Vec<String> {
        let mut waits = Vec::new();
        self.components()
            .for_each(|component| component.waits(&mut |wait| waits.push(wait)));
        waits
    }

    /// Resets every component and counter. Device memory keeps its contents.
    pub fn reset(&mut self) {
        let next = Cycle(self.clock.now().0.next_multiple_of(LAUNCH_ALIGNMENT) + LAUNCH_ALIGNMENT);
        self.events.clear();
        self.clock.reset(next);
    }
}
