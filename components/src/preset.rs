//! Presets: one TOML file per part, every number with its source.
//!
//! Input: the name of a built-in preset or the path of a file, and changes by dotted key. Output: a checked [`GpuConfig`], with the source
//! of each number. Every fault of a file is reported at once.
//!
//! ```toml
//! name = "h100-small"
//! summary = "H100 with a quarter of its L2"
//! base = "h100-sxm5"             # keys that this file lacks; a built-in name, or a path from here
//!
//! [l2]
//! size = { value = 13_107_200, src = "assumed", note = "what if" }
//! hit_latency = { value = 265, src = "gpubenches", grade = "A" }
//! ```
//!
//! A `src` is a key of [`source_titles`], with its grade (A: read from the primary text; B: from a
//! digest of it; C: recalled), or the word `assumed`, without one.
//!
//! ```
//! use warpwave_components::preset;
//!
//! let sets = [("sm.lsu.queue_depth".to_owned(), "8".to_owned())];
//! let tiny = preset::load("tiny", &sets).unwrap();
//! assert_eq!(tiny.config.n_sms(), 2);
//! assert_eq!(tiny.config.sm.lsu.queue_depth, 8);
//! ```

mod error;
mod layer;
mod nearest;

pub use error::{EntryFault, PresetError};

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use toml::Value;
use tracing::info;

use crate::config::{GpuConfig, keys};
use crate::text_file;
use layer::{Entry, Layer};
use nearest::nearest;

/// The source of a number without a published figure.
pub const ASSUMED: &str = "assumed";

/// The source of a number changed by the user.
pub const SET: &str = "--set";

/// Built-in presets, from the smallest to the latest; the first is complete in itself.
const BUILT_IN: [(&str, &str); 6] = [
    ("tiny", include_str!("../presets/tiny.toml")),
    ("v100-sxm2", include_str!("../presets/v100-sxm2.toml")),
    ("a100-sxm4-80", include_str!("../presets/a100-sxm4-80.toml")),
    ("h100-pcie", include_str!("../presets/h100-pcie.toml")),
    ("h100-sxm5", include_str!("../presets/h100-sxm5.toml")),
    ("h200", include_str!("../presets/h200.toml")),
];

const SOURCES: &str = include_str!("../presets/sources.toml");

/// What every complete preset looks like.
static PATTERN: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let (id, text) = BUILT_IN[0];
    let layer = Layer::parse(id, text).unwrap_or_else(|error| panic!("{error}"));
    let values = layer.entries.into_iter().map(|(key, entry)| (key, entry.value));
    keys::flatten(&deserialize(id, values).unwrap_or_else(|reason| panic!("{reason}")))
});

/// A configuration and where its numbers come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preset {
    /// The numbers, checked.
    pub config: GpuConfig,
    /// One line about the part.
    pub summary: String,
    /// Every number of `config` with its source, by key.
    pub sources: Vec<SourcedValue>,
    /// The files that it was read from: its own, and that of each preset it inherits from. Built-in presets are not files.
    pub files: Vec<PathBuf>,
}

/// One number of a preset and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcedValue {
    /// Dotted key: `sm.lsu.queue_depth`.
    pub key: String,
    /// The value as TOML writes it.
    pub value: String,
    /// A key of [`source_titles`], or [`ASSUMED`], or [`SET`].
    pub source: String,
    /// A, B or C; empty for an assumed value or one that was set.
    pub grade: String,
    /// What else there is to say; may be empty.
    pub note: String,
}

/// Names of the built-in presets.
pub fn names() -> Vec<&'static str> {
    BUILT_IN.iter().map(|(name, _)| *name).collect()
}

/// Authors, title and year of each source that built-in presets name, by key.
pub fn source_titles() -> BTreeMap<String, String> {
    toml::from_str(SOURCES).expect("the embedded list of sources is a table of texts")
}

/// Loads a built-in preset by name or a file by path. Applies `sets` (dotted key, value in TOML, a word without quotes). Checks the result.
///
/// # Errors
///
/// An unknown name, an unreadable file, inheritance in a circle, keys and values that do not
/// exist, or a configuration that [`GpuConfig::check`] refuses.
pub fn load(name_or_path: &str, sets: &[(String, String)]) -> Result<Preset, PresetError> {
    let mut chain = Vec::new();
    let mut layer = resolve(&Origin::find(name_or_path, Path::new(""))?, &mut chain)?;
    set(&mut layer.entries, sets)?;
    let name = layer.name.unwrap_or_default();
    let config = build(&name, &layer.entries)?;
    let faults = config.check();
    if !faults.is_empty() {
        return Err(PresetError::Config { preset: name, faults });
    }
    info!(sms = config.n_sms(), changed = sets.len(), "preset {name} loaded");
    let sources = layer.entries.into_iter().map(SourcedValue::from).collect();
    Ok(Preset {
        config,
        summary: layer.summary.unwrap_or_default(),
        sources,
        files: chain
            .into_iter()
            .filter(|id| !names().contains(&id.as_str()))
            .map(PathBuf::from)
            .collect(),
    })
}

/// Where the text of a preset lies.
enum Origin {
    BuiltIn(&'static str, &'static str),
    File(PathBuf),
}

impl Origin {
    /// The built-in preset `name`, or the file `name` as seen from `folder`.
    fn find(name: &str, folder: &Path) -> Result<Self, PresetError> {
        if let Some(&(name, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
            return Ok(Self::BuiltIn(name, text));
        }
        if name.ends_with(".toml") || name.contains(std::path::is_separator) {
            return Ok(Self::File(folder.join(name)));
        }
        let nearest = nearest(name, names().into_iter());
        Err(PresetError::Unknown {
            name: name.to_owned(),
            nearest,
        })
    }

    /// What messages call it, and what makes it the same file again.
    fn id(&self) -> String {
        match self {
            Self::BuiltIn(name, _) => (*name).to_owned(),
            Self::File(path) => fs::canonicalize(path)
                .unwrap_or_else(|_| path.clone())
                .display()
                .to_string(),
        }
    }

    fn read(&self) -> Result<String, PresetError> {
        match self {
            Self::BuiltIn(_, text) => Ok((*text).to_owned()),
            Self::File(path) => text_file::read(path).map_err(|error| PresetError::Read {
                path: path.display().to_string(),
                reason: error.to_string(),
            }),
        }
    }

    /// The name of a preset whose file gives none.
    fn default_name(&self) -> String {
        match self {
            Self::BuiltIn(name, _) => (*name).to_owned(),
            Self::File(path) => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        }
    }

    fn folder(&self) -> &Path {
        match self {
            Self::BuiltIn(..) => Path::new(""),
            Self::File(path) => path.parent().unwrap_or(Path::new("")),
        }
    }
}

/// The preset at `origin` with what it inherits; `chain` holds the presets that inherit it.
fn resolve(origin: &Origin, chain: &mut Vec<String>) -> Result<Layer, PresetError> {
    let id = origin.id();
    let repeated = chain.contains(&id);
    chain.push(id.clone());
    if repeated {
        return Err(PresetError::Cycle { chain: chain.clone() });
    }
    let mut layer = Layer::parse(&id, &origin.read()?)?;
    layer.name.get_or_insert_with(|| origin.default_name());
    refuse_unknown(&id, layer.entries.keys())?;
    if let Some(base) = &layer.base {
        let mut entries = resolve(&Origin::find(base, origin.folder())?, chain)?.entries;
        entries.append(&mut layer.entries);
        layer.entries = entries;
    }
    Ok(layer)
}

/// Fails with all of `given` that no preset has.
fn refuse_unknown<'a>(id: &str, given: impl Iterator<Item = &'a String>) -> Result<(), PresetError> {
    let faults: Vec<_> = given
        .filter(|key| !PATTERN.contains_key(*key))
        .map(|key| EntryFault::UnknownKey {
            key: key.clone(),
            nearest: nearest(key, PATTERN.keys().map(String::as_str)),
        })
        .collect();
    if faults.is_empty() {
        return Ok(());
    }
    Err(PresetError::Entries {
        preset: id.to_owned(),
        faults,
    })
}

fn set(entries: &mut BTreeMap<String, Entry>, sets: &[(String, String)]) -> Result<(), PresetError> {
    refuse_unknown(SET, sets.iter().map(|(key, _)| key))?;
    for (key, text) in sets {
        let value = text.parse().unwrap_or_else(|_| Value::String(text.clone()));
        let (src, grade, note) = (SET.to_owned(), String::new(), String::new());
        entries.insert(
            key.clone(),
            Entry {
                value,
                src,
                grade,
                note,
            },
        );
    }
    Ok(())
}

/// The configuration that `entries` spell out.
fn build(name: &str, entries: &BTreeMap<String, Entry>) -> Result<GpuConfig, PresetError> {
    let values = || entries.iter().map(|(key, entry)| (key.clone(), entry.value.clone()));
    let missing = PATTERN.keys().filter(|key| !entries.contains_key(*key));
    let mut faults: Vec<_> = missing.map(|key| EntryFault::Missing { key: key.clone() }).collect();
    if faults.is_empty()
        && let Ok(config) = deserialize(name, values())
    {
        return Ok(config);
    }
    faults.extend(values().filter_map(|(key, value)| wrong_value(key, value)));
    Err(PresetError::Entries {
        preset: name.to_owned(),
        faults,
    })
}

/// Tries `value` alone in a configuration whose other values are sound.
fn wrong_value(key: String, value: Value) -> Option<EntryFault> {
    let mut values = PATTERN.clone();
    values.insert(key.clone(), value);
    let reason = deserialize("pattern", values).err()?;
    Some(EntryFault::Value { key, reason })
}

fn deserialize(name: &str, values: impl IntoIterator<Item = (String, Value)>) -> Result<GpuConfig, String> {
    let mut table = keys::nest(values);
    table.insert("name".to_owned(), Value::String(name.to_owned()));
    table.try_into().map_err(|error| error.message().to_owned())
}

impl From<(String, Entry)> for SourcedValue {
    fn from((key, entry): (String, Entry)) -> Self {
        let Entry {
            value,
            src: source,
            grade,
            note,
        } = entry;
        Self {
            key,
            value: value.to_string(),
            source,
            grade,
            note,
        }
    }
}

#[cfg(test)]
mod tests;
