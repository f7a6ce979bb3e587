//! Events of SMs, against their counters: two accounts of one run, from different code, must agree.

use std::collections::BTreeMap;

use warpwave::bench::{Bench, Options, Run};
use warpwave::scenario::Scenario;
use warpwave::watch::requests::Requests;
use warpwave::watch::{EventCollector, Listener};
use warpwave_components::preset;
use warpwave_components::proto::event::{Event, EventKind, Request};
use warpwave_components::sm::subcore::stall;
use warpwave_hw::time::Cycle;

/// Loads and stores, shared memory with barriers, atomics, branches that diverge.
const SCENARIOS: [&str; 4] = ["saxpy", "transpose_tiled", "histogram", "diverge_nested"];

/// A way to run the machine. The events do not depend on it.
#[derive(Clone, Copy)]
struct How {
    threads: usize,
    quantum: Option<u64>,
    skip: bool,
}

const PLAIN: How = How {
    threads: 1,
    quantum: None,
    skip: true,
};

fn run(name: &str, how: How, listener: &mut dyn Listener) -> Run {
    let scenario = Scenario::find_all(name).unwrap().remove(0);
    run_scenario(&scenario, how, listener)
}

fn run_scenario(scenario: &Scenario, how: How, listener: &mut dyn Listener) -> Run {
    let config = preset::load("tiny", &[]).unwrap().config;
    let mut bench = Bench::new(scenario, config).unwrap();
    let clock = bench.gpu_mut().clock_mut();
    how.quantum.into_iter().for_each(|quantum| clock.set_quantum(quantum));
    clock
        .tiles_mut()
        .iter_mut()
        .for_each(|tile| tile.set_skipping(how.skip));
    let options = Options {
        threads: how.threads,
        max_cycles: None,
    };
    let run = bench.run_with_events(options, &mut [listener], &mut |_| true);
    assert_eq!(run.stopped, None);
    run
}

/// Counts events and requests.
#[derive(Default)]
struct Count(u64);

impl Listener for Count {
    fn event(&mut self, _sm: u16, _event: &Event) {
        self.0 += 1;
    }

    fn request(&mut self, _sm: u16, _request: &Request) {
        self.0 += 1;
    }
}

#[test]
fn no_event_is_later_than_the_end_of_a_run_or_of_a_stopped_one() {
    let scenario = Scenario::find_all("transpose_tiled").unwrap().remove(0);
    for max_cycles in [None, Some(3000)] {
        let config = preset::load("tiny", &[]).unwrap().config;
        let mut bench = Bench::new(&scenario, config).unwrap();
        let mut collector = EventCollector::begin(bench.gpu_mut());
        let options = Options { threads: 1, max_cycles };
        let run = bench.run(options, &mut |_| true);
        assert_eq!(run.stopped.is_some(), max_cycles.is_some());
        let (mut before, mut later) = (Count::default(), Count::default());
        collector.collect(bench.gpu().clock().now(), &mut [&mut before]);
        collector.collect(Cycle::NEVER, &mut [&mut later]);
        assert!(before.0 > 0 && later.0 == 0, "{} events, then {}", before.0, later.0);
    }
}

/// Sums waits by state and issues. Asserts that each warp's account has no gap.
#[derive(Default)]
struct Account {
    waits: BTreeMap<u8, u64>,
    issues: u64,
    reached: BTreeMap<(u16, u8, u8), Cycle>,
    everything: Vec<(u16, Event)>,
}

impl Listener for Account {
    fn event(&mut self, sm: u16, event: &Event) {
        self.everything.push((sm, *event));
        let slot = (sm, event.subcore, event.warp);
        let reached = self.reached.entry(slot).or_default();
        match event.kind {
            EventKind::Start { .. } => *reached = event.at,
            EventKind::Wait { state, cycles } => {
                assert_eq!(event.at.since(*reached), cycles, "{slot:?} {event:?}");
                *reached = event.at;
                *self.waits.entry(state).or_default() += cycles;
            }
            EventKind::Issue { .. } => {
                assert_eq!(event.at, *reached, "{slot:?} {event:?}");
                *reached = event.at + 1;
                self.issues += 1;
            }
            EventKind::End => assert_eq!(event.at, *reached, "{slot:?}"),
            _ => {}
        }
    }
}

#[test]
fn events_of_waits_and_issues_add_up_to_the_counters() {
    for name in SCENARIOS {
        let mut account = Account::default();
        let run = run(name, PLAIN, &mut account);
        assert_eq!(
            run.totals.sum("scheduler", "inst_issued"),
            Some(account.issues),
            "{name}"
        );
        for (state, told) in &account.waits {
            let state = stall::NAMES[*state as usize];
            let counter = warpwave::report::stalls::STATES.iter().find(|(name, _)| *name == state);
            let counted = run.totals.sum("scheduler", counter.unwrap().1);
            assert_eq!(counted, Some(*told), "{name}: {state}");
        }
        let told: u64 = account.waits.values().sum();
        assert_eq!(
            run.totals.sum("scheduler", "warp_cycles"),
            Some(told + account.issues),
            "{name}"
        );
    }
}

/// Loads of one line of zeros. Each waits for the value of the one before.
const FOUR_LOADS: &str = "
.version 7.8
.target sm_80
.entry k(.param .u64 line)
{
    .reg .b32 %r<9>;
    .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [line];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd2, %rd1, %rd2;
    ld.global.cg.u32 %r2, [%rd2];
    cvt.u64.u32 %rd3, %r2;
    add.s64 %rd3, %rd2, %rd3;
    ld.global.cg.u32 %r3, [%rd3];
    cvt.u64.u32 %rd4, %r3;
    add.s64 %rd4, %rd2, %rd4;
    ld.global.ca.u32 %r4, [%rd4];
    cvt.u64.u32 %rd5, %r4;
    add.s64 %rd5, %rd2, %rd5;
    ld.global.ca.u32 %r5, [%rd5];
    st.global.u32 [%rd2], %r5;
    ret;
}
";

/// The paths of the requests of a kernel with one warp and a line of zeros, with their numbers.
fn paths(ptx: &str) -> Vec<(&'static str, u64)> {
    let folder = tempfile::tempdir().unwrap();
    let toml = folder.path().join("s.toml");
    std::fs::write(folder.path().join("s.ptx"), ptx).unwrap();
    let text = "ptx = \"s.ptx\"\n[buffers.line]\ndtype = \"u32\"\nshape = [32]\nexpect = \"reference\"\n\
                [[launch]]\ngrid = 1\nblock = 32\nargs = [\"line\"]\n";
    std::fs::write(&toml, text).unwrap();
    let mut requests = Requests::new(1000);
    run_scenario(&Scenario::load(&toml).unwrap(), PLAIN, &mut requests);
    let paths = requests.paths();
    paths.map(|(path, latency)| (path, latency.histogram().len())).collect()
}

#[test]
fn request_has_the_name_of_the_level_that_held_its_line() {
    // The first load goes to memory. The second and the third one find the line in the L2, because `.cg` leaves nothing in the L1.
    let cold_past_the_l1 = [("hbm", 1), ("l1_hit", 1), ("l2_hit", 2), ("store", 1)];
    assert_eq!(paths(FOUR_LOADS), cold_past_the_l1);
    // All four loads pass the L1. The first one goes to memory, and fills the line.
    let cold_in_the_l1 = [("hbm", 1), ("l1_hit", 3), ("store", 1)];
    assert_eq!(paths(&FOUR_LOADS.replace(".cg", ".ca")), cold_in_the_l1);
}

#[test]
fn latencies_of_request_events_match_the_lsu() {
    for name in SCENARIOS {
        let mut requests = Requests::new(1000);
        let run = run(name, PLAIN, &mut requests);
        let told: BTreeMap<_, _> = requests.paths().collect();
        let counted = run.totals.latencies();
        for (path, counted) in counted.filter(|(path, _)| ["l1_hit", "l2_hit", "hbm", "atomic"].contains(path)) {
            assert_eq!(told[path].histogram(), counted.histogram(), "{name}: {path}");
        }
    }
}

#[test]
fn events_do_not_depend_on_quantum_threads_or_skipping() {
    let others = [
        How {
            quantum: Some(1),
            ..PLAIN
        },
        How { threads: 2, ..PLAIN },
        How { skip: false, ..PLAIN },
    ];
    let mut plain = Account::default();
    run("transpose_tiled", PLAIN, &mut plain);
    for how in others {
        let mut other = Account::default();
        run("transpose_tiled", how, &mut other);
        for sm in 0..2 {
            let of = |account: &Account| -> Vec<Event> {
                let events = account.everything.iter().filter(|(at, _)| *at == sm);
                events.map(|(_, event)| *event).collect()
            };
            assert!(
                of(&plain) == of(&other),
                "quantum {:?}, {} threads",
                how.quantum,
                how.threads
            );
        }
    }
}
