//! `warpwave bench`: how fast this machine simulates, kernel by kernel.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use warpwave::suite::threads::{Gain, gain};
use warpwave::suite::{self, Row, growth};
use warpwave_components::preset;

use super::args;
use super::failure::Failure;
use super::outputs::refuse_input;
use super::print;
use super::write::try_file;

/// The columns of the file that rows are appended to.
const COLUMNS: &str = "commit,processor,gpu,kernel,warp_instructions,cycles,cpu_seconds,ratio_to_peer\n";

/// Simulates the kernels asked for, or all of the suite, on each GPU, and prints a table.
pub fn bench(options: &args::Speed) -> Result<(), Failure> {
    let kernels = wanted(&options.kernels)?;
    if let Some(file) = &options.csv {
        let files = options
            .gpu
            .iter()
            .map(|gpu| preset::load(gpu, &options.set).map(|preset| preset.files));
        let files: Vec<_> = files.collect::<Result<_, _>>().map_err(Failure::input)?;
        refuse_input("--csv", file, &files.concat())?;
        try_file(file)?;
    }
    let mut rows = String::new();
    for gpu in &options.gpu {
        let config = preset::load(gpu, &options.set).map_err(Failure::input)?.config;
        print(&format!("{gpu}\n{}\n", Row::head()))?;
        let mut ratios = Vec::new();
        for &kernel in &kernels {
            let figure = suite::best_of(options.runs.into(), kernel, &config).map_err(Failure::input)?;
            // The public simulator was timed with a machine of that size.
            let peer = suite::peer_seconds(kernel).filter(|_| gpu == "v100-sxm2" && options.set.is_empty());
            let row = Row { kernel, figure, peer };
            print(&format!("{row}\n"))?;
            ratios.extend(row.ratio());
            rows += &format!("{},{},{}\n", commit(), processor(), row.csv(gpu));
        }
        if let Some(mean) = suite::geometric_mean(&ratios) {
            print(&format!("geometric mean of the ratios: {mean:.0}\n"))?;
        }
    }
    if let Some(bytes) = suite::peak_memory() {
        print(&format!("peak memory: {} MB\n", bytes / 1_000_000))?;
    }
    options.csv.as_deref().map_or(Ok(()), |file| append(file, &rows))
}

/// Prints what a warp instruction costs on each GPU, from short runs to long ones.
pub fn growth(options: &args::Speed) -> Result<(), Failure> {
    print(&format!("microseconds per warp instruction, {}\n", growth::KERNEL))?;
    for gpu in &options.gpu {
        let config = preset::load(gpu, &options.set).map_err(Failure::input)?.config;
        print(&format!("{gpu}, {} SMs\n", config.n_sms()))?;
        for size in growth::SIZES {
            let figures = (0..options.runs).map(|_| growth::measure(size, &config));
            let figures: Vec<_> = figures.collect::<Result<_, _>>().map_err(Failure::input)?;
            let n = figures[0].warp_instructions;
            let seconds = figures
                .iter()
                .map(|figure| figure.seconds)
                .fold(f64::INFINITY, f64::min);
            print(&format!("{n:>12} of them{:>8.2}\n", 1e6 * seconds / n as f64))?;
        }
    }
    Ok(())
}

/// Prints how much faster the kernels are simulated by so many threads than by one.
pub fn threads(options: &args::Speed, threads: u16) -> Result<(), Failure> {
    let kernels = wanted(&options.kernels)?;
    for gpu in &options.gpu {
        let config = preset::load(gpu, &options.set).map_err(Failure::input)?.config;
        print(&format!("{gpu}\n{}\n", Gain::head(threads.into())))?;
        for &kernel in &kernels {
            let gain = gain(kernel, &config, threads.into(), options.runs.into()).map_err(Failure::input)?;
            print(&format!("{kernel:<26}{gain}\n"))?;
        }
    }
    Ok(())
}

fn wanted(names: &[String]) -> Result<Vec<&'static str>, Failure> {
    let kernels = suite::kernels();
    if let Some(unknown) = names.iter().find(|name| !kernels.contains(&name.as_str())) {
        return Err(Failure::input(format!(
            "the suite has no kernel `{unknown}`: it has {}",
            kernels.join(", ")
        )));
    }
    let is_wanted = |kernel: &&str| names.is_empty() || names.iter().any(|name| name == kernel);
    Ok(kernels.into_iter().filter(is_wanted).collect())
}

fn append(file: &Path, rows: &str) -> Result<(), Failure> {
    let head = if file.exists() { "" } else { COLUMNS };
    let opened = OpenOptions::new().create(true).append(true).open(file);
    opened
        .and_then(|mut to| to.write_all(format!("{head}{rows}").as_bytes()))
        .map_err(|error| Failure::write(file, error))
}

/// The commit of the folder that this runs in, as far as git knows of one.
fn commit() -> String {
    let asked = Command::new("git").args(["describe", "--always", "--dirty"]).output();
    let answer = asked.ok().filter(|answer| answer.status.success());
    answer.map_or("-".to_owned(), |answer| {
        String::from_utf8_lossy(&answer.stdout).trim().to_owned()
    })
}

/// The processor's name, as the system gives it.
fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info
        .lines()
        .find(|line| line.starts_with("model name"))
        .and_then(|line| line.split(':').nth(1));
    name.map_or("-", str::trim).replace(',', " ")
}
