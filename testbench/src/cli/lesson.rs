//! `warpwave lesson`: the text of a lesson, its run, its plot, and where to look next.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Parser};
use warpwave::lesson::{self, Lesson, LessonError, NAMES};

use super::args::Arguments;
use super::failure::{Failure, worse};
use super::write::write;
use super::{execute, print};

#[derive(Args)]
pub struct Options {
    /// The lesson; without it, the list of all lessons
    pub name: Option<String>,
    /// The file of the plot; NAME.svg by default
    #[arg(long, value_name = "FILE", requires = "name")]
    pub plot: Option<PathBuf>,
    /// Write the page of all lessons (lessons.md) and its plots (lessons/NAME.svg) to a folder
    #[arg(long, value_name = "DIR", conflicts_with = "name")]
    pub write: Option<PathBuf>,
}

/// Gives one lesson, lists them, or writes their page.
pub fn lesson(options: &Options) -> Result<(), Failure> {
    match (&options.name, &options.write) {
        (Some(name), _) => give(&lesson::find(name).map_err(Failure::input)?, options.plot.as_deref()),
        (None, Some(folder)) => write_page(folder),
        (None, None) => list(),
    }
}

fn list() -> Result<(), Failure> {
    for (name, number) in NAMES.into_iter().zip(1..) {
        let says = match lesson::find(name) {
            Ok(lesson) => lesson.claim,
            Err(LessonError::NotShown { reason, .. }) => format!("not shown yet: {reason}"),
            Err(error) => return Err(Failure::input(error)),
        };
        print(&format!("{number:>2} {name:<24} {says}\n"))?;
    }
    Ok(())
}

/// Prints the text, runs the scenarios and the sweep, and names the next commands.
fn give(lesson: &Lesson, plot: Option<&Path>) -> Result<(), Failure> {
    print(&format!(
        "{}. {}\n{}\n\n{}\n\n",
        lesson.number, lesson.name, lesson.claim, lesson.text
    ))?;
    let ran = command(&["run", lesson.name]);
    let default = PathBuf::from(format!("{}.svg", lesson.name));
    let plot = plot.unwrap_or(&default).display().to_string();
    // The sweep runs even if the scenario failed: its curve may show why.
    let swept = match lesson.has_sweep {
        true => command(&["sweep", lesson.name, "--plot", &plot]).and_then(|()| print(&format!("\nplot: {plot}\n"))),
        false => Ok(()),
    };
    print("\nLook deeper:\n")?;
    lesson
        .look
        .iter()
        .try_for_each(|command| print(&format!("  {command}\n")))?;
    worse(ran, swept)
}

/// Runs another command of this program.
fn command(words: &[&str]) -> Result<(), Failure> {
    let words = [&["warpwave"], words].concat();
    // Through the parser, so that a lesson does what the printed commands do.
    let arguments = Arguments::try_parse_from(words).map_err(Failure::input)?;
    execute(&arguments.command)
}

/// Writes the page, and the plot of each sweep.
fn write_page(folder: &Path) -> Result<(), Failure> {
    let plots = folder.join("lessons");
    fs::create_dir_all(&plots).map_err(|error| Failure::write(&plots, error))?;
    let page = lesson::page().map_err(Failure::input)?;
    write(&folder.join("lessons.md"), page.as_bytes())?;
    let mut result = Ok(());
    for name in NAMES {
        // A lesson that is not shown has no plot.
        let Ok(lesson) = lesson::find(name) else { continue };
        if lesson.has_sweep {
            let plot = plots.join(format!("{name}.svg")).display().to_string();
            // One failure does not keep the other plots from being written.
            result = worse(result, command(&["sweep", name, "--plot", &plot]));
        }
    }
    result
}
