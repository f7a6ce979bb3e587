//! The command `warpwave`: arguments, output, exit codes.
//!
//! | exit code | meaning |
//! |---|---|
//! | 0 | every `expect` and `assert` passed |
//! | 1 | an `expect` failed, or `--check` found a race |
//! | 2 | bad input or usage |
//! | 3 | the simulated program trapped |
//! | 4 | deadlock or cycle limit |
//! | 5 | every `expect` passed, but an `assert` failed |
//! | 6 | a fault that `--fault` injected was found |
//! | 130 | interrupted |
//!
//! Results go to standard output; errors go to standard error and say what is wrong, where, and what to do.

mod args;

mod log;

mod failure;

mod check;

mod child;

mod several;
mod show;

mod explain;

mod usage;

mod speed;

mod validate;

mod jobs;
mod lab;

mod sweep;

mod compare;

mod test;

mod lesson;

mod run;

mod progress;

mod wave;

mod trigger;

mod transaction;

mod report_files;

mod outputs;

mod plan;

mod write;

mod launch_error;

mod hang;

mod safety;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command};
use failure::Failure;

/// Runs the command.
pub fn main() -> ExitCode {
    let arguments = Arguments::try_parse().unwrap_or_else(|error| usage::exit(error));
    // The log first, so that it has every event of the command.
    let result = log::start(arguments.log.as_deref()).and_then(|()| execute(&arguments.command));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            ExitCode::from(failure.code)
        }
    }
}

fn execute(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Run(run) => run::run(run),
        Command::List => show::list(),
        Command::Bench(speed) => match speed.threads {
            Some(threads) => speed::threads(speed, threads),
            None => speed::bench(speed),
        },
        Command::Validate(options) => validate::validate(options),
        Command::Sweep(options) => sweep::sweep(options),
        Command::Compare(options) => compare::compare(options),
        Command::Test(options) => test::test(options),
        Command::Lesson(options) => lesson::lesson(options),
        Command::Gpus { name } => show::gpus(name.as_deref()),
        Command::Check { file, code, gpu } => check::check(file, code.then_some(gpu)),
        Command::Occupancy(shape) => show::occupancy(shape),
        Command::Completions { shell } => usage::completions(*shell),
        Command::Man { command } => usage::man(command.as_deref()),
        Command::Explain { word, .. } => explain::explain(word.as_deref()),
    }
}

/// Writes to standard output. A closed pipe is not an error.
fn print(text: &str) -> Result<(), Failure> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::input(format!(
            "cannot write to standard output: {error}; redirect it to a place with room"
        ))),
        _ => Ok(()),
    }
}
