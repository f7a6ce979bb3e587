//! The input files of a scenario, its GPU, and the other runs that its assertions compare with.

use std::path::PathBuf;

use warpwave_components::preset;

use super::{Draft, Fault, OtherRun, ScenarioError, other_run};
use crate::scenario::files::Files;
use crate::scenario::format::Assert;

impl Draft {
    /// The scenario's files on disk: its own text, PTX files, arrays, and tables of assertions. Empty for a built-in scenario.
    pub fn files(&self) -> Vec<PathBuf> {
        match self.files {
            Files::BuiltIn(_) => Vec::new(),
            Files::Disk(_) => {
                let beside = self.file.paths().into_iter().map(|path| self.beside(path));
                [PathBuf::from(&self.shown)].into_iter().chain(beside).collect()
            }
        }
    }

    /// All input files on disk: the scenario's files, the tables of its sweep, the presets `gpus`, and the files of other runs.
    pub fn inputs<'a>(&self, gpus: impl IntoIterator<Item = &'a str>) -> Vec<PathBuf> {
        let mut found = self.files();
        if let Files::Disk(_) = self.files {
            let asserts = self.file.sweep.iter().flat_map(|sweep| &sweep.asserts);
            let tables = asserts.filter_map(|assert| assert.csv.as_deref());
            found.extend(tables.map(|path| self.beside(path)));
        }
        found.extend(gpus.into_iter().flat_map(preset_files));
        // A table [runs.NAME] is read before the run, also if no assertion names it.
        let tables = self.file.runs.keys().map(String::as_str);
        for run in self.other_runs(self.file.assert.iter().flat_map(Assert::other_runs).chain(tables)) {
            // A fault of another scenario is reported when it runs.
            found.extend(Draft::find(&run.scenario).iter().flat_map(Draft::files));
            found.extend(run.gpu.as_deref().map(preset_files).unwrap_or_default());
        }
        found
    }

    /// The fault in the text of the scenario that keeps `gpu` from loading. `None` if the fault lies elsewhere, or if there is none.
    pub fn gpu_fault(&self, gpu: &str) -> Option<ScenarioError> {
        let at = |key: &str, error| Some(ScenarioError::new(&self.shown, key, Fault::Gpu(error)));
        match preset::load(gpu, &[]) {
            Err(error) if self.gpu().as_deref() == Some(gpu) => return at("gpu", error),
            // The command names the GPU.
            Err(_) => return None,
            Ok(_) => {}
        }
        let error = preset::load(gpu, &self.settings()).err()?;
        at("gpu.set", error.of(gpu))
    }

    /// The runs that assertions with `points = true` compare with, each once.
    pub fn runs_of_points(&self) -> Vec<OtherRun> {
        let asserts = self.file.assert.iter().filter(|assert| assert.points);
        self.other_runs(asserts.flat_map(Assert::other_runs))
    }

    /// The runs of these names: tables `[runs.NAME]`, or scenarios.
    fn other_runs<'a>(&self, names: impl Iterator<Item = &'a str>) -> Vec<OtherRun> {
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        names.dedup();
        let run = |name: &str| match self.file.runs.get(name) {
            Some(run) => other_run(run.clone(), &self.shown, &self.files),
            None => OtherRun {
                scenario: name.to_owned(),
                ..OtherRun::default()
            },
        };
        names.into_iter().map(run).collect()
    }

    fn beside(&self, path: &str) -> PathBuf {
        self.files.resolve(path).into()
    }
}

/// The files of a preset and of its bases. Of a preset with a fault, only its own file.
fn preset_files(gpu: &str) -> Vec<PathBuf> {
    preset::files(gpu).unwrap_or_else(|_| vec![PathBuf::from(gpu)])
}
