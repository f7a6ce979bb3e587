//! One preset file before inheritance: dotted keys, each with a value and its source.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::{ASSUMED, EntryFault, PresetError};
use crate::config::keys::join;
use crate::wording;

/// The entries of one file.
#[derive(Debug, Default)]
pub(super) struct Layer {
    /// Name of the part, if the file has one.
    pub name: Option<String>,
    /// One line about the part.
    pub summary: Option<String>,
    /// The preset that gives the entries that this file lacks.
    pub base: Option<String>,
    /// Value and source by dotted key.
    pub entries: BTreeMap<String, Entry>,
}

/// A value with its source.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub value: Value,
    pub src: String,
    pub grade: String,
    pub note: String,
}

impl Layer {
    /// Parses `text`, the file of preset `id`. Reports all faults of its syntax at once.
    pub(super) fn parse(id: &str, text: &str) -> Result<Self, PresetError> {
        let mut table: Table = text.parse().map_err(|error: toml::de::Error| PresetError::Syntax {
            preset: id.to_owned(),
            reason: wording::plain(error.to_string().trim_end()),
        })?;
        let mut faults = Vec::new();
        // These three are texts about the preset, so they have no source.
        let mut head = |key: &str| match table.remove(key)? {
            Value::String(text) => Some(text),
            other => {
                let reason = format!("{other} is not a text in quotes");
                faults.push(EntryFault::Value {
                    key: key.to_owned(),
                    reason,
                });
                None
            }
        };
        let mut layer = Self {
            name: head("name"),
            summary: head("summary"),
            base: head("base"),
            entries: BTreeMap::new(),
        };
        layer.collect("", table, &mut faults);
        if faults.is_empty() {
            return Ok(layer);
        }
        Err(PresetError::Entries {
            preset: id.to_owned(),
            faults,
        })
    }

    fn collect(&mut self, prefix: &str, table: Table, faults: &mut Vec<EntryFault>) {
        for (key, value) in table {
            let key = join(prefix, &key);
            match value {
                Value::Table(leaf) if leaf.contains_key("value") => {
                    let entry = Entry::parse(&key, leaf, faults);
                    self.entries.insert(key, entry);
                }
                Value::Table(inner) => self.collect(&key, inner, faults),
                _ => faults.push(EntryFault::NoSource { key }),
            }
        }
    }
}

impl Entry {
    /// A value without a source.
    pub(super) fn new(value: Value) -> Self {
        let [src, grade, note] = [const { String::new() }; 3];
        Self {
            value,
            src,
            grade,
            note,
        }
    }

    fn parse(key: &str, table: Table, faults: &mut Vec<EntryFault>) -> Self {
        // The value is replaced below: the caller has seen the field.
        let mut entry = Self::new(Value::Boolean(false));
        for (field, value) in table {
            match (field.as_str(), value) {
                ("value", value) => entry.value = value,
                ("src", Value::String(text)) => entry.src = text,
                ("grade", Value::String(text)) => entry.grade = text,
                ("note", Value::String(text)) => entry.note = text,
                _ => faults.push(EntryFault::Field {
                    key: key.to_owned(),
                    field,
                }),
            }
        }
        entry.check_source(key, faults);
        entry
    }

    fn check_source(&self, key: &str, faults: &mut Vec<EntryFault>) {
        let key = key.to_owned();
        let graded = ["A", "B", "C"].contains(&self.grade.as_str());
        let ungraded = self.grade.is_empty();
        match self.src.as_str() {
            "" => faults.push(EntryFault::NoSource { key }),
            ASSUMED if ungraded => {}
            src if graded && src != ASSUMED => {}
            src => {
                let (src, grade) = (src.to_owned(), self.grade.clone());
                faults.push(EntryFault::Grade { key, src, grade });
            }
        }
    }
}
