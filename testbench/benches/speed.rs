//! Speed of the simulator on `v100-sxm2`, one thread, beside the published processor time of a public simulator.
//!
//! ```text
//! cargo bench --bench speed                 the suite's kernels to completion, best of 3
//! cargo bench --bench speed -- sgemm        kernels whose name contains `sgemm`
//! cargo bench --bench speed -- --quick      a sixteenth of each grid, once: shows that the bench works, compares nothing
//! ```
//!
//! `warpwave bench` is the same for users, on any GPU.

use warpwave::suite::{self, Row};
use warpwave_components::preset;

const GPU: &str = "v100-sxm2";

/// Best of so many runs.
const RUNS: u32 = 3;

fn main() {
    // Cargo itself gives `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let names: Vec<&String> = arguments
        .iter()
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let is_wanted = |kernel: &&str| names.is_empty() || names.iter().any(|name| kernel.contains(*name));
    let config = preset::load(GPU, &[]).expect("a built-in preset").config;
    println!("{}", Row::head());
    let mut ratios = Vec::new();
    for kernel in suite::kernels().into_iter().filter(is_wanted) {
        let figure = match quick {
            true => suite::measure(kernel, &config, true),
            false => suite::best_of(RUNS, kernel, &config),
        };
        let row = Row {
            kernel,
            figure: figure.unwrap_or_else(|error| panic!("{error}")),
            peer: suite::peer_seconds(kernel).filter(|_| !quick),
        };
        println!("{row}");
        ratios.extend(row.ratio());
    }
    if let Some(mean) = suite::geometric_mean(&ratios) {
        println!("geometric mean of the ratios: {mean:.0}");
    }
}
