//! The speed suite: kernels that are simulated to completion while the host's processor time is taken.
//!
//! The kernels are those of `scenarios/speed`: eight whose time on a public simulator is published (`suite/peer.csv`), and six
//! that stress something else each: divergence, atomics, an irregular matrix, a chain of loads, barriers, tensor cores.
//!
//! Time is processor time of this thread for everything from reading the scenario to the last check: compiling, building the
//! machine, running. Where the system does not tell processor time it is wall time.

pub mod growth;
pub mod threads;

use std::fmt;

use warpwave_components::config::GpuConfig;

use crate::bench::{Bench, Options, Run};
use crate::scenario::builtin;

const PREFIX: &str = "speed_";

const PEER: &str = include_str!("suite/peer.csv");

/// What part of a grid a quick run takes.
const QUICK_SHARE: u32 = 16;

/// What simulating one kernel took.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figure {
    /// Warp instructions issued.
    pub warp_instructions: u64,
    /// Simulated cycles.
    pub cycles: u64,
    /// Processor time in seconds.
    pub seconds: f64,
}

/// Names of the suite's kernels, sorted.
///
/// ```
/// use warpwave::suite;
/// let kernels = suite::kernels();
/// assert_eq!(kernels.len(), 14);
/// assert!(kernels.iter().filter(|kernel| suite::peer_seconds(kernel).is_some()).count() == 8);
/// ```
pub fn kernels() -> Vec<&'static str> {
    let names = builtin::in_folder(builtin::SUITE).into_iter();
    names.filter_map(|name| name.strip_prefix(PREFIX)).collect()
}

/// The published processor time of the public simulator on a kernel, if there is one.
pub fn peer_seconds(kernel: &str) -> Option<f64> {
    let rows = PEER.lines().filter(|line| !line.starts_with('#'));
    let row = rows
        .map(|row| row.split(',').collect::<Vec<_>>())
        .find(|row| row[0] == kernel)?;
    row.last()?.parse().ok()
}

/// Simulates a kernel once; a quick run takes a sixteenth of each grid, and compares with nothing.
///
/// # Errors
/// In words, if the kernel does not run on the GPU.
pub fn measure(kernel: &str, config: &GpuConfig, quick: bool) -> Result<Figure, String> {
    let begin = processor_seconds();
    let shrink = |grid: &mut [u32; 3]| grid[0] = grid[0].div_ceil(if quick { QUICK_SHARE } else { 1 });
    simulate(kernel, config, 1, shrink, |run| Figure {
        warp_instructions: run.totals.sum("scheduler", "inst_issued").unwrap_or(0),
        cycles: run.cycles(),
        seconds: processor_seconds() - begin,
    })
}

/// Simulates a kernel, with its grids as `shape` leaves them, and says what `figure` makes of that, before the machine is taken apart.
fn simulate<T>(
    kernel: &str,
    config: &GpuConfig,
    threads: usize,
    shape: impl Fn(&mut [u32; 3]),
    figure: impl FnOnce(&Run) -> T,
) -> Result<T, String> {
    let mut scenario = builtin::load(&format!("{PREFIX}{kernel}")).map_err(|error| error.to_string())?;
    scenario.launches.iter_mut().for_each(|launch| shape(&mut launch.grid));
    let mut bench = Bench::new(&scenario, config.clone()).map_err(|error| format!("{kernel}: {error}"))?;
    let options = Options {
        threads,
        max_cycles: None,
    };
    let run = bench.run(options, &mut |_| true);
    if let Some((launch, error)) = &run.stopped {
        return Err(format!("{kernel}: launch {launch}: {error}"));
    }
    Ok(figure(&run))
}

/// The fastest of some runs.
///
/// # Errors
/// As [`measure`].
pub fn best_of(runs: u32, kernel: &str, config: &GpuConfig) -> Result<Figure, String> {
    let mut best = measure(kernel, config, false)?;
    for _ in 1..runs {
        let figure = measure(kernel, config, false)?;
        if figure.seconds < best.seconds {
            best = figure;
        }
    }
    Ok(best)
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The kernel.
    pub kernel: &'a str,
    /// What it took.
    pub figure: Figure,
    /// What it took the public simulator, in seconds, if that is to be compared.
    pub peer: Option<f64>,
}

impl Row<'_> {
    /// The table's head.
    pub fn head() -> String {
        format!(
            "{:<26}{:>14}{:>10}{:>9}{:>12}{:>12}{:>10}{:>8}",
            "kernel", "warp inst", "cycles", "CPU s", "M inst/s", "k cycle/s", "peer s", "ratio"
        )
    }

    /// How many times faster than the public simulator.
    pub fn ratio(&self) -> Option<f64> {
        Some(self.peer? / self.figure.seconds)
    }

    /// The row as comma-separated values, behind `gpu`: kernel, instructions, cycles, seconds, ratio.
    pub fn csv(&self, gpu: &str) -> String {
        let Figure {
            warp_instructions,
            cycles,
            seconds,
        } = self.figure;
        let ratio = self.ratio().map_or(String::new(), |ratio| format!("{ratio:.1}"));
        format!(
            "{gpu},{},{warp_instructions},{cycles},{seconds:.3},{ratio}",
            self.kernel
        )
    }
}

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figure {
            warp_instructions,
            cycles,
            seconds,
        } = self.figure;
        let m_inst = warp_instructions as f64 / seconds / 1e6;
        let k_cycles = cycles as f64 / seconds / 1e3;
        let kernel = self.kernel;
        write!(
            f,
            "{kernel:<26}{warp_instructions:>14}{cycles:>10}{seconds:>9.2}{m_inst:>12.2}{k_cycles:>12.1}"
        )?;
        match (self.peer, self.ratio()) {
            (Some(peer), Some(ratio)) => write!(f, "{peer:>10.1}{ratio:>8.0}"),
            _ => write!(f, "{:>10}{:>8}", "-", "-"),
        }
    }
}

/// The geometric mean of ratios; nothing of none.
///
/// ```
/// assert_eq!(warpwave::suite::geometric_mean(&[20.0, 80.0]).map(f64::round), Some(40.0));
/// ```
pub fn geometric_mean(ratios: &[f64]) -> Option<f64> {
    let sum: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    (!ratios.is_empty()).then(|| (sum / ratios.len() as f64).exp())
}

/// The figure in the middle; of an even number the greater of the two there.
///
/// # Panics
/// If there is none.
///
/// ```
/// assert_eq!(warpwave::suite::median(vec![3.0, 1.0, 2.0]), 2.0);
/// ```
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Most memory that the process has used so far, in bytes, where the system tells.
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// Processor time of this thread so far, in seconds.
#[cfg(unix)]
fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Wall time, where the system is not known to tell a thread's processor time.
#[cfg(not(unix))]
fn processor_seconds() -> f64 {
    static BEGIN: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    BEGIN.elapsed().as_secs_f64()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn processor_time_goes_on_in_steps_far_shorter_than_a_systems_tick() {
        let mut last = processor_seconds();
        let mut step = || {
            let begin = last;
            while last == begin {
                last = processor_seconds();
            }
            last - begin
        };
        let shortest = (0..50).map(|_| step()).fold(f64::INFINITY, f64::min);
        assert!(0.0 < shortest && shortest < 1e-4, "{shortest} s");
    }
}
