//! The built-in scenarios. Plain Rust gives the expected arrays. The reference model and the machine must produce them, and must agree with
//! each other bit by bit.
//!
//! A scenario is a TOML file below `scenarios`, named by its stem. Its `.npy` files come from module `references`. With
//! `WARPWAVE_WRITE_EXPECTED=1` in the environment, the first test writes these files instead of comparing them.

mod golden;
mod references;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use golden::Taken;
use toml::Table;
use warpwave::bench::{Bench, BenchError, Options, Run};
use warpwave::host::{ClusterFault, HostError};
use warpwave::lockstep;
use warpwave::scenario::dtype::Dtype;
use warpwave::scenario::{Buffer, OtherRun, Scenario, builtin, npy};
use warpwave::verdict;
use warpwave_components::preset;

/// Limit of warp instructions, and of cycles. Every built-in scenario needs fewer.
const LIMIT: u64 = 1_000_000;

#[test]
fn committed_arrays_match_the_references() {
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

#[test]
fn every_scenario_gives_the_expected_results_on_the_reference() {
    each_scenario("tiny", |scenario, bench| {
        let memory =
            lockstep::reference(bench, LIMIT).map_err(|(launch, error)| format!("launch {launch}: {error}"))?;
        let differs = |(buffer, address)| {
            let buffer: &Buffer = buffer;
            let found = memory
                .get(address, buffer.layout.bytes() as usize)
                .expect("buffers are allocated");
            lockstep::compare(&buffer.name, buffer.layout.dtype, found, buffer.expect.as_ref()?)
        };
        let difference = bench.data().find_map(differs);
        difference.map_or(Ok(()), |difference| Err(format!("{}: {difference}", scenario.ptx_path)))
    });
}

/// Defines a test per preset. Results match the expectations, and the reference bit by bit. Every assertion holds. Cycles match the golden
/// table.
macro_rules! lockstep_on {
    ($($test:ident: $preset:literal,)*) => {$(
        #[test]
        fn $test() {
            let mut taken = BTreeMap::new();
            each_scenario($preset, |scenario, bench| {
                let run = run_in_lockstep(scenario, bench)?;
                taken.insert(scenario.name.clone(), taken_by(&run));
                Ok(())
            });
            let moved = golden::differences($preset, &taken);
            assert!(moved.is_empty(), "{}", moved.join("\n"));
        }
    )*};
}

lockstep_on! {
    every_scenario_on_tiny_gives_what_the_reference_gives: "tiny",
    every_scenario_on_v100_sxm2_gives_what_the_reference_gives: "v100-sxm2",
    every_scenario_on_a100_sxm4_80_gives_what_the_reference_gives: "a100-sxm4-80",
    every_scenario_on_h100_sxm5_gives_what_the_reference_gives: "h100-sxm5",
}

/// Calls `check` for every built-in scenario, placed in a machine. Fails with all findings.
fn each_scenario(gpu: &str, mut check: impl FnMut(&Scenario, &mut Bench<'_>) -> Result<(), String>) {
    let config = preset::load(gpu, &[]).unwrap_or_else(|error| panic!("{error}")).config;
    let mut check = |name: &str| {
        let scenario = builtin::load(name).map_err(|error| error.to_string())?;
        match Bench::new(&scenario, config.clone()) {
            Err(error) if is_for_clusters(&error) && config.cluster.max_ctas == 0 => Ok(()),
            Err(error) => Err(error.to_string()),
            Ok(mut bench) => check(&scenario, &mut bench),
        }
    };
    let fault = |name: &str| Some(format!("{name} on {gpu}: {}", check(name).err()?));
    let faults: Vec<_> = builtin::names().into_iter().filter_map(fault).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// True if a scenario cannot run because the GPU has no clusters.
fn is_for_clusters(error: &BenchError) -> bool {
    matches!(
        error,
        BenchError::Launch {
            error: HostError::Cluster {
                fault: ClusterFault::None { .. },
                ..
            },
            ..
        }
    )
}

fn run_in_lockstep(scenario: &Scenario, bench: &mut Bench<'_>) -> Result<Run, String> {
    let memory = lockstep::reference(bench, LIMIT).map_err(|(launch, error)| format!("launch {launch}: {error}"))?;
    let options = Options {
        threads: 1,
        max_cycles: Some(LIMIT),
    };
    let run = bench.run(options, &mut |_| true);
    if let Some((launch, error)) = &run.stopped {
        return Err(format!("launch {launch}: {error}"));
    }
    if let Some(difference) = run.differences.first() {
        return Err(format!("not as expected: {difference}"));
    }
    for (buffer, address) in bench.data() {
        let found = lockstep::bytes_of(buffer, address, bench.gpu().storage());
        if memory.get(address, found.len()) != Some(&found) {
            return Err(format!("`{}` is not bit for bit that of the reference", buffer.name));
        }
    }
    unmet(scenario, &run).map_or(Ok(run), Err)
}

fn taken_by(run: &Run) -> Taken {
    Taken {
        cycles: run.cycles(),
        instructions: run.totals.sum("scheduler", "inst_issued").expect("schedulers count"),
    }
}

/// The first assertion that does not hold.
fn unmet(scenario: &Scenario, run: &Run) -> Option<String> {
    let options = Options {
        threads: 1,
        max_cycles: Some(LIMIT),
    };
    let mut other = |other: &OtherRun| {
        let run = verdict::run_other(other, &run.config.name, &[], options, &|| false);
        run.map_err(|error| error.to_string())
    };
    let checked = verdict::check(scenario, run, &mut other);
    let unmet = checked.into_iter().find(|assert| !assert.holds);
    unmet.map(|assert| assert.values)
}

fn load(path: &Path) -> Scenario {
    Scenario::load(path).unwrap_or_else(|error| panic!("{error}"))
}

/// Every listed scenario's file, sorted.
fn scenario_files() -> Vec<PathBuf> {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let entries = |folder: &Path| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let unlisted = [builtin::SUITE].into_iter().chain(builtin::LESSONS);
    let is_listed = |path: &PathBuf| path.is_dir() && !unlisted.clone().any(|folder| path.ends_with(folder));
    let folders = entries(&scenarios).filter(is_listed);
    let mut files: Vec<_> = folders
        .flat_map(|folder| entries(&folder).collect::<Vec<_>>())
        .collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    files.sort();
    files
}

/// Writes the arrays of a scenario: zeros for missing files, so that the scenario loads, then inputs, then outputs.
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
