//! The pipeline diagram and the timeline of a run, read back by strict readers of both formats. The readers share no code with the
//! writers. A small kernel is counted by hand. For scenarios the pictures must add up to the counters.

mod chain;
mod kanata;
mod perfetto;

use std::ops::Range;
use std::path::Path;

use warpwave::bench::{Bench, Options, Run};
use warpwave::scenario::Scenario;
use warpwave::watch::pipeline::{Picture, Pipeline};
use warpwave_components::preset;
use warpwave_hw::time::Cycle;

/// Loads and stores, shared memory with barriers, atomics, branches that diverge.
const SCENARIOS: [&str; 4] = ["saxpy", "transpose_tiled", "histogram", "diverge_nested"];

/// All cycles.
const ALWAYS: Range<Cycle> = Cycle::ZERO..Cycle::NEVER;

/// Runs a scenario, by name or file, on the machine `tiny`.
fn picture(scenario: &str, window: Range<Cycle>) -> (Run, Picture) {
    let scenario = Scenario::find_all(scenario).unwrap().remove(0);
    let config = preset::load("tiny", &[]).unwrap().config;
    let mut bench = Bench::new(&scenario, config).unwrap();
    let mut pipeline = Pipeline::new(bench.programs().to_vec(), window, 1_000_000);
    let options = Options {
        threads: 1,
        max_cycles: None,
    };
    let run = bench.run_with_events(options, &mut [&mut pipeline], &mut |_| true);
    assert_eq!(run.stopped, None);
    (run, pipeline.finish())
}

/// Writes a scenario with this program to a folder. Returns its path.
fn scenario(folder: &Path, ptx: &str, toml: &str) -> String {
    std::fs::write(folder.join("kernel.ptx"), ptx).unwrap();
    let file = folder.join("kernel.toml");
    std::fs::write(&file, toml).unwrap();
    file.to_str().unwrap().to_owned()
}
