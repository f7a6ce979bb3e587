//! The arguments of `warpwave sweep`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use warpwave::sweep::{Axis, Engine, Key, Limits};

use super::super::args::{cycles, key_value};

/// The folder of results if `--store` names none.
pub const STORE: &str = ".warpwave-store";

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(group = ArgGroup::new("drawn").multiple(true))]
pub struct Sweep {
    #[command(subcommand)]
    pub part: Option<Part>,
    #[command(flatten)]
    pub what: What,
    /// Points at the same time, each in its own process; as many as the host has cores if left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), allow_negative_numbers = true, help_heading = "Run")]
    pub jobs: Option<u16>,
    /// Hide the progress line
    #[arg(long, help_heading = "Run")]
    pub no_progress: bool,
    /// Print only errors
    #[arg(short, long, help_heading = "Run")]
    pub quiet: bool,
    /// A column beside the cycles: any metric, or launch[N].METRIC; may be repeated
    #[arg(long, value_name = "NAME", help_heading = "Results")]
    pub metric: Vec<String>,
    /// Write the table as CSV
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub csv: Option<PathBuf>,
    /// Write the table as Parquet, with types (in a build with the feature `parquet`)
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub parquet: Option<PathBuf>,
    /// Draw the first --metric, or the cycles, as SVG with one curve per series
    #[arg(long, value_name = "FILE", group = "drawn", help_heading = "Results")]
    pub plot: Option<PathBuf>,
    /// Write the sweep as one HTML page: a plot of each column, the table, failed points
    #[arg(long, value_name = "FILE", group = "drawn", help_heading = "Results")]
    pub html: Option<PathBuf>,
    /// The axis along x of the plot; the first with numbers if left out
    #[arg(long, value_name = "AXIS", requires = "drawn", help_heading = "Results")]
    pub x: Option<String>,
    /// Draw one curve per launch
    #[arg(long, requires = "drawn", help_heading = "Results")]
    pub by_launch: bool,
    /// Logarithmic x axis of the plot
    #[arg(long, requires = "drawn", help_heading = "Results")]
    pub log_x: bool,
    /// Logarithmic y axis of the plot
    #[arg(long, requires = "drawn", help_heading = "Results")]
    pub log_y: bool,
}

/// The scenario, the axes, and the store.
#[derive(Args)]
pub struct What {
    /// A built-in scenario or a TOML file; its table [sweep] may have axes, metrics and assertions
    #[arg(required = true)]
    pub scenario: Option<String>,
    /// An axis, such as block=32,64,128, n=1024..65536*2, gpu=v100-sxm2,h100-sxm5 or sm.scheduler=lrr,gto; may be repeated
    #[arg(long, value_name = "NAME=VALUE,...")]
    pub over: Vec<Axis>,
    /// The GPU of every point, instead of the scenario's: a built-in one or a TOML file
    #[arg(long, value_name = "NAME|FILE", help_heading = "Machine")]
    pub gpu: Option<String>,
    /// Change a number or a policy of the GPU in every point
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value, help_heading = "Machine")]
    pub set: Vec<(String, String)>,
    /// Run programs whose target or instructions are newer than the GPU
    #[arg(long, help_heading = "Run")]
    pub ignore_target: bool,
    /// Stop a point after N cycles, such as 1e6
    #[arg(long, value_name = "N", value_parser = cycles, help_heading = "Run")]
    pub max_cycles: Option<u64>,
    /// Folder that keeps the result of each point; no point is computed twice
    #[arg(long, value_name = "DIR", default_value = STORE, help_heading = "Run")]
    pub store: PathBuf,
    /// Compute all failed points a second time
    #[arg(long, help_heading = "Run")]
    pub retry_failed: bool,
    #[command(flatten)]
    pub limits: PointLimits,
}

/// Limits of one point.
#[derive(Args)]
pub struct PointLimits {
    /// Wall time of one point: seconds, or 90s, 15m, 2h
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Run")]
    pub point_time_limit: Option<Duration>,
    /// Memory of one point's process: bytes, or 500MB, 2GiB
    #[arg(long, value_name = "SIZE", value_parser = bytes, help_heading = "Run")]
    pub point_memory: Option<u64>,
}

impl PointLimits {
    pub fn limits(&self) -> Limits {
        Limits {
            time: self.point_time_limit,
            memory: self.point_memory,
        }
    }
}

#[derive(Subcommand)]
pub enum Part {
    /// Print one line per missing point, or a job script, and compute nothing
    Plan(Box<Plan>),
    /// Compute one planned point and store its result
    RunPoint(RunPoint),
}

#[derive(Args)]
pub struct Plan {
    #[command(flatten)]
    pub what: What,
    /// Print a job script that computes the missing points
    #[arg(long = "for", value_name = "ENGINE")]
    pub engine: Option<EngineName>,
    /// Most tasks of a Slurm or HyperQueue array; a task takes several points if there are more
    #[arg(long, value_name = "N", requires = "engine", default_value_t = 1000, value_parser = clap::value_parser!(u16).range(1..))]
    pub tasks: u16,
}

#[derive(Args)]
pub struct RunPoint {
    /// The key of the point, as `sweep plan` prints it
    #[arg(value_parser = key)]
    pub key: Key,
    /// The store that `sweep plan` used
    #[arg(long, value_name = "DIR", default_value = STORE)]
    pub store: PathBuf,
    /// Compute the point a second time if it failed
    #[arg(long)]
    pub retry_failed: bool,
    #[command(flatten)]
    pub limits: PointLimits,
}

/// A program that runs many jobs.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// A Slurm job array
    Slurm,
    /// GNU parallel
    Parallel,
    /// A HyperQueue task array
    Hyperqueue,
}

impl EngineName {
    pub fn engine(self) -> Engine {
        match self {
            EngineName::Slurm => Engine::Slurm,
            EngineName::Parallel => Engine::Parallel,
            EngineName::Hyperqueue => Engine::Hyperqueue,
        }
    }
}

fn key(text: &str) -> Result<Key, String> {
    Key::parse(text).ok_or_else(|| "a key has 32 hexadecimal digits, as `warpwave sweep plan` prints it".to_owned())
}

fn duration(text: &str) -> Result<Duration, String> {
    let form = || "write seconds, or 90s, 15m, 2h".to_owned();
    let (number, unit) = with_unit(text);
    let unit = match unit {
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(form()),
    };
    let seconds = number.parse::<f64>().map_err(|_| form())? * unit;
    let time = Duration::try_from_secs_f64(seconds).map_err(|_| form())?;
    if time.is_zero() { Err(form()) } else { Ok(time) }
}

fn bytes(text: &str) -> Result<u64, String> {
    let form = || "write bytes, or 500MB, 2GiB".to_owned();
    let (number, unit) = with_unit(text);
    let unit = match unit {
        "" | "B" => 1,
        "KB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "K" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        _ => return Err(form()),
    };
    let n = number.parse::<u64>().ok().filter(|&n| n > 0);
    n.and_then(|n| n.checked_mul(unit)).ok_or_else(form)
}

/// The number of a text, and the unit behind it.
fn with_unit(text: &str) -> (&str, &str) {
    // The unit begins with the first letter: `1e3` has no meaning here.
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    (text[..end].trim(), text[end..].trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_have_units() {
        let seconds = |text| duration(text).map(|time| time.as_secs_f64());
        assert_eq!(seconds("90"), Ok(90.0));
        assert_eq!(seconds("1.5m"), Ok(90.0));
        assert_eq!(seconds("2h"), Ok(7200.0));
        assert_eq!(bytes("2GiB"), Ok(2 << 30));
        assert_eq!(bytes("500MB"), Ok(500_000_000));
        assert_eq!(bytes("4096"), Ok(4096));
        for wrong in ["", "0", "-1", "m", "1d", "inf"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "0", "1.5G", "1TB", "99999999999GiB"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }
}
