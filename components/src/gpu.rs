//! Builds the whole machine from its configuration, wires it, and runs grids on it; the only part that knows everyone.
//!
//! ```text
//!   host <-> front tile: gigathread
//!               |  one tile per SM: cta, 4 x subcore, lsu, shared, l1
//!               |  where there are clusters one tile per GPC: the network among its SMs, the barrier of clusters
//!               |     one tile per crossbar network: requests, responses
//!               |        one tile per memory partition: L2 slices, HBM channels
//! ```

mod build;
mod engine;
mod factory;
mod gpc;
mod launch_log;
mod memory;
mod sm;
mod subcore;
mod wiring;

pub use factory::{BeforeL1Ports, Factory};

use std::any::Any;
use std::sync::Arc;

use thiserror::Error;
use warpwave_hw::clock::{Clock, Pause, Stop};
use warpwave_hw::component::Component;
use warpwave_hw::error::SimError;
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::tile::Tile;
use warpwave_hw::time::Cycle;

use crate::config::GpuConfig;
use crate::occupancy::occupancy;
use crate::proto::event::Log;
use crate::proto::issue::MAX_INSTRUCTIONS;
use crate::proto::launch::{Grid, GridEvent, Trap};
use crate::proto::mem::{LINE, SliceCommand};
use crate::proto::predecoded;
use crate::sm::lsu::Lsu;
use crate::sm::shared::SharedMemory;
use crate::sm::subcore::{dispatch::Dispatch, scheduler::Scheduler};
use crate::sm::timing;
use crate::storage::Storage;

/// A launch begins at a multiple of this number of cycles. The host sees the end of a grid only when a quantum is over, and the next cycles
/// must not depend on the quantum. Longer than any quantum and the host's links together.
pub const LAUNCH_GRID: u64 = 64;

/// A machine.
pub struct Gpu {
    config: GpuConfig,
    clock: Clock,
    storage: Arc<Storage>,
    grids: OutPort<Arc<Grid>>,
    events: InPort<GridEvent>,
    slices: Vec<OutPort<SliceCommand>>,
    /// Address and bytes of local memory.
    local: (u64, u64),
    /// Number of grids launched so far. An SM invalidates its L1 when the number of its grid changes.
    launches: u32,
    /// The cycles of the latest of them.
    latest: Launched,
}

/// The cycles of a grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Launched {
    /// Cycle in which the host gave the grid.
    pub start: Cycle,
    /// Cycle in which its last CTA was known to have ended, or in which it was stopped.
    pub end: Cycle,
}

impl Launched {
    /// Cycles from start to end.
    pub fn cycles(&self) -> u64 {
        self.end.since(self.start)
    }
}

/// Why a grid did not run to its end.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum LaunchError {
    /// A thread trapped.
    #[error("{} at instruction {} (line {})", .0.kind, .0.pc, .0.line)]
    Trap(Box<Trap>),
    /// Deadlock, or the cycle limit was reached.
    #[error(transparent)]
    Sim(SimError),
    /// Device memory has no room for the local memory of all threads that may be resident.
    #[error("device memory has no room for {bytes} bytes of local memory")]
    LocalMemory {
        /// Bytes that all resident threads need.
        bytes: u64,
    },
    /// The program has more instructions than an issue message can name: [`MAX_INSTRUCTIONS`].
    #[error("the program has {instructions} instructions, the limit is {MAX_INSTRUCTIONS}")]
    TooLong {
        /// Instructions of the program.
        instructions: usize,
    },
    /// The caller asked to stop.
    #[error("cancelled in cycle {0}")]
    Cancelled(Cycle),
}

impl Gpu {
    /// Builds the machine. The configuration must be free of faults ([`GpuConfig::check`]).
    pub fn new(config: GpuConfig) -> Self {
        Gpu::with_own(config, &Factory::new())
    }

    /// As [`Gpu::new`], with own parts.
    pub fn with_own(config: GpuConfig, factory: &Factory) -> Self {
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
            config,
        }
    }

    /// The machine's numbers.
    pub fn config(&self) -> &GpuConfig {
        &self.config
    }

    /// Device memory, for the host between launches.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The cycles of the latest grid that began, also if it was stopped.
    pub fn latest(&self) -> Launched {
        self.latest
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The clock, to set threads and quantum, and to watch components.
    pub fn clock_mut(&mut self) -> &mut Clock {
        &mut self.clock
    }

    /// Every component, in the order in which the machine was built.
    pub fn components(&self) -> impl Iterator<Item = &dyn Component> + Clone {
        self.clock
            .tiles()
            .iter()
            .flat_map(|tile| tile.components())
            .map(|component| component.as_ref())
    }

    /// Makes every SM tell what happens in it from now on, each to its own log, in the order of SMs.
    pub fn subscribe(&mut self) -> Vec<Log> {
        let n_sms = self.config.n_sms() as usize;
        // The front tile comes first, then one tile per SM.
        let tiles = self.clock.tiles_mut().iter_mut().skip(1).take(n_sms);
        let listen = |tile: &mut Tile| {
            let log = Log::subscribed();
            tile.components_mut().for_each(|component| attach(component, &log));
            log
        };
        tiles.map(listen).collect()
    }

    /// Runs one grid to its end, with at most `limit` cycles. `each_quantum` is told the time after every quantum; it stops the
    /// run by answering false.
    ///
    /// After it device memory holds all that the grid wrote. After an error the machine is reset, and device memory is as far as
    /// the write-backs had come.
    pub fn launch(
        &mut self,
        grid: Grid,
        limit: Option<u64>,
        each_quantum: &mut dyn FnMut(Cycle) -> bool,
    ) -> Result<Launched, LaunchError> {
        let result = self.launch_or_freeze(grid, limit, &mut |pause| each_quantum(pause.now()));
        if result.is_err() {
            self.reset();
        }
        result
    }

    /// As [`Gpu::launch`], but `each_quantum` can read the components. After an error the machine stays as it is, so that its
    /// counters can be read. It must be [reset](Gpu::reset) before the next launch.
    pub fn launch_or_freeze(
        &mut self,
        mut grid: Grid,
        limit: Option<u64>,
        each_quantum: &mut dyn FnMut(&Pause<'_>) -> bool,
    ) -> Result<Launched, LaunchError> {
        let instructions = grid.program.code().len();
        if instructions > MAX_INSTRUCTIONS {
            return Err(LaunchError::TooLong { instructions });
        }
        grid.id = self.launches;
        self.launches += 1;
        let number = grid.id;
        let _span = launch_log::enter_launch(&grid, self.clock.now());
        grid.timing = timing::table(&grid.program, &self.config.sm);
        grid.predecoded = predecoded::table(&grid.program, &grid.timing);
        grid.l1_bytes = self.l1_bytes(&grid);
        grid.local_base = self.local_memory(grid.program.requirements().local_bytes)?;
        if self.storage.take_host_wrote() {
            self.command_slices(SliceCommand::Invalidate);
        }
        let start = self.clock.now();
        let end = limit.map_or(Cycle::NEVER, |cycles| start + cycles);
        launch_log::launch_begins(&grid, start);
        self.grids.send(start, Arc::new(grid));
        let mut event = None;
        let mut cancelled = false;
        let stop = self.clock.run_observed(end, |pause| {
            event = self.events.recv(pause.now());
            cancelled = !each_quantum(pause);
            event.is_some() || cancelled
        });
        let result = match (event, stop) {
            (Some(GridEvent::Done { at, .. }), _) => Ok(Launched { start, end: at }),
            (Some(GridEvent::Trap(trap)), _) => Err(LaunchError::Trap(trap)),
            (None, Stop::Condition) if cancelled => Err(LaunchError::Cancelled(self.clock.now())),
            (None, Stop::Limit) => Err(LaunchError::Sim(SimError::CycleLimit {
                limit: end,
                waits: self.waits(),
            })),
            (None, _) => Err(LaunchError::Sim(SimError::Deadlock {
                at: self.clock.now(),
                waits: self.waits(),
            })),
        };
        let stopped = self.clock.now();
        self.latest = *result.as_ref().unwrap_or(&Launched { start, end: stopped });
        launch_log::launch_ends(number, start, stopped, &result);
        if let Ok(launched) = &result {
            self.settle(launched.end);
        }
        result
    }

    /// What the carve-out for a grid's shared memory leaves to the L1 (reference rules, section 1).
    fn l1_bytes(&self, grid: &Grid) -> u32 {
        let fit = occupancy(&self.config, grid.threads(), grid.registers, grid.shared_bytes);
        // The host refuses a grid that does not fit. A grid launched without that check gets the smallest L1.
        let largest = self.config.limits.shared_carveouts.iter().copied().max().unwrap_or(0);
        self.config.l1_bytes(fit.map_or(largest, |fit| fit.carveout))
    }

    /// Local memory of `bytes` for the threads of every warp slot of the chip: its address, in memory kept for later launches.
    fn local_memory(&mut self, bytes: u32) -> Result<u64, LaunchError> {
        let slots = u64::from(self.config.n_sms() * self.config.limits.max_warps_per_sm);
        let wanted = slots * u64::from(bytes.div_ceil(4)) * LINE as u64;
        if wanted > self.local.1 {
            let address = self
                .storage
                .allocate(wanted)
                .ok_or(LaunchError::LocalMemory { bytes: wanted })?;
            self.local = (address, wanted);
        }
        Ok(self.local.0)
    }

    /// Lets everything under way arrive, writes the L2 back, and goes on to a cycle at which the next launch may begin.
    /// From `end` on all steps are multiples of [`LAUNCH_GRID`], so that no quantum shows.
    fn settle(&mut self, end: Cycle) {
        let at = Cycle((end.0 + LAUNCH_GRID).next_multiple_of(LAUNCH_GRID));
        self.clock.run(at, |_| false);
        self.clock.wait_until(at);
        self.clock.run_until_quiescent(LAUNCH_GRID);
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
        self.clock.run_until_quiescent(LAUNCH_GRID);
        launch_log::slices_obeyed(command, self.clock.now());
    }

    fn waits(&self) -> Vec<String> {
        let mut waits = Vec::new();
        self.components()
            .for_each(|component| component.waits(&mut |wait| waits.push(wait)));
        waits
    }

    /// Ends whatever is under way. Counters begin at 0 again, and device memory stays.
    pub fn reset(&mut self) {
        let next = Cycle(self.clock.now().0.next_multiple_of(LAUNCH_GRID) + LAUNCH_GRID);
        self.events.clear();
        self.clock.reset(next);
    }
}

/// Gives the log to a block that has something to tell.
fn attach(component: &mut dyn Component, log: &Log) {
    let block: &mut dyn Any = component;
    if let Some(scheduler) = block.downcast_mut::<Scheduler>() {
        scheduler.subscribe(log.clone());
    } else if let Some(dispatch) = block.downcast_mut::<Dispatch>() {
        dispatch.subscribe(log.clone());
    } else if let Some(lsu) = block.downcast_mut::<Lsu>() {
        lsu.subscribe(log.clone());
    } else if let Some(shared) = block.downcast_mut::<SharedMemory>() {
        shared.subscribe(log.clone());
    }
}
