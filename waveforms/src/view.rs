//! What viewers need to show a dump at once, made from the same table of signals as the dump.
//!
//! | file beside `run.vcd` | for |
//! |---|---|
//! | `run.gtkw` | GTKWave: `gtkwave run.gtkw` opens the dump, laid out |
//! | `run.names/NAME.txt` | GTKWave: names and colours of a state's values, texts of instructions |
//! | `run.sucl` | Surfer: `surfer run.vcd --command-file run.sucl` lays it out |
//! | `run.names/NAME.mapping` | Surfer: the same names; they go to `.surfer/mappings` |
//!
//! Names in the files are relative, so the files may be moved together.

pub mod gtkw;

pub mod layout;

pub mod names;

pub mod surfer;

use std::fs;
use std::path::Path;

use warpwave_hw::time::Cycle;

use crate::error::WaveError;
use crate::file::{About, stem};
use crate::marks::Mark;
use crate::signal::Signal;
use layout::Layout;
use names::Lists;

/// What part of a run a dump shows, and which cycles of it are worth a look.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// First cycle.
    pub start: Cycle,
    /// The cycle after the last one.
    pub end: Cycle,
    /// Cycles to mark.
    pub marks: Vec<Mark>,
    /// What the view is centred on; if nothing, it shows all.
    pub event: Option<Mark>,
}

impl Span {
    /// Nothing is known yet.
    pub const NONE: Span = Span {
        start: Cycle::ZERO,
        end: Cycle::ZERO,
        marks: Vec::new(),
        event: None,
    };

    /// The marks inside, the event's first, and the end.
    fn marks(&self) -> Vec<Mark> {
        let marks = self.event.iter().chain(&self.marks);
        let inside = |mark: &&Mark| self.start <= mark.at && mark.at < self.end;
        let mut marks: Vec<Mark> = marks.filter(inside).cloned().collect();
        if self.start < self.end {
            marks.push(Mark::new("end", self.end));
        }
        marks
    }
}

/// Writes the views of the dump at `dump`.
///
/// # Errors
/// If a file cannot be written.
pub fn write_beside(dump: &Path, signals: &[Signal], about: &About, span: &Span) -> Result<(), WaveError> {
    let write = |ending: &str, text: &str| {
        let mut path = stem(dump).into_os_string();
        path.push(".");
        path.push(ending);
        let path = Path::new(&path);
        fs::write(path, text).map_err(|error| WaveError::io(path, error))
    };
    let name = |path: &Path| {
        path.file_name()
            .map_or(String::new(), |name| name.to_string_lossy().into_owned())
    };
    let lists = Lists::new(signals, &about.code);
    let layout = Layout::new(signals);
    let mut folder = stem(dump).into_os_string();
    folder.push(".names");
    fs::create_dir_all(&folder).map_err(|error| WaveError::io(Path::new(&folder), error))?;
    for list in &lists.0 {
        write(&format!("names/{}.txt", list.name), &list.translation())?;
        write(&format!("names/{}.mapping", list.name), &list.mapping())?;
    }
    let files = gtkw::Files {
        dump: &name(dump),
        stem: &name(&stem(dump)),
    };
    write("gtkw", &gtkw::text(&layout, signals, &lists, &files, about, span))?;
    write("sucl", &surfer::text(&layout, signals, &lists, about, span))
}
