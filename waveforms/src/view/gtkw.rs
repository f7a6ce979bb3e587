//! GTKWave's save file.
//!
//! GTKWave drops a row without a message if its name differs from the declaration. So rows use the same list of signals as the dump.

use std::fmt::Write as _;

use super::ViewRange;
use super::layout::{Format, Item, Layout, SignalRow};
use super::names::NameTables;
use crate::file::RunInfo;
use crate::signal::{Kind, Signal};

/// The largest number of rows. Other signals are in the viewer's tree only.
///
/// GTKWave 3.3.118 opened a view of an H100 with 30,000 rows in 2.8 s, and with 2,500 rows in 2.5 s. The first SM and the memory system
/// have 15,000 rows.
pub const MAX_ROWS: usize = 30_000;

/// Markers that GTKWave can show, one for each letter.
const MARKERS: usize = 26;

/// Width of the waves in a window of 1600 points, in points. Names and values take the rest.
const WAVE_WIDTH: f64 = 1250.0;

/// Points that show 2^z units of time at GTKWave's zoom -z.
const ZOOM_POINTS: f64 = 200.0;

/// Cycles shown before an event. A quarter of them are shown after it.
const CYCLES_BEFORE_EVENT: u64 = 2_000;

/// Flags of the lines in a save file. GTKWave's source names the bits.
mod flag {
    pub const HEX: &str = "@22";
    pub const DECIMAL: &str = "@24";
    pub const BINARY: &str = "@28";
    pub const NAMED: &str = "@2022";
    pub const CURVE: &str = "@88024";
    pub const CURVE_OF_REAL: &str = "@88420";
    /// A blank line. The curve above extends into it.
    pub const MORE_HEIGHT: &str = "@20000";
    pub const COMMENT: &str = "@200";
    /// The begin and the end of an open group.
    pub const OPEN: [&str; 2] = ["@800200", "@1000200"];
    /// The begin and the end of a closed group.
    pub const CLOSED: [&str; 2] = ["@c00200", "@1401200"];
}

/// File names, relative to the save file.
pub struct FileNames<'a> {
    /// The dump.
    pub dump: &'a str,
    /// The begin of the other names.
    pub stem: &'a str,
}

/// Returns the text of the save file.
pub fn save_file(
    layout: &Layout,
    signals: &[Signal],
    tables: &NameTables<'_>,
    files: &FileNames<'_>,
    run: &RunInfo,
    range: &ViewRange,
) -> String {
    let top = &signals[0].scope[0];
    let FileNames { dump, stem } = files;
    let mut save = SaveFile {
        signals,
        tables,
        stem,
        text: format!("[dumpfile] \"{dump}\"\n[savefile] \"{stem}.gtkw\"\n[size] 1600 1000\n[sst_width] 30\n"),
        rows: 0,
        flag: "",
    };
    save.text += "[signals_width] 260\n[sst_expanded] 0\n";
    save.window(run, range);
    let _ = writeln!(save.text, "[treeopen] {top}.\n@24\n{top}.cycle[47:0]");
    layout.0.iter().for_each(|item| save.item(item));
    if layout.n_rows() > save.rows {
        let more = layout.n_rows() - save.rows;
        let _ = write!(save.text, "{}\n-{more} more signals are in the tree\n", flag::COMMENT);
    }
    save.text
}

/// A save file that is being written.
struct SaveFile<'a> {
    signals: &'a [Signal],
    tables: &'a NameTables<'a>,
    stem: &'a str,
    text: String,
    rows: usize,
    /// The flag in force. GTKWave applies it to all rows up to the next flag.
    flag: &'static str,
}

impl SaveFile<'_> {
    /// Writes the visible cycles, the zoom and the markers.
    fn window(&mut self, run: &RunInfo, range: &ViewRange) {
        // GTKWave counts in the unit of the timescale without its factor: in ps.
        let time = |cycle: u64| run.axis.viewer_ps(cycle);
        let (start, end) = match &range.event {
            Some(event) => (
                range.start.0.max(event.at.0.saturating_sub(CYCLES_BEFORE_EVENT)),
                range.end.0.min(event.at.0 + CYCLES_BEFORE_EVENT / 4),
            ),
            None => (range.shown().start.0, range.shown().end.0),
        };
        let units = (time(end) - time(start)).max(1) as f64;
        // At zoom -z, `ZOOM_POINTS` points show 2^z units. So this z shows all units in `WAVE_WIDTH` points.
        let zoom = (units * ZOOM_POINTS / WAVE_WIDTH).log2();
        let markers = range.shown_markers();
        let _ = write!(self.text, "[timestart] {}\n*-{:.6}", time(start), zoom.max(0.0));
        let focus = range.focus.as_ref().filter(|_| range.event.is_none());
        // The cursor: on the chosen transaction, else on the first marker.
        let marked = focus.map(|focus| focus.start);
        let marked = marked.or(markers.first().map(|marker| marker.at));
        let cursor = marked.map_or(-1, |at| time(at.0) as i64);
        let _ = write!(self.text, " {cursor}");
        for n in 0..MARKERS {
            let at = markers.get(n).map_or(-1, |marker| time(marker.at.0) as i64);
            let _ = write!(self.text, " {at}");
        }
        self.text.push('\n');
        for (letter, marker) in (b'A'..=b'Z').zip(&markers) {
            let _ = writeln!(self.text, "[markername] {}{}", char::from(letter), marker.name);
        }
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Row(row) if self.rows < MAX_ROWS => self.row(row),
            Item::Row(_) => {}
            Item::Group { label, is_open, items } => {
                // Beyond the limit a group would be empty.
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

    fn row(&mut self, row: &SignalRow) {
        self.rows += 1;
        let signal = &self.signals[row.signal];
        let table = self.tables.of(signal).filter(|_| row.format == Format::Named);
        let flag = match row.format {
            Format::Named if table.is_some() => flag::NAMED,
            Format::Named | Format::Hex => flag::HEX,
            Format::Binary => flag::BINARY,
            Format::Decimal => flag::DECIMAL,
            Format::Curve if signal.kind == Kind::Real => flag::CURVE_OF_REAL,
            Format::Curve => flag::CURVE,
        };
        if self.flag != flag {
            let _ = writeln!(self.text, "{flag}");
        }
        self.flag = flag;
        if let Some(table) = table {
            let _ = writeln!(self.text, "^1 {}.names/{}.txt", self.stem, table.name);
            self.flag = "";
        }
        let path = format!("{}.{}", signal.scope.join("."), signal.declared_name());
        let _ = writeln!(self.text, "+{{{}}} {path}", row.label);
        if row.format == Format::Curve {
            let _ = write!(self.text, "{}\n-\n", flag::MORE_HEIGHT);
            self.flag = "";
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::Kind;

    #[test]
    fn memory_system_has_its_rows_however_many_sms_there_are() {
        // Each SM has 2,000 signals, as on an H100, so 16 SMs have more than the view has rows.
        let mut signals = vec![Signal::new("gpu.cycle", Kind::Vector(48))];
        for sm in 0..16 {
            let path = |n| format!("gpu.gpc[0].sm[{sm}].l1.counter_{n}");
            signals.extend((0..2_000).map(|n| Signal::new(&path(n), Kind::Vector(8))));
        }
        let memory = [
            "memory.dram_gb_per_s",
            "xbar.requests",
            "l2_slice[0].tag",
            "channel[0].reads",
        ];
        signals.extend(memory.map(|name| Signal::new(&format!("gpu.{name}"), Kind::Vector(8))));
        let layout = Layout::new(&signals, &[]);
        assert!(layout.n_rows() > MAX_ROWS);
        let files = FileNames {
            dump: "h.vcd",
            stem: "h",
        };
        let run = RunInfo::new(1_000_000, Vec::new());
        let tables = NameTables::new(&signals, &run.code);
        let save = save_file(&layout, &signals, &tables, &files, &run, &ViewRange::EMPTY);
        let at = |line: &str| save.find(line).unwrap_or_else(|| panic!("`{line}` is not in the view"));
        for name in memory {
            at(&format!(" gpu.{name}[7:0]\n"));
        }
        for group in ["-memory\n", "-crossbar\n", "-L2\n", "-HBM\n"] {
            assert!(
                at("-gpc[0].sm[0]\n") < at(group) && at(group) < at("-gpc[0].sm[1]\n"),
                "{group}"
            );
        }
        assert!(save.ends_with(&format!(
            "-{} more signals are in the tree\n",
            layout.n_rows() - MAX_ROWS
        )));
    }
}
