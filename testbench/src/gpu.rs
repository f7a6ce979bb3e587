//! The library interface: load PTX, create buffers from slices, launch kernels, read reports.
//!
//! The crate's front page has an example. A [`Factory`] replaces policies and components; `examples/` has one of each.

mod args;
mod error;
mod subscribe;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use warpwave_components::config::GpuConfig;
use warpwave_components::gpu::Gpu as Machine;
pub use warpwave_components::gpu::{BeforeL1Ports, Factory};
use warpwave_components::preset;
use warpwave_hw::clock::Pause;
use warpwave_hw::time::Cycle;
use warpwave_ptx::Module as Ptx;

use crate::bench::{LaunchRun, run_grid};
use crate::host::{self, Placement, Workspaces};
use crate::report::counts::Counts;
use crate::report::metrics;
use crate::report::text::HEADLINES;
use crate::scenario::{Arg, Launch};
pub use args::{Buffer, Dims, Element, KernelArg, Shape};
pub use error::GpuError;
pub use subscribe::Event;
use subscribe::Subscription;

/// Cooperative launches whose workspaces share an allocation.
const WORKSPACE_BATCH: usize = 256;

/// A simulated GPU with its device memory.
pub struct Gpu {
    machine: Machine,
    counts: Counts,
    workspaces: Workspaces,
    launches: u32,
    cycle_limit: Option<u64>,
    subscription: Option<Subscription>,
}

/// A compiled PTX text, with its variables in device memory.
pub struct Module {
    ptx: Arc<Ptx>,
    placement: Placement,
}

impl Gpu {
    /// Builds the GPU of a built-in preset, or of a preset file by its path.
    ///
    /// # Errors
    /// If the preset does not exist or has faults.
    pub fn preset(name: &str) -> Result<Self, GpuError> {
        Gpu::with_factory(preset::load(name, &[])?.config, &Factory::new())
    }

    /// Builds a GPU from any configuration. `factory` replaces policies and components.
    ///
    /// # Errors
    /// If the configuration has faults.
    pub fn with_factory(config: GpuConfig, factory: &Factory) -> Result<Self, GpuError> {
        // All faults at once, so that a caller corrects a file in one pass.
        let faults = config.check();
        if !faults.is_empty() {
            return Err(GpuError::Config(faults));
        }
        let machine = Machine::with_factory(config, factory);
        Ok(Gpu {
            // Counters only grow. The counts of a launch are the difference of two snapshots.
            counts: Counts::of(machine.components(), machine.clock().now()),
            machine,
            workspaces: Workspaces::new(WORKSPACE_BATCH),
            launches: 0,
            cycle_limit: None,
            subscription: None,
        })
    }

    /// The machine below this interface, for its quantum and its components.
    pub fn machine_mut(&mut self) -> &mut Machine {
        &mut self.machine
    }

    /// Sets the number of host threads. Results do not depend on it.
    pub fn set_threads(&mut self, threads: usize) {
        self.machine.clock_mut().set_threads(threads.max(1));
    }

    /// Sets the cycle limit of a launch. A launch that reaches it ends with an error.
    pub fn limit_cycles(&mut self, cycles: u64) {
        self.cycle_limit = Some(cycles);
    }

    /// Calls `subscriber` for every event of later launches: events of warps and instructions, and completed memory requests.
    ///
    /// Events are sorted by cycle, then by SM, then in a fixed order. So their order is the same for any number of threads.
    /// A subscriber slows the simulation down.
    pub fn subscribe(&mut self, subscriber: impl FnMut(&Event) + 'static) {
        // One collector serves all subscribers. Without a subscriber the SMs report no events.
        let new = || Subscription::new(&mut self.machine);
        let subscription = self.subscription.get_or_insert_with(new);
        subscription.subscribers.push(Box::new(subscriber));
    }

    /// Checks a PTX text and places its variables in device memory. The first launch of a kernel compiles the kernel.
    ///
    /// The process keeps compiled kernels, so further GPUs that load the same text compile nothing.
    ///
    /// # Errors
    /// If the text is not PTX, needs a newer GPU, or device memory is full.
    pub fn load(&mut self, ptx: &str) -> Result<Module, GpuError> {
        let refuse = |findings| GpuError::Ptx {
            findings,
            text: ptx.to_owned(),
        };
        let options = host::compiler_options(self.machine.config());
        // `false` compiles no kernel yet: a module may have many that are never launched.
        let module = warpwave_ptx::load_with(ptx, options, |_| false).map_err(refuse)?;
        let unmet = module.unmet_requirements(self.machine.config().compute_capability());
        if !unmet.is_empty() {
            return Err(refuse(unmet));
        }
        Ok(Module {
            placement: Placement::of_module(&module, self.machine.storage())?,
            ptx: module,
        })
    }

    /// Allocates a buffer and fills it with `elements`.
    ///
    /// # Errors
    /// If device memory is full.
    pub fn buffer<T: Element>(&mut self, elements: &[T]) -> Result<Buffer<T>, GpuError> {
        let bytes = args::to_bytes(elements);
        let storage = self.machine.storage();
        let address = host::allocate(storage, "a buffer", bytes.len() as u64)?;
        // The host writes device memory directly: no cycle passes, and no counter changes.
        storage.write(address, &bytes);
        Ok(Buffer {
            address,
            len: elements.len(),
            element: PhantomData,
        })
    }

    /// Copies a buffer from device memory.
    pub fn read<T: Element>(&self, buffer: &Buffer<T>) -> Vec<T> {
        let mut bytes = vec![0; buffer.bytes()];
        self.machine.storage().read(buffer.address, &mut bytes);
        args::from_bytes(&bytes)
    }

    /// Copies `elements` to a buffer of the same length.
    ///
    /// # Errors
    /// If slice and buffer have different lengths.
    pub fn write<T: Element>(&mut self, buffer: &Buffer<T>, elements: &[T]) -> Result<(), GpuError> {
        if elements.len() != buffer.len {
            let (found, want) = (elements.len(), buffer.len);
            return Err(GpuError::Length { found, want });
        }
        self.machine.storage().write(buffer.address, &args::to_bytes(elements));
        Ok(())
    }

    /// Runs a kernel to its end. Caches keep their contents between launches.
    ///
    /// # Errors
    /// If kernel, shape and arguments do not match, or if the launch traps, deadlocks or reaches the cycle limit.
    pub fn launch(
        &mut self,
        module: &Module,
        kernel: &str,
        shape: impl Into<Shape>,
        args: &[&dyn KernelArg],
    ) -> Result<Report, GpuError> {
        let launch = launch(kernel, shape.into(), args)?;
        // A launch that does not fit is refused here, before the machine runs a cycle.
        let config = self.machine.config().clone();
        let memory = (self.machine.storage(), &mut self.workspaces);
        let grid = host::build_grid(self.launches, &launch, &module.ptx, &module.placement, memory, &config)?;
        self.launches += 1;
        let subscription = &mut self.subscription;
        let mut each_step = |now: Cycle| {
            subscription
                .iter_mut()
                .for_each(|subscription| subscription.deliver(now));
            true
        };
        let print = module.placement.print;
        let limit = self.cycle_limit;
        let mut tell = |pause: &Pause<'_>| each_step(pause.now());
        let (run, counts, ended) = run_grid(&mut self.machine, print, grid, (limit, None), &self.counts, &mut tell);
        // The launch has ended, so no earlier event can follow.
        each_step(Cycle::NEVER);
        // A reset, after an error, sets all counters to 0.
        self.counts = match &ended {
            Ok(()) => counts,
            Err(_) => counts.next_snapshot(self.machine.components(), self.machine.clock().now()),
        };
        ended.map_err(GpuError::Launch)?;
        Ok(Report { run, config })
    }
}

fn launch(kernel: &str, shape: Shape, args: &[&dyn KernelArg]) -> Result<Launch, GpuError> {
    let (Dims(grid), Dims(block)) = (shape.grid, shape.block);
    if grid.contains(&0) || block.contains(&0) {
        return Err(GpuError::EmptyLaunch { grid, block });
    }
    Ok(Launch {
        entry: Some(kernel.to_owned()),
        grid,
        block,
        dynamic_shared_bytes: shape.dynamic_shared_bytes,
        cluster: shape.cluster.map(|Dims(cluster)| cluster),
        is_cooperative: shape.is_cooperative,
        args: args.iter().map(|arg| Arg::Bytes(arg.bytes())).collect(),
        ..Launch::default()
    })
}

/// The results of a launch. Its text is a table of the main metrics.
#[derive(Clone, Debug)]
pub struct Report {
    run: LaunchRun,
    config: GpuConfig,
}

impl Report {
    /// Core cycles from launch to end.
    pub fn cycles(&self) -> u64 {
        self.run.cycles
    }

    /// The value of a metric by the profiler's name. `None` if the metric does not exist, or its denominator is 0.
    pub fn metric(&self, name: &str) -> Option<f64> {
        metrics::find(name)?.value(&self.run.inputs(&self.config)).number()
    }

    /// The sum of a counter over all components of a kind, such as `("l1", "load_sectors_hit")`. Components of a factory count too.
    pub fn counter(&self, kind: &str, name: &str) -> Option<u64> {
        self.run.counts.sum(kind, name)
    }

    /// The `printf` output of the kernel.
    pub fn printed(&self) -> &str {
        &self.run.printed
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<26} {:>14} cycles", self.run.entry, self.run.cycles)?;
        for (title, name) in HEADLINES {
            let metric = metrics::find(name).expect("a headline is a row of the table");
            let value = metric.value(&self.run.inputs(&self.config));
            writeln!(f, "{title:<26} {:>14} {}", value.to_string(), metric.unit)?;
        }
        Ok(())
    }
}
