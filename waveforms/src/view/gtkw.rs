//! The save file of GTKWave.
//!
//! GTKWave drops a row silently if its name differs from the declared one, so rows are made from the same table as the dump.

use std::fmt::Write as _;

use super::Span;
use super::layout::{Item, Layout, Look, Row};
use super::names::Lists;
use crate::file::About;
use crate::signal::{Kind, Signal};

/// Most rows laid out; what is beyond is still in the viewer's tree.
pub const MAX_ROWS: usize = 4000;

/// Letters for markers.
const MARKERS: usize = 26;

/// Width of the picture in points, less the names' and the values': what a window of 1600 points leaves.
const POINTS: f64 = 1100.0;

/// Cycles shown around an event.
const AROUND: u64 = 2_000;

/// Flags of a trace in a save file: how a value is shown, what a group line does.
mod flag {
    pub const HEX: &str = "@22";
    pub const DECIMAL: &str = "@24";
    pub const BINARY: &str = "@28";
    pub const NAMED: &str = "@2022";
    pub const CURVE: &str = "@88024";
    pub const CURVE_OF_REAL: &str = "@88420";
    /// A blank line that a curve above is drawn into.
    pub const MORE_HEIGHT: &str = "@20000";
    pub const COMMENT: &str = "@200";
    pub const OPEN: [&str; 2] = ["@800200", "@1000200"];
    pub const CLOSED: [&str; 2] = ["@c00200", "@1401200"];
}

/// Names of files, relative to the save file.
pub struct Files<'a> {
    /// The dump.
    pub dump: &'a str,
    /// What the other files' names begin with.
    pub stem: &'a str,
}

/// The text of the save file.
pub fn text(
    layout: &Layout,
    signals: &[Signal],
    lists: &Lists<'_>,
    files: &Files<'_>,
    about: &About,
    span: &Span,
) -> String {
    let top = &signals[0].scope[0];
    let Files { dump, stem } = files;
    let mut save = Save {
        signals,
        lists,
        stem,
        text: format!("[dumpfile] \"{dump}\"\n[savefile] \"{stem}.gtkw\"\n[size] 1600 1000\n[sst_width] 30\n"),
        rows: 0,
        flag: "",
    };
    save.text += "[signals_width] 260\n[sst_expanded] 0\n";
    save.window(about, span);
    let _ = writeln!(save.text, "[treeopen] {top}.\n@24\n{top}.cycle[47:0]");
    layout.0.iter().for_each(|item| save.item(item));
    if layout.n_rows() > save.rows {
        let more = layout.n_rows() - save.rows;
        let _ = write!(save.text, "{}\n-{more} more signals are in the tree\n", flag::COMMENT);
    }
    save.text
}

/// A save file in the making.
struct Save<'a> {
    signals: &'a [Signal],
    lists: &'a Lists<'a>,
    stem: &'a str,
    text: String,
    rows: usize,
    /// The flag that holds for the next row.
    flag: &'static str,
}

impl Save<'_> {
    /// Zoom, the markers and their names, and the part shown: all of the run, or what is around the event. GTKWave counts in the
    /// unit of the timescale, whatever stands before it: ps.
    fn window(&mut self, about: &About, span: &Span) {
        let time = |cycle: u64| about.axis.shown_ps(cycle);
        let (start, end) = match &span.event {
            Some(event) => (
                span.start.0.max(event.at.0.saturating_sub(AROUND)),
                span.end.0.min(event.at.0 + AROUND / 4),
            ),
            None => (span.start.0, span.end.0),
        };
        let units = (time(end) - time(start)).max(1) as f64;
        let zoom = (units / POINTS).log2();
        let marks = span.marks();
        let _ = write!(self.text, "[timestart] {}\n*-{:.6}", time(start), zoom.max(0.0));
        let first = marks.first().map_or(-1, |mark| time(mark.at.0) as i64);
        let _ = write!(self.text, " {first}");
        for n in 0..MARKERS {
            let at = marks.get(n).map_or(-1, |mark| time(mark.at.0) as i64);
            let _ = write!(self.text, " {at}");
        }
        self.text.push('\n');
        for (letter, mark) in (b'A'..=b'Z').zip(&marks) {
            let _ = writeln!(self.text, "[markername] {}{}", char::from(letter), mark.name);
        }
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Row(row) if self.rows < MAX_ROWS => self.row(row),
            Item::Row(_) => {}
            Item::Group { label, is_open, items } => {
                if self.rows >= MAX_ROWS {
                    return;
                }
                let [begin, end] = if *is_open { flag::OPEN } else { flag::CLOSED };
                let _ = writeln!(self.text, "{begin}\n-{label}");
                self.flag = "";
                items.iter().for_each(|item| self.item(item));
                let _ = writeln!(self.text, "{end}\n-{label}");
                self.flag = "";
            }
        }
    }

    fn row(&mut self, row: &Row) {
        self.rows += 1;
        let signal = &self.signals[row.signal];
        let list = self.lists.of(signal).filter(|_| row.look == Look::Named);
        let flag = match row.look {
            Look::Named if list.is_some() => flag::NAMED,
            Look::Named | Look::Hex => flag::HEX,
            Look::Binary => flag::BINARY,
            Look::Decimal => flag::DECIMAL,
            Look::Curve if signal.kind == Kind::Real => flag::CURVE_OF_REAL,
            Look::Curve => flag::CURVE,
        };
        if self.flag != flag {
            let _ = writeln!(self.text, "{flag}");
        }
        self.flag = flag;
        if let Some(list) = list {
            let _ = writeln!(self.text, "^1 {}.names/{}.txt", self.stem, list.name);
            self.flag = "";
        }
        let path = format!("{}.{}", signal.scope.join("."), signal.declared());
        let _ = writeln!(self.text, "+{{{}}} {path}", row.label);
        if row.look == Look::Curve {
            let _ = write!(self.text, "{}\n-\n", flag::MORE_HEIGHT);
            self.flag = "";
        }
    }
}
