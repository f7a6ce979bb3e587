//! A scenario with its text parsed, but without its data: no array is read, and no element is generated.
//!
//! So the command can first compare the data with the GPU's memory, and its outputs with the input files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use warpwave_components::config::GpuConfig;

use super::files::Files;
use super::quantity::{Constants, Quantity};
use super::resolve::{self, Context};
use super::{Assert, Buffer, Fault, Launch, Scenario, ScenarioError, builtin, data, format, nearest};

/// Largest bound of an assertion: counters have 64 bits.
const MAX_BOUND: f64 = 18_446_744_073_709_551_616.0;

/// A scenario without its data.
pub struct Draft {
    shown: String,
    file: format::ScenarioFile,
    files: Files,
}

impl Draft {
    /// Parses a scenario: the file of this path if it exists, or else the built-in scenario of this name.
    ///
    /// # Errors
    /// If there is neither, or if its text is not a scenario.
    pub fn find(name_or_path: &str) -> Result<Draft, ScenarioError> {
        let path = Path::new(name_or_path);
        if path.is_file() || path.extension().is_some_and(|end| end == "toml") {
            Self::load(path)
        } else {
            builtin::draft(name_or_path)
        }
    }

    /// Parses the scenario that [`Draft::find`] finds, or else all built-in scenarios of the folder of this name.
    ///
    /// # Errors
    /// If there is none, or if one is not a scenario.
    pub fn find_all(name_or_path: &str) -> Result<Vec<Draft>, ScenarioError> {
        let folder = builtin::in_folder(name_or_path);
        if folder.is_empty() || folder.contains(&name_or_path) || Path::new(name_or_path).is_file() {
            return Ok(vec![Self::find(name_or_path)?]);
        }
        folder.into_iter().map(builtin::draft).collect()
    }

    /// Parses a scenario file.
    ///
    /// # Errors
    /// If it cannot be read, or is not a scenario.
    pub fn load(path: &Path) -> Result<Draft, ScenarioError> {
        let shown = path.display().to_string();
        let text = Files::Disk(".".into()).read_text(&shown);
        let text = text.map_err(|fault| ScenarioError::new(&shown, "", fault))?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Self::read(&shown, &text, Files::Disk(folder))
    }

    pub(super) fn read(shown: &str, text: &str, files: Files) -> Result<Draft, ScenarioError> {
        Ok(Draft {
            shown: shown.to_owned(),
            file: read_format(shown, text)?,
            files,
        })
    }

    /// Title and claim.
    pub(super) fn into_words(self) -> (Option<String>, Option<String>) {
        (self.file.title, self.file.claim)
    }

    /// The GPU: the name of a preset, or a path relative to the current folder.
    pub fn gpu(&self) -> Option<String> {
        let gpu = self.file.gpu.as_ref()?;
        Some(match gpu.ends_with(".toml") {
            true => self.files.resolve(gpu),
            false => gpu.clone(),
        })
    }

    /// Its input files on disk: the scenario, the PTX and the arrays. Empty for a built-in scenario.
    pub fn files(&self) -> Vec<PathBuf> {
        if let Files::BuiltIn(_) = self.files {
            return Vec::new();
        }
        let beside = self
            .file
            .paths()
            .into_iter()
            .map(|path| self.files.resolve(path).into());
        [PathBuf::from(&self.shown)].into_iter().chain(beside).collect()
    }

    /// Replaces the values of named constants. A value is a number or an expression, as in the text.
    ///
    /// ```
    /// use warpwave::scenario::Draft;
    /// let text = "ptx = \"k.ptx\"\nconstants.n = 4\nlaunch = [{ grid = \"n\", block = 32 }]";
    /// let folder = tempfile::tempdir().unwrap();
    /// let path = folder.path().join("s.toml");
    /// std::fs::write(folder.path().join("k.ptx"), "").unwrap();
    /// std::fs::write(&path, text).unwrap();
    /// let draft = Draft::load(&path).unwrap().with_constants(&[("n", "2 ** 4")]).unwrap();
    /// assert_eq!(draft.build(None).unwrap().launches[0].grid, [16, 1, 1]);
    /// ```
    ///
    /// # Errors
    /// If the scenario has no such constant, or if a value is not an expression.
    pub fn with_constants<T: AsRef<str>>(mut self, values: &[(T, T)]) -> Result<Draft, ScenarioError> {
        for (name, value) in values {
            let name = name.as_ref();
            let key = format!("constants.{name}");
            let fault = |fault| ScenarioError::new(&self.shown, &key, fault);
            let quantity = Quantity::parse(value.as_ref()).map_err(|error| fault(error.into()))?;
            if !self.file.constants.contains_key(name) {
                return Err(fault(Fault::UnknownConstant {
                    nearest: nearest(name, self.file.constants.keys().map(String::as_str)),
                    known: self.file.constants.keys().cloned().collect(),
                }));
            }
            self.file.constants.insert(name.to_owned(), quantity);
        }
        Ok(self)
    }

    /// Names and texts of the named constants, sorted.
    pub fn constants(&self) -> Vec<(String, String)> {
        let text = |(name, quantity): (&String, &Quantity)| (name.clone(), quantity.to_string());
        self.file.constants.iter().map(text).collect()
    }

    /// Reads the files and generates the elements. If `gpu` is given, the data must fit its memory.
    ///
    /// # Errors
    /// If a file cannot be read, if the data exceed the memory of the GPU, or if a value has a fault.
    pub fn build(self, gpu: Option<&GpuConfig>) -> Result<Scenario, ScenarioError> {
        let gpu_path = self.gpu();
        let Draft { shown, file, files } = self;
        let at = |key: &str| {
            let key = key.to_owned();
            let shown = &shown;
            move |fault| ScenarioError::new(shown, &key, fault)
        };
        for (table, buffers) in [("buffers", &file.buffers), ("globals", &file.globals)] {
            check_names(buffers).map_err(at(table))?;
        }
        let constants = constants(&file).map_err(|(key, fault)| at(&format!("constants.{key}"))(fault))?;
        let context = Context {
            files: &files,
            constants: &constants,
        };
        // Sizes are checked before any element is generated: a wrong shape must not use up the host's memory.
        check_sizes(&file, &context, gpu).map_err(|(key, fault)| at(&key)(fault))?;
        check_asserts(&file).map_err(|(key, fault)| at(&key)(fault))?;
        let name = Path::new(&shown).file_stem().unwrap_or_default();
        let mut buffers = resolve::buffers(&file.buffers, "buffers", &context, at)?;
        let mut globals = resolve::buffers(&file.globals, "globals", &context, at)?;
        let launches = (0..)
            .zip(file.launch)
            .map(|(n, text)| launch(n, text, &buffers, &constants, at));
        let launches = launches.collect::<Result<_, _>>()?;
        let wanted = resolve::expectations(&file.buffers, "buffers", &context, &buffers, at)?;
        let wanted_globals = resolve::expectations(&file.globals, "globals", &context, &buffers, at)?;
        let pairs = buffers
            .iter_mut()
            .zip(wanted)
            .chain(globals.iter_mut().zip(wanted_globals));
        pairs.for_each(|(buffer, expect)| buffer.expect = expect);
        Ok(Scenario {
            name: name.to_string_lossy().into_owned(),
            title: file.title,
            claim: file.claim,
            ptx: files.read_text(&file.ptx).map_err(at("ptx"))?,
            ptx_path: file.ptx,
            gpu: gpu_path,
            globals,
            launches,
            buffers,
            asserts: file.assert,
        })
    }
}

/// Evaluates the constants. None may have the name of a buffer.
fn constants(file: &format::ScenarioFile) -> Result<Constants, (String, Fault)> {
    let both = file.constants.keys().find(|name| file.buffers.contains_key(*name));
    match both {
        Some(name) => Err((name.clone(), Fault::ConstantIsBuffer)),
        None => Constants::new(&file.constants),
    }
}

/// Resolves launch `n`.
fn launch<F: FnOnce(Fault) -> ScenarioError>(
    n: usize,
    text: format::Launch,
    buffers: &[Buffer],
    constants: &Constants,
    at: impl Fn(&str) -> F,
) -> Result<Launch, ScenarioError> {
    let key = |key: &str| format!("launch[{n}].{key}");
    let sizes = |name: &str, sizes: &format::Dim3| constants.sizes(&sizes.0).map_err(at(&key(name)));
    let shared = constants.size(&text.dynamic_shared_bytes, 0, u32::MAX.into());
    Ok(Launch {
        entry: text.entry,
        grid: sizes("grid", &text.grid)?,
        block: sizes("block", &text.block)?,
        dynamic_shared_bytes: shared.map_err(at(&key("dynamic_shared_bytes")))? as u32,
        cluster: text.cluster.map(|cluster| sizes("cluster", &cluster)).transpose()?,
        args: resolve::args(text.args, buffers, constants).map_err(at(&key("args")))?,
    })
}

/// Parses the text. A syntax error has its line and the nearest valid word.
fn read_format(shown: &str, text: &str) -> Result<format::ScenarioFile, ScenarioError> {
    // Some editors write a byte-order mark before UTF-8 text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let error = |key: String, mut error: toml::de::Error| {
        error.set_input(Some(text));
        let (nearest, message) = (meant(error.message()), error.to_string());
        ScenarioError::new(shown, &key, Fault::Syntax { message, nearest })
    };
    let reader = toml::Deserializer::parse(text).map_err(|fault| error(String::new(), fault))?;
    serde_path_to_error::deserialize(reader).map_err(|fault| {
        let key = fault.path().to_string();
        error(if key == "." { String::new() } else { key }, fault.into_inner())
    })
}

/// The expected word nearest to the wrong one, in a message such as "unknown field `a`, expected one of `b`, `c`".
fn meant(message: &str) -> Option<String> {
    let mut words = message.split('`').skip(1).step_by(2);
    let unknown = words.next().filter(|_| message.starts_with("unknown"))?;
    nearest(unknown, words)
}

/// Checks that each name is a plain file name: `--dump` writes NAME.npy.
fn check_names(buffers: &BTreeMap<String, format::Buffer>) -> Result<(), Fault> {
    let is_plain = |name: &str| {
        (1..=MAX_NAME).contains(&name.len())
            && !matches!(name, "." | "..")
            && !name.contains(|c: char| matches!(c, '/' | '\\') || c.is_control())
    };
    match buffers.keys().find(|name| !is_plain(name)) {
        Some(name) => Err(Fault::BadName {
            name: name.chars().take(MAX_NAME).collect(),
        }),
        None => Ok(()),
    }
}

/// Maximum number of bytes of a name. File systems accept 255, with the ending.
pub(super) const MAX_NAME: usize = 200;

/// Checks each shape, and that all data together fit the GPU's memory.
fn check_sizes(
    file: &format::ScenarioFile,
    context: &Context<'_>,
    gpu: Option<&GpuConfig>,
) -> Result<(), (String, Fault)> {
    let tables = [("buffers", &file.buffers), ("globals", &file.globals)];
    let all = tables.into_iter().flat_map(|(table, buffers)| {
        let named = buffers.iter();
        named.map(move |(name, buffer)| (format!("{table}.{name}.shape"), buffer))
    });
    let mut need = 0u64;
    for (key, buffer) in all {
        let layout = context.layout(buffer).map_err(|fault| (key.clone(), fault))?;
        let bytes = data::checked_bytes(layout.dtype, &layout.shape).map_err(|fault| (key.clone(), fault))?;
        need = need.saturating_add(bytes);
        if let Some(gpu) = gpu.filter(|gpu| need > gpu.memory_bytes) {
            let fault = Fault::TooLargeForGpu {
                bytes,
                need,
                gpu: gpu.name.clone(),
                limit: gpu.memory_bytes,
            };
            return Err((key, fault));
        }
    }
    Ok(())
}

/// Checks that there is a launch, and that every assertion can fail.
fn check_asserts(file: &format::ScenarioFile) -> Result<(), (String, Fault)> {
    let n = file.launch.len();
    if n == 0 {
        return Err((String::new(), Fault::NoLaunch));
    }
    for (i, assert) in file.assert.iter().enumerate() {
        check_assert(assert, n).map_err(|fault| (format!("assert[{i}]"), fault))?;
    }
    Ok(())
}

fn check_assert(assert: &Assert, n: usize) -> Result<(), Fault> {
    if let Some(launch) = assert.launch.filter(|&launch| launch >= n) {
        return Err(Fault::NoSuchLaunch { launch, n });
    }
    let bounds = || [assert.min, assert.max, assert.equal].into_iter().flatten();
    if bounds().next().is_none() {
        return Err(Fault::NothingAsserted);
    }
    // A range test also rejects NaN.
    match bounds().find(|bound| !(-MAX_BOUND..=MAX_BOUND).contains(bound)) {
        Some(value) => Err(Fault::BadBound { value }),
        None => Ok(()),
    }
}
