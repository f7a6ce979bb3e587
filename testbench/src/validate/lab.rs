//! A bench for microbenchmarks: builds the GPU of a point, runs kernels, reads the clock values that they store.

use warpwave_components::preset::{self, PresetError};

use crate::gpu::{Buffer, Factory, Gpu, GpuError, KernelArg, Module, Report, Shape};

/// The changes that apply to every GPU of a validation.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Lab {
    /// Preset keys with their values, as in `--set`.
    pub sets: Vec<(String, String)>,
}

impl Lab {
    /// Checks that the GPU of a preset can be built.
    ///
    /// # Errors
    /// If the preset does not exist, or has faults with these changes.
    pub fn check(&self, gpu: &str) -> Result<(), PresetError> {
        preset::load(gpu, &self.sets).map(drop)
    }

    /// Builds the GPU of a preset and loads a PTX text.
    pub(super) fn bench(&self, gpu: &str, ptx: &str) -> Result<Bench, GpuError> {
        let mut gpu = Gpu::with_factory(preset::load(gpu, &self.sets)?.config, &Factory::new())?;
        let module = gpu.load(ptx)?;
        Ok(Bench { gpu, module })
    }
}

/// A GPU with one module.
pub(super) struct Bench {
    pub gpu: Gpu,
    module: Module,
}

/// The clock at begin and end of each thread, in cycles.
pub(super) struct Spans(Vec<[u64; 2]>);

impl Bench {
    /// Number of SMs.
    pub fn n_sms(&mut self) -> u32 {
        self.gpu.machine_mut().config().n_sms()
    }

    /// Core clock in GHz.
    pub fn core_ghz(&mut self) -> f64 {
        f64::from(self.gpu.machine_mut().config().clocks.core_khz) / 1e6
    }

    /// A buffer of zeros.
    pub fn zeros<T: crate::gpu::Element + Default>(&mut self, len: usize) -> Result<Buffer<T>, GpuError> {
        self.gpu.buffer(&vec![T::default(); len])
    }

    /// Launches a kernel.
    pub fn launch(
        &mut self,
        kernel: &str,
        shape: impl Into<Shape>,
        args: &[&dyn KernelArg],
    ) -> Result<Report, GpuError> {
        self.gpu.launch(&self.module, kernel, shape, args)
    }

    /// Reads the pairs of clock values that the threads stored.
    pub fn spans(&self, out: &Buffer<u64>) -> Spans {
        let values = self.gpu.read(out);
        Spans(values.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect())
    }
}

impl Spans {
    /// Cycles from the first begin to the last end.
    pub fn all(&self) -> f64 {
        let first = self.0.iter().map(|span| span[0]).min().unwrap_or(0);
        let last = self.0.iter().map(|span| span[1]).max().unwrap_or(0);
        last.saturating_sub(first) as f64
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
