//! Measures the speed-up of several host threads. The two runs of a pair, on one thread and on several, see the same load of
//! the host.
//!
//! Time is wall time from reading the scenario to the last check. Only the launches run on several threads.

use std::fmt;
use std::time::Instant;

use warpwave_components::config::GpuConfig;

use super::{Size, median, simulate};

/// The speed-up of several threads on a kernel: medians over pairs of runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gain {
    /// Wall seconds on one thread.
    pub alone: f64,
    /// Wall seconds on several threads.
    pub together: f64,
    /// The speed-up: the median of the ratios of the pairs.
    pub times: f64,
}

/// Simulates a kernel in `pairs` pairs of runs.
///
/// # Errors
/// If the kernel does not run on the GPU. The text says why.
///
/// # Panics
/// If the number of cycles depends on the number of threads, which is a bug of the simulator.
pub fn gain(kernel: &str, config: &GpuConfig, threads: usize, pairs: u32) -> Result<Gain, String> {
    let mut cycles = None;
    let mut seconds = |threads| {
        let begin = Instant::now();
        let (seconds, found) = simulate(kernel, config, threads, Size::Whole, |run, _| {
            (begin.elapsed().as_secs_f64(), run.cycles())
        })?;
        // A speed-up counts only if the result is the same.
        assert_eq!(*cycles.get_or_insert(found), found, "{kernel} on {threads} threads");
        Ok::<_, String>(seconds)
    };
    let (mut alone, mut together, mut times) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..pairs {
        // The order alternates: the second run of a pair may be faster.
        let (one, several) = if pair % 2 == 0 {
            (seconds(1)?, seconds(threads)?)
        } else {
            let several = seconds(threads)?;
            (seconds(1)?, several)
        };
        alone.push(one);
        together.push(several);
        times.push(one / several);
    }
    Ok(Gain {
        alone: median(alone),
        together: median(together),
        times: median(times),
    })
}

impl Gain {
    /// The header of a table of speed-ups.
    pub fn head(threads: usize) -> String {
        let several = format!("{threads} threads, s");
        format!(
            "{:<26}{:>12}{several:>16}{:>14}",
            "kernel", "1 thread, s", "times faster"
        )
    }
}

impl fmt::Display for Gain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>12.3}{:>16.3}{:>14.2}", self.alone, self.together, self.times)
    }
}
