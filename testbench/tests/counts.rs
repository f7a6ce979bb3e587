//! What the machine counts, against the reference's own count of the same launches.

use warpwave::bench::{Bench, Options};
use warpwave::reference::{self, Memory};
use warpwave::scenario::builtin;
use warpwave_components::preset;

const OPTIONS: Options = Options {
    threads: 1,
    max_cycles: None,
};

/// A warp that polls an mbarrier asks as often as time has it: the machine holds each question for a while, the reference
/// has no time to hold it for. How often they ask is not a property of the program.
const POLLS_AN_MBARRIER: &[&str] = &["tma_bulk_scale"];

#[test]
fn every_scenario_issues_as_many_instructions_as_the_reference_executes() {
    let tiny = preset::load("tiny", &[]).unwrap().config;
    for name in builtin::names()
        .into_iter()
        .filter(|name| !POLLS_AN_MBARRIER.contains(name))
    {
        let scenario = builtin::load(name).unwrap();
        let mut bench = Bench::new(&scenario, tiny.clone()).unwrap();
        let mut memory = Memory::of(bench.gpu().storage());
        let executed: Vec<u64> = bench
            .grids()
            .iter()
            .map(|grid| reference::run(grid, &mut memory, u64::MAX).unwrap())
            .collect();
        let run = bench.run(OPTIONS, &mut |_| true);
        let issued: Vec<u64> = run
            .launches
            .iter()
            .map(|launch| launch.counts.sum("scheduler", "inst_issued").unwrap())
            .collect();
        assert_eq!(issued, executed, "{name}, launch by launch");
    }
}

#[test]
fn run_stopped_by_its_observer_keeps_what_was_known() {
    let scenario = builtin::load("saxpy").unwrap();
    let mut bench = Bench::new(&scenario, preset::load("tiny", &[]).unwrap().config).unwrap();
    let run = bench.run(OPTIONS, &mut |progress| progress.now.0 < 1000);
    assert!(run.launches.is_empty() && run.differences.is_empty());
    let (launch, error) = run.stopped.expect("it was stopped");
    assert_eq!(launch, 0);
    assert!(error.to_string().starts_with("cancelled in cycle 1"), "{error}");
}
