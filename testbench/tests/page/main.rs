//! The HTML page of a run: its numbers, its markup, and its look in a browser.

mod look;
mod markup;

use std::path::Path;

use warpwave::bench::{Bench, Options, Run};
use warpwave::report::html::{self, Page};
use warpwave::scenario::Scenario;
use warpwave::watch::profile::Profile;
use warpwave::watch::requests::Requests;
use warpwave_components::preset;

/// Runs a scenario on the GPU `tiny` and makes its page. Source files are read from the scenario's folder.
fn page(scenario: &str) -> (Run, Profile, String) {
    page_of(scenario, |_, _| {})
}

/// Makes a page as [`page`] does, after `change` has changed the scenario and the run.
fn page_of(scenario: &str, change: impl FnOnce(&mut Scenario, &mut Run)) -> (Run, Profile, String) {
    let folder = Path::new(scenario).parent().map(Path::to_owned);
    let mut scenario = Scenario::find_all(scenario).unwrap().remove(0);
    let config = preset::load("tiny", &[]).unwrap().config;
    let mut bench = Bench::new(&scenario, config).unwrap();
    let (mut profile, mut requests) = (Profile::default(), Requests::new(1000));
    let options = Options {
        threads: 1,
        max_cycles: None,
    };
    let mut run = bench.run_with_events(options, &mut [&mut profile, &mut requests], &mut |_| true);
    let programs = bench.programs().to_vec();
    drop(bench);
    change(&mut scenario, &mut run);
    let text = html::write(&Page {
        scenario: &scenario,
        run: &run,
        programs: &programs,
        profile: &profile,
        requests: &requests,
        source: &|file| std::fs::read_to_string(folder.as_ref()?.join(file)).ok(),
    });
    (run, profile, text)
}

/// Writes files into a folder. Returns the path of the last one.
fn files(folder: &Path, files: &[(&str, &str)]) -> String {
    let mut last = None;
    for (name, text) in files {
        let file = folder.join(name);
        std::fs::write(&file, text).unwrap();
        last = Some(file);
    }
    last.unwrap().to_str().unwrap().to_owned()
}
