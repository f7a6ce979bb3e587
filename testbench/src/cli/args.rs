//! The arguments of the command line.

use std::ops::Range;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use warpwave::fault::LinkFault;
use warpwave::reference::Checks;
use warpwave::watch::transaction::Wanted;
use warpwave_components::preset::BYTE_UNITS;
use warpwave_ptx::{MIN_REGISTER_CAP, OPTIONAL_PASSES};

use super::sweep::args::STORE;

/// A GPU modelled cycle by cycle: runs PTX kernels and explains where the cycles went.
#[derive(Parser)]
#[command(name = "warpwave", version, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
    /// Log events with simulated time: info, debug, trace, or MODULE=LEVEL (or RUST_LOG)
    #[arg(long, value_name = "FILTER", global = true)]
    pub log: Option<String>,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run scenarios, print a summary, and check what they expect and assert
    Run(Box<Run>),
    /// Run a scenario at many sizes, settings and GPUs: one table, CSV and plot
    Sweep(Box<super::sweep::args::Sweep>),
    /// Compare two runs: metric by metric, and PTX line by line
    Compare(Box<super::compare::Compare>),
    /// Run scenarios as a test suite: one line each, JUnit XML, a baseline of metrics
    Test(Box<super::test::Test>),
    /// Give a lesson: its text, its run, its plot; without a name, list all lessons
    Lesson(super::lesson::Options),
    /// List the built-in scenarios and the lessons, each with its claim
    List,
    /// List the GPUs, or show every parameter of one with its source
    Gpus {
        /// A built-in GPU, or a TOML file
        name: Option<String>,
    },
    /// Check a PTX file: list errors and unsupported instructions
    Check {
        /// The PTX file
        file: PathBuf,
        /// List each kernel's machine instructions with their control words for the GPU
        #[arg(long)]
        code: bool,
        /// The GPU that the control words are for: a built-in one or a TOML file. A program newer than the GPU is an error
        #[arg(long, value_name = "NAME|FILE", default_value = DEFAULT_GPU, requires = "code")]
        gpu: String,
    },
    /// Compute the occupancy of a block shape, and the resource that limits it
    Occupancy(Shape),
    /// Measure how fast this host simulates the kernels of the speed suite
    Bench(Speed),
    /// Run microbenchmarks and compare them with figures of silicon
    Validate(Validate),
    /// Print the completion script of a shell, for instance: warpwave completions bash
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the man page of the command, or of one of its commands
    Man {
        /// A command, such as run
        command: Option<String>,
    },
    /// Explain a metric, a warp state, a preset key or a word of a report, or print all metrics as a page
    Explain {
        /// A metric, a state such as long_scoreboard, or a preset key such as sm.lsu.queue_depth
        #[arg(required_unless_present = "all")]
        word: Option<String>,
        /// Print all metrics and warp states as a Markdown page
        #[arg(long, conflicts_with = "word")]
        all: bool,
    },
}

#[derive(Args)]
pub struct Speed {
    /// Kernels of the suite; without names, all of them
    pub kernels: Vec<String>,
    /// The GPUs to simulate: built-in ones or TOML files
    #[arg(long, value_name = "NAME|FILE", default_values_t = ["v100-sxm2".to_owned(), "h100-sxm5".to_owned()])]
    pub gpu: Vec<String>,
    /// Change a number of the GPUs, such as topology.gpcs=1
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,
    /// Runs of each kernel; the fastest one is shown. With --threads: pairs of runs
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    pub runs: u16,
    /// Show the speed-up of N threads over one thread instead, in wall time: medians over pairs of runs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=256))]
    pub threads: Option<u16>,
}

#[derive(Args)]
pub struct Validate {
    /// Families of microbenchmarks; their rows are printed. All, without their rows, if left out
    pub families: Vec<String>,
    /// Run the rows of this GPU alone
    #[arg(long, value_name = "NAME")]
    pub gpu: Option<String>,
    /// Run only rows that take seconds at most
    #[arg(long)]
    pub quick: bool,
    /// Change a number or a policy of every GPU, such as l2.far_latency=0
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,
    /// Host threads, each with a row of its own; as many as the host has if left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
    /// Write all rows as CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write a page with plots
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Fail if the errors of a family differ from this record
    #[arg(long, value_name = "FILE")]
    pub check: Option<PathBuf>,
    /// Write the records (all.csv, quick.csv) and DEVIATIONS.md into a folder; other families keep theirs
    #[arg(long, value_name = "DIR", conflicts_with_all = ["gpu", "quick", "set"])]
    pub write: Option<PathBuf>,
    /// Write the microbenchmarks of --gpu into a folder, for `measure.py` on a real GPU; the model does not run
    #[arg(long, value_name = "DIR", requires = "gpu", conflicts_with_all = ["quick", "set", "csv", "html", "check", "write", "fresh"])]
    pub plan: Option<PathBuf>,
    /// Compare with the figures that `measure.py` left in this folder, not with published ones
    #[arg(long, value_name = "DIR", requires = "gpu", conflicts_with_all = ["plan", "write", "check"])]
    pub measured: Option<PathBuf>,
    /// Write the measured figures alone as CSV; the model does not run
    #[arg(long, value_name = "FILE", requires = "measured", conflicts_with_all = ["csv", "html", "quick", "fresh"])]
    pub silicon: Option<PathBuf>,
    /// Folder that keeps the figure of each point; no point is computed twice
    #[arg(long, value_name = "DIR", default_value = STORE)]
    pub store: PathBuf,
    /// Compute every point, whatever the store has
    #[arg(long)]
    pub fresh: bool,
    /// No progress line
    #[arg(long)]
    pub no_progress: bool,
}

#[derive(Args, Clone)]
#[command(groups = ["waveform", "window"].map(|name| ArgGroup::new(name).multiple(true)))]
pub struct Run {
    /// Built-in scenarios, folders of them such as `transpose`, TOML files, folders of files, or patterns such as 'kernels/**/*.toml'.
    /// With several scenarios, each option writes one file per scenario: out.vcd becomes out.NAME.vcd, and a folder DIR becomes DIR/NAME
    #[arg(required = true)]
    pub scenarios: Vec<String>,
    /// The GPU, instead of the scenario's: a built-in one or a TOML file
    #[arg(long, value_name = "NAME|FILE", help_heading = "Machine")]
    pub gpu: Option<String>,
    /// Change a number or a policy of the GPU, such as sm.lsu.queue_depth=8
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value, help_heading = "Machine")]
    pub set: Vec<(String, String)>,
    /// Put a fault on a link: LINK:KIND[@cycle=N], kinds delay, stall, drop, duplicate, corrupt, reorder
    #[arg(long = "fault", value_name = "FAULT", help_heading = "Machine")]
    pub faults: Vec<LinkFault>,
    /// Change a named constant of the scenario, such as n=4096 or 'n=64 KiB'
    #[arg(long = "const", value_name = "NAME=VALUE", value_parser = name_value, help_heading = "Run")]
    pub constants: Vec<(String, String)>,
    /// Host threads; results do not depend on their number
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256), allow_negative_numbers = true, help_heading = "Run")]
    pub threads: u16,
    /// Run programs whose target or instructions are newer than the GPU
    #[arg(long, help_heading = "Run")]
    pub ignore_target: bool,
    /// Stop after N cycles, such as 1e6, summed over all launches
    #[arg(long, value_name = "N", value_parser = cycles, help_heading = "Run")]
    pub max_cycles: Option<u64>,
    /// Count cycles A to B - 1 alone, such as 1e6..2e6, then stop; the exit code is 0
    #[arg(long, value_name = "A..B", value_parser = sample, help_heading = "Run")]
    pub sample: Option<Range<u64>>,
    /// Most registers of a thread, 16 to 255; further values are spilled to local memory
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(i64::from(MIN_REGISTER_CAP)..), help_heading = "Run")]
    pub maxrregcount: Option<u8>,
    /// Leave out a pass of the compiler, to see what it is worth: values stay the same, only `contract` changes their rounding
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(OPTIONAL_PASSES), help_heading = "Run")]
    pub no_pass: Vec<String>,
    /// Write a waveform for GTKWave, and its view (.gtkw); FILE.gz is compressed
    #[arg(long, value_name = "FILE", groups = ["waveform", "window"], help_heading = "Waveforms")]
    pub vcd: Option<PathBuf>,
    /// Write a waveform in GTKWave's binary format: smaller, faster to open
    #[cfg(feature = "fst")]
    #[arg(long, value_name = "FILE", groups = ["waveform", "window"], help_heading = "Waveforms")]
    pub fst: Option<PathBuf>,
    /// Record only signals that match, such as 'gpu.gpc[0].sm[1].**'
    #[arg(long, value_name = "SCOPE-GLOB", help_heading = "Waveforms")]
    pub trace: Vec<String>,
    /// Record N levels below each scope of --trace
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..), help_heading = "Waveforms")]
    pub trace_depth: Option<u8>,
    /// Record cycles A to B - 1; without it, those of --sample, or all
    #[arg(long, value_name = "A..B", requires = "window", help_heading = "Waveforms")]
    pub trace_cycles: Option<String>,
    /// Begin the waveform at launch=2, pc=0x40, stall>1000 or address=BUFFER[INDEX]
    #[arg(long, value_name = "EVENT", requires = "waveform", help_heading = "Waveforms")]
    pub trace_on: Option<String>,
    /// Show one load in all units, and the loads with the same fill: `slowest`, or a request such as sm0#12; runs twice
    #[arg(
        long,
        value_name = "ID",
        requires = "waveform",
        conflicts_with = "faults",
        help_heading = "Waveforms"
    )]
    pub transaction: Option<Wanted>,
    /// End the waveform before a file exceeds SIZE, such as 500 MB or 2 GiB; the run goes on
    #[arg(long, value_name = "SIZE", value_parser = bytes, requires = "waveform", help_heading = "Waveforms")]
    pub trace_limit: Option<u64>,
    /// Time axis: cycles (1 ns each) or real time (ps)
    #[arg(
        long,
        value_name = "AXIS",
        default_value = "cycles",
        requires = "waveform",
        hide_possible_values = true,
        help_heading = "Waveforms"
    )]
    pub trace_time: TraceTime,
    /// Waveform of the last 20000 cycles of a failed run; NAME.flight.vcd by default
    #[arg(long, value_name = "FILE", conflicts_with = "no_flight", help_heading = "Waveforms")]
    pub flight: Option<PathBuf>,
    /// Do not record the last cycles of a failed run
    #[arg(long, help_heading = "Waveforms")]
    pub no_flight: bool,
    /// Write all metrics, and the cost of each PTX line, as JSON
    #[arg(long, value_name = "FILE", help_heading = "Reports")]
    pub json: Option<PathBuf>,
    /// Leave the PTX lines out of --json: the run is faster
    #[arg(long, help_heading = "Reports")]
    pub no_lines: bool,
    /// Write all metrics of each launch as CSV, in the columns of `ncu --csv --page raw`
    #[arg(long, value_name = "FILE", help_heading = "Reports")]
    pub csv: Option<PathBuf>,
    /// Write memory latencies by path and stage, and the slowest requests, to a folder
    #[arg(long, value_name = "DIR", help_heading = "Reports")]
    pub hist: Option<PathBuf>,
    /// Write the run as one HTML page
    #[arg(long, value_name = "FILE", help_heading = "Reports")]
    pub html: Option<PathBuf>,
    /// Write a pipeline diagram for Konata
    #[arg(long, value_name = "FILE", group = "window", help_heading = "Reports")]
    pub kanata: Option<PathBuf>,
    /// Write a timeline for Perfetto (JSON)
    #[arg(long, value_name = "FILE", group = "window", help_heading = "Reports")]
    pub perfetto: Option<PathBuf>,
    /// Write every buffer to this folder as NAME.npy
    #[arg(long, value_name = "DIR", help_heading = "Reports")]
    pub dump: Option<PathBuf>,
    /// Write launches, data and results to this folder, for `measure.py` on a real GPU
    #[arg(long, value_name = "DIR", help_heading = "Reports")]
    pub plan: Option<PathBuf>,
    /// Check shared and global memory for races, shared memory for reads of unwritten bytes (uninit), and the components (invariants)
    #[arg(
        long,
        value_name = "races,uninit,invariants",
        value_delimiter = ',',
        hide_possible_values = true,
        help_heading = "Run"
    )]
    pub check: Vec<Check>,
    /// Words of global memory that --check races may remember in a launch: 4194304 by default
    #[arg(
        long,
        value_name = "N",
        requires = "check",
        value_parser = clap::value_parser!(u64).range(1..),
        allow_negative_numbers = true,
        help_heading = "Run"
    )]
    pub check_words: Option<u64>,
    /// Hide the progress line
    #[arg(long, help_heading = "Run")]
    pub no_progress: bool,
    /// Print only errors, and the output of the kernels
    #[arg(short, long, help_heading = "Run")]
    pub quiet: bool,
}

/// A check that `--check` can run.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Check {
    /// Unordered accesses by different threads, at least one a write: the run fails
    Races,
    /// Reads of bytes that were never written: a warning
    Uninit,
    /// Invariants of the components, after each window of the clock: a broken one ends the run
    Invariants,
}

impl Run {
    /// True if `--check` names a check.
    pub fn has_check(&self, check: Check) -> bool {
        self.check.contains(&check)
    }

    /// The checks of `--check` on the reference model. `None` without one.
    pub fn checks(&self) -> Option<Checks> {
        let checks = Checks {
            races: self.has_check(Check::Races),
            uninit: self.has_check(Check::Uninit),
            max_words: self.check_words,
        };
        (checks.races || checks.uninit).then_some(checks)
    }

    /// The cycles to record: those of `--trace-cycles`, or else of `--sample`, or else all.
    pub fn recorded_cycles(&self) -> String {
        let sampled = || match &self.sample {
            Some(sample) => format!("{}..{}", sample.start, sample.end),
            None => "..".to_owned(),
        };
        self.trace_cycles.clone().unwrap_or_else(sampled)
    }

    /// True if an option names an output file or folder.
    pub fn writes_files(&self) -> bool {
        let mut args = self.clone();
        args.files_mut().iter().any(|file| file.is_some()) || args.folders_mut().iter().any(|folder| folder.is_some())
    }

    /// The output files of all options.
    pub fn files_mut(&mut self) -> Vec<&mut Option<PathBuf>> {
        vec![
            &mut self.vcd,
            #[cfg(feature = "fst")]
            &mut self.fst,
            &mut self.html,
            &mut self.kanata,
            &mut self.perfetto,
            &mut self.json,
            &mut self.csv,
            &mut self.flight,
        ]
    }

    /// The output folders of all options.
    pub fn folders_mut(&mut self) -> [&mut Option<PathBuf>; 3] {
        [&mut self.hist, &mut self.dump, &mut self.plan]
    }
}

/// The time axis of a waveform.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TraceTime {
    /// Cycles, one nanosecond each
    Cycles,
    /// Real time in picoseconds
    Real,
}

#[derive(Args)]
pub struct Shape {
    /// The GPU: a built-in one or a TOML file
    #[arg(long, value_name = "NAME|FILE", default_value = DEFAULT_GPU)]
    pub gpu: String,
    /// Change a number of the GPU, such as limits.max_blocks_per_sm=16
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,
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

/// The GPU if neither the options nor the scenario name one.
pub const DEFAULT_GPU: &str = "h100-sxm5";

/// Reads `key=value`.
pub fn key_value(text: &str) -> Result<(String, String), String> {
    pair(text).ok_or_else(|| "write key=value, such as sm.lsu.queue_depth=8".to_owned())
}

fn name_value(text: &str) -> Result<(String, String), String> {
    pair(text).ok_or_else(|| "write name=value, such as n=4096".to_owned())
}

/// Reads a number of cycles: `1000000`, `1_000_000` or `1e6`.
pub fn cycles(text: &str) -> Result<u64, String> {
    // Underscores may group the digits, as in Rust.
    let plain = text.replace('_', "");
    // Above 2^53 a float skips whole numbers.
    let whole = |value: f64| (value.fract() == 0.0 && value < 2f64.powi(53)).then_some(value as u64);
    let cycles = plain.parse().ok().or_else(|| plain.parse().ok().and_then(whole));
    let is_some = cycles.filter(|&cycles| cycles > 0);
    is_some.ok_or_else(|| "write a number of cycles from 1 on, such as 1000000 or 1e6".to_owned())
}

/// Reads a sample: `A..B`, `A..` or `..B`, each a number of cycles as in [`cycles`], or 0.
fn sample(text: &str) -> Result<Range<u64>, String> {
    const FORM: &str = "write cycles as A..B with A before B, such as 1000..2000 or 1e6..2e6";
    let (first, end) = text.split_once("..").ok_or(FORM)?;
    let bound = |text: &str, open| match text.trim() {
        "" => Ok(open),
        "0" => Ok(0),
        text => cycles(text),
    };
    let range = bound(first, 0)?..bound(end, u64::MAX)?;
    if range.is_empty() {
        Err(FORM.to_owned())
    } else {
        Ok(range)
    }
}

/// Reads a number of bytes: `2 GiB`, `1.5GB` or `1000000`.
fn bytes(text: &str) -> Result<u64, String> {
    // `B` comes last: it ends every other unit too.
    let split = BYTE_UNITS
        .into_iter()
        .chain([("B", 1)])
        .find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, bytes)));
    let (number, unit) = split.unwrap_or((text, 1));
    let number: Option<f64> = number.trim().replace('_', "").parse().ok();
    let size = number.map(|number| number * unit as f64);
    let size = size.filter(|size| (1.0..=u64::MAX as f64).contains(size));
    size.map(|size| size as u64).ok_or_else(|| {
        "write a size of at least 1 byte, such as 500 MB or 2 GiB; the units are B, kB, MB, GB, KiB, MiB and GiB"
            .to_owned()
    })
}

fn pair(text: &str) -> Option<(String, String)> {
    let (key, value) = text.split_once('=')?;
    let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
    (!key.is_empty()).then_some((key, value))
}
