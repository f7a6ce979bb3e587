//! Speed of the simulator on `v100-sxm2`, one thread, beside the published CPU time of a public simulator on the same kernels.
//!
//! ```text
//! cargo bench --bench speed                 all kernels of peer.csv to completion, best of 3
//! cargo bench --bench speed -- sgemm        kernels whose name contains `sgemm`
//! cargo bench --bench speed -- --quick      a sixteenth of each grid, once: shows that the bench works, compares nothing
//! ```
//!
//! Time is CPU time of this thread for everything from reading the scenario to the last check: compiling, building the machine,
//! running. Where the system does not tell CPU time it is wall time.

use std::path::Path;
use std::time::Instant;

use warpwave::bench::{Bench, Options};
use warpwave::scenario::Scenario;
use warpwave_components::preset;

const GPU: &str = "v100-sxm2";
const PEER: &str = include_str!("speed/peer.csv");

/// Best of so many runs.
const RUNS: usize = 3;

/// What part of a grid `--quick` runs.
const QUICK_SHARE: u32 = 16;

/// One run of a kernel.
#[derive(Clone, Copy)]
struct Figure {
    warp_instructions: u64,
    cycles: u64,
    seconds: f64,
}

fn main() {
    // Cargo itself gives `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let names: Vec<&String> = arguments
        .iter()
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let is_wanted = |kernel: &str| names.is_empty() || names.iter().any(|name| kernel.contains(*name));
    println!(
        "{:<26}{:>14}{:>10}{:>9}{:>12}{:>12}{:>10}{:>8}",
        "kernel", "warp inst", "cycles", "CPU s", "M inst/s", "k cycle/s", "peer s", "ratio"
    );
    let ratios: Vec<f64> = peers()
        .filter(|(kernel, _)| is_wanted(kernel))
        .map(|(kernel, peer_seconds)| {
            let runs = if quick { 1 } else { RUNS };
            let figures = (0..runs).map(|_| run(kernel, quick));
            let best = figures
                .min_by(|a, b| a.seconds.total_cmp(&b.seconds))
                .expect("at least one run");
            show(kernel, best, (!quick).then_some(peer_seconds));
            peer_seconds / best.seconds
        })
        .collect();
    if !quick && !ratios.is_empty() {
        let mean = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64;
        println!("geometric mean of the ratios: {:.0}", mean.exp());
    }
}

/// Kernels with the published CPU seconds of the other simulator.
fn peers() -> impl Iterator<Item = (&'static str, f64)> {
    let rows = PEER.lines().filter(|line| !line.starts_with('#')).skip(1);
    rows.map(|row| {
        let (kernel, _) = row.split_once(',').expect("a row begins with its kernel");
        let (_, seconds) = row.rsplit_once(',').expect("a row ends with its time");
        (kernel, seconds.parse().expect("a time is a number"))
    })
}

fn run(kernel: &str, quick: bool) -> Figure {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("benches/speed")
        .join(format!("{kernel}.toml"));
    let begin = seconds();
    let mut scenario = Scenario::load(&path).unwrap_or_else(|error| panic!("{error}"));
    if quick {
        let shrink = |grid: &mut [u32; 3]| grid[0] = grid[0].div_ceil(QUICK_SHARE);
        scenario.launches.iter_mut().for_each(|launch| shrink(&mut launch.grid));
    }
    let config = preset::load(GPU, &[]).expect("a built-in preset").config;
    let mut bench = Bench::new(&scenario, config).unwrap_or_else(|error| panic!("{kernel}: {error}"));
    let options = Options {
        threads: 1,
        max_cycles: None,
    };
    let run = bench.run(options, &mut |_| true);
    if let Some((launch, error)) = &run.stopped {
        panic!("{kernel}: launch {launch}: {error}");
    }
    Figure {
        warp_instructions: run.totals.sum("scheduler", "inst_issued").expect("schedulers count"),
        cycles: run.cycles(),
        seconds: seconds() - begin,
    }
}

fn show(kernel: &str, figure: Figure, peer_seconds: Option<f64>) {
    let Figure {
        warp_instructions,
        cycles,
        seconds,
    } = figure;
    let m_inst = warp_instructions as f64 / seconds / 1e6;
    let k_cycles = cycles as f64 / seconds / 1e3;
    print!("{kernel:<26}{warp_instructions:>14}{cycles:>10}{seconds:>9.2}{m_inst:>12.2}{k_cycles:>12.1}");
    match peer_seconds {
        Some(peer) => println!("{peer:>10.1}{:>8.0}", peer / seconds),
        None => println!("{:>10}{:>8}", "-", "-"),
    }
}

/// CPU time of this thread so far, in seconds; wall time where the system does not tell.
fn seconds() -> f64 {
    static BEGIN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = schedstat.split(' ').next().and_then(|first| first.parse::<f64>().ok());
    nanoseconds.map_or_else(|| BEGIN.elapsed().as_secs_f64(), |time| time / 1e9)
}
