//! The speed suite: simulates kernels to completion and measures the host's CPU time.
//!
//! The kernels are the scenarios of `scenarios/speed`. Eight are common GPU programs. Six have one property each: divergence, atomics, an
//! irregular matrix, a chain of loads, barriers, tensor cores.

pub mod threads;

use std::fmt;

use warpwave_components::config::GpuConfig;

use crate::bench::{Bench, Options, Run};
use crate::scenario::{Scenario, builtin};

/// First part of the name of each scenario of the suite.
const PREFIX: &str = "speed_";

/// Divisor of the first grid size in a [`Size::Quick`] run.
const QUICK_DIVISOR: u32 = 16;

/// The part of a kernel to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Size {
    /// The whole grid.
    Whole,
    /// A sixteenth of each grid, rounded up.
    Quick,
    /// Another grid, with repeated launches.
    Grid {
        /// CTAs in x, y, z.
        grid: [u32; 3],
        /// Number of times that the launches of the scenario are repeated.
        repeats: usize,
    },
}

impl Size {
    fn apply(self, scenario: &mut Scenario) {
        let launches = &mut scenario.launches;
        match self {
            Size::Whole => {}
            Size::Quick => launches
                .iter_mut()
                .for_each(|launch| launch.grid[0] = launch.grid[0].div_ceil(QUICK_DIVISOR)),
            Size::Grid { grid, repeats } => {
                launches.iter_mut().for_each(|launch| launch.grid = grid);
                // The copies keep the order: all launches, then all of them once more.
                let once = std::mem::take(launches);
                *launches = (0..repeats).flat_map(|_| once.iter().cloned()).collect();
            }
        }
    }
}

/// The cost of simulating one kernel.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figure {
    /// Warp instructions issued.
    pub warp_instructions: u64,
    /// Simulated cycles.
    pub cycles: u64,
    /// CPU seconds of this thread, from reading the scenario to the last check. Wall time if the system does not report CPU time.
    /// Only the first run of a kernel in a process compiles the kernel.
    pub seconds: f64,
    /// CPU seconds of the launches alone, without compiling and building the machine.
    pub launch_seconds: f64,
}

/// Names of the suite's kernels, sorted.
///
/// ```
/// assert_eq!(warpwave::suite::kernels().len(), 14);
/// ```
pub fn kernels() -> Vec<&'static str> {
    let names = builtin::in_folder(builtin::SUITE).into_iter();
    names.filter_map(|name| name.strip_prefix(PREFIX)).collect()
}

/// Simulates a kernel once, on one thread.
///
/// # Errors
/// If the kernel does not run on the GPU. The text says why.
pub fn measure(kernel: &str, config: &GpuConfig, size: Size) -> Result<Figure, String> {
    let begin = cpu_seconds();
    simulate(kernel, config, 1, size, |run, launch_seconds| Figure {
        // With one host thread the simulation runs on this thread, so its CPU clock counts all of it.
        warp_instructions: run.totals.sum("scheduler", "inst_issued").unwrap_or(0),
        cycles: run.cycles(),
        seconds: cpu_seconds() - begin,
        launch_seconds,
    })
}

/// Simulates a kernel and calls `figure` with the run and the CPU seconds of its launches. The machine is dropped after the call, so
/// the drop does not count.
fn simulate<T>(
    kernel: &str,
    config: &GpuConfig,
    threads: usize,
    size: Size,
    figure: impl FnOnce(&Run, f64) -> T,
) -> Result<T, String> {
    let mut scenario = builtin::load(&format!("{PREFIX}{kernel}")).map_err(|error| error.to_string())?;
    size.apply(&mut scenario);
    let mut bench = Bench::new(&scenario, config.clone()).map_err(|error| format!("{kernel}: {error}"))?;
    let options = Options {
        threads,
        max_cycles: None,
    };
    let begin = cpu_seconds();
    let run = bench.run(options, &mut |_| true);
    let launch_seconds = cpu_seconds() - begin;
    if let Some((launch, error)) = &run.stopped {
        return Err(format!("{kernel}: launch {launch}: {error}"));
    }
    Ok(figure(&run, launch_seconds))
}

/// Measures a kernel `runs` times (at least once). Returns the figure with the fewest seconds.
///
/// # Errors
/// If the kernel does not run on the GPU. The text says why.
pub fn best_of(runs: u32, kernel: &str, config: &GpuConfig, size: Size) -> Result<Figure, String> {
    let mut best = measure(kernel, config, size)?;
    for _ in 1..runs {
        let figure = measure(kernel, config, size)?;
        // Other load of the host only adds time, so the fastest run is the truest.
        if figure.seconds < best.seconds {
            best = figure;
        }
    }
    Ok(best)
}

impl Figure {
    /// The header of a table of figures.
    pub fn head() -> String {
        format!(
            "{:<26}{:>14}{:>10}{:>9}{:>12}{:>12}",
            "kernel", "warp inst", "cycles", "CPU s", "M inst/s", "k cycle/s"
        )
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figure {
            warp_instructions,
            cycles,
            seconds,
            ..
        } = *self;
        let m_inst = warp_instructions as f64 / seconds / 1e6;
        let k_cycles = cycles as f64 / seconds / 1e3;
        write!(
            f,
            "{warp_instructions:>14}{cycles:>10}{seconds:>9.3}{m_inst:>12.2}{k_cycles:>12.1}"
        )
    }
}

/// The geometric mean. `None` without values.
///
/// ```
/// assert_eq!(warpwave::suite::geometric_mean(&[20.0, 80.0]).map(f64::round), Some(40.0));
/// ```
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    (!values.is_empty()).then(|| (sum / values.len() as f64).exp())
}

/// The median. For an even number of values, the upper one of the middle pair.
///
/// # Panics
/// Without values.
///
/// ```
/// assert_eq!(warpwave::suite::median(vec![3.0, 1.0, 2.0]), 2.0);
/// ```
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The peak memory of this process so far, in bytes. `None` if the system does not report it.
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    // The high-water mark of the resident set, in KiB (Linux).
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// CPU time of this thread so far, in seconds.
#[cfg(unix)]
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Wall time in seconds, on systems without a supported clock of a thread's CPU time.
#[cfg(not(unix))]
fn cpu_seconds() -> f64 {
    static BEGIN: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    BEGIN.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use warpwave_components::preset;

    use super::*;

    #[test]
    fn instructions_grow_with_blocks_and_repeats() {
        let config = preset::load("tiny", &[]).expect("a built-in GPU").config;
        let count = |grid, repeats| {
            let figure = measure("sgemm_naive", &config, Size::Grid { grid, repeats }).expect("it runs");
            assert!(figure.launch_seconds <= figure.seconds);
            figure.warp_instructions
        };
        assert_eq!(count([2, 1, 1], 3), 6 * count([1, 1, 1], 1));
    }

    #[cfg(unix)]
    #[test]
    fn resolution_of_cpu_time_is_far_below_a_scheduler_tick() {
        let mut last = cpu_seconds();
        let mut step = || {
            let begin = last;
            while last == begin {
                last = cpu_seconds();
            }
            last - begin
        };
        let shortest = (0..50).map(|_| step()).fold(f64::INFINITY, f64::min);
        assert!(0.0 < shortest && shortest < 1e-4, "{shortest} s");
    }
}
