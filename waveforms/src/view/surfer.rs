//! Commands that lay a dump out in Surfer.

use std::fmt::Write as _;

use super::Span;
use super::layout::{Item, Layout, Look, Row};
use super::names::Lists;
use crate::file::About;
use crate::signal::{Kind, Signal};

/// The text of the command file.
pub fn text(layout: &Layout, signals: &[Signal], lists: &Lists<'_>, about: &About, span: &Span) -> String {
    let mut text = format!("variable_add {}.cycle\n", signals[0].scope[0]);
    let mut commands = Commands {
        signals,
        lists,
        text: &mut text,
    };
    layout.0.iter().for_each(|item| commands.item(item));
    for mark in span.marks() {
        let _ = writeln!(
            text,
            "cursor_set {}\nmarker_set {}",
            about.axis.rise(mark.at.0),
            mark.name
        );
    }
    text + "zoom_fit\n"
}

struct Commands<'a> {
    signals: &'a [Signal],
    lists: &'a Lists<'a>,
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

    fn row(&mut self, row: &Row) {
        let signal = &self.signals[row.signal];
        let format = match (self.lists.of(signal), row.look) {
            (Some(list), _) => list.name.as_str(),
            _ if signal.kind == Kind::Real => "",
            (_, Look::Hex | Look::Named) => "Hexadecimal",
            (_, Look::Decimal | Look::Curve) => "Unsigned",
            (_, Look::Binary) => "",
        };
        let _ = writeln!(self.text, "variable_add {}", signal.path());
        if !format.is_empty() {
            let _ = writeln!(self.text, "item_set_format {format}");
        }
    }
}
