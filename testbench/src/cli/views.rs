//! What is made of the things that SMs tell while they run: the files of `--hist`.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use warpwave::bench::{Bench, Run};
use warpwave::report::hist;
use warpwave::watch::requests::Requests;
use warpwave::watch::{Listener, Watch};
use warpwave_hw::time::Cycle;
use warpwave_isa::program::Program;

use super::args;
use super::failure::Failure;

/// Cycles of an interval of latencies over time.
const INTERVAL: u64 = 1000;

/// The views in the making. Without any, the machine is not watched.
pub struct Views {
    watch: Option<Watch>,
    programs: Vec<Arc<Program>>,
    requests: Option<Requests>,
}

impl Views {
    /// Begins to watch the machine, if a view is asked for.
    pub fn begin(args: &args::Run, bench: &mut Bench<'_>) -> Self {
        let requests = args.hist.as_ref().map(|_| Requests::new(INTERVAL));
        let programs = bench.grids().iter().map(|grid| grid.program.clone()).collect();
        let watched = requests.is_some();
        Views {
            watch: watched.then(|| Watch::begin(bench.gpu_mut())),
            programs,
            requests,
        }
    }

    /// Takes what happened before `now`.
    pub fn collect(&mut self, now: Cycle) {
        let Some(watch) = &mut self.watch else { return };
        let mut listeners: Vec<&mut dyn Listener> = Vec::new();
        listeners.extend(self.requests.as_mut().map(|requests| requests as &mut dyn Listener));
        watch.collect(now, &mut listeners);
    }

    /// Writes the files.
    pub fn write(mut self, args: &args::Run, run: &Run, now: Cycle) -> Result<(), Failure> {
        self.collect(now);
        if let (Some(folder), Some(requests)) = (&args.hist, &self.requests) {
            make(folder)?;
            let paths = hist::paths(run.totals.latencies(), requests);
            for (name, bytes) in hist::files(&paths, requests, &self.programs).map_err(Failure::input)? {
                write(&folder.join(name), &bytes)?;
            }
        }
        Ok(())
    }
}

/// Makes a folder.
pub fn make(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::write(folder, error))
}

/// Writes a file.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    fs::write(path, bytes).map_err(|error| Failure::write(path, error))
}
