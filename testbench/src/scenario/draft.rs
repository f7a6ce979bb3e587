//! A scenario with its text parsed, but without its data: no array is read, and no element is generated.
//!
//! So a command can first check that the data fit the GPU, and that no output overwrites an input file.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use warpwave_components::config::GpuConfig;
use warpwave_components::wording;
use warpwave_ptx::{MIN_REGISTER_CAP, PassSet};

use super::files::Files;
use super::pointers::Named;
use super::quantity::Quantity;
use super::resolve::{self, Context, Resolved};
use super::{
    Buffer, CheckedData, ExpectFailure, Fault, Modules, OtherRun, Pointers, Scenario, ScenarioError, asserts, builtin,
    checks, data, format, image, launches, nearest,
};

mod constants;
mod inputs;

/// What a scenario says of itself. Missing texts are empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Words<'a> {
    /// The title.
    pub title: &'a str,
    /// The claim: one sentence that its expectations and assertions prove.
    pub claim: &'a str,
    /// What to see in it.
    pub text: &'a str,
    /// Commands that show more of it.
    pub look: &'a [String],
}

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
        // A name that ends in `.toml` means a file, so the error of a wrong one is about that file.
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
        // A file on disk wins over a folder of built-in scenarios.
        if folder.is_empty() || Path::new(name_or_path).is_file() {
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
        let text = text.map_err(|fault| match fault {
            // The error begins with the path.
            Fault::Unreadable { reason, .. } => ScenarioError::new(&shown, "", Fault::NoFile { reason }),
            fault => ScenarioError::new(&shown, "", fault),
        })?;
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

    /// Title, claim, text, and the commands that show more.
    pub fn words(&self) -> Words<'_> {
        Words {
            title: self.file.title.as_deref().unwrap_or_default(),
            claim: self.file.claim.as_deref().unwrap_or_default(),
            text: self.file.text.as_deref().unwrap_or_default(),
            look: &self.file.look,
        }
    }

    /// The GPUs of the scenario, of its other runs and of its sweep, each once.
    pub fn gpus(&self) -> Vec<String> {
        let runs = self.file.runs.values().filter_map(|run| run.gpu.clone());
        let axes = self.file.sweep.iter().flat_map(|sweep| &sweep.over);
        let swept = axes
            .filter(|axis| axis.name == "gpu")
            .flat_map(|axis| axis.values.clone());
        let mut gpus = Vec::new();
        for gpu in self.gpu().into_iter().chain(runs).chain(swept) {
            if !gpus.contains(&gpu) {
                gpus.push(gpu);
            }
        }
        gpus
    }

    /// The GPU: the name of a preset, or a path relative to the working folder.
    pub fn gpu(&self) -> Option<String> {
        let gpu = self.file.gpu.name.as_ref()?;
        Some(match gpu.ends_with(".toml") {
            true => self.files.resolve(gpu),
            false => gpu.clone(),
        })
    }

    /// The preset keys that the scenario changes, as `--set` takes them.
    pub fn settings(&self) -> Vec<(String, String)> {
        pairs(&self.file.gpu.set)
    }

    /// The table `[sweep]`.
    pub fn sweep(&self) -> Option<&crate::sweep::Spec> {
        self.file.sweep.as_ref()
    }

    /// Reads a text file beside the scenario, such as the figures of a sweep's assertion.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read_beside(&self, path: &str) -> Result<String, ScenarioError> {
        let text = self.files.read_text(path);
        text.map_err(|fault| ScenarioError::new(&self.shown, "sweep.assert.csv", fault))
    }

    /// Reads the files and generates the elements. If `gpu` is given, the data must fit its memory.
    ///
    /// # Errors
    /// If a file cannot be read, if the data exceed the memory of the GPU, or if a value has a fault.
    pub fn build(self, gpu: Option<&GpuConfig>) -> Result<Scenario, ScenarioError> {
        // Taken before `self` is split into its parts.
        let (gpu_path, set, tables) = (self.gpu(), self.settings(), self.tables()?);
        let Draft { shown, file, files } = self;
        let at = |key: &str| {
            let key = key.to_owned();
            let shown = &shown;
            move |fault| ScenarioError::new(shown, &key, fault)
        };
        for (table, buffers) in [("buffers", &file.buffers), ("globals", &file.globals)] {
            check_names(buffers).map_err(at(table))?;
        }
        // Constants first: shapes, sizes and elements are expressions over them.
        let constants = constants::evaluate(&file).map_err(|(key, fault)| at(&format!("constants.{key}"))(fault))?;
        let mut context = Context {
            files: &files,
            constants: &constants,
            matrices: &file.matrices,
            named: Vec::new(),
        };
        // Sizes are checked before any element is generated: a wrong shape must not use up the host's memory.
        let sizes = check_sizes(&file, &context, gpu).map_err(|(key, fault)| at(&key)(fault))?;
        // `sizes` begins with the buffers, so the variables after them are cut off here.
        let named = file.buffers.keys().zip(sizes);
        context.named = named.map(|(name, bytes)| Named { name, bytes }).collect();
        if file.launch.is_empty() {
            return Err(at("")(Fault::NoLaunch));
        }
        let (ptx, modules) = read_program(file.ptx.paths(), &files).map_err(at("ptx"))?;
        let name = Path::new(&shown).file_stem().unwrap_or_default();
        let resolved = resolve::buffers(&file.buffers, "buffers", &context, at)?;
        let resolved_globals = resolve::buffers(&file.globals, "globals", &context, at)?;
        let (mut buffers, mut globals) = (only_buffers(&resolved), only_buffers(&resolved_globals));
        let references = file.references.into_iter().map(|(name, image)| {
            let key = format!("references.{name}");
            Ok((name, image::read(image, &buffers).map_err(at(&key))?))
        });
        let references = references.collect::<Result<BTreeMap<_, _>, ScenarioError>>()?;
        // Launches before assertions, which name launches.
        let (launches, index) = launches::read(file.launch, (&buffers, &resolved), &constants, at)?;
        let (asserts, comparisons) =
            asserts::read(file.assert, &constants, &index).map_err(|(n, fault)| at(&format!("assert[{n}]"))(fault))?;
        // Expectations last: an expression may read the initial elements of any buffer, and `after` names a launch.
        let mut checks = Vec::new();
        let sources: Vec<_> = resolved.iter().flat_map(Resolved::sources).collect();
        for (table, texts, list, resolved) in [
            ("buffers", &file.buffers, &mut buffers, &resolved),
            ("globals", &file.globals, &mut globals, &resolved_globals),
        ] {
            for (n, (buffer, text)) in list.iter_mut().zip(texts.values()).enumerate() {
                let data = checked_data(table, n);
                let found = checks::read(&text.expect.0, data, None, &buffer.layout, &context, &sources, &index);
                let found = found.map_err(at(&format!("{table}.{}.expect", buffer.name)))?;
                buffer.expect = found.expect;
                checks.extend(found.checks);
                for (text, (field, _)) in text.fields.iter().flatten().zip(&resolved[n].fields) {
                    let layout = field.layout(&buffer.layout);
                    let found = checks::read(&text.expect.0, data, Some(field), &layout, &context, &sources, &index);
                    let found = found.map_err(at(&format!("{table}.{}.expect", field.name)))?;
                    checks.extend(found.checks);
                }
            }
        }
        let pointers = [("buffers", &resolved), ("globals", &resolved_globals)];
        let pointers = pointers
            .into_iter()
            .flat_map(|(table, list)| pointers_of(table, list))
            .collect();
        let limit = file.max_cycles.map(|limit| constants.size(&limit, 1, u64::MAX));
        // An instruction names registers by 8 bits, and R255 reads as zero.
        let least = MIN_REGISTER_CAP.into();
        let registers = |n: Quantity| constants.size(&n, least, u8::MAX.into()).map(|n| n as u8);
        let max_registers = file.max_registers.map(registers);
        if file.expect_failure.as_ref().is_some_and(|failure| failure.exit == 0) {
            return Err(at("expect_failure")(Fault::NotAFailure));
        }
        Ok(Scenario {
            name: name.to_string_lossy().into_owned(),
            title: file.title,
            claim: file.claim,
            ptx_path: file.ptx.paths().join(", "),
            ptx,
            modules,
            max_registers: max_registers.transpose().map_err(at("max_registers"))?,
            skipped_passes: PassSet::default(),
            gpu: gpu_path,
            set,
            max_cycles: limit.transpose().map_err(at("max_cycles"))?,
            constants: constants.into_values(),
            globals,
            references,
            pointers,
            launches,
            buffers,
            checks,
            asserts,
            comparisons,
            runs: file
                .runs
                .into_iter()
                .map(|(name, run)| (name, other_run(run, &shown, &files)))
                .collect(),
            tables,
            expect_failure: file.expect_failure.map(|failure| ExpectFailure {
                exit: failure.exit,
                message: failure.message,
            }),
        })
    }

    /// The texts of the CSV files that comparisons read, by path.
    fn tables(&self) -> Result<BTreeMap<String, String>, ScenarioError> {
        let asserts = self.file.assert.iter().enumerate();
        let paths = asserts.flat_map(|(n, assert)| assert.tables().into_iter().map(move |path| (n, path)));
        let read = |(n, path): (usize, &str)| {
            let text = self.files.read_text(path);
            let text = text.map_err(|fault| ScenarioError::new(&self.shown, &format!("assert[{n}]"), fault))?;
            Ok((path.to_owned(), text))
        };
        paths.map(read).collect()
    }
}

/// Reads the program, and links it if it has several files.
fn read_program(paths: &[String], files: &Files) -> Result<(String, Option<Arc<Modules>>), Fault> {
    match paths {
        [] => Err(Fault::NoProgram),
        [path] => Ok((files.read_text(path)?, None)),
        _ => {
            let texts: Result<Vec<_>, _> = paths.iter().map(|path| files.read_text(path)).collect();
            let linked = Modules::link(paths.to_vec(), texts?);
            let modules = linked.map_err(|(count, findings)| Fault::Link { count, findings })?;
            Ok((modules.text().to_owned(), Some(Arc::new(modules))))
        }
    }
}

/// Keys and values as `--set` and `--const` take them.
fn pairs(set: &BTreeMap<String, format::Setting>) -> Vec<(String, String)> {
    set.iter().map(|(key, value)| (key.clone(), value.0.clone())).collect()
}

/// Resolves a table `[runs.NAME]`. Without `scenario` it is this scenario.
fn other_run(run: format::OtherRun, shown: &str, files: &Files) -> OtherRun {
    let resolve = |name: String| match name.ends_with(".toml") {
        true => files.resolve(&name),
        false => name,
    };
    let constant = |(name, value): (String, Quantity)| (name, value.to_string());
    OtherRun {
        scenario: run.scenario.map_or(shown.to_owned(), resolve),
        gpu: run.gpu.map(resolve),
        set: pairs(&run.set),
        constants: run.constants.into_iter().map(constant).collect(),
    }
}

fn only_buffers(resolved: &[Resolved]) -> Vec<Buffer> {
    resolved.iter().map(|resolved| resolved.buffer.clone()).collect()
}

fn checked_data(table: &str, n: usize) -> CheckedData {
    match table {
        "buffers" => CheckedData::Buffer(n),
        _ => CheckedData::Global(n),
    }
}

/// The elements of all buffers of a table that are addresses.
fn pointers_of<'a>(table: &'a str, list: &'a [Resolved]) -> impl Iterator<Item = Pointers> + 'a {
    let of_one = move |(n, resolved): (usize, &'a Resolved)| {
        let pointers = resolved.pointers.iter();
        pointers.map(move |(to, at)| Pointers {
            data: checked_data(table, n),
            at: at.clone(),
            to: to.clone(),
        })
    };
    list.iter().enumerate().flat_map(of_one)
}

/// Parses the text. A syntax error shows its line and the nearest valid word.
fn read_format(shown: &str, text: &str) -> Result<format::ScenarioFile, ScenarioError> {
    // Some editors write a byte-order mark before UTF-8 text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let error = |key: String, mut error: toml::de::Error| {
        error.set_input(Some(text));
        let (nearest, message) = (meant(error.message()), wording::plain(error.to_string().trim_end()));
        ScenarioError::new(shown, &key, Fault::Syntax { message, nearest })
    };
    let reader = toml::Deserializer::parse(text).map_err(|fault| match is_ptx(text) {
        true => ScenarioError::new(shown, "", Fault::IsPtx { path: shown.to_owned() }),
        false => error(String::new(), fault),
    })?;
    serde_path_to_error::deserialize(reader).map_err(|fault| {
        let key = fault.path().to_string();
        // The reader's name for the whole text is `.`.
        error(if key == "." { String::new() } else { key }, fault.into_inner())
    })
}

/// True if the first line that is not a comment is that of a PTX program.
fn is_ptx(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with("//"));
    first.is_some_and(|line| line.starts_with(".version"))
}

/// The expected word nearest to the wrong one, in a message such as "unknown field `a`, expected one of `b`, `c`".
fn meant(message: &str) -> Option<String> {
    // Every second part of the split lies between back quotes.
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

/// Checks each shape, and that all data together fit the GPU's memory. Returns the bytes of each buffer.
fn check_sizes(
    file: &format::ScenarioFile,
    context: &Context<'_>,
    gpu: Option<&GpuConfig>,
) -> Result<Vec<u64>, (String, Fault)> {
    if let Some(name) = file
        .globals
        .iter()
        .find_map(|(name, global)| global.fields.as_ref().map(|_| name))
    {
        return Err((format!("globals.{name}"), Fault::VariableFields));
    }
    let tables = [("buffers", &file.buffers), ("globals", &file.globals)];
    // Buffers before variables: the caller relies on this order.
    let all = tables.into_iter().flat_map(|(table, buffers)| {
        let named = buffers.iter();
        named.map(move |(name, buffer)| (format!("{table}.{name}.shape"), name, buffer))
    });
    let mut need = 0u64;
    let mut sizes = Vec::new();
    for (key, name, buffer) in all {
        let layout = context.layout(name, buffer).map_err(|fault| (key.clone(), fault))?;
        let bytes = data::checked_bytes(layout.dtype, &layout.shape).map_err(|fault| (key.clone(), fault))?;
        // A lower bound: the host adds alignment and the variables of the program, and checks each allocation.
        need = need.saturating_add(bytes);
        sizes.push(bytes);
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
    Ok(sizes)
}
