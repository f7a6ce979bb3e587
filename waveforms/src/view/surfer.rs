//! Surfer's command file.
//!
//! Surfer reads only the open groups of the layout. All other signals are in its tree.
//! The commands are checked against the parser of Surfer 0.7. Three of its rules are easy to miss:
//! - `item_set_format` applies to the focused item. A new item takes the focus only if another item has it.
//! - A divider's name ends at the first character that is no letter, digit or `_`.
//! - `marker_set` takes a name and a time.

use std::fmt::Write as _;

use super::ViewRange;
use super::layout::{Format, Item, Layout, SignalRow};
use super::names::NameTables;
use crate::file::RunInfo;
use crate::signal::{Kind, Signal};

/// Returns the text of the command file.
pub fn command_file(
    layout: &Layout,
    signals: &[Signal],
    tables: &NameTables<'_>,
    run: &RunInfo,
    range: &ViewRange,
) -> String {
    // `a` is the first item.
    let mut text = format!("variable_add {}.cycle\nitem_focus a\n", signals[0].scope[0]);
    let mut commands = Commands {
        signals,
        tables,
        text: &mut text,
    };
    layout.0.iter().for_each(|item| commands.item(item));
    // A marker has a time of the dump, not of the viewer's ruler.
    for marker in range.shown_markers() {
        let _ = writeln!(text, "marker_set {} {}", marker.name, run.axis.rise(marker.at.0));
    }
    text + "item_unfocus\nzoom_fit\n"
}

/// A command file that is being written.
struct Commands<'a> {
    signals: &'a [Signal],
    tables: &'a NameTables<'a>,
    text: &'a mut String,
}

impl Commands<'_> {
    /// Adds a row, or an open group below a divider.
    fn item(&mut self, item: &Item) {
        match item {
            Item::Row(row) => self.row(row),
            Item::Group {
                label,
                is_open: true,
                items,
            } => {
                let _ = writeln!(self.text, "divider_add {}", one_word(label));
                items.iter().for_each(|item| self.item(item));
            }
            Item::Group { .. } => {}
        }
    }

    fn row(&mut self, row: &SignalRow) {
        let signal = &self.signals[row.signal];
        let format = match (self.tables.of(signal), row.format) {
            (Some(table), _) => table.name.as_str(),
            _ if signal.kind == Kind::Real => "",
            (_, Format::Hex | Format::Named) => "Hexadecimal",
            (_, Format::Decimal | Format::Curve) => "Unsigned",
            (_, Format::Binary) => "",
        };
        let _ = writeln!(self.text, "variable_add {}", signal.path());
        if !format.is_empty() {
            let _ = writeln!(self.text, "item_set_format {format}");
        }
    }
}

/// Joins the words of a label with `_`: `gpc[0].sm[1]` becomes `gpc_0_sm_1`.
fn one_word(label: &str) -> String {
    let words = label.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("_")
}

#[cfg(test)]
mod tests {
    use warpwave_hw::time::Cycle;

    use super::*;
    use crate::markers::Marker;

    #[test]
    fn open_groups_formats_and_markers_become_commands() {
        let signals = [
            Signal::new("gpu.gpc[0].sm[0].ipc", Kind::Real),
            Signal::new("gpu.gpc[0].sm[0].top_stall", Kind::State(&["idle", "busy"])),
            Signal::new("gpu.gpc[0].sm[0].lsu.pending", Kind::Vector(10)),
            Signal::new("gpu.l2_slice[0].hits", Kind::Vector(10)),
        ];
        let range = ViewRange {
            start: Cycle(0),
            end: Cycle(90),
            markers: vec![Marker::new("launch", Cycle(7))],
            event: None,
            focus: None,
            empty_slots: Vec::new(),
        };
        let run = RunInfo::new(1_000_000, Vec::new());
        let tables = NameTables::new(&signals, &run.code);
        let text = command_file(&Layout::new(&signals, &[]), &signals, &tables, &run, &range);
        let expected = "\
variable_add gpu.cycle
item_focus a
divider_add gpc_0_sm_0
variable_add gpu.gpc[0].sm[0].ipc
variable_add gpu.gpc[0].sm[0].top_stall
item_set_format top_stall
variable_add gpu.gpc[0].sm[0].lsu.pending
item_set_format Unsigned
marker_set launch 70
marker_set end 900
item_unfocus
zoom_fit
";
        assert_eq!(text, expected);
    }
}
