//! The arguments of the command line.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use warpwave::reference::Checks;

/// A GPU modelled cycle by cycle: runs PTX kernels and explains where the cycles went.
#[derive(Parser)]
#[command(name = "warpwave", version, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
    /// Log what happens, with simulated time: info, debug, trace, or MODULE=LEVEL; RUST_LOG does the same
    #[arg(long, value_name = "FILTER", global = true)]
    pub log: Option<String>,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run scenarios, print a summary, and check what they expect and assert
    Run(Box<Run>),
    /// List the built-in scenarios, each with the claim it proves
    List,
    /// List the GPUs, or show one in full with the source of every number
    Gpus {
        /// A built-in GPU, or a TOML file
        name: Option<String>,
    },
    /// Check a PTX file: list its errors, and its instructions that are not supported
    Check {
        /// The PTX file
        file: PathBuf,
        /// List the instructions of each kernel, with the control words of machine code for the GPU
        #[arg(long)]
        code: bool,
        /// The GPU of the control words, a built-in one or a TOML file; the program must be able to run on it
        #[arg(long, value_name = "NAME|FILE", default_value = DEFAULT_GPU, requires = "code")]
        gpu: String,
    },
    /// Compute how many blocks of a shape fit on an SM, and the resource that limits them
    Occupancy(Shape),
    /// Measure how fast this host simulates the kernels of the speed suite
    Bench(Speed),
    /// Explain a metric of the report, or print a page of all of them
    Explain {
        /// Name of the metric
        #[arg(required_unless_present = "all")]
        metric: Option<String>,
        /// Print all metrics and warp states as a page in Markdown
        #[arg(long, conflicts_with = "metric")]
        all: bool,
    },
}

#[derive(Args)]
pub struct Speed {
    /// Kernels of the suite; all if left out
    pub kernels: Vec<String>,
    /// The GPUs to simulate: built-in ones or TOML files
    #[arg(long, value_name = "NAME|FILE", default_values_t = ["v100-sxm2".to_owned(), "h100-sxm5".to_owned()])]
    pub gpu: Vec<String>,
    /// Change a number of the GPUs, such as topology.gpcs=1
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,
    /// Runs of each kernel; the fastest counts. With --threads: pairs of runs
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    pub runs: u16,
    /// Show the speed-up of N threads against one instead: medians of pairs of runs, in wall time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=256))]
    pub threads: Option<u16>,
}

#[derive(Args)]
#[command(groups = ["waveform", "window"].map(|name| ArgGroup::new(name).multiple(true)))]
pub struct Run {
    /// Built-in scenarios, folders of them such as `transpose`, or TOML files
    #[arg(required = true)]
    pub scenarios: Vec<String>,
    /// The GPU: a built-in one or a TOML file; replaces the scenario's
    #[arg(long, value_name = "NAME|FILE")]
    pub gpu: Option<String>,
    /// Change a number of the GPU, such as sm.lsu.queue_depth=8
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,
    /// Threads of the simulator; no result depends on it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,
    /// Run programs whose `.target` or instructions are newer than the GPU's compute capability
    #[arg(long)]
    pub ignore_target: bool,
    /// Stop after N cycles of all launches together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_cycles: Option<u64>,
    /// Write a waveform for GTKWave, with its layout beside it (.gtkw); compressed if its name ends in .gz
    #[arg(long, value_name = "FILE", groups = ["waveform", "window"])]
    pub vcd: Option<PathBuf>,
    /// Write a waveform in GTKWave's binary format: smaller, faster to open, with the names of states in the file
    #[cfg(feature = "fst")]
    #[arg(long, value_name = "FILE", groups = ["waveform", "window"])]
    pub fst: Option<PathBuf>,
    /// Show these signals in the waveform, such as 'gpu.gpc[0].sm[1].**'; everything if left out
    #[arg(long, value_name = "SCOPE-GLOB")]
    pub trace: Vec<String>,
    /// Show N levels below each scope of --trace; 1 shows the signals of the scope itself
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    pub trace_depth: Option<u8>,
    /// Show these cycles in the waveform, the pipeline diagram and the timeline, B not included
    #[arg(long, value_name = "A..B", default_value = "..", requires = "window")]
    pub trace_cycles: String,
    /// Begin the waveform with an event: launch=2, pc=0x40, stall>1000 or address=BUFFER[INDEX]
    #[arg(long, value_name = "EVENT", requires = "waveform")]
    pub trace_on: Option<String>,
    /// The time axis of the waveform: cycles, each shown as 1 ns, or real time
    #[arg(long, value_name = "AXIS", default_value = "cycles", requires = "waveform")]
    pub trace_time: TraceTime,
    /// The file for the last 20000 cycles of a failed run; NAME.flight.vcd if left out
    #[arg(long, value_name = "FILE", conflicts_with = "no_flight")]
    pub flight: Option<PathBuf>,
    /// Keep no record of the last cycles
    #[arg(long)]
    pub no_flight: bool,
    /// Write all metrics as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write latencies by path and stage: a table with the slowest requests, .hgrm, .hlog and a picture (.svg)
    #[arg(long, value_name = "DIR")]
    pub hist: Option<PathBuf>,
    /// Write the run as one HTML page: stalls, warps over time, memory traffic, and the cost of each source line
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write a pipeline diagram for Konata: the stages, stalls and dependencies of each warp instruction
    #[arg(long, value_name = "FILE", group = "window")]
    pub kanata: Option<PathBuf>,
    /// Write a timeline for Perfetto (JSON): warps and units of each SM, requests to memory, curves
    #[arg(long, value_name = "FILE", group = "window")]
    pub perfetto: Option<PathBuf>,
    /// Write every buffer as NAME.npy
    #[arg(long, value_name = "DIR")]
    pub dump: Option<PathBuf>,
    /// Run once more without time and check shared memory for races and for reads before a write
    #[arg(long, value_name = "races,uninit", value_delimiter = ',')]
    pub check: Vec<Check>,
    /// No progress line
    #[arg(long)]
    pub no_progress: bool,
}

/// A check of `--check`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Check {
    /// Unordered accesses of different threads, at least one of them a write; the run fails
    Races,
    /// Reads of bytes that were never written; a warning
    Uninit,
}

impl Run {
    /// The checks of `--check`, if it is given.
    pub fn checks(&self) -> Option<Checks> {
        let has = |check| self.check.contains(&check);
        (!self.check.is_empty()).then(|| Checks {
            races: has(Check::Races),
            uninit: has(Check::Uninit),
        })
    }

    /// True if an option names a file that every scenario would overwrite.
    pub fn writes_files(&self) -> bool {
        let files = [
            &self.vcd,
            &self.hist,
            &self.html,
            &self.kanata,
            &self.perfetto,
            &self.json,
            &self.dump,
            &self.flight,
        ];
        #[cfg(feature = "fst")]
        if self.fst.is_some() {
            return true;
        }
        files.iter().any(|file| file.is_some())
    }
}

/// The time axis of a waveform.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TraceTime {
    /// A cycle is shown as a nanosecond
    Cycles,
    /// Real time, in ps
    Real,
}

#[derive(Args)]
pub struct Shape {
    /// The GPU: a built-in one or a TOML file
    #[arg(long, value_name = "NAME|FILE", default_value = DEFAULT_GPU)]
    pub gpu: String,
    /// Threads of a block
    #[arg(long, value_name = "N")]
    pub block: u32,
    /// Registers of a thread
    #[arg(long, value_name = "R")]
    pub regs: u32,
    /// Shared memory of a block, static and dynamic together, in bytes
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub smem: u32,
}

/// The GPU if neither an option nor the scenario names one.
pub const DEFAULT_GPU: &str = "h100-sxm5";

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err("write key=value, such as sm.lsu.queue_depth=8".to_owned()),
    }
}
