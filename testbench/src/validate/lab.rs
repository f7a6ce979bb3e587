//! A bench for microbenchmarks: runs kernels on the GPU of a point, and reads the clock values that the kernels store.
//!
//! ```text
//! point ── measure ──> Bench ──┬─ model: simulated
//!                              ├─ plan: written down, for a real GPU
//!                              └─ measured: read from what a real GPU gave
//! ```
//!
//! One function measures in all three cases. So a figure of silicon and the figure of the model come from one formula.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use warpwave_components::config::GpuConfig;
use warpwave_components::preset::{self, PresetError};

use super::kept::{Figure, Figures};
use super::{Family, Point, Row};
use crate::gpu::{Buffer, Dims, Element, Factory, Gpu, GpuError, KernelArg, Module, Shape};
use crate::plan::{Init, Plan, PlannedArg, PlannedBuffer, PlannedLaunch, PlannedStep, Relocation, RelocationTarget};
use crate::plan::{Repetition, hex};

/// Where microbenchmarks run, and the changes that apply to every GPU.
#[derive(Default)]
pub struct Lab {
    /// Preset keys with their values, as in `--set`.
    pub sets: Vec<(String, String)>,
    device: Device,
    kept: Option<Figures>,
}

/// What runs the launches.
#[derive(Default)]
enum Device {
    /// The model.
    #[default]
    Model,
    /// Nothing: launches are only written down. Figures have no meaning.
    Plan(Mutex<Vec<Plan>>),
    /// A real GPU ran the launches before. One entry per bench of the point, in order: its clock in GHz, and its results.
    Measured(Mutex<VecDeque<(f64, Repetition)>>),
}

impl Lab {
    /// A lab on the model with changes of every preset.
    pub fn with_sets(sets: Vec<(String, String)>) -> Self {
        Lab { sets, ..Lab::default() }
    }

    /// Keeps each figure of the model in a store, and takes it from there at the next use.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn keep_in(mut self, folder: &Path) -> io::Result<Self> {
        self.kept = Some(Figures::open(folder)?);
        Ok(self)
    }

    /// Removes the stored figure of a point.
    ///
    /// # Errors
    /// If its file exists and cannot be removed.
    pub fn forget(&self, family: &Family, point: &Point) -> io::Result<()> {
        let kept = self.kept.as_ref();
        kept.map_or(Ok(()), |figures| figures.forget(family, point, &self.sets))
    }

    /// The row of a point: the stored figure, or else the model runs.
    pub(super) fn row(&self, family: &Family, point: Point) -> Row {
        let run = || (family.measure)(self, &point).map_err(|error| error.to_string());
        let figure = match &self.kept {
            Some(figures) => figures.find_or_run(family, &point, &self.sets, run),
            None => Figure::of(run),
        };
        Row {
            point,
            model: figure.model,
            seconds: figure.seconds,
            is_stored: figure.is_stored,
        }
    }

    /// A lab that writes launches down.
    pub(super) fn planner() -> Self {
        let device = Device::Plan(Mutex::default());
        Lab {
            device,
            ..Lab::default()
        }
    }

    /// A lab that gives the results of a real GPU, one entry per bench.
    pub(super) fn measured(results: VecDeque<(f64, Repetition)>) -> Self {
        let device = Device::Measured(Mutex::new(results));
        Lab {
            device,
            ..Lab::default()
        }
    }

    /// Takes the plans that were written down.
    pub(super) fn into_plans(self) -> Vec<Plan> {
        match self.device {
            Device::Plan(plans) => plans.into_inner().expect("no worker panicked"),
            _ => Vec::new(),
        }
    }

    /// True for a real GPU, which has time for more data than the model.
    pub(super) fn is_real(&self) -> bool {
        !matches!(self.device, Device::Model)
    }

    /// Checks that the GPU of a preset can be built.
    ///
    /// # Errors
    /// If the preset does not exist, or has faults with these changes.
    pub fn check(&self, gpu: &str) -> Result<(), PresetError> {
        preset::load(gpu, &self.sets).map(drop)
    }

    /// What runs the next bench, for a family that makes its launches by itself.
    pub(super) fn launches(&self) -> Launches<'_> {
        match &self.device {
            Device::Model => Launches::Model,
            Device::Plan(plans) => Launches::Plan(lock(plans)),
            Device::Measured(results) => {
                let next = results.lock().expect("no worker panicked").pop_front();
                let (ghz, results) = next.expect("a result for each bench");
                Launches::Measured(ghz, results.launches.into())
            }
        }
    }

    /// Builds the GPU of a preset and loads a PTX text.
    pub(super) fn bench(&self, gpu: &str, ptx: &str) -> Result<Bench<'_>, GpuError> {
        self.bench_with(gpu, &[], ptx)
    }

    /// As [`Lab::bench`], with changes of the preset. The changes of the lab come after them.
    pub(super) fn bench_with(&self, gpu: &str, sets: &[(&str, &str)], ptx: &str) -> Result<Bench<'_>, GpuError> {
        let own = sets.iter().map(|&(key, value)| (key.to_owned(), value.to_owned()));
        let sets: Vec<_> = own.chain(self.sets.iter().cloned()).collect();
        let config = preset::load(gpu, &sets)?.config;
        let runner = match &self.device {
            Device::Model => {
                let mut gpu = Gpu::with_factory(config.clone(), &Factory::new())?;
                let module = gpu.load(ptx)?;
                Runner::Model(Box::new(gpu), module)
            }
            Device::Plan(plans) => {
                let mut all = plans.lock().expect("no worker panicked");
                all.push(Plan {
                    ptx: ptx.to_owned(),
                    ..Plan::default()
                });
                let plan = all.len() - 1;
                Runner::Plan { plans, plan }
            }
            Device::Measured(results) => {
                // The function of the point builds its benches in the same order as for the plan.
                let next = results.lock().expect("no worker panicked").pop_front();
                let (ghz, results) = next.expect("a result for each bench");
                let (launches, reads) = (results.launches.into(), results.reads.into());
                Runner::Measured { ghz, launches, reads }
            }
        };
        Ok(Bench { config, runner })
    }
}

/// What runs the launches of one bench.
pub(super) enum Launches<'a> {
    /// The model.
    Model,
    /// Nothing: the bench adds a plan to these.
    Plan(MutexGuard<'a, Vec<Plan>>),
    /// A real GPU did, at this clock in GHz. The nanoseconds of the timed launches.
    Measured(f64, VecDeque<f64>),
}

/// A GPU with one module.
pub(super) struct Bench<'a> {
    config: GpuConfig,
    runner: Runner<'a>,
}

enum Runner<'a> {
    Model(Box<Gpu>, Module),
    Plan {
        plans: &'a Mutex<Vec<Plan>>,
        /// Index of the bench's own plan.
        plan: usize,
    },
    Measured {
        ghz: f64,
        /// Nanoseconds of the timed launches that are left.
        launches: VecDeque<f64>,
        reads: VecDeque<Vec<u64>>,
    },
}

/// The clock at begin and end of each thread, in cycles.
pub(super) struct Spans(Vec<[u64; 2]>);

/// Address of the first buffer of a plan, and the distance to the next one. No scalar argument has such a value.
const PLANNED: u64 = 1 << 40;

impl Bench<'_> {
    /// Number of SMs.
    pub fn n_sms(&self) -> u32 {
        self.config.n_sms()
    }

    /// Size of the L2 in bytes.
    pub fn l2_bytes(&self) -> u64 {
        self.config.l2.size.into()
    }

    /// Core clock in GHz.
    pub fn core_ghz(&self) -> f64 {
        match self.runner {
            Runner::Measured { ghz, .. } => ghz,
            _ => f64::from(self.config.clocks.core_khz) / 1e6,
        }
    }

    /// A buffer of zeros.
    pub fn zeros<T: Element + Default>(&mut self, len: usize) -> Result<Buffer<T>, GpuError> {
        match &mut self.runner {
            Runner::Model(gpu, _) => gpu.buffer(&vec![T::default(); len]),
            runner => Ok(runner.planned(Init::Zeros, len)),
        }
    }

    /// A buffer of pointers that form one ring in random order. Each node is `bytes` apart from the next and holds its offset.
    pub fn ring(&mut self, nodes: u64, bytes: u64) -> Result<Buffer<u64>, GpuError> {
        match &mut self.runner {
            Runner::Model(gpu, _) => gpu.buffer(&ring(nodes, bytes)),
            runner => Ok(runner.planned(Init::Ring(bytes), (nodes * bytes / 8) as usize)),
        }
    }

    /// Launches a kernel.
    pub fn launch(&mut self, kernel: &str, shape: impl Into<Shape>, args: &[&dyn KernelArg]) -> Result<(), GpuError> {
        self.run(kernel, shape.into(), args, false).map(drop)
    }

    /// Launches a kernel. Returns its cycles. On a real GPU it runs several times in a row.
    pub fn cycles(&mut self, kernel: &str, shape: impl Into<Shape>, args: &[&dyn KernelArg]) -> Result<f64, GpuError> {
        self.run(kernel, shape.into(), args, true)
    }

    fn run(&mut self, kernel: &str, shape: Shape, args: &[&dyn KernelArg], is_timed: bool) -> Result<f64, GpuError> {
        match &mut self.runner {
            Runner::Model(gpu, module) => Ok(gpu.launch(module, kernel, shape, args)?.cycles() as f64),
            Runner::Plan { plans, plan } => {
                let launch = planned_launch(kernel, shape, args, is_timed);
                lock(plans)[*plan].steps.push(PlannedStep::Launch(Box::new(launch)));
                // Some figure: the plan is what counts.
                Ok(1.0)
            }
            Runner::Measured { ghz, launches, .. } if is_timed => {
                Ok(launches.pop_front().expect("a result for each timed launch") * *ghz)
            }
            Runner::Measured { .. } => Ok(0.0),
        }
    }

    /// Reads the pairs of clock values that the threads stored.
    pub fn spans(&mut self, out: &Buffer<u64>) -> Spans {
        let values = match &mut self.runner {
            Runner::Model(gpu, _) => gpu.read(out),
            Runner::Plan { plans, plan } => {
                // The address of a planned buffer holds its index.
                let buffer = (out.address() / PLANNED - 1) as usize;
                lock(plans)[*plan].steps.push(PlannedStep::Read(buffer));
                vec![0; out.len()]
            }
            Runner::Measured { reads, .. } => reads.pop_front().expect("a result for each read"),
        };
        Spans(values.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect())
    }
}

impl Runner<'_> {
    /// Adds a buffer to the plan. A measured bench returns some address, which no kernel reads.
    fn planned<T: Element>(&mut self, init: Init, len: usize) -> Buffer<T> {
        let mut index = 0;
        if let Runner::Plan { plans, plan } = self {
            let buffers = &mut lock(plans)[*plan].buffers;
            index = buffers.len() as u64;
            buffers.push(PlannedBuffer {
                name: index.to_string(),
                is_variable: false,
                dtype: "u8".to_owned(),
                bytes: (len * size_of::<T>()) as u64,
                init,
                relocations: Vec::new(),
            });
        }
        Buffer::at(PLANNED * (index + 1), len)
    }
}

fn lock(plans: &Mutex<Vec<Plan>>) -> MutexGuard<'_, Vec<Plan>> {
    plans.lock().expect("no worker panicked")
}

fn planned_launch(kernel: &str, shape: Shape, args: &[&dyn KernelArg], is_timed: bool) -> PlannedLaunch {
    let sizes = |Dims(sizes): Dims| sizes;
    PlannedLaunch {
        kernel: Some(kernel.to_owned()),
        grid: sizes(shape.grid),
        block: sizes(shape.block),
        cluster: shape.cluster.map(sizes),
        dynamic_shared_bytes: shape.dynamic_shared_bytes,
        is_cooperative: shape.is_cooperative,
        args: args.iter().map(|arg| planned_arg(&arg.bytes())).collect(),
        is_timed,
    }
}

/// An argument. Multiples of [`PLANNED`] are addresses of buffers.
fn planned_arg(bytes: &[u8]) -> PlannedArg {
    let address = bytes.try_into().map(u64::from_le_bytes).unwrap_or(0);
    let is_address = address != 0 && address.is_multiple_of(PLANNED);
    // The first buffer is at `PLANNED` itself, so that no buffer has address 0.
    let to = RelocationTarget::Buffer((address / PLANNED).saturating_sub(1) as usize);
    PlannedArg {
        hex: if is_address { hex(&[0; 8]) } else { hex(bytes) },
        relocations: is_address.then_some(Relocation { at: 0, to }).into_iter().collect(),
    }
}

/// A ring through all nodes in random order: each node holds the offset of the next one.
fn ring(nodes: u64, bytes: u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..nodes).collect();
    // The chase begins at node 0. A fixed seed gives each run the same ring.
    fastrand::Rng::with_seed(1).shuffle(&mut order[1..]);
    let words = bytes / 8;
    let mut ring = vec![0; (nodes * words) as usize];
    for (n, node) in order.iter().enumerate() {
        ring[(node * words) as usize] = order[(n + 1) % order.len()] * bytes;
    }
    ring
}

impl Spans {
    /// Cycles from the first begin to the last end.
    pub fn all(&self) -> f64 {
        let first = self.0.iter().map(|span| span[0]).min().unwrap_or(0);
        let last = self.0.iter().map(|span| span[1]).max().unwrap_or(0);
        last.saturating_sub(first) as f64
    }

    /// Mean cycles of a thread.
    pub fn mean(&self) -> f64 {
        let cycles: u64 = self.0.iter().map(|span| span[1].saturating_sub(span[0])).sum();
        cycles as f64 / self.0.len() as f64
    }

    /// Cycles of the slowest thread.
    pub fn slowest(&self) -> f64 {
        let longest = self.0.iter().map(|span| span[1].saturating_sub(span[0])).max();
        longest.unwrap_or(0) as f64
    }
}

/// The cost of one step, from a run with `short` steps and one with `long` steps: constant parts cancel out.
pub(super) fn slope(
    [short, long]: [u32; 2],
    mut cycles: impl FnMut(u32) -> Result<f64, GpuError>,
) -> Result<f64, GpuError> {
    Ok((cycles(long)? - cycles(short)?) / f64::from(long - short))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ring_visits_every_node_once_before_it_closes() {
        let ring = ring(100, 64);
        let mut offset = 0;
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..100 {
            assert!(seen.insert(offset), "offset {offset} comes twice");
            offset = ring[(offset / 8) as usize];
        }
        assert_eq!(offset, 0);
    }

    #[test]
    fn planned_launch_names_its_buffers_by_index() {
        let lab = Lab::planner();
        let mut bench = lab
            .bench("tiny", ".version 7.8\n.target sm_80\n.address_size 64\n")
            .unwrap();
        let (a, b) = (bench.zeros::<f64>(4).unwrap(), bench.zeros::<u64>(6).unwrap());
        bench.launch("k", (2, 32), &[&b, &7i32, &a]).unwrap();
        assert_eq!(bench.spans(&b).0, [[0, 0]; 3]);
        drop(bench);
        let [plan] = lab.into_plans().try_into().unwrap();
        let sizes: Vec<_> = plan.buffers.iter().map(|buffer| buffer.bytes).collect();
        assert_eq!(sizes, [32, 48]);
        let [PlannedStep::Launch(launch), PlannedStep::Read(1)] = plan.steps.as_slice() else {
            panic!("a launch, then a read of the second buffer: {:?}", plan.steps);
        };
        let scalars: Vec<_> = launch.args.iter().map(|arg| arg.hex.as_str()).collect();
        assert_eq!(scalars, ["0000000000000000", "07000000", "0000000000000000"]);
        let to: Vec<_> = launch
            .args
            .iter()
            .flat_map(|arg| &arg.relocations)
            .map(|word| &word.to)
            .collect();
        assert_eq!(to, [&RelocationTarget::Buffer(1), &RelocationTarget::Buffer(0)]);
    }

    #[test]
    fn measured_bench_gives_nanoseconds_times_its_clock() {
        let results = Repetition {
            launches: vec![500.0],
            reads: vec![vec![10, 30, 12, 35]],
        };
        let lab = Lab::measured([(1.5, results)].into());
        let mut bench = lab.bench("tiny", "").unwrap();
        assert_eq!(bench.cycles("k", (1, 32), &[]).unwrap(), 750.0);
        let out = bench.zeros::<u64>(4).unwrap();
        assert_eq!(bench.spans(&out).all(), 25.0, "from 10 to 35");
    }
}
