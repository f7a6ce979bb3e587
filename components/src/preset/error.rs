//! What can be wrong with a preset, in sentences.

use std::fmt;

use crate::config::ConfigFault;

/// Why a preset could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PresetError {
    /// Neither a built-in preset nor a path to a TOML file.
    Unknown {
        /// The name given.
        name: String,
        /// Built-in names near to it.
        nearest: Vec<String>,
    },
    /// The file cannot be read.
    Read {
        /// Its path.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// The file is not TOML.
    Syntax {
        /// The preset.
        preset: String,
        /// Line, column and reason.
        reason: String,
    },
    /// A preset inherits, by way of others, from itself.
    Cycle {
        /// The presets from the first to its repetition.
        chain: Vec<String>,
    },
    /// Keys or values that a preset cannot have, or lacks.
    Entries {
        /// The preset, or `--set`.
        preset: String,
        /// All of them.
        faults: Vec<EntryFault>,
    },
    /// A complete configuration that no machine can be built from.
    Config {
        /// The preset.
        preset: String,
        /// Every fault of it.
        faults: Vec<ConfigFault>,
    },
}

impl fmt::Display for PresetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, nearest } if nearest.is_empty() => write!(
                f,
                "no preset `{name}`: the built-in ones are {}; a file is named by its path, ending in .toml",
                quoted(super::names()),
            ),
            Self::Unknown { name, nearest } => {
                write!(f, "no preset `{name}`: did you mean {}?", quoted(nearest))
            }
            Self::Read { path, reason } => write!(f, "cannot read preset `{path}`: {reason}"),
            Self::Syntax { preset, reason } => {
                write!(f, "preset `{preset}` is not TOML: {}", reason.trim_end())
            }
            Self::Cycle { chain } => {
                write!(f, "a preset inherits from itself: {}", chain.join(" -> "))
            }
            Self::Entries { preset, faults } => list(f, preset, faults),
            Self::Config { preset, faults } => list(f, preset, faults),
        }
    }
}

impl std::error::Error for PresetError {}

fn list(f: &mut fmt::Formatter<'_>, preset: &str, faults: &[impl fmt::Display]) -> fmt::Result {
    let plural = if faults.len() == 1 { "fault" } else { "faults" };
    write!(f, "preset `{preset}` has {} {plural}:", faults.len())?;
    faults.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
}

fn quoted<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("`{}`", name.as_ref())).collect();
    names.join(", ")
}

/// One key or value that a preset cannot have, or lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryFault {
    /// A value without a source.
    NoSource {
        /// Dotted key.
        key: String,
    },
    /// A source without a grade A, B or C, or an assumed value with one.
    Grade {
        /// Dotted key.
        key: String,
        /// The source.
        src: String,
        /// The grade, empty where there is none.
        grade: String,
    },
    /// A field beside value, src, grade and note, or one of these that is not text.
    Field {
        /// Dotted key.
        key: String,
        /// The field.
        field: String,
    },
    /// A key that no preset has.
    UnknownKey {
        /// Dotted key.
        key: String,
        /// Keys near to it.
        nearest: Vec<String>,
    },
    /// A value of the wrong kind or out of range.
    Value {
        /// Dotted key.
        key: String,
        /// What was expected and found.
        reason: String,
    },
    /// A key without a value.
    Missing {
        /// Dotted key.
        key: String,
    },
}

impl fmt::Display for EntryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSource { key } => write!(
                f,
                "`{key}` has no source: write {{ value = .., src = \"assumed\" }}, or a source with its grade"
            ),
            Self::Grade { key, src, grade } if src == super::ASSUMED => {
                write!(f, "`{key}` is assumed and has the grade `{grade}`: leave the grade out")
            }
            Self::Grade { key, src, grade } if grade.is_empty() => {
                write!(
                    f,
                    "`{key}` has the source `{src}` without a grade: add grade = \"A\", \"B\" or \"C\""
                )
            }
            Self::Grade { key, src, grade } => {
                write!(
                    f,
                    "`{key}` has the source `{src}` with the grade `{grade}`: it must be A, B or C"
                )
            }
            Self::Field { key, field } => write!(
                f,
                "`{key}` cannot have this field `{field}`: there are value, and the texts src, grade and note"
            ),
            Self::UnknownKey { key, nearest } if nearest.is_empty() => {
                write!(f, "`{key}` is no key of a preset")
            }
            Self::UnknownKey { key, nearest } => {
                write!(f, "`{key}` is no key of a preset: did you mean {}?", quoted(nearest))
            }
            Self::Value { key, reason } => write!(f, "`{key}` cannot have this value: {reason}"),
            Self::Missing { key } => {
                write!(f, "`{key}` has no value: give it one, or name a `base` that has it")
            }
        }
    }
}
