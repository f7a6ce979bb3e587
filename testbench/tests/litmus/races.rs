//! The race detector on the litmus files, against the data races of the model.
//!
//! The reference performs accesses in one order, so the detector sees one execution per launch. The order of the CTAs varies.

use warpwave::lockstep::check_memory;
use warpwave::reference::Checks;
use warpwave_components::preset;

use super::axioms::has_race;
use super::machine::{DELAYS, LAYOUTS, Trial, scenario};
use super::program::Program;
use super::suite::files;

/// Limit of warp instructions of a launch.
const LIMIT: u64 = 1 << 24;

/// Programs with a data race that the detector does not find.
const NOT_FOUND: &[&str] = &[];

/// True if the detector finds a race in one of some launches.
fn finds_race(program: &Program) -> bool {
    let config = preset::load("h100-sxm5", &[]).unwrap().config;
    let checks = Checks {
        races: true,
        ..Checks::default()
    };
    (0..6).any(|seed| {
        let trial = Trial {
            layout: LAYOUTS[seed as usize % LAYOUTS.len()],
            delays: DELAYS[seed as usize % DELAYS.len()],
            seed,
            warps: 8,
            rounds: 2,
        };
        let checked = check_memory(&scenario(program, trial, false), &config, checks, LIMIT);
        let checked = checked.unwrap_or_else(|error| panic!("{}: {error}", program.name));
        checked.iter().any(|launch| !launch.findings.races.is_empty())
    })
}

#[test]
fn detector_finds_a_race_only_where_the_model_has_one() {
    let mut wrong = Vec::new();
    let mut not_found = Vec::new();
    let mut races = 0;
    for program in files() {
        let (expected, found) = (has_race(&program), finds_race(&program));
        races += usize::from(expected);
        match (expected, found) {
            (false, true) => wrong.push(program.name),
            (true, false) => not_found.push(program.name),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "the model has no race in these programs: {wrong:?}");
    assert_eq!(not_found, NOT_FOUND, "races of {races} programs");
}
