//! Report files that need the events of SMs: `--json` with its lines, `--hist`, `--html`, `--kanata`, `--perfetto`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use warpwave::bench::{Bench, Run};
use warpwave::compare::Lines;
use warpwave::report::html::{self, Page};
use warpwave::report::{hist, json, kanata, perfetto};
use warpwave::scenario::Scenario;
use warpwave::watch::pipeline::{Picture, Pipeline};
use warpwave::watch::profile::Profile;
use warpwave::watch::requests::Requests;
use warpwave::watch::{EventCollector, Listener};
use warpwave_components::text_file;
use warpwave_hw::time::Cycle;
use warpwave_isa::program::Program;

use warpwave_waveforms::select::Selection;

use super::args;
use super::failure::Failure;
use super::write::{make, replace, write};

/// Interval of the latency log, in cycles.
const INTERVAL: u64 = 1000;

/// Maximum number of instructions, and of requests, in a pipeline diagram or timeline.
const MAX_DRAWN: usize = 1_000_000;

/// The collectors of the requested reports. Without a report, no events are collected.
pub struct ReportFiles {
    collector: Option<EventCollector>,
    programs: Vec<Arc<Program>>,
    requests: Option<Requests>,
    pipeline: Option<Pipeline>,
    profile: Option<Profile>,
}

impl ReportFiles {
    /// Subscribes to the machine's events, if an option needs them.
    pub fn begin(args: &args::Run, bench: &mut Bench<'_>) -> Result<Self, Failure> {
        // Copied: the bench is borrowed by the run while events are collected.
        let programs = bench.programs().to_vec();
        let first = Cycle(args.sample.as_ref().map_or(0, |sample| sample.start));
        let has_lines = args.html.is_some() || args.json.is_some() && !args.no_lines;
        let warm_ups = bench.warm_ups();
        let profile = has_lines.then(|| Profile::since(first).without(warm_ups.clone()));
        let counted = args.hist.is_some() || args.html.is_some();
        let requests = counted.then(|| Requests::new(INTERVAL).since(first).without(warm_ups));
        let drawn = args.kanata.is_some() || args.perfetto.is_some();
        let none: [&str; 0] = [];
        let window = Selection::new(&none, &args.recorded_cycles())
            .map_err(Failure::input)?
            .window();
        let pipeline = drawn.then(|| Pipeline::new(programs.clone(), window, MAX_DRAWN));
        let watched = profile.is_some() || requests.is_some() || pipeline.is_some();
        Ok(ReportFiles {
            collector: watched.then(|| EventCollector::begin(bench.gpu_mut())),
            programs,
            requests,
            pipeline,
            profile,
        })
    }

    /// Passes the events before cycle `now` to the collectors.
    pub fn collect(&mut self, now: Cycle) {
        let Some(collector) = &mut self.collector else { return };
        let mut listeners: Vec<&mut dyn Listener> = Vec::new();
        listeners.extend(self.requests.as_mut().map(|requests| requests as &mut dyn Listener));
        listeners.extend(self.pipeline.as_mut().map(|pipeline| pipeline as &mut dyn Listener));
        listeners.extend(self.profile.as_mut().map(|profile| profile as &mut dyn Listener));
        collector.collect(now, &mut listeners);
    }

    /// Writes the files.
    pub fn write(mut self, args: &args::Run, scenario: &Scenario, run: &Run) -> Result<(), Failure> {
        // The events of the last window: the run has ended, so no event follows.
        self.collect(Cycle::NEVER);
        self.profile.iter_mut().for_each(Profile::finish);
        if let Some(path) = &args.json {
            let lines = self.profile.as_ref().filter(|_| !args.no_lines);
            let lines = lines.map(|profile| Lines::new(scenario, &self.programs, profile));
            write(path, json::with_lines(&scenario.name, run, lines.as_ref()).as_bytes())?;
        }
        if let (Some(folder), Some(requests)) = (&args.hist, &self.requests) {
            make(folder)?;
            let paths = hist::paths(run.totals.latencies(), requests);
            for (name, bytes) in hist::files(&paths, requests, &self.programs).map_err(Failure::input)? {
                write(&folder.join(name), &bytes)?;
            }
        }
        if let (Some(path), Some(profile), Some(requests)) = (&args.html, &self.profile, &self.requests) {
            let page = Page {
                scenario,
                run,
                programs: &self.programs,
                profile,
                requests,
                source: &|file| source(&args.scenarios[0], file),
            };
            write(path, html::write(&page).as_bytes())?;
        }
        if let Some(pipeline) = self.pipeline {
            write_pictures(args, run, &pipeline.finish())?;
        }
        Ok(())
    }
}

/// The text of a source file that the PTX names.
fn source(scenario: &str, file: &str) -> Option<String> {
    let mut places = source_places(scenario, file).into_iter();
    places.find_map(|path| text_file::read(&path).ok())
}

/// Possible paths of a source file: the path in the PTX, then the same name beside the scenario.
fn source_places(scenario: &str, file: &str) -> Vec<PathBuf> {
    let beside = |name| Path::new(scenario).with_file_name(name);
    let beside = Path::new(file).file_name().map(beside);
    [PathBuf::from(file)].into_iter().chain(beside).collect()
}

/// The source files that `--html` reads. They are inputs of the run.
pub fn sources(args: &args::Run, bench: &Bench<'_>) -> Vec<PathBuf> {
    let programs = bench.programs().iter().filter(|_| args.html.is_some());
    let files = programs.flat_map(|program| program.sources().files());
    files
        .flat_map(|file| source_places(&args.scenarios[0], file))
        .filter(|path| path.is_file())
        .collect()
}

/// Writes the files of `--kanata` and `--perfetto`.
fn write_pictures(args: &args::Run, run: &Run, picture: &Picture) -> Result<(), Failure> {
    if picture.left_out > 0 {
        let _ = writeln!(
            io::stderr(),
            "note: only the first {MAX_DRAWN} instructions are drawn, {} are left out: select cycles with --trace-cycles",
            picture.left_out
        );
    }
    if let Some(path) = &args.kanata {
        // Written as a stream: a diagram of a million instructions is large.
        replace(path, |to| kanata::write(to, picture, &run.config))?;
    }
    if let Some(path) = &args.perfetto {
        replace(path, |to| perfetto::write(to, picture, &run.config))?;
    }
    Ok(())
}
