//! Commands that lay a dump out in Surfer.

use std::fmt::Write as _;

use super::ViewRange;
use super::layout::{Format, Item, Layout, SignalRow};
use super::names::NameTables;
use crate::file::RunInfo;
use crate::signal::{Kind, Signal};

/// The text of the command file.
pub fn command_file(
    layout: &Layout,
    signals: &[Signal],
    tables: &NameTables<'_>,
    run: &RunInfo,
    range: &ViewRange,
) -> String {
    let mut text = format!("variable_add {}.cycle\n", signals[0].scope[0]);
    let mut commands = Commands {
        signals,
        tables,
        text: &mut text,
    };
    layout.0.iter().for_each(|item| commands.item(item));
    for marker in range.shown_markers() {
        let _ = writeln!(
            text,
            "cursor_set {}\nmarker_set {}",
            run.axis.rise(marker.at.0),
            marker.name
        );
    }
    text + "zoom_fit\n"
}

struct Commands<'a> {
    signals: &'a [Signal],
    tables: &'a NameTables<'a>,
    text: &'a mut String,
}

impl Commands<'_> {
    /// Rows of open groups, each group under a divider; what is closed is left to the tree.
    fn item(&mut self, item: &Item) {
        match item {
            Item::Row(row) => self.row(row),
            Item::Group {
                label,
                is_open: true,
                items,
            } => {
                let _ = writeln!(self.text, "divider_add {label}");
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
