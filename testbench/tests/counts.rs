//! Counters of the machine, against counts of the reference for the same launches.

use warpwave::bench::{Activity, Bench, Options, Run, StopReason};
use warpwave::reference::{self, Memory};
use warpwave::report::counts::Counts;
use warpwave::scenario::builtin;
use warpwave_components::preset;

const OPTIONS: Options = Options {
    threads: 1,
    max_cycles: None,
};

/// Scenarios that poll an mbarrier. The machine suspends each test for some cycles, and the reference has no time. So their numbers of
/// tests differ.
const POLLS_AN_MBARRIER: &[&str] = &["tma_bulk_scale"];

#[test]
fn machine_issues_as_many_instructions_as_the_reference_executes() {
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
fn run_stopped_by_its_observer_keeps_its_counters() {
    let scenario = builtin::load("saxpy").unwrap();
    let bench = || Bench::new(&scenario, preset::load("tiny", &[]).unwrap().config).unwrap();
    let whole = bench().run(OPTIONS, &mut |_| true);
    let issued = |run: &Run| run.totals.sum("scheduler", "inst_issued").unwrap();
    let mut before = 0;
    for stop in [0, 1000, 2000, 3000] {
        let mut last = 0;
        let run = bench().run(OPTIONS, &mut |progress| {
            last = progress.now.0;
            last < stop
        });
        assert!(run.differences.is_empty());
        let [launch] = &run.launches[..] else {
            panic!("the launch under way: {:?}", run.launches)
        };
        assert_eq!(launch.entry, "saxpy");
        // The host's data are announced to the slices before the launch begins.
        assert!(
            launch.cycles <= last + 100 && launch.cycles + 200 > last,
            "{} of {last}",
            launch.cycles
        );
        assert_eq!(launch.counts.sum("scheduler", "inst_issued"), Some(issued(&run)));
        assert!(
            issued(&run) >= before && issued(&run) < issued(&whole),
            "{}",
            issued(&run)
        );
        before = issued(&run);
        assert_eq!(run.stopped_by(), Some(StopReason::Interrupted));
        let (launch, error) = run.stopped.expect("it was stopped");
        assert_eq!(launch, 0);
        assert!(error.to_string().starts_with("cancelled in cycle "), "{error}");
    }
    assert!(before > 0);
    assert_eq!(whole.stopped_by(), None);
}

#[test]
fn activity_counts_the_blocks_of_each_launch_and_changes_no_result() {
    let mut scenario = builtin::load("transpose_tiled").unwrap();
    scenario.launches.push(scenario.launches[0].clone());
    let bench = || Bench::new(&scenario, preset::load("tiny", &[]).unwrap().config).unwrap();
    let plain = bench().run(OPTIONS, &mut |_| true);
    for threads in [1, 2] {
        let options = Options { threads, ..OPTIONS };
        let (mut done, mut seen, mut earlier) = ([0; 2], Vec::new(), Activity::default());
        let run = bench().run(options, &mut |progress| {
            assert_eq!((progress.n_launches, progress.ctas), (2, 20));
            let activity = progress.activity();
            let last = std::mem::replace(&mut done[progress.launch], activity.ctas_done);
            assert!(last <= activity.ctas_done && activity.ctas_done <= 20);
            seen.extend(activity.top_stall(&earlier));
            earlier = activity;
            true
        });
        // The window in which the last block of a launch ends is observed too.
        assert_eq!(done, [20, 20], "{threads} threads");
        assert_eq!(run.cycles(), plain.cycles());
        // The two throttles are the most frequent stalls of this scenario.
        assert!(seen.contains(&"lg_throttle") && seen.contains(&"mio_throttle") && !seen.contains(&"selected"));
    }
}

#[test]
fn launch_stopped_after_another_has_only_its_own_counters() {
    let mut scenario = builtin::load("saxpy").unwrap();
    scenario.launches.push(scenario.launches[0].clone());
    let bench = || Bench::new(&scenario, preset::load("tiny", &[]).unwrap().config).unwrap();
    let whole = bench().run(OPTIONS, &mut |_| true);
    let limit = Some(whole.launches[0].cycles + 500);
    let run = bench().run(
        Options {
            threads: 1,
            max_cycles: limit,
        },
        &mut |_| true,
    );
    assert_eq!(run.stopped_by(), Some(StopReason::Limit));
    assert_eq!(run.launches[0].cycles, whole.launches[0].cycles);
    assert_eq!(run.launches[1].cycles, 500);
    let issued = |counts: &Counts| counts.sum("scheduler", "inst_issued").unwrap();
    let [first, second] = [0, 1].map(|n| issued(&run.launches[n].counts));
    assert_eq!(first, issued(&whole.launches[0].counts));
    assert!(second > 0 && second < first, "{second} of {first}");
    assert_eq!(issued(&run.totals), first + second);
}
