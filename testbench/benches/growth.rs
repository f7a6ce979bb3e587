//! Host cost of a warp instruction, by length of the run and size of the GPU. It should depend on neither.
//!
//! ```text
//! cargo bench -p warpwave --bench growth                 12 thousand to 102 million warp instructions: takes minutes
//! cargo bench -p warpwave --bench growth -- --gpu tiny   on another GPU
//! cargo bench -p warpwave --bench growth -- --quick      the shortest run on `tiny`: tests the bench
//! ```
//!
//! The kernel is the suite's `sgemm_naive`, with a smaller grid for short runs and repeated launches for long runs. Only the CPU
//! time of the launches counts: building a large GPU would dominate a short run. `.ci/growth` counts host instructions instead.

use clap::Parser;
use warpwave::suite::{self, Size};
use warpwave_components::preset;

const KERNEL: &str = "sgemm_naive";

/// Grid in x and y, and repeats, of each run.
const SIZES: [(u32, usize); 5] = [(1, 1), (4, 1), (16, 1), (16, 4), (16, 33)];

#[derive(Parser)]
struct Arguments {
    /// The GPUs to simulate
    #[arg(long, default_values_t = ["v100-sxm2".to_owned(), "h100-sxm5".to_owned()])]
    gpu: Vec<String>,
    /// Runs of each size; the fastest counts
    #[arg(long, default_value_t = 3)]
    runs: u32,
    /// The shortest run on `tiny`, once
    #[arg(long)]
    quick: bool,
    /// Cargo adds this option.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let arguments = Arguments::parse();
    println!("microseconds per warp instruction, {KERNEL}");
    if arguments.quick {
        return table("tiny", &SIZES[..1], 1);
    }
    for gpu in &arguments.gpu {
        table(gpu, &SIZES, arguments.runs);
    }
}

/// Prints the cost of a warp instruction on a GPU, by size.
fn table(gpu: &str, sizes: &[(u32, usize)], runs: u32) {
    let config = preset::load(gpu, &[]).unwrap_or_else(|error| panic!("{error}")).config;
    println!("{gpu}, {} SMs", config.n_sms());
    for &(side, repeats) in sizes {
        let size = Size::Grid {
            grid: [side, side, 1],
            repeats,
        };
        let measure = || suite::measure(KERNEL, &config, size).unwrap_or_else(|error| panic!("{error}"));
        let figures: Vec<_> = (0..runs).map(|_| measure()).collect();
        let seconds = figures.iter().map(|figure| figure.launch_seconds);
        let fewest = seconds.fold(f64::INFINITY, f64::min);
        let n = figures.first().map_or(0, |figure| figure.warp_instructions);
        println!("{n:>12} warp instructions{:>8.2}", 1e6 * fewest / n as f64);
    }
}
