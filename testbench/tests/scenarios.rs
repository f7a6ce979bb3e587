//! The built-in scenarios: their arrays are what the references give.
//!
//! A scenario is a TOML file below `scenarios`, named by its stem; a folder holds what belongs together. Its `.npy` files come
//! from the references: with `WARPWAVE_WRITE_EXPECTED=1` in the environment, the first test writes what it otherwise compares.

mod references;

use std::fs;
use std::path::{Path, PathBuf};

use toml::Table;
use warpwave::scenario::dtype::Dtype;
use warpwave::scenario::{Scenario, npy};

#[test]
fn committed_arrays_are_what_the_references_give() {
    for path in scenario_files() {
        if std::env::var_os("WARPWAVE_WRITE_EXPECTED").is_some() {
            write_arrays(&path);
        }
        let scenario = load(&path);
        for (buffer, bytes) in references::inputs(&scenario.name) {
            let init = &scenario.buffers.iter().find(|other| other.name == buffer).unwrap().init;
            assert!(
                *init == bytes,
                "{}: `{buffer}` begins with another array",
                scenario.name
            );
        }
        let outputs = references::outputs(&scenario);
        for buffer in &scenario.buffers {
            let expected = buffer.expect.as_ref().map(|expect| &expect.bytes);
            let output = outputs
                .iter()
                .find(|(name, _)| *name == buffer.name)
                .map(|(_, bytes)| bytes);
            assert!(
                expected == output,
                "{}: `{}` expects another array",
                scenario.name,
                buffer.name
            );
        }
    }
}

fn load(path: &Path) -> Scenario {
    Scenario::load(path).unwrap_or_else(|error| panic!("{error}"))
}

/// Every scenario's file, sorted.
fn scenario_files() -> Vec<PathBuf> {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let entries = |folder: &Path| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let folders = entries(&scenarios).filter(|path| path.is_dir());
    let mut files: Vec<_> = folders
        .flat_map(|folder| entries(&folder).collect::<Vec<_>>())
        .collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    files.sort();
    files
}

/// Writes the arrays of a scenario: first zeros where one is missing, so that the scenario loads, then inputs, then outputs.
fn write_arrays(path: &Path) {
    let table: Table = fs::read_to_string(path).unwrap().parse().unwrap();
    let arrays = |key: &str| -> Vec<NpyFile> {
        let buffers = table["buffers"].as_table().unwrap().iter();
        buffers
            .filter_map(|(name, buffer)| NpyFile::of(path, name, buffer.as_table()?, key))
            .collect()
    };
    let (init, expect) = (arrays("init"), arrays("expect"));
    for file in init.iter().chain(&expect).filter(|file| !file.path.exists()) {
        let elements = file.shape.iter().product::<u64>() as usize;
        file.write(&vec![0; elements * file.dtype.bytes()]);
    }
    let write = |files: &[NpyFile], arrays: Vec<references::Array>| {
        for (name, bytes) in arrays {
            files.iter().find(|file| file.buffer == name).unwrap().write(&bytes);
        }
    };
    write(&init, references::inputs(&load(path).name));
    write(&expect, references::outputs(&load(path)));
}

/// An array beside a scenario.
struct NpyFile {
    buffer: String,
    path: PathBuf,
    dtype: Dtype,
    shape: Vec<u64>,
}

impl NpyFile {
    fn of(scenario: &Path, name: &str, buffer: &Table, key: &str) -> Option<Self> {
        let file = buffer.get(key)?.get("npy")?.as_str()?;
        let size = |n: &toml::Value| n.as_integer().unwrap() as u64;
        Some(NpyFile {
            buffer: name.to_owned(),
            path: scenario.with_file_name(file),
            dtype: Dtype::of_name(buffer["dtype"].as_str()?)?,
            shape: buffer["shape"].as_array()?.iter().map(size).collect(),
        })
    }

    fn write(&self, bytes: &[u8]) {
        npy::write(
            &mut fs::File::create(&self.path).unwrap(),
            self.dtype,
            &self.shape,
            bytes,
        )
        .unwrap();
    }
}
