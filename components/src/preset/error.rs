//! Errors of presets. Each names the key and says what to write instead.

use std::fmt::Display;

use thiserror::Error;
use warpwave_hw::error::lines;

use crate::config::ConfigFault;

/// Reason why a preset could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PresetError {
    /// The name is neither a built-in preset nor a path to a TOML file.
    #[error("{}", unknown_preset(.name, .nearest))]
    Unknown {
        /// The name given.
        name: String,
        /// Similar built-in names.
        nearest: Vec<String>,
    },
    /// The name is that of a file or folder, and names no preset.
    #[error("no preset `{name}`, and this is {kind}; a preset file is named by its path, ending in .toml")]
    NoPresetFile {
        /// The name given.
        name: String,
        /// The kind of the file.
        kind: &'static str,
    },
    /// The file cannot be read.
    #[error("cannot read preset `{path}`: {reason}")]
    Read {
        /// Its path.
        path: String,
        /// Reason given by the system.
        reason: String,
    },
    /// The file is not TOML.
    #[error("preset `{preset}` is not TOML: {}", .reason.trim_end())]
    Syntax {
        /// The preset.
        preset: String,
        /// Line, column and reason.
        reason: String,
    },
    /// A preset inherits from itself, directly or through others.
    #[error("a preset inherits from itself: {}", .chain.join(" -> "))]
    Cycle {
        /// The presets in order of inheritance; the last is the first repeated one.
        chain: Vec<String>,
    },
    /// Entries are wrong or missing.
    #[error("{}", listed(.preset, .faults))]
    Entries {
        /// The preset, or `--set`.
        preset: String,
        /// All wrong entries.
        faults: Vec<EntryFault>,
    },
    /// The configuration is complete, but breaks rules of the machine.
    #[error("{}", listed(.preset, .faults))]
    Config {
        /// The preset.
        preset: String,
        /// All broken rules.
        faults: Vec<ConfigFault>,
    },
}

impl PresetError {
    /// The error with the name of a preset in place of [`super::SET`], for changes that no option made.
    #[must_use]
    pub fn of(self, name: &str) -> Self {
        match self {
            PresetError::Entries { preset, faults } if preset == super::SET => PresetError::Entries {
                preset: name.to_owned(),
                faults,
            },
            error => error,
        }
    }
}

/// A wrong or missing entry of a preset.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EntryFault {
    /// The value has no source.
    #[error("`{key}` has no source: write {{ value = .., src = \"assumed\" }}, or a source with its grade")]
    NoSource {
        /// Dotted key.
        key: String,
    },
    /// The source has no grade A, B or C, or an assumed value has one.
    #[error("{}", bad_grade(.key, .src, .grade))]
    Grade {
        /// Dotted key.
        key: String,
        /// The source.
        src: String,
        /// The grade. Empty if none is given.
        grade: String,
    },
    /// The field is unknown, or is not text.
    #[error("`{key}` cannot have the field `{field}`: use value, and the texts src, grade and note")]
    Field {
        /// Dotted key.
        key: String,
        /// The field.
        field: String,
    },
    /// No preset has this key.
    #[error("`{key}` is not a preset key{}", hint(.nearest))]
    UnknownKey {
        /// Dotted key.
        key: String,
        /// Similar keys.
        nearest: Vec<String>,
    },
    /// The value has the wrong type or is out of range.
    #[error("`{key}` cannot have this value: {reason}")]
    Value {
        /// Dotted key.
        key: String,
        /// Expected type and found value.
        reason: String,
    },
    /// The key has no value.
    #[error("`{key}` has no value: give it one, or name a `base` that has it")]
    Missing {
        /// Dotted key.
        key: String,
    },
}

/// Maximum number of faults that an error shows. A preset has about 150 keys.
pub(super) const MAX_SHOWN: usize = 200;

/// Text for the faults of a preset, one per line.
fn listed(preset: &str, faults: &[impl Display]) -> String {
    let plural = if faults.len() == 1 { "fault" } else { "faults" };
    let shown = lines(&faults[..faults.len().min(MAX_SHOWN)]);
    let rest = match faults.len().saturating_sub(MAX_SHOWN) {
        0 => String::new(),
        rest => format!("\n  and {rest} more"),
    };
    format!("preset `{preset}` has {} {plural}:{shown}{rest}", faults.len())
}

/// Text for an unknown name, with similar names or all names.
fn unknown_preset(name: &str, nearest: &[String]) -> String {
    if nearest.is_empty() {
        let names = quoted(super::names());
        return format!(
            "no preset `{name}`: the built-in ones are {names}; a file is named by its path, ending in .toml"
        );
    }
    format!("no preset `{name}`: did you mean {}?", quoted(nearest))
}

fn bad_grade(key: &str, src: &str, grade: &str) -> String {
    if src == super::ASSUMED {
        format!("`{key}` is assumed and has the grade `{grade}`: leave the grade out")
    } else if grade.is_empty() {
        format!("`{key}` has the source `{src}` without a grade: add grade = \"A\", \"B\" or \"C\"")
    } else {
        format!("`{key}` has the source `{src}` with the grade `{grade}`: it must be A, B or C")
    }
}

/// ": did you mean …?" or nothing.
fn hint(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        _ => format!(": did you mean {}?", quoted(nearest)),
    }
}

fn quoted<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("`{}`", name.as_ref())).collect();
    names.join(", ")
}
