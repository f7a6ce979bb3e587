//! Files beside a dump that make a viewer show it at once, with groups, names and colours.
//!
//! | file beside `run.vcd` | use |
//! |---|---|
//! | `run.gtkw` | GTKWave: `gtkwave run.gtkw` opens the dump with its layout |
//! | `run.names/NAME.txt` | GTKWave: names and colours of states, texts of instructions |
//! | `run.sucl` | Surfer: `surfer run.vcd --command-file run.sucl` opens the dump with its layout |
//! | `run.names/NAME.mapping` | Surfer: the same names and colours, to be copied to `.surfer/mappings` |
//!
//! All names are relative, so the files may be moved together. `waveforms/docs/` explains the views.

pub mod gtkw;

pub mod layout;

pub mod names;

pub mod surfer;

use std::fs;
use std::path::Path;

use warpwave_hw::time::Cycle;

use crate::error::WaveError;
use crate::file::{RunInfo, stem};
use crate::markers::Marker;
use crate::signal::Signal;
use layout::Layout;
use names::NameTables;

/// The cycles of a dump that a view shows first, and the markers in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ViewRange {
    /// The first cycle.
    pub start: Cycle,
    /// The cycle after the last one.
    pub end: Cycle,
    /// The markers. Those outside the range are not shown.
    pub markers: Vec<Marker>,
    /// The event at the centre of the view. Without one, the view begins where the first warp is resident.
    pub event: Option<Marker>,
    /// Indices of the states of warp slots that never held a warp. The view folds them away.
    pub empty_slots: Vec<usize>,
}

impl ViewRange {
    /// The range before anything is recorded.
    pub const EMPTY: ViewRange = ViewRange {
        start: Cycle::ZERO,
        end: Cycle::ZERO,
        markers: Vec::new(),
        event: None,
        empty_slots: Vec::new(),
    };

    /// The first cycle that a view shows: shortly before the launch, if there is a marker for it.
    fn first_shown(&self) -> Cycle {
        let launch = self.markers.iter().find(|marker| marker.name == "launch");
        let launch = launch.map_or(self.start, |launch| launch.at);
        let margin = self.end.0.saturating_sub(launch.0) / 50;
        self.start.max(Cycle(launch.0.saturating_sub(margin)))
    }

    /// The markers inside the range: the event, the others, and the end. Markers that would lie on each other are one.
    fn shown_markers(&self) -> Vec<Marker> {
        let markers = self.event.iter().chain(&self.markers);
        let is_inside = |marker: &&Marker| self.start <= marker.at && marker.at < self.end;
        let apart = self.end.0.saturating_sub(self.first_shown().0) / 50;
        let mut shown: Vec<Marker> = Vec::new();
        for marker in markers.filter(is_inside) {
            match shown.iter_mut().find(|other| other.at.0.abs_diff(marker.at.0) < apart) {
                Some(other) => other.name = format!("{}_and_{}", other.name, marker.name),
                None => shown.push(marker.clone()),
            }
        }
        if self.start < self.end {
            shown.push(Marker::new("end", self.end));
        }
        shown
    }
}

/// Writes the view files of the dump at `dump`.
///
/// # Errors
/// If a file cannot be written.
pub fn write_views(dump: &Path, signals: &[Signal], run: &RunInfo, range: &ViewRange) -> Result<(), WaveError> {
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
    let tables = NameTables::new(signals, &run.code);
    let layout = Layout::new(signals, &range.empty_slots);
    let mut folder = stem(dump).into_os_string();
    folder.push(".names");
    fs::create_dir_all(&folder).map_err(|error| WaveError::io(Path::new(&folder), error))?;
    for table in &tables.0 {
        write(&format!("names/{}.txt", table.name), &table.translate_file())?;
        write(&format!("names/{}.mapping", table.name), &table.mapping_file())?;
    }
    let files = gtkw::FileNames {
        dump: &name(dump),
        stem: &name(&stem(dump)),
    };
    write("gtkw", &gtkw::save_file(&layout, signals, &tables, &files, run, range))?;
    write("sucl", &surfer::command_file(&layout, signals, &tables, run, range))
}
