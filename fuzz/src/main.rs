//! The command of the fuzz targets: runs them on stable Rust, replays inputs, prints a table.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use arbitrary::{Arbitrary, Unstructured};
use clap::{Parser, Subcommand};
use warpwave::oracle::{self, RandomProgram};
use warpwave_fuzz::coverage::Coverage;
use warpwave_fuzz::runner::{self, Limits};
use warpwave_fuzz::targets::{ALL, Target, find};

/// Runs the fuzz targets on stable Rust.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Fuzzes every target for some seconds each, and prints one row per target.
    Table {
        #[command(flatten)]
        budget: Budget,
        /// Adds the share of the lines under test that run: fuzzes each target a second time, with an instrumented build.
        #[arg(long)]
        coverage: bool,
    },
    /// Fuzzes one target.
    Run {
        /// The target.
        target: String,
        #[command(flatten)]
        budget: Budget,
        /// Replaces the corpus by the smallest inputs that reach the same features.
        #[arg(long)]
        save: bool,
    },
    /// Runs files, each on the target of its folder. A failure panics with its message.
    Replay {
        /// Files in `corpus/TARGET/`, `regressions/TARGET/` or `artifacts/TARGET/`.
        files: Vec<String>,
    },
    /// Writes random programs with the results of the machine, for `measure.py` on a real GPU.
    Plan {
        /// Folder for the plans, one folder each.
        folder: PathBuf,
        /// Number of programs.
        #[arg(long, default_value_t = 100)]
        count: usize,
        /// Seed of the programs.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Prints inputs in their decoded form.
    Show {
        /// Files in a folder with the name of their target.
        files: Vec<String>,
    },
}

#[derive(clap::Args, Clone, Copy)]
struct Budget {
    /// Host seconds per target.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Most executions per target.
    #[arg(long, default_value_t = u64::MAX)]
    executions: u64,
    /// Seed of the mutations.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Budget {
    fn limits(self) -> Limits {
        Limits {
            seconds: self.seconds,
            executions: self.executions,
            seed: self.seed,
        }
    }
}

fn main() -> ExitCode {
    let result = match Args::parse().command {
        Command::Table { budget, coverage } => table(budget.limits(), coverage),
        Command::Run { target, budget, save } => run(&target, budget.limits(), save),
        Command::Replay { files } => each_file(&files, |target, bytes| (target.run)(bytes)),
        Command::Plan { folder, count, seed } => plan(&folder, count, seed),
        Command::Show { files } => each_file(&files, |target, bytes| println!("{}", (target.show)(bytes))),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn named(name: &str) -> Result<&'static Target, String> {
    let names = || ALL.iter().map(|target| target.name).collect::<Vec<_>>().join(", ");
    find(name).ok_or_else(|| format!("{name} is not a target; the targets are: {}", names()))
}

/// Fuzzes every target. Returns true if none failed.
fn table(limits: Limits, coverage: bool) -> Result<bool, String> {
    let coverage = coverage.then(Coverage::build).transpose()?;
    println!("| Target | Executions | Per second | Slowest, ms | Features | Inputs | Lines covered | Finds |");
    println!("|---|---|---|---|---|---|---|---|");
    let mut all_held = true;
    for target in ALL {
        let outcome = runner::with_quiet_panics(|| runner::fuzz(target, limits));
        let finds = match &outcome.find {
            None => "none".to_owned(),
            Some(find) => report(target, find)?,
        };
        // A find does not end the table: the other targets run too.
        all_held &= outcome.find.is_none();
        let lines = match &coverage {
            None => "-".to_owned(),
            Some(coverage) => {
                let lines = coverage.of(target, limits)?;
                format!("{:.0} % of {}", lines.percent(), lines.all)
            }
        };
        println!(
            "| `{}` | {} | {:.0} | {:.1} | {} | {} | {lines} | {finds} |",
            target.name,
            outcome.executions,
            outcome.per_second(),
            outcome.slowest_ms,
            outcome.features,
            outcome.corpus.len()
        );
    }
    Ok(all_held)
}

/// Writes plans of random programs.
fn plan(folder: &Path, count: usize, seed: u64) -> Result<bool, String> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut written = 0;
    while written < count {
        // Enough bytes for a tree of some tens of statements.
        let bytes: Vec<u8> = (0..2000).map(|_| random.u8(..)).collect();
        let program = RandomProgram::arbitrary(&mut Unstructured::new(&bytes)).map_err(|error| error.to_string())?;
        let is_written = oracle::write_plan(&program, folder, &format!("p{written:04}"));
        written += usize::from(is_written.map_err(|error| format!("{}: {error}", folder.display()))?);
    }
    println!("{written} programs in {}", folder.display());
    Ok(true)
}

/// Saves a failing input, prints its message, and returns the file's name.
fn report(target: &Target, find: &runner::Find) -> Result<String, String> {
    let folder = format!("artifacts/{}", target.name);
    let saved = runner::save(&folder, std::slice::from_ref(&find.input)).map_err(|error| error.to_string())?;
    let name = runner::name_of(&find.input);
    eprintln!(
        "{}: {}\n  input: {}",
        target.name,
        find.message,
        saved.join(&name).display()
    );
    Ok(name)
}

fn run(name: &str, limits: Limits, save: bool) -> Result<bool, String> {
    let target = named(name)?;
    let outcome = runner::with_quiet_panics(|| runner::fuzz(target, limits));
    println!(
        "{name}: {} executions, {:.0} per second, slowest {:.1} ms, {} features, {} inputs",
        outcome.executions,
        outcome.per_second(),
        outcome.slowest_ms,
        outcome.features,
        outcome.corpus.len()
    );
    // Without features, a minimised corpus would be empty.
    if save && outcome.features == 0 {
        return Err(format!("{name} notes no features, so its corpus is kept by hand"));
    }
    if save {
        let kept = runner::with_quiet_panics(|| runner::minimise(target, &outcome.corpus));
        let folder = runner::replace(&format!("corpus/{name}"), &kept).map_err(|error| error.to_string())?;
        println!("{} inputs in {}", kept.len(), folder.display());
    }
    match &outcome.find {
        Some(find) => report(target, find).map(|_| false),
        None => Ok(true),
    }
}

/// Calls `action` with each file and the target of its folder.
fn each_file(files: &[String], action: impl Fn(&Target, &[u8])) -> Result<bool, String> {
    for file in files {
        let folder = Path::new(file).parent().and_then(Path::file_name);
        let target = named(&folder.unwrap_or_default().to_string_lossy())?;
        let bytes = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
        action(target, &bytes);
    }
    Ok(true)
}
