//! What more threads bring: each kernel on one and on several, in turns, so that whatever else the host does is the same for both.
//!
//! Time is wall time for everything from reading the scenario to the last check; of that only the launches run on several threads.

use std::fmt;
use std::time::Instant;

use warpwave_components::config::GpuConfig;

use super::{median, simulate};

/// What several threads bring for a kernel: medians of some pairs of runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gain {
    /// Seconds on one thread.
    pub alone: f64,
    /// Seconds on several.
    pub together: f64,
    /// How many times faster several are, of each pair by itself.
    pub times: f64,
}

/// Simulates a kernel in so many pairs of runs.
///
/// # Errors
/// In words, if the kernel does not run on the GPU.
///
/// # Panics
/// If a run on several threads takes other cycles than one on one does: nothing may depend on the threads.
pub fn gain(kernel: &str, config: &GpuConfig, threads: usize, pairs: u32) -> Result<Gain, String> {
    let mut cycles = None;
    let mut seconds = |threads| {
        let begin = Instant::now();
        let (seconds, found) = simulate(
            kernel,
            config,
            threads,
            |_| {},
            |run| (begin.elapsed().as_secs_f64(), run.cycles()),
        )?;
        assert_eq!(*cycles.get_or_insert(found), found, "{kernel} on {threads} threads");
        Ok::<_, String>(seconds)
    };
    let (mut alone, mut together, mut times) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..pairs {
        // Neither is always the second.
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
    /// The head of a table of them.
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
