//! Speed of the simulator on one thread, beside the published CPU time of GPGPU-Sim (`peer/published.csv`).
//!
//! ```text
//! cargo bench -p warpwave --bench speed                        all kernels on V100 and H100, best of 3
//! cargo bench -p warpwave --bench speed -- sgemm               kernels whose name contains `sgemm`
//! cargo bench -p warpwave --bench speed -- --csv benches/speed.csv
//!                                                              append the rows, with commit and host CPU
//! cargo bench -p warpwave --bench speed -- --quick             a sixteenth of each grid, once, without ratios: tests the bench
//! ```
//!
//! The published times are of a GPU with 80 SMs, so only `v100-sxm2` has ratios. They are of another host: `peer/compare` runs
//! both simulators on one host.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Parser;
use warpwave::suite::{self, Figure, Size};
use warpwave_components::preset;

/// The GPU of the published times.
const PEER_GPU: &str = "v100-sxm2";

const PUBLISHED: &str = include_str!("peer/published.csv");

const CSV_HEAD: &str = "commit,processor,gpu,kernel,warp_instructions,cycles,cpu_seconds,ratio_to_peer\n";

#[derive(Parser)]
struct Arguments {
    /// Parts of kernel names. All kernels if left out.
    kernels: Vec<String>,
    /// The GPUs to simulate
    #[arg(long, default_values_t = [PEER_GPU.to_owned(), "h100-sxm5".to_owned()])]
    gpu: Vec<String>,
    /// Runs of each kernel; the fastest counts
    #[arg(long, default_value_t = 3)]
    runs: u32,
    /// Append a row per kernel to this file
    #[arg(long)]
    csv: Option<PathBuf>,
    /// A sixteenth of each grid, once
    #[arg(long)]
    quick: bool,
    /// Cargo adds this option.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let arguments = Arguments::parse();
    let is_selected =
        |kernel: &&str| arguments.kernels.is_empty() || arguments.kernels.iter().any(|part| kernel.contains(part));
    let kernels: Vec<_> = suite::kernels().into_iter().filter(is_selected).collect();
    let mut rows = String::new();
    for gpu in &arguments.gpu {
        rows += &table(gpu, &kernels, &arguments);
    }
    if let Some(file) = &arguments.csv {
        append(file, &rows);
    }
}

/// Prints the table of a GPU. Returns its rows as comma-separated values.
fn table(gpu: &str, kernels: &[&str], arguments: &Arguments) -> String {
    let config = preset::load(gpu, &[]).unwrap_or_else(|error| panic!("{error}")).config;
    let (size, runs) = match arguments.quick {
        true => (Size::Quick, 1),
        false => (Size::Whole, arguments.runs),
    };
    println!("{gpu}\n{}{:>10}{:>8}", Figure::head(), "peer s", "ratio");
    let (mut rows, mut ratios) = (String::new(), Vec::new());
    for kernel in kernels {
        let figure = suite::best_of(runs, kernel, &config, size).unwrap_or_else(|error| panic!("{error}"));
        let published = published_seconds(kernel).filter(|_| gpu == PEER_GPU && !arguments.quick);
        let ratio = published.map(|published| published / figure.seconds);
        let text = |value: Option<f64>, digits| value.map_or("-".to_owned(), |value| format!("{value:.digits$}"));
        println!("{kernel:<26}{figure}{:>10}{:>8}", text(published, 1), text(ratio, 0));
        let Figure {
            warp_instructions,
            cycles,
            seconds,
            ..
        } = figure;
        let ratio_text = ratio.map_or(String::new(), |ratio| format!("{ratio:.1}"));
        rows += &format!(
            "{},{},{gpu},{kernel},{warp_instructions},{cycles},{seconds:.3},{ratio_text}\n",
            commit(),
            host_cpu()
        );
        ratios.extend(ratio);
    }
    if let Some(mean) = suite::geometric_mean(&ratios) {
        println!("geometric mean of the ratios: {mean:.0}");
    }
    rows
}

/// The published CPU seconds of a kernel, if there are any.
fn published_seconds(kernel: &str) -> Option<f64> {
    let rows = PUBLISHED.lines().filter(|line| !line.starts_with('#'));
    let row = rows
        .map(|row| row.split(',').collect::<Vec<_>>())
        .find(|row| row[0] == kernel)?;
    row.last()?.parse().ok()
}

fn append(file: &Path, rows: &str) {
    let head = if file.exists() { "" } else { CSV_HEAD };
    let opened = OpenOptions::new().create(true).append(true).open(file);
    opened
        .and_then(|mut to| to.write_all(format!("{head}{rows}").as_bytes()))
        .unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
}

/// The commit of the current folder. `-` without git.
fn commit() -> String {
    let output = Command::new("git").args(["describe", "--always", "--dirty"]).output();
    let output = output.ok().filter(|output| output.status.success());
    output.map_or("-".to_owned(), |output| {
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    })
}

/// The name of the host's CPU. `-` if the system does not report it.
fn host_cpu() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info
        .lines()
        .find(|line| line.starts_with("model name"))
        .and_then(|line| line.split(':').nth(1));
    name.map_or("-", str::trim).replace(',', " ")
}
