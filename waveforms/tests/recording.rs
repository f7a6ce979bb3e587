//! A dump has the values that components show after every cycle. It does not depend on how the machine is run.

use std::collections::BTreeMap;
use std::fs;

use warpwave_hw::clock::{Clock, Stop};
use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::{InPort, LinkConfig, OutPort, link};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::tile::{TileBuilder, TileSlot};
use warpwave_hw::time::Cycle;
use warpwave_waveforms::error::WaveError;
use warpwave_waveforms::file::RunInfo;
use warpwave_waveforms::select::Selection;
use warpwave_waveforms::waveform::{Summary, Waveform};

#[path = "../../testbench/tests/dump/mod.rs"]
mod dump;

use dump::Dump;

const STATES: &[&str] = &["empty", "holding", "stuck"];

/// Receives a number, holds it for some cycles, and sends the next number of a fixed sequence.
struct Node {
    path: Path,
    input: InPort<u64>,
    output: OutPort<u64>,
    held: Option<(Cycle, u64)>,
    is_stuck: bool,
    passed: u64,
    last: [Option<u64>; 2],
}

impl warpwave_hw::warm::Warm for Node {}

impl Component for Node {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, now: Cycle) -> Activity {
        self.is_stuck = false;
        match self.held {
            Some((until, _)) if now < until => return Activity::Until(until),
            Some((_, number)) if self.output.has_room(now) => {
                self.output
                    .send(now, number.wrapping_mul(6364136223846793005).wrapping_add(99));
                self.held = None;
                self.passed += 1;
            }
            Some(_) => self.is_stuck = true,
            None => {}
        }
        if self.held.is_none()
            && let Some(number) = self.input.recv(now)
        {
            self.held = Some((now + (1 + (number >> 56)) % 150, number));
            self.last[(number & 1) as usize] = Some(number);
        }
        Activity::busy_if(self.held.is_some())
    }

    fn reset(&mut self) {}

    fn is_quiescent(&self) -> bool {
        self.held.is_none()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        let state = if self.is_stuck {
            2
        } else {
            usize::from(self.held.is_some())
        };
        probe.state("state", STATES, Some(state));
        probe.vector("passed", 16, Some(self.passed & 0xffff));
        for (n, last) in self.last.iter().enumerate() {
            probe.enter("parity", n);
            probe.vector("last", 64, *last);
            probe.bit("seen", Some(last.is_some()));
            probe.leave();
        }
    }

    fn stats(&self, _: &mut dyn Report) {}
}

/// A ring of three tiles with three nodes each. Three numbers go round. Links between tiles have a latency of 9 cycles.
fn ring() -> Clock {
    let mut tiles: Vec<TileBuilder> = (0..3).map(|_| TileBuilder::new()).collect();
    let slots: Vec<TileSlot> = (0..9).map(|n| tiles[n / 3].slot()).collect();
    let (mut outputs, mut inputs) = (Vec::new(), Vec::new());
    for n in 0..9 {
        let config = LinkConfig {
            path: Path::root("ring").at("link", n),
            latency: if n % 3 == 2 { 9 } else { 1 },
            depth: 2,
        };
        let (output, input) = link(&config, &slots[n], &slots[(n + 1) % 9]);
        outputs.push(output);
        inputs.push(input);
    }
    inputs.rotate_right(1);
    for (n, (output, input)) in outputs.into_iter().zip(inputs).enumerate() {
        let number = (n % 4 == 0).then_some((Cycle(n as u64), n as u64 * 0x1234_5678_9abc_def1));
        let node = Node {
            path: Path::root("ring").at("tile", n / 3).at("node", n % 3),
            input,
            output,
            held: number,
            is_stuck: false,
            passed: 0,
            last: [None; 2],
        };
        tiles[n / 3].fill(&slots[n], node);
    }
    Clock::new(tiles.into_iter().map(TileBuilder::build).collect())
}

/// The value after every cycle, by path.
type Readings = BTreeMap<String, Vec<Option<u64>>>;

struct Reader<'a> {
    scope: Vec<String>,
    readings: &'a mut Readings,
}

impl Reader<'_> {
    fn value(&mut self, name: &str, value: Option<u64>) {
        let path = format!("{}.{name}", self.scope.join("."));
        self.readings.entry(path).or_default().push(value);
    }
}

impl Probe for Reader<'_> {
    fn bit(&mut self, name: &'static str, value: Option<bool>) {
        self.value(name, value.map(u64::from));
    }
    fn vector(&mut self, name: &'static str, _: u32, value: Option<u64>) {
        self.value(name, value);
    }
    fn state(&mut self, name: &'static str, _: &'static [&'static str], value: Option<usize>) {
        self.value(name, value.map(|state| state as u64));
    }
    fn enter(&mut self, name: &'static str, index: usize) {
        self.scope.push(format!("{name}[{index}]"));
    }
    fn leave(&mut self) {
        self.scope.pop();
    }
}

/// Reads all components after every cycle.
fn read_every_cycle(cycles: u64) -> Readings {
    let (mut clock, mut readings) = (ring(), Readings::new());
    clock.set_quantum(1);
    for now in 0..cycles {
        clock.run(Cycle(now + 1), |_| false);
        for component in clock.tiles().iter().flat_map(|tile| tile.components()) {
            let scope = vec![component.path().to_string()];
            component.probe(&mut Reader {
                scope,
                readings: &mut readings,
            });
        }
    }
    readings
}

struct Mode {
    quantum: u64,
    threads: usize,
    backwards: bool,
    skip: bool,
}

const PLAIN: Mode = Mode {
    quantum: 9,
    threads: 1,
    backwards: false,
    skip: true,
};

fn run_info() -> RunInfo {
    RunInfo::new(1_000_000, vec!["numbers in a ring".into()])
}

/// Reads a dump with times in cycles.
fn read(text: &str) -> Dump {
    Dump::read(text).by_cycle()
}

/// Records a run of `cycles` cycles. Returns the dump and its summary.
fn recorded(mode: &Mode, patterns: &[&str], window: &str, cycles: u64) -> (String, Summary) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.vcd");
    let mut clock = ring();
    clock.set_quantum(mode.quantum);
    clock.set_threads(mode.threads);
    for tile in clock.tiles_mut() {
        tile.set_skipping(mode.skip);
        if mode.backwards {
            tile.set_order(vec![2, 1, 0]);
        }
    }
    let selection = Selection::new(patterns, window).expect("a selection");
    let mut waveform = Waveform::create(&file, &selection, &run_info(), &mut clock).expect("a file");
    let stop = clock.run(Cycle(cycles), |now| waveform.collect(now).is_err());
    assert_eq!(stop, Stop::Limit);
    let summary = waveform.finish(clock.now()).expect("a file");
    (fs::read_to_string(&file).expect("a file"), summary)
}

#[test]
fn values_of_any_window_match_the_components_after_every_cycle() {
    let readings = read_every_cycle(2000);
    for (from, to) in [
        (0, 2000),
        (1, 2),
        (0, 1),
        (777, 1234),
        (778, 779),
        (9, 18),
        (1990, 5000),
    ] {
        let (text, summary) = recorded(&PLAIN, &["*"], &format!("{from}..{to}"), 2000);
        let dump = read(&text);
        assert_eq!((dump.start, dump.end), (from, to.min(2000)), "{from}..{to}");
        assert!(summary.reached);
        assert_eq!(dump.signals.len(), readings.len());
        for signal in &dump.signals {
            let expected = &readings[&signal.path];
            for cycle in from..to.min(2000) {
                assert_eq!(
                    signal.at(cycle),
                    expected[cycle as usize],
                    "{} in cycle {cycle} of {from}..{to}",
                    signal.path
                );
            }
        }
    }
}

#[test]
fn selected_signals_match_the_whole_dump() {
    let (whole, _) = recorded(&PLAIN, &[], "..", 1000);
    let (part, _) = recorded(&PLAIN, &["ring.tile[1].node[*].parity[0]", "**.passed"], "..", 1000);
    let (whole, part) = (read(&whole), read(&part));
    assert_eq!(part.signals.len(), 3 * 2 + 9);
    for signal in &part.signals {
        assert_eq!(Some(signal), whole.signal(&signal.path));
    }
}

#[test]
fn file_is_the_same_for_any_quantum_threads_order_and_skipping() {
    let (plain, _) = recorded(&PLAIN, &["*"], "100..1500", 1700);
    for quantum in [1, 2, 5, 9] {
        for threads in [1, 2, 3] {
            for (backwards, skip) in [(false, false), (true, true), (true, false)] {
                let mode = Mode {
                    quantum,
                    threads,
                    backwards,
                    skip,
                };
                let (other, _) = recorded(&mode, &["*"], "100..1500", 1700);
                assert!(
                    other == plain,
                    "quantum {quantum}, threads {threads}, {backwards}, {skip}"
                );
            }
        }
    }
}

#[test]
fn no_signal_has_a_value_if_the_window_is_not_reached() {
    let (text, summary) = recorded(&PLAIN, &["*"], "5000..", 300);
    let dump = read(&text);
    assert!(!summary.reached && summary.changes == 0);
    assert_eq!((dump.start, dump.end), (300, 300));
    assert!(dump.signals.iter().all(|signal| signal.at(300).is_none()));
}

#[test]
fn waveform_dropped_during_a_run_leaves_a_readable_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.vcd");
    let mut clock = ring();
    let mut waveform = Waveform::create(&file, &Selection::all(), &run_info(), &mut clock).expect("a file");
    clock.run(Cycle(450), |now| waveform.collect(now).is_err());
    drop(waveform);
    let (whole, _) = recorded(&PLAIN, &[], "..", 450);
    let dropped = fs::read_to_string(&file).expect("a file");
    assert!(read(&dropped).end > 400);
    let (left, _) = dropped.rsplit_once('#').expect("the last time");
    assert!(whole.starts_with(left));
}

#[test]
fn recording_changes_no_cycle() {
    let (mut watched, mut alone) = (ring(), ring());
    let folder = tempfile::tempdir().expect("a folder");
    let mut waveform = Waveform::create(
        &folder.path().join("a.vcd"),
        &Selection::new(&["*"], "50..60").expect("a window"),
        &run_info(),
        &mut watched,
    )
    .expect("a file");
    for limit in [30, 55, 58, 61, 400] {
        let stops = (
            watched.run(Cycle(limit), |now| waveform.collect(now).is_err()),
            alone.run(Cycle(limit), |_| false),
        );
        assert_eq!(stops.0, stops.1);
        assert_eq!(watched.now(), alone.now());
    }
}

#[test]
fn pattern_without_a_match_is_refused_before_a_file_is_created() {
    let folder = tempfile::tempdir().expect("a folder");
    let selection = Selection::new(&["ring.tile[3]"], "..").expect("a pattern");
    let refused = Waveform::create(&folder.path().join("a.vcd"), &selection, &run_info(), &mut ring());
    assert!(matches!(refused, Err(WaveError::NoMatch { .. })));
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn missing_folder_is_named() {
    let refused = Waveform::create("no/such/run.vcd".as_ref(), &Selection::all(), &run_info(), &mut ring());
    let text = refused.err().expect("no such folder").to_string();
    assert!(text.starts_with("cannot write no/such/run.vcd: "), "{text}");
}

/// Counts cycles, and breaks an invariant in cycle 137.
struct Fragile(Path, u64);

impl warpwave_hw::warm::Warm for Fragile {}

impl Component for Fragile {
    fn path(&self) -> &Path {
        &self.0
    }
    fn tick(&mut self, now: Cycle) -> Activity {
        assert!(now.0 < 137, "cycle {now}: {} breaks", self.0);
        self.1 = now.0;
        Activity::Busy
    }
    fn reset(&mut self) {}
    fn is_quiescent(&self) -> bool {
        true
    }
    fn probe(&self, probe: &mut dyn Probe) {
        probe.vector("count", 16, Some(self.1));
    }
    fn stats(&self, _: &mut dyn Report) {}
}

#[test]
fn flight_recorder_has_the_cycles_up_to_a_broken_invariant() {
    let mut tile = TileBuilder::new();
    let slot = tile.slot();
    tile.fill(&slot, Fragile(Path::root("gpu").child("fragile"), 0));
    let mut clock = Clock::new(vec![tile.build()]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("last.vcd");
    let mut waveform = Waveform::watch_flight(&Selection::all(), &run_info(), &mut clock, 50).expect("signals");
    let run = std::panic::AssertUnwindSafe(|| clock.run(Cycle(1000), |now| waveform.collect(now).is_err()));
    assert!(std::panic::catch_unwind(run).is_err());
    assert_eq!(waveform.collect_after_panic(&mut clock).expect("memory"), Cycle(136));
    let written = waveform.write_flight(&file, "broken_invariant").expect("a file");
    assert_eq!(written, Some(Cycle(87)..Cycle(137)));
    let dump = read(&fs::read_to_string(&file).expect("a file"));
    let count = dump.signal("gpu.fragile.count").expect("recorded");
    assert!((87..137).all(|cycle| count.at(cycle) == Some(cycle)));
    let save = fs::read_to_string(folder.path().join("last.gtkw")).expect("a view");
    assert!(save.contains("[markername] Abroken_invariant"), "{save}");
}
