//! Presets: one TOML file per part, each number with its source.
//!
//! [`load`] takes the name of a built-in preset or the path of a file, and changes by dotted key. It returns a checked [`GpuConfig`] with
//! the source of each number, or all faults of a file at once.
//!
//! ```toml
//! name = "h100-small"
//! summary = "H100 with a quarter of its L2"
//! base = "h100-sxm5"             # gives the other keys: a built-in name, or a path relative to this file
//!
//! [l2]
//! size = { value = 13_107_200, src = "assumed", note = "what if" }
//! hit_latency = { value = 265, src = "gpubenches", grade = "A" }
//! ```
//!
//! A `src` is a key of [`source_titles`] with a grade, or the word `assumed` without a grade. Grade A: read from the primary text; B: from
//! a digest of it; C: recalled.
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
pub(crate) mod nearest;

pub use error::{EntryFault, PresetError};

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use toml::Value;
use tracing::info;

use crate::config::{GpuConfig, doc, keys};
use crate::text_file;
use crate::wording;
use layer::{Entry, Layer};
use nearest::nearest;

/// Source of a number without a published figure.
pub const ASSUMED: &str = "assumed";

/// Source of a number that the user changed.
pub const SET: &str = "--set";

/// Built-in presets. The first has every key and no base.
const BUILT_IN: [(&str, &str); 12] = [
    ("tiny", include_str!("../presets/tiny.toml")),
    ("toy", include_str!("../presets/toy.toml")),
    ("m2070", include_str!("../presets/m2070.toml")),
    ("gtx1080ti", include_str!("../presets/gtx1080ti.toml")),
    ("v100-sxm2", include_str!("../presets/v100-sxm2.toml")),
    ("a100-sxm4-80", include_str!("../presets/a100-sxm4-80.toml")),
    ("rtx3090", include_str!("../presets/rtx3090.toml")),
    ("h100-pcie", include_str!("../presets/h100-pcie.toml")),
    ("h100-sxm5", include_str!("../presets/h100-sxm5.toml")),
    ("gh100-full", include_str!("../presets/gh100-full.toml")),
    ("h200", include_str!("../presets/h200.toml")),
    ("b200", include_str!("../presets/b200.toml")),
];

const SOURCES: &str = include_str!("../presets/sources.toml");

/// Keys of a complete preset, with valid values.
static PATTERN: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let (id, text) = BUILT_IN[0];
    // A panic here is a mistake in the embedded file.
    let layer = Layer::parse(id, text).unwrap_or_else(|error| panic!("{error}"));
    let values = layer.entries.into_iter().map(|(key, entry)| (key, entry.value));
    keys::flatten(&deserialize(id, values).unwrap_or_else(|reason| panic!("{reason}")))
});

/// A configuration with the source of each number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preset {
    /// The numbers, checked.
    pub config: GpuConfig,
    /// One line about the part.
    pub summary: String,
    /// Every number of `config` with its source, by key.
    pub sources: Vec<SourcedValue>,
    /// Files of the preset and of its bases. Built-in presets are not files.
    pub files: Vec<PathBuf>,
}

/// A number of a preset with its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcedValue {
    /// Dotted key: `sm.lsu.queue_depth`.
    pub key: String,
    /// The value in TOML syntax.
    pub value: String,
    /// A key of [`source_titles`], [`ASSUMED`] or [`SET`].
    pub source: String,
    /// Grade A, B or C. Empty for [`ASSUMED`] and [`SET`].
    pub grade: String,
    /// Note, may be empty.
    pub note: String,
}

/// Names of the built-in presets.
pub fn names() -> Vec<&'static str> {
    BUILT_IN.iter().map(|(name, _)| *name).collect()
}

/// Authors, title and year of each source of the built-in presets, by key.
pub fn source_titles() -> BTreeMap<String, String> {
    toml::from_str(SOURCES).expect("the embedded list of sources is a table of texts")
}

/// Loads a built-in preset by name or a file by path, applies `sets`, and checks the result. Each of `sets` is a dotted key and a TOML
/// value. Words need no quotes, and a number of bytes may have a unit, such as `1MiB`.
///
/// # Errors
///
/// An unknown name, an unreadable file, cyclic inheritance, unknown keys, invalid values, or a configuration that [`GpuConfig::check`]
/// refuses.
pub fn load(name_or_path: &str, sets: &[(String, String)]) -> Result<Preset, PresetError> {
    let mut chain = Vec::new();
    let mut layer = resolve(&Origin::find(name_or_path, Path::new(""))?, &mut chain)?;
    // After the bases: a change replaces the entry of any file.
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
        files: on_disk(chain),
    })
}

/// The files on disk of a preset and of its bases. Empty for a built-in preset.
///
/// # Errors
///
/// An unknown name, an unreadable file, cyclic inheritance or a file that is not TOML.
pub fn files(name_or_path: &str) -> Result<Vec<PathBuf>, PresetError> {
    let mut chain = Vec::new();
    resolve(&Origin::find(name_or_path, Path::new(""))?, &mut chain)?;
    Ok(on_disk(chain))
}

fn on_disk(chain: Vec<String>) -> Vec<PathBuf> {
    let is_file = |id: &String| !names().contains(&id.as_str());
    chain.into_iter().filter(is_file).map(PathBuf::from).collect()
}

/// Location of a preset's text.
enum Origin {
    BuiltIn(&'static str, &'static str),
    File(PathBuf),
}

impl Origin {
    /// Finds the built-in preset `name`, or the file `name` relative to `folder`.
    fn find(name: &str, folder: &Path) -> Result<Self, PresetError> {
        if let Some(&(name, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
            return Ok(Self::BuiltIn(name, text));
        }
        // Any other word is a misspelt name, and gets suggestions.
        if name.ends_with(".toml") || name.contains(std::path::is_separator) {
            return Ok(Self::File(folder.join(name)));
        }
        let (begins, name) = (
            names().into_iter().filter(|known| known.starts_with(name)),
            name.to_owned(),
        );
        let begins: Vec<_> = begins.map(str::to_owned).collect();
        if !begins.is_empty() {
            return Err(PresetError::Unknown { name, nearest: begins });
        }
        if let Ok(found) = fs::metadata(folder.join(&name)) {
            let kind = match found.file_type() {
                kind if kind.is_file() => "a file without that ending",
                kind if kind.is_dir() => "a folder",
                _ => "no regular file",
            };
            return Err(PresetError::NoPresetFile { name, kind });
        }
        let nearest = nearest(&name, names().into_iter());
        Err(PresetError::Unknown { name, nearest })
    }

    /// Name in messages, unique for each file.
    fn id(&self) -> String {
        match self {
            Self::BuiltIn(name, _) => (*name).to_owned(),
            // Two spellings of one path are one file in the search for cycles.
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

/// Reads the preset at `origin` with the entries that it inherits. `chain` has the presets that inherit from it.
fn resolve(origin: &Origin, chain: &mut Vec<String>) -> Result<Layer, PresetError> {
    let id = origin.id();
    // A file that inherits from itself would recurse without end.
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
        // The file's own entries replace inherited ones.
        entries.append(&mut layer.entries);
        layer.entries = entries;
    }
    Ok(layer)
}

/// Refuses all keys of `given` that are not preset keys.
fn refuse_unknown<'a>(id: &str, given: impl Iterator<Item = &'a String>) -> Result<(), PresetError> {
    let faults: Vec<_> = given
        .filter(|key| !PATTERN.contains_key(*key))
        .enumerate()
        .map(|(n, key)| EntryFault::UnknownKey {
            key: key.clone(),
            // The comparison with all keys takes long for thousands of faults, and the error shows fewer.
            nearest: match n < error::MAX_SHOWN {
                true => nearest(key, PATTERN.keys().map(String::as_str)),
                false => Vec::new(),
            },
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
        let size = bytes(text).filter(|_| has_bytes(key)).map(Value::Integer);
        // A word without quotes is not TOML: it is taken as text.
        let value = size.or_else(|| text.parse().ok());
        let mut entry = Entry::new(value.unwrap_or_else(|| Value::String(text.clone())));
        entry.src = SET.to_owned();
        entries.insert(key.clone(), entry);
    }
    Ok(())
}

/// True for a key with a number of bytes.
fn has_bytes(key: &str) -> bool {
    doc::key_doc(key).is_some_and(|doc| doc.unit == "bytes")
}

/// Units of a number of bytes, with their factors.
pub const BYTE_UNITS: [(&str, u64); 6] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

/// Reads a number with a unit, such as `1 MiB`. `None` for any other text, and for a fraction of a byte.
fn bytes(text: &str) -> Option<i64> {
    let split = |&(unit, factor): &(&str, u64)| Some((text.strip_suffix(unit)?.trim_end(), factor));
    let (number, factor) = BYTE_UNITS.iter().find_map(split)?;
    let number: i64 = number.replace('_', "").parse().ok()?;
    number.checked_mul(i64::try_from(factor).ok()?)
}

/// Builds the configuration from its entries.
fn build(name: &str, entries: &BTreeMap<String, Entry>) -> Result<GpuConfig, PresetError> {
    let values = || entries.iter().map(|(key, entry)| (key.clone(), entry.value.clone()));
    let missing = PATTERN.keys().filter(|key| !entries.contains_key(*key));
    let mut faults: Vec<_> = missing.map(|key| EntryFault::Missing { key: key.clone() }).collect();
    if faults.is_empty()
        && let Ok(config) = deserialize(name, values())
    {
        return Ok(config);
    }
    // The deserializer stops at the first bad value, so each value is tested alone.
    let wrong = entries
        .iter()
        .filter_map(|(key, entry)| wrong_value(key.clone(), entry.value.clone(), entry.src == SET));
    faults.extend(wrong);
    Err(PresetError::Entries {
        preset: name.to_owned(),
        faults,
    })
}

/// Tests one value in a configuration whose other values are valid. `is_set` is true for a value that may have a unit.
fn wrong_value(key: String, value: Value, is_set: bool) -> Option<EntryFault> {
    let mut values = PATTERN.clone();
    let is_text = value.is_str();
    values.insert(key.clone(), value);
    let mut reason = deserialize("pattern", values).err()?;
    if is_set && is_text && has_bytes(&key) {
        let units: Vec<_> = BYTE_UNITS.iter().map(|(unit, _)| *unit).collect();
        reason = format!(
            "{reason}; write a whole number, also with one of the units {}",
            units.join(", ")
        );
    }
    Some(EntryFault::Value { key, reason })
}

fn deserialize(name: &str, values: impl IntoIterator<Item = (String, Value)>) -> Result<GpuConfig, String> {
    let mut table = keys::nest(values);
    table.insert("name".to_owned(), Value::String(name.to_owned()));
    table.try_into().map_err(|error| wording::plain(error.message()))
}

impl From<(String, Entry)> for SourcedValue {
    fn from((key, entry): (String, Entry)) -> Self {
        Self {
            key,
            value: entry.value.to_string(),
            source: entry.src,
            grade: entry.grade,
            note: entry.note,
        }
    }
}

#[cfg(test)]
mod tests;
