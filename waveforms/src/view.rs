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
use std::ops::Range;
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
    /// The cycles that the view shows first, if the user has chosen a transaction.
    pub focus: Option<Range<Cycle>>,
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
        focus: None,
        empty_slots: Vec::new(),
    };

    /// The cycles that a view shows first: around the focus, or from shortly before the launch to the end.
    fn shown(&self) -> Range<Cycle> {
        let launch = self.markers.iter().find(|marker| marker.name == "launch");
        let run = launch.map_or(self.start, |launch| launch.at)..self.end;
        let focus = self
            .focus
            .clone()
            .filter(|focus| focus.start < self.end && self.start < focus.end);
        // The margin is a share of the cycles. A run ends with the dump, so its right margin is cut.
        let (cycles, share) = focus.map_or((run, 50), |focus| (focus, 10));
        let margin = cycles.end.0.saturating_sub(cycles.start.0) / share;
        self.start.max(Cycle(cycles.start.0.saturating_sub(margin)))..self.end.min(cycles.end + margin)
    }

    /// The markers inside the range: the event, the others, and the end. Markers that would lie on each other are one.
    fn shown_markers(&self) -> Vec<Marker> {
        let markers = self.event.iter().chain(&self.markers);
        let is_inside = |marker: &&Marker| self.start <= marker.at && marker.at < self.end;
        let shown = self.shown();
        // A label is as wide as about a fortieth of the window.
        let apart = shown.end.0.saturating_sub(shown.start.0) / 40;
        let mut apart_markers: Vec<Marker> = Vec::new();
        for marker in markers.filter(is_inside) {
            match apart_markers
                .iter_mut()
                .find(|other| other.at.0.abs_diff(marker.at.0) < apart)
            {
                Some(other) => other.name = format!("{}+{}", other.name, marker.name),
                None => apart_markers.push(marker.clone()),
            }
        }
        if self.start < self.end {
            apart_markers.push(Marker::new("end", self.end));
        }
        apart_markers
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

#[cfg(test)]
mod tests {
    use super::*;

    fn view(focus: Option<Range<u64>>) -> ViewRange {
        let marker = |(name, at)| Marker::new(name, Cycle(at));
        ViewRange {
            start: Cycle(0),
            end: Cycle(5_000),
            markers: [("launch", 1_000), ("miss", 1_050), ("stall", 3_000)]
                .map(marker)
                .to_vec(),
            focus: focus.map(|focus| Cycle(focus.start)..Cycle(focus.end)),
            ..ViewRange::EMPTY
        }
    }

    fn names(range: &ViewRange) -> Vec<String> {
        range.shown_markers().into_iter().map(|marker| marker.name).collect()
    }

    #[test]
    fn view_begins_before_the_launch_and_joins_markers_that_would_overlap() {
        let range = view(None);
        assert_eq!(range.shown(), Cycle(920)..Cycle(5_000));
        // 4,080 cycles are shown, so a label takes 102 of them.
        assert_eq!(names(&range), ["launch+miss", "stall", "end"]);
    }

    #[test]
    fn view_of_a_focus_has_a_tenth_more_on_both_sides() {
        let range = view(Some(1_000..1_200));
        assert_eq!(range.shown(), Cycle(980)..Cycle(1_220));
        assert_eq!(names(&range), ["launch", "miss", "stall", "end"]);
        // A focus outside the recorded cycles does not count.
        assert_eq!(view(Some(6_000..6_200)).shown(), Cycle(920)..Cycle(5_000));
    }
}
