//! The bench: builds a machine, places the data of a scenario in its memory, runs the launches, collects the results.
//!
//! ```text
//! Scenario + GpuConfig ── Bench::new ──> placed and checked ── run ──> Run: launches, counters, differences
//! ```
//!
//! Every launch is checked before the first one runs. A run that stops early keeps its counters up to the last cycle that
//! ran.
//! [`Bench::sample`] counts only a window of cycles.

mod checked;
mod expected;
mod grids;
mod progress;
mod results;
mod sample;
mod shape;
mod stop;

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thiserror::Error;
use warpwave_components::config::GpuConfig;
use warpwave_components::gpu::{Gpu, LaunchError, Sample};
use warpwave_components::proto::launch::Grid;
use warpwave_hw::clock::Pause;
use warpwave_hw::time::Cycle;
use warpwave_isa::program::Program;
use warpwave_ptx::{Diagnostic, Severity};

use crate::host::{self, HostError, Placement, Region, steps};
use crate::lockstep::{self, Difference};
use crate::reference::ReferenceError;
use crate::report::counts::Counts;
use crate::report::metrics::LaunchShape;
use crate::scenario::{Buffer, Modules, Scenario};
use crate::watch::{EventCollector, Listener};

pub use checked::Checked;
pub(crate) use grids::grids;
pub use progress::{Activity, Progress};
pub use sample::Sampled;
pub(crate) use sample::Sampler;
use shape::launch_shape;
pub use stop::StopReason;

/// Why a scenario cannot be run.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum BenchError {
    /// The program is not valid PTX, or it uses PTX that the machine does not support.
    #[error("the program {}", refusal(.0))]
    Ptx(Vec<Diagnostic>),
    /// Buffers or module variables do not match the program, or exceed the memory of the GPU.
    #[error(transparent)]
    Host(HostError),
    /// A launch does not match its kernel, or exceeds a limit of the GPU.
    #[error("launch[{index}]: {error}")]
    Launch {
        /// Index of the launch.
        index: usize,
        /// The reason.
        error: HostError,
    },
}

/// Returns why a text with these findings is refused: invalid or unsupported PTX, and the number of errors.
pub fn refusal(findings: &[Diagnostic]) -> String {
    let is_ptx = findings.iter().all(|finding| finding.severity == Severity::Unsupported);
    let reason = match is_ptx {
        true => "uses PTX that is not supported",
        false => "is not valid PTX",
    };
    match findings.len() {
        1 => format!("{reason}: 1 error"),
        n => format!("{reason}: {n} errors"),
    }
}

/// Options of a run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Host threads.
    pub threads: usize,
    /// Limit of core cycles, summed over all launches.
    pub max_cycles: Option<u64>,
}

/// Results of a launch that ended, or was stopped while it ran.
#[derive(Clone, Debug)]
pub struct LaunchRun {
    /// Name of the launch in the scenario.
    pub name: Option<String>,
    /// Index of its `[[launch]]` table.
    pub table: usize,
    /// True if the launch does not count in totals.
    pub is_warm_up: bool,
    /// The kernel.
    pub program: Arc<Program>,
    /// The texts that the program was linked from. `None` for one PTX file.
    pub modules: Option<Arc<Modules>>,
    /// Name of the kernel.
    pub entry: String,
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// Core cycles from start to end, or to the stop. In a sampled run, only the cycles in the sample.
    pub cycles: u64,
    /// True if a sample leaves out cycles of the launch.
    pub is_sampled: bool,
    /// Counters and latencies of this launch.
    pub counts: Counts,
    /// Shape and occupancy of the launch.
    pub shape: LaunchShape,
    /// The `printf` output of the launch. Empty if the launch was stopped.
    pub printed: String,
}

/// The results of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The configuration of the GPU.
    pub config: GpuConfig,
    /// Launches that started, in order. The last one did not end if `stopped` has its index.
    pub launches: Vec<LaunchRun>,
    /// Counters and latencies over all launches, without warm-ups.
    pub totals: Counts,
    /// Index and error of the launch that stopped the run. `None` if every launch ended.
    pub stopped: Option<(usize, LaunchError)>,
    /// The cycles counted, if [`Bench::sample`] limits them.
    pub sample: Option<Sampled>,
    /// The first difference of each buffer that does not match its `expect`.
    pub differences: Vec<Difference>,
    /// Differences of `printf` outputs from the expected texts, one sentence per launch.
    pub misprints: Vec<String>,
    /// Index and error of the first launch that the reference model did not finish. Checks against the model are then left out.
    pub reference: Option<(usize, ReferenceError)>,
    /// The results of the assertions, once they are checked.
    pub asserts: Vec<Checked>,
    /// Wall time of the simulation.
    pub wall: Duration,
    /// Host threads.
    pub threads: usize,
}

/// A machine with a scenario's data in its memory.
pub struct Bench<'a> {
    scenario: &'a Scenario,
    gpu: Gpu,
    placement: Placement,
    grids: Vec<Grid>,
    programs: Vec<Arc<Program>>,
    /// Counters before the first launch. Totals are relative to them.
    baseline: Counts,
    unmet_requirements: Vec<Diagnostic>,
    sampler: Option<Sampler>,
    /// True once the user wants the reference model to end.
    is_interrupted: fn() -> bool,
}

impl<'a> Bench<'a> {
    /// Compiles the kernels that are launched, builds the machine, places the data and checks every launch.
    ///
    /// # Errors
    /// If the program is not valid PTX. Also if the data or a launch does not match the program or the GPU.
    pub fn new(scenario: &'a Scenario, config: GpuConfig) -> Result<Self, BenchError> {
        let module = scenario
            .module(host::compiler_options(&config))
            .map_err(BenchError::Ptx)?;
        let unmet_requirements = module.unmet_requirements(config.compute_capability());
        let gpu = Gpu::new(config);
        let mut placement = Placement::new(scenario, &module, gpu.storage()).map_err(BenchError::Host)?;
        let grids = grids(scenario, &module, &mut placement, gpu.storage(), gpu.config())?;
        Ok(Bench {
            scenario,
            baseline: Counts::of(gpu.components(), gpu.clock().now()),
            unmet_requirements,
            gpu,
            placement,
            programs: grids.iter().map(|grid| Arc::clone(&grid.program)).collect(),
            grids,
            sampler: None,
            is_interrupted: || false,
        })
    }

    /// Ends a run of the reference model once `is_interrupted` is true. A run of the machine ends by `observe`.
    pub fn interrupt_reference(&mut self, is_interrupted: fn() -> bool) {
        self.is_interrupted = is_interrupted;
    }

    /// Counts only the cycles of this range of the machine's clock. The run stops at its end.
    ///
    /// Of each launch, the cycles in the range count. Cycles between two launches count for no launch.
    pub fn sample(&mut self, cycles: Range<Cycle>) {
        self.sampler = Some(Sampler::new(cycles));
    }

    /// The machine, to set its quantum, to trace signals, or to collect events.
    pub fn gpu_mut(&mut self) -> &mut Gpu {
        &mut self.gpu
    }

    /// Parts of the program that need a newer GPU: its `.target` or single instructions. The model can run them nevertheless.
    pub fn unmet_requirements(&self) -> &[Diagnostic] {
        &self.unmet_requirements
    }

    /// The buffers and module variables of the scenario, with their addresses.
    pub fn data(&self) -> impl Iterator<Item = (&Buffer, u64)> {
        self.placement.of(self.scenario)
    }

    /// All named regions of device memory.
    pub fn regions(&self) -> &[Region] {
        &self.placement.regions
    }

    /// The launches. Empty once `run` has begun.
    pub fn grids(&self) -> &[Grid] {
        &self.grids
    }

    /// The program of each launch, by index of the launch.
    pub fn programs(&self) -> &[Arc<Program>] {
        &self.programs
    }

    /// True for each launch that only warms up, by index of the launch.
    pub fn warm_ups(&self) -> Vec<bool> {
        self.scenario.launches.iter().map(|launch| launch.is_warm_up).collect()
    }

    /// The texts of all instructions of all programs. The instructions of a program begin at its [`Program::base_index`].
    pub fn instructions(&self) -> Vec<String> {
        let mut texts = Vec::new();
        for program in &self.programs {
            let first = program.base_index() as usize;
            let end = first + program.code().len();
            // Launches of one kernel share a program, so `end` may lie below the length.
            texts.resize(texts.len().max(end), String::new());
            for (text, inst) in texts[first..end].iter_mut().zip(program.code()) {
                *text = inst.to_string();
            }
        }
        texts
    }

    /// The scenario, and where its data are.
    pub(crate) fn placed(&self) -> (&Scenario, &Placement) {
        (self.scenario, &self.placement)
    }

    /// The machine as it is now.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Runs all launches in order. `observe` is called between windows of the clock. It stops the run by returning false.
    pub fn run(&mut self, options: Options, observe: &mut dyn FnMut(Progress<'_>) -> bool) -> Run {
        let begin = Instant::now();
        self.gpu.clock_mut().set_threads(options.threads);
        let n_launches = self.grids.len();
        let mut run = Run {
            config: self.gpu.config().clone(),
            launches: Vec::new(),
            totals: self.baseline.clone(),
            stopped: None,
            sample: None,
            differences: Vec::new(),
            misprints: Vec::new(),
            reference: None,
            asserts: Vec::new(),
            wall: Duration::ZERO,
            threads: options.threads,
        };
        // Before the first launch: the reference starts from a copy of the initial memory.
        let wanted = self.wanted(options.max_cycles);
        run.reference = wanted.as_ref().err().cloned();
        // Without the reference, the checks against it are left out.
        let wanted = wanted.unwrap_or_else(|_| vec![None; self.scenario.checks.len()]);
        let mut warm_ups = Vec::new();
        // The limit is for all launches together.
        let mut cycles_left = options.max_cycles;
        let mut ctas_before = 0;
        let ctas_of_all = self.grids.iter().map(Grid::ctas).fold(0, u64::saturating_add);
        for (launch, grid) in std::mem::take(&mut self.grids).into_iter().enumerate() {
            let ctas = grid.ctas();
            let mut on_pause = |pause: &Pause<'_>| {
                observe(Progress {
                    now: pause.now(),
                    launch,
                    n_launches,
                    ctas,
                    ctas_before,
                    ctas_of_all,
                    pause,
                })
            };
            // Tested before the steps of the host, which belong to the launch.
            if let Some(end) = self.sample_end() {
                run.stopped = Some((launch, end));
                break;
            }
            let text = &self.scenario.launches[launch];
            steps::run(&text.before, self.scenario, &self.placement, &mut self.gpu.storage());
            let (mut launched, totals, ended) = self.launch(grid, cycles_left, &run.totals, &mut on_pause);
            launched.name.clone_from(&text.name);
            (launched.table, launched.is_warm_up) = (text.table, text.is_warm_up);
            launched.modules = self.scenario.modules.clone();
            if launched.is_warm_up {
                // Kept until the end: `totals` must stay a snapshot, from which the next launch is counted.
                warm_ups.push(launched.counts.clone());
            }
            // A sample counts a part of the cycles, and the limit counts all.
            let cycles_run = self.gpu.latest().cycles();
            cycles_left = cycles_left.map(|cycles| cycles.saturating_sub(cycles_run));
            ctas_before += ctas;
            run.totals = totals;
            run.stopped = ended.err().map(|error| (launch, error));
            let misprint = text.prints.as_ref().filter(|_| run.stopped.is_none());
            let misprint = misprint.and_then(|prints| prints.difference(&launched.printed));
            run.misprints
                .extend(misprint.map(|what| format!("the output of launch {launch}: {what}")));
            // A refused launch did not start, so it has no results.
            if run.stopped_by() != Some(StopReason::Refused) {
                run.launches.push(launched);
            }
            if run.stopped.is_some() {
                break;
            }
            run.differences.extend(self.check_after(launch, n_launches, &wanted));
        }
        run.totals = self.counted(&run.totals);
        let end = match &run.stopped {
            Some((_, LaunchError::Sampled(end))) => *end,
            _ => self.gpu.latest().end,
        };
        run.sample = self.sampler.as_ref().map(|sampler| sampler.sampled(end));
        // A warm-up does not count.
        warm_ups.iter().for_each(|counts| run.totals = run.totals.since(counts));
        // Buffers of an incomplete run are not compared.
        if run.stopped.is_none() {
            run.differences.extend(self.differences());
        }
        run.wall = begin.elapsed();
        run
    }

    /// Runs all launches as [`Bench::run`] does, and delivers the events of all SMs to `listeners`.
    pub fn run_with_events(
        &mut self,
        options: Options,
        listeners: &mut [&mut dyn Listener],
        observe: &mut dyn FnMut(Progress<'_>) -> bool,
    ) -> Run {
        let mut collector = EventCollector::begin(&mut self.gpu);
        let run = self.run(options, &mut |progress| {
            collector.collect(progress.now, listeners);
            observe(progress)
        });
        // No event follows the run.
        collector.collect(Cycle::NEVER, listeners);
        run
    }

    /// The stop at the end of the sample, if the machine has reached it.
    fn sample_end(&self) -> Option<LaunchError> {
        self.sampler.as_ref()?.ended(self.gpu.clock().now())
    }

    /// The counters of the run, or of its sample. `totals` are those since the machine was built.
    fn counted(&self, totals: &Counts) -> Counts {
        match &self.sampler {
            None => totals.since(&self.baseline),
            Some(sampler) => totals.since(sampler.first().unwrap_or(totals)),
        }
    }

    /// Runs one launch. Returns its results, the counters after it, and its error, if any.
    fn launch(
        &mut self,
        grid: Grid,
        limit: Option<u64>,
        before: &Counts,
        on_pause: &mut dyn FnMut(&Pause<'_>) -> bool,
    ) -> (LaunchRun, Counts, Result<(), LaunchError>) {
        let sampler = self.sampler.as_mut();
        run_grid(
            &mut self.gpu,
            self.placement.print,
            grid,
            (limit, sampler),
            before,
            on_pause,
        )
    }

    /// The `printf` output in `memory`, the device memory of the reference model.
    pub fn printed_in(&self, memory: &crate::reference::Memory) -> String {
        let read = |at, to: &mut [u8]| {
            if let Some(bytes) = memory.get(at, to.len()) {
                to.copy_from_slice(bytes);
            }
        };
        let text = |buffer| host::print::text(&read, self.gpu.storage(), buffer);
        self.placement.print.map(text).unwrap_or_default()
    }

    /// The first difference of each buffer from its expected elements.
    fn differences(&self) -> Vec<Difference> {
        let differs = |(buffer, address): (&Buffer, u64)| {
            let found = lockstep::bytes_of(buffer, address, self.gpu.storage());
            lockstep::compare(&buffer.name, buffer.layout.dtype, &found, buffer.expect.as_ref()?)
        };
        self.data().filter_map(differs).collect()
    }
}

/// Runs one launch on `gpu`. Returns its results, the counters after it, and its error, if any.
///
/// `before` has the counters before the launch. `print` is the device address of the `vprintf` buffer. `limit` is the maximum number of
/// cycles.
pub(crate) fn run_grid(
    gpu: &mut Gpu,
    print: Option<u64>,
    grid: Grid,
    (limit, sampler): (Option<u64>, Option<&mut Sampler>),
    before: &Counts,
    on_pause: &mut dyn FnMut(&Pause<'_>) -> bool,
) -> (LaunchRun, Counts, Result<(), LaunchError>) {
    let shape = launch_shape(&grid, gpu.config());
    let program = Arc::clone(&grid.program);
    let (entry, sizes, block) = (program.name().to_owned(), grid.grid, grid.block);
    // Without a reset: after an error the counters are read first, and the reset comes below.
    let launch = |gpu: &mut Gpu, sample: Option<Sample<'_>>| gpu.launch_or_freeze(grid, limit, sample, on_pause);
    let (part, counts, ended) = match sampler {
        Some(sampler) => sampler.run(gpu, before, launch),
        None => sample::run_whole(gpu, before, launch),
    };
    if ended.is_err() {
        // A stopped launch leaves messages in flight: the next one needs an empty machine.
        gpu.reset();
    }
    let printed = print.map(|buffer| match &ended {
        Ok(()) => host::print::take(gpu.storage(), buffer),
        Err(_) => {
            // A stopped launch may leave half-written records, and the next one must not print them.
            host::print::clear(gpu.storage(), buffer);
            String::new()
        }
    });
    let run = LaunchRun {
        name: None,
        table: 0,
        is_warm_up: false,
        program,
        modules: None,
        entry,
        grid: sizes,
        block,
        cycles: part.cycles,
        is_sampled: part.is_sampled,
        counts: part.counts,
        shape,
        printed: printed.unwrap_or_default(),
    };
    (run, counts, ended)
}
