//! A job describes one point completely, and its key is the hash of everything that decides its result.
//!
//! ```text
//! build | scenario, essential keys | PTX | arrays | GPU, every number | settings | limits ── blake3 ──> Key
//! ```
//!
//! The essential keys of a scenario leave out its descriptions, its GPU, its sweep, and assertions without `points = true`.
//! If assertions for each point compare with other runs, the key has their scenarios, files and GPUs too.
//!
//! Constants and settings go into the key by their values, so another spelling of a value is the same point. So is a setting with the
//! scenario's own value: it leaves the launches as they are.
//!
//! A built-in scenario is part of the build, so its name stands for its files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use warpwave_components::config::GpuConfig;
use warpwave_components::preset::{self, PresetError};

use super::Point;
use super::setting::{self, SettingError};
use crate::scenario::{Draft, OtherRun, Scenario, ScenarioError};

/// Version and hash of the sources: results of another build do not count.
pub(super) const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("WARPWAVE_SOURCES"));

/// Keys of a scenario file that do not change a point's result.
// `gpu` is here because the hash has every number of the GPU. `essential` puts assertions with `points = true` back.
const WITHOUT: [&str; 9] = [
    "title",
    "claim",
    "text",
    "look",
    "gpu",
    "assert",
    "runs",
    "expect_failure",
    "sweep",
];

/// The description of one point.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// A built-in scenario, or the absolute path of a scenario file.
    pub scenario: String,
    /// A preset, or the absolute path of its file.
    pub gpu: String,
    /// Changed preset keys.
    pub sets: Vec<(String, String)>,
    /// Changed launch sizes, arguments and constants.
    pub settings: Vec<(String, String)>,
    /// True to run programs that are newer than the GPU.
    pub ignore_target: bool,
    /// Limit of core cycles.
    pub max_cycles: Option<u64>,
}

/// A job with its inputs loaded.
#[derive(Debug)]
pub struct Prepared {
    /// The scenario with the settings of the point.
    pub scenario: Scenario,
    /// The GPU.
    pub config: GpuConfig,
}

/// Why a job cannot run.
#[derive(Debug, Error)]
pub enum JobError {
    /// The scenario has a fault.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The GPU has a fault.
    #[error(transparent)]
    Preset(#[from] PresetError),
    /// A setting does not apply.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// An input file cannot be read.
    #[error("cannot read {}: {reason}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Reason given by the system.
        reason: std::io::Error,
    },
}

/// The identity of a point: 32 hexadecimal digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key(String);

impl Key {
    /// Reads a key.
    ///
    /// ```
    /// use warpwave::sweep::Key;
    /// assert!(Key::parse("0123456789abcdef0123456789abcdef").is_some());
    /// assert!(Key::parse("../0123456789abcdef0123456789ab").is_none());
    /// ```
    pub fn parse(text: &str) -> Option<Key> {
        let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        (text.len() == 32 && text.chars().all(is_hex)).then(|| Key(text.to_owned()))
    }

    /// The key of the parts that decide a result. The build is added as one more part.
    pub(crate) fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Key {
        let mut hasher = blake3::Hasher::new();
        part(&mut hasher, BUILD.as_bytes());
        parts.into_iter().for_each(|bytes| part(&mut hasher, bytes));
        // 128 bits: two of a million points do not share a key.
        Key(hasher.finalize().to_hex()[..32].to_owned())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Job {
    /// The job of a point: this job with the settings of the point. `preset_keys` has the keys of the GPU.
    pub fn at(&self, point: &Point, preset_keys: &BTreeSet<String>) -> Job {
        let mut job = self.clone();
        for (name, value) in point {
            match name.as_str() {
                "gpu" => job.gpu = absolute_gpu(value),
                key if preset_keys.contains(key) => job.sets.push((name.clone(), value.clone())),
                _ => job.settings.push((name.clone(), value.clone())),
            }
        }
        job
    }

    /// Loads scenario and GPU, and applies the settings.
    ///
    /// # Errors
    /// If a file has a fault, or a setting does not apply.
    pub fn prepare(&self) -> Result<Prepared, JobError> {
        // The GPU first: the data of the scenario must fit its memory.
        let config = preset::load(&self.gpu, &self.sets)?.config;
        let scenario = build(Draft::find(&self.scenario)?, &config, &self.settings)?;
        Ok(Prepared { scenario, config })
    }
}

/// Builds a scenario with its settings. Constants come first, because the data depend on them.
fn build(draft: Draft, config: &GpuConfig, settings: &[(String, String)]) -> Result<Scenario, JobError> {
    let (constants, settings) = split_constants(&draft, settings);
    let mut scenario = draft.with_constants(&constants)?.build(Some(config))?;
    for (name, value) in &settings {
        setting::apply(&mut scenario, name, value)?;
    }
    Ok(scenario)
}

/// Name and value of a changed constant, launch size or argument.
pub type Setting = (String, String);

/// Splits settings into constants of the scenario, and launch sizes or arguments.
pub fn split_constants(draft: &Draft, settings: &[Setting]) -> (Vec<Setting>, Vec<Setting>) {
    let constants = draft.constants();
    let is_constant = |name: &str| constants.iter().any(|(constant, _)| constant == name);
    settings.iter().cloned().partition(|(name, _)| is_constant(name))
}

/// The absolute path of a TOML file, since a job may run in another folder. A name stays as it is.
pub fn absolute(name_or_path: &str) -> String {
    let path = Path::new(name_or_path);
    let is_path = path.extension().is_some_and(|end| end == "toml") || path.is_file();
    let full = std::path::absolute(path).ok().filter(|_| is_path);
    full.map_or_else(|| name_or_path.to_owned(), |full| full.display().to_string())
}

/// The parts of a scenario that go into a key.
#[derive(Clone)]
struct Known {
    /// Hash of its files.
    hash: blake3::Hash,
    /// The preset keys that it changes.
    set: Vec<(String, String)>,
    /// The runs that assertions for each point compare with.
    runs: Vec<OtherRun>,
    /// For the values of its constants.
    draft: Arc<Draft>,
}

/// The name of a built-in preset as it is, or the absolute path of a preset's file.
pub fn absolute_gpu(name_or_path: &str) -> String {
    // As in `preset::load`, a built-in preset wins over a file of its name.
    match preset::names().contains(&name_or_path) {
        true => name_or_path.to_owned(),
        false => absolute(name_or_path),
    }
}

/// Computes keys. The files of a scenario and the numbers of a GPU are read once.
#[derive(Default)]
pub struct Keys {
    scenarios: BTreeMap<String, Known>,
    gpus: BTreeMap<(String, Vec<(String, String)>), String>,
    /// The last scenario that settings were applied to. Its data may be large, so there is one.
    built: Option<Built>,
}

/// A scenario with its constants, to apply settings to.
struct Built {
    name: String,
    constants: Vec<Setting>,
    scenario: Scenario,
}

impl Built {
    /// `None` if the scenario has a fault with these constants.
    fn new(name: &str, constants: &[Setting]) -> Option<Built> {
        let draft = Draft::find(name).ok()?.with_constants(constants).ok()?;
        Some(Built {
            name: name.to_owned(),
            constants: constants.to_vec(),
            scenario: draft.build(None).ok()?,
        })
    }

    /// The launches with the settings, as one setting. Empty if they are those of the scenario, and `None` if a setting does not apply.
    fn launches(&mut self, settings: &[Setting]) -> Option<Vec<Setting>> {
        let own = (self.scenario.launches.clone(), self.scenario.max_registers);
        let applied = settings
            .iter()
            .try_for_each(|(name, value)| setting::apply(&mut self.scenario, name, value));
        let launches = std::mem::replace(&mut self.scenario.launches, own.0.clone());
        let changed = (launches, std::mem::replace(&mut self.scenario.max_registers, own.1));
        applied.ok()?;
        let resolved = ("launches".to_owned(), format!("{changed:?}"));
        Some(if changed == own { Vec::new() } else { vec![resolved] })
    }
}

impl Keys {
    /// The key of a job.
    ///
    /// # Errors
    /// If an input file cannot be read, or the GPU has a fault.
    pub fn of(&mut self, job: &Job) -> Result<Key, JobError> {
        let scenario = self.scenario(&job.scenario)?;
        let mut inputs = vec![scenario.hash.as_bytes().to_vec()];
        inputs.push(self.gpu(&job.gpu, job.sets.clone())?.into());
        for run in &scenario.runs {
            let other = self.scenario(&run.scenario)?;
            // The later value of a key wins, as in the run itself.
            let sets = [&other.set[..], &job.sets, &run.set].concat();
            let gpu = run.gpu.as_ref().unwrap_or(&job.gpu);
            inputs.extend([other.hash.as_bytes().to_vec(), self.gpu(gpu, sets)?.into()]);
        }
        // The same value may be written in several ways, such as `1e3` and `1000`.
        let (constants, settings) = split_constants(&scenario.draft, &job.settings);
        let constants = scenario.draft.constant_values(&constants).unwrap_or(constants);
        let settings = self.resolved(&job.scenario, &constants, settings);
        let settings: Vec<_> = constants.into_iter().chain(settings).collect();
        let settings = settings.iter().flat_map(|(name, value)| [name, value]);
        let limits = format!("{} {:?}", job.ignore_target, job.max_cycles);
        let parts = inputs.iter().map(Vec::as_slice);
        let parts = parts.chain(settings.map(|text| text.as_bytes()));
        Ok(Key::of(parts.chain([limits.as_bytes()])))
    }

    /// The launches that the settings lead to, as one setting. Empty if they are those of the scenario. The settings themselves if the
    /// scenario or one of them has a fault: the point reports it.
    fn resolved(&mut self, name: &str, constants: &[Setting], settings: Vec<Setting>) -> Vec<Setting> {
        if settings.is_empty() {
            return settings;
        }
        let is_built = |built: &Built| built.name == name && built.constants == constants;
        if !self.built.as_ref().is_some_and(is_built) {
            self.built = Built::new(name, constants);
        }
        let launches = self.built.as_mut().and_then(|built| built.launches(&settings));
        launches.unwrap_or_else(|| {
            let value = |(name, value): Setting| (name.clone(), setting::canonical(&name, &value));
            settings.into_iter().map(value).collect()
        })
    }

    fn scenario(&mut self, name: &str) -> Result<Known, JobError> {
        if let Some(known) = self.scenarios.get(name) {
            return Ok(known.clone());
        }
        let draft = Draft::find(name)?;
        let files = draft.files();
        let mut hasher = blake3::Hasher::new();
        // A built-in scenario. `BUILD` covers its text.
        if files.is_empty() {
            part(&mut hasher, name.as_bytes());
        }
        for (n, path) in files.iter().enumerate() {
            let bytes = fs::read(path).map_err(|reason| JobError::Unreadable {
                path: path.clone(),
                reason,
            })?;
            // The first file is the scenario.
            match n {
                0 => part(&mut hasher, &essential(&bytes)),
                _ => part(&mut hasher, &bytes),
            }
        }
        let known = Known {
            hash: hasher.finalize(),
            set: draft.settings(),
            runs: draft.runs_of_points(),
            draft: Arc::new(draft),
        };
        self.scenarios.insert(name.to_owned(), known.clone());
        Ok(known)
    }

    /// The numbers of a GPU.
    fn gpu(&mut self, gpu: &str, sets: Vec<(String, String)>) -> Result<&str, JobError> {
        let id = (gpu.to_owned(), sets);
        if !self.gpus.contains_key(&id) {
            let config = preset::load(&id.0, &id.1)?.config;
            self.gpus.insert(id.clone(), numbers(&config));
        }
        Ok(&self.gpus[&id])
    }
}

/// Every number of a GPU as text, with its name.
pub(crate) fn numbers(config: &GpuConfig) -> String {
    serde_json::to_string(config).expect("a configuration is made of numbers and names")
}

/// Adds one part with its length, so that parts cannot run together.
fn part(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    hasher.update(&(bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

/// A scenario's text without comments, and without the keys of [`WITHOUT`]. Assertions for each point, and their runs, stay.
fn essential(text: &[u8]) -> Vec<u8> {
    let table = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse::<toml::Table>().ok());
    let Some(mut table) = table else {
        return text.to_vec();
    };
    let asserts = table.get("assert").and_then(toml::Value::as_array);
    let is_for_points = |assert: &&toml::Value| assert.get("points").and_then(toml::Value::as_bool) == Some(true);
    let asserts: Vec<_> = asserts.into_iter().flatten().filter(is_for_points).cloned().collect();
    // Other runs count only if an assertion of a point may compare with them.
    let runs = table.get("runs").filter(|_| !asserts.is_empty()).cloned();
    WITHOUT.iter().for_each(|key| drop(table.remove(*key)));
    if !asserts.is_empty() {
        table.insert("assert".to_owned(), asserts.into());
        table.extend(runs.map(|runs| ("runs".to_owned(), runs)));
    }
    // Written from the parsed table, so comments and layout do not count.
    table.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saxpy() -> Job {
        Job {
            scenario: "saxpy".to_owned(),
            gpu: "tiny".to_owned(),
            sets: Vec::new(),
            settings: Vec::new(),
            ignore_target: false,
            max_cycles: None,
        }
    }

    fn key(job: &Job) -> Key {
        Keys::default().of(job).unwrap()
    }

    #[test]
    fn each_part_of_a_job_changes_its_key() {
        let pair = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        let others = [
            Job {
                gpu: "v100-sxm2".to_owned(),
                ..saxpy()
            },
            Job {
                scenario: "vector_add".to_owned(),
                ..saxpy()
            },
            Job {
                sets: pair("sm.lsu.queue_depth", "3"),
                ..saxpy()
            },
            Job {
                settings: pair("block", "64"),
                ..saxpy()
            },
            Job {
                settings: pair("block6", "4"),
                ..saxpy()
            },
            Job {
                max_cycles: Some(1),
                ..saxpy()
            },
            Job {
                ignore_target: true,
                ..saxpy()
            },
        ];
        let mut keys: Vec<_> = others.iter().map(key).chain([key(&saxpy())]).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 8);
        assert_eq!(key(&saxpy()), key(&saxpy()));
    }

    #[test]
    fn preset_key_set_to_its_own_value_is_the_same_point() {
        let depth = preset::load("tiny", &[]).unwrap().config.sm.lsu.queue_depth;
        let sets = vec![("sm.lsu.queue_depth".to_owned(), depth.to_string())];
        assert_eq!(key(&Job { sets, ..saxpy() }), key(&saxpy()));
    }

    #[test]
    fn setting_with_the_value_of_the_scenario_is_the_same_point() {
        let with = |settings: &[(&str, &str)]| {
            let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            let settings = settings.iter().map(pair).collect();
            key(&Job { settings, ..saxpy() })
        };
        // 40 blocks of 256 threads.
        let own = key(&saxpy());
        assert_eq!(with(&[("launch[0].block", "256"), ("grid", "40x1")]), own);
        assert_eq!(with(&[("args[0]", "10000"), ("saxpy_param_0", "10_000")]), own);
        // The last value of a size counts.
        assert_eq!(with(&[("grid", "9"), ("launch[0].grid", "40")]), own);
        assert_ne!(with(&[("grid", "40"), ("launch[0].grid", "9")]), own);
        assert_eq!(with(&[("args[0]", "77")]), with(&[("saxpy_param_0", "77")]));
        assert_ne!(with(&[("max_registers", "32")]), own);
        // A fault keeps its own point.
        assert_ne!(with(&[("grid", "none")]), own);
    }

    #[test]
    fn words_of_a_scenario_do_not_matter_but_its_data_do() {
        let with = |text: &str| essential(text.as_bytes());
        let plain = with("ptx = \"a.ptx\"\nlaunch = [{ grid = 1, block = 32 }]\n");
        let words = with(
            "# Why.\ntitle = \"t\"\nptx = \"a.ptx\"\nlaunch = [{grid=1, block=32}]\n[sweep]\nover = [\"grid=1\"]\n",
        );
        assert_eq!(plain, words);
        assert_ne!(plain, with("ptx = \"a.ptx\"\nlaunch = [{ grid = 2, block = 32 }]\n"));
        let asserted = |points| {
            let assert = format!("metric = \"m\"\nmax = 1\npoints = {points}");
            with(&format!(
                "ptx = \"a.ptx\"\nlaunch = [{{ grid = 1, block = 32 }}]\n[[assert]]\n{assert}\n"
            ))
        };
        assert_eq!(plain, asserted(false));
        assert_ne!(plain, asserted(true));
    }

    #[test]
    fn settings_of_a_point_go_to_the_gpu_the_preset_or_the_scenario() {
        let keys = BTreeSet::from(["sm.scheduler".to_owned()]);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let point = vec![pair("gpu", "h200"), pair("sm.scheduler", "gto"), pair("block", "64")];
        let job = saxpy().at(&point, &keys);
        assert_eq!(job.gpu, "h200");
        assert_eq!(job.sets, [pair("sm.scheduler", "gto")]);
        assert_eq!(job.settings, [pair("block", "64")]);
    }
}
