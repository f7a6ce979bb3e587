//! Determinism: results do not depend on quantum, threads, tick order, idle-skipping or waveforms.
//!
//! A scenario runs once in the plain way, then in other ways. Device memory, cycles of every launch, and counters and latencies of every
//! component must be equal. Every launch runs twice, so state that the first one leaves behind is noticed. Waveforms compare every signal
//! in every cycle. Scenarios and ways are also drawn at random. A machine stopped in the middle of a grid must then behave like a new one.

use std::fs;
use std::path::Path;

use arbitrary::{Arbitrary, Unstructured};
use warpwave::bench::{Bench, Options};
use warpwave::oracle::RandomProgram;
use warpwave::scenario::{Scenario, builtin};
use warpwave_components::config::GpuConfig;
use warpwave_components::gpu::{Gpu, LaunchError};
use warpwave_components::preset;
use warpwave_hw::clock::Clock;
use warpwave_hw::error::SimError;
use warpwave_hw::stats::{Latency, Report};
use warpwave_hw::time::Cycle;
use warpwave_waveforms::file::RunInfo;
use warpwave_waveforms::select::Selection;
use warpwave_waveforms::waveform::Waveform;

/// A way to run that must not change the outcome.
#[derive(Clone, Copy, Debug)]
enum Way {
    Plain,
    Quantum(u64),
    Threads(usize),
    ThreadsAndQuantum(usize, u64),
    /// Components of each tile tick in a random order from this seed.
    TickOrder(u64),
    NoSkipping,
    /// Two threads, an odd quantum, another tick order, no skipping.
    Everything,
    /// Threads, quantum, tick order and skipping drawn from this seed.
    Drawn(u64),
}

const WAYS: [Way; 10] = [
    Way::Quantum(1),
    Way::Quantum(2),
    Way::Threads(2),
    Way::Threads(3),
    Way::ThreadsAndQuantum(2, 5),
    Way::TickOrder(1),
    Way::TickOrder(2),
    Way::TickOrder(3),
    Way::NoSkipping,
    Way::Everything,
];

impl Way {
    fn threads(self) -> usize {
        match self {
            Way::Threads(threads) | Way::ThreadsAndQuantum(threads, _) => threads,
            Way::Everything => 2,
            Way::Drawn(seed) => 1 + noise(seed)() as usize % 4,
            _ => 1,
        }
    }

    fn set(self, clock: &mut Clock) {
        match self {
            Way::Plain | Way::Threads(_) => {}
            Way::Quantum(quantum) | Way::ThreadsAndQuantum(_, quantum) => clock.set_quantum(quantum),
            Way::TickOrder(seed) => shuffle_components(clock, seed),
            Way::NoSkipping => clock.tiles_mut().iter_mut().for_each(|tile| tile.set_skipping(false)),
            Way::Everything => [Way::Quantum(7), Way::TickOrder(9), Way::NoSkipping]
                .into_iter()
                .for_each(|way| way.set(clock)),
            Way::Drawn(seed) => {
                let mut draw = noise(!seed);
                Way::Quantum(1 + draw() % clock.quantum()).set(clock);
                Way::TickOrder(draw()).set(clock);
                if draw().is_multiple_of(2) {
                    Way::NoSkipping.set(clock);
                }
            }
        }
    }
}

fn shuffle_components(clock: &mut Clock, seed: u64) {
    for (n, tile) in clock.tiles_mut().iter_mut().enumerate() {
        let mut keys = noise(seed ^ (n as u64) << 32);
        let mut order: Vec<usize> = (0..tile.components().len()).collect();
        order.sort_by_cached_key(|_| keys());
        tile.set_order(order);
    }
}

/// Pseudo-random numbers (SplitMix64).
fn noise(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

/// The observable results of a run.
struct Outcome {
    memory: Vec<(u64, Vec<u8>)>,
    cycles: Vec<u64>,
    /// Path, name and values of each counter and latency, sorted.
    counts: Vec<(String, Vec<u64>)>,
}

impl Outcome {
    /// The first difference of two outcomes.
    fn difference(&self, other: &Outcome) -> Option<String> {
        if self.cycles != other.cycles {
            return Some(format!("cycles of the launches: {:?}, {:?}", self.cycles, other.cycles));
        }
        for ((address, plain), (_, bytes)) in self.memory.iter().zip(&other.memory) {
            if let Some(at) = plain.iter().zip(bytes).position(|(a, b)| a != b) {
                return Some(format!(
                    "byte at {:#x}: {}, {}",
                    address + at as u64,
                    plain[at],
                    bytes[at]
                ));
            }
        }
        let mut pairs = self.counts.iter().zip(&other.counts);
        let differs = pairs.find(|(plain, count)| plain != count);
        differs.map(|((name, plain), (_, value))| format!("{name}: {plain:?}, {value:?}"))
    }
}

/// Collects one component's statistics.
struct Collector<'a> {
    path: &'a str,
    counts: &'a mut Vec<(String, Vec<u64>)>,
}

impl Report for Collector<'_> {
    fn count(&mut self, name: &'static str, value: u64) {
        self.counts.push((format!("{} {name}", self.path), vec![value]));
    }

    fn latency(&mut self, name: &'static str, value: &Latency) {
        let histogram = value.histogram();
        let recorded = histogram.iter_recorded();
        let values = recorded.flat_map(|step| [step.value_iterated_to(), step.count_at_value().into()]);
        self.counts.push((format!("{} {name}", self.path), values.collect()));
    }
}

fn counts(gpu: &Gpu) -> Vec<(String, Vec<u64>)> {
    let mut counts = Vec::new();
    for component in gpu.components() {
        let path = component.path().as_str();
        component.stats(&mut Collector {
            path,
            counts: &mut counts,
        });
    }
    counts.sort();
    counts
}

fn memory(gpu: &Gpu) -> Vec<(u64, Vec<u8>)> {
    let storage = gpu.storage();
    let read = |(address, size)| {
        let mut bytes = vec![0; size as usize];
        storage.read(address, &mut bytes);
        (address, bytes)
    };
    storage.allocations().into_iter().map(read).collect()
}

fn run(scenario: &str, gpu: &str, way: Way) -> Outcome {
    run_recorded(&builtin::load(scenario).unwrap(), config(gpu), way, None)
}

/// The preset that begins `gpu`, with the settings `KEY=VALUE` after it.
fn config(gpu: &str) -> GpuConfig {
    let mut words = gpu.split(' ');
    let preset = words.next().unwrap();
    let setting = |word: &str| {
        word.split_once('=')
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
    };
    let settings: Vec<_> = words.map(|word| setting(word).unwrap()).collect();
    preset::load(preset, &settings).unwrap().config
}

/// Runs a scenario. Writes a waveform of all signals to `file`, if there is one.
fn run_recorded(scenario: &Scenario, config: GpuConfig, way: Way, file: Option<&Path>) -> Outcome {
    let mut scenario = scenario.clone();
    scenario.launches.extend(scenario.launches.clone());
    let mut bench = Bench::new(&scenario, config).unwrap();
    let clock = bench.gpu_mut().clock_mut();
    way.set(clock);
    let mut waveform = file.map(|file| record(file, clock));
    let options = Options {
        threads: way.threads(),
        max_cycles: Some(10_000_000),
    };
    let run = bench.run(options, &mut |progress| {
        waveform
            .iter_mut()
            .all(|waveform| waveform.collect(progress.now).is_ok())
    });
    assert_eq!(run.stopped, None, "{}, {way:?}", scenario.name);
    if let Some(waveform) = &mut waveform {
        waveform.finish(bench.gpu().clock().now()).unwrap();
    }
    Outcome {
        memory: memory(bench.gpu()),
        cycles: run.launches.iter().map(|launch| launch.cycles).collect(),
        counts: counts(bench.gpu()),
    }
}

fn record(file: &Path, clock: &mut Clock) -> Waveform {
    let about = RunInfo::new(1_000_000, Vec::new());
    Waveform::create(file, &Selection::new(&["**"], "..").unwrap(), &about, clock).unwrap()
}

/// Asserts that the outcome of a scenario is the same in the plain way and in each of `ways`.
fn assert_same(scenario: &str, gpu: &str, ways: &[Way]) {
    let plain = run(scenario, gpu, Way::Plain);
    assert!(!plain.counts.is_empty(), "nothing was counted, so nothing is compared");
    for &way in ways {
        if let Some(difference) = plain.difference(&run(scenario, gpu, way)) {
            panic!("{scenario} on {gpu}: {way:?} changes {difference}");
        }
    }
}

#[test]
fn divergent_kernel_has_the_same_outcome_in_every_way() {
    assert_same("diverge_nested", "tiny", &WAYS);
    assert_same("diverge_switch", "tiny", &WAYS);
}

#[test]
fn shared_memory_and_atomics_have_the_same_outcome_in_every_way() {
    assert_same("histogram_shared", "tiny", &WAYS);
    assert_same("histogram_global", "tiny", &WAYS);
}

#[test]
fn memory_bound_kernel_has_the_same_outcome_in_every_way() {
    assert_same("copy_strided", "tiny", &WAYS);
    assert_same("transpose_naive", "tiny", &WAYS);
}

#[test]
fn barriers_and_two_kernels_in_a_row_have_the_same_outcome_in_every_way() {
    assert_same("scan_warp_shuffle", "tiny", &WAYS);
    assert_same("reduce_sequential", "tiny", &WAYS);
}

#[test]
fn disorder_on_purpose_has_the_same_outcome_in_every_way() {
    assert_same("histogram_global", "tiny check.weak=300", &WAYS);
    assert_same("transpose_naive", "tiny check.weak=300 check.seed=7", &WAYS);
}

#[test]
fn clusters_have_the_same_outcome_in_every_way() {
    assert_same("cluster_histogram", "tiny", &WAYS);
    assert_same("tma_bulk_scale", "tiny", &WAYS);
    assert_same("wgmma_gemm", "tiny", &WAYS);
    assert_same(
        "cluster_swap",
        "h100-sxm5",
        &[Way::Quantum(1), Way::Threads(3), Way::TickOrder(6)],
    );
}

#[test]
fn cooperative_launch_has_the_same_outcome_in_every_way() {
    assert_same("grid_sync", "tiny", &WAYS);
    assert_same(
        "grid_sync",
        "h100-sxm5",
        &[Way::Quantum(1), Way::Threads(3), Way::TickOrder(8)],
    );
}

#[test]
fn large_machine_has_the_same_outcome_in_every_way() {
    assert_same("histogram_shared", "v100-sxm2", &WAYS);
    // Misses of both constant caches.
    assert_same(
        "constant-memory",
        "v100-sxm2",
        &[Way::Quantum(1), Way::TickOrder(7), Way::Everything],
    );
    assert_same(
        "transpose_naive",
        "h100-sxm5",
        &[Way::Quantum(1), Way::Threads(3), Way::TickOrder(4)],
    );
}

#[test]
fn every_built_in_scenario_has_the_same_outcome_with_all_ways_combined() {
    for scenario in builtin::names() {
        assert_same(scenario, "tiny", &[Way::Everything]);
    }
}

/// A scenario and a machine: a built-in scenario on `tiny` or on four TPCs of another preset, or a random program on one TPC.
fn drawn_case(draw: &mut impl FnMut() -> u64) -> (Scenario, GpuConfig) {
    let names = builtin::names();
    let scenario = builtin::load(names[draw() as usize % names.len()]).unwrap();
    match draw() % 4 {
        0 => {
            let bytes: Vec<u8> = (0..100).flat_map(|_| draw().to_le_bytes()).collect();
            let program = RandomProgram::arbitrary(&mut Unstructured::new(&bytes)).unwrap();
            (program.scenario(), program.config())
        }
        1 => {
            let presets = preset::names();
            let mut config = config(presets[draw() as usize % presets.len()]);
            (config.topology.gpcs, config.topology.tpcs_per_gpc) = (1, vec![4]);
            // Older machines lack clusters.
            let fits = Bench::new(&scenario, config.clone()).is_ok();
            (scenario, if fits { config } else { self::config("tiny") })
        }
        _ => (scenario, config("tiny")),
    }
}

/// Runs a drawn case in the plain way and in a drawn way. One pair in four also writes waveforms, and compares them.
fn assert_same_at(seed: u64, folder: &Path) {
    let mut draw = noise(seed);
    let (scenario, config) = drawn_case(&mut draw);
    let name = format!("{} on {}", scenario.name, config.name);
    let way = Way::Drawn(draw());
    let files = ["plain.vcd", "other.vcd"].map(|name| folder.join(name));
    let recorded = draw().is_multiple_of(4);
    let file = |n: usize| recorded.then(|| files[n].as_path());
    let plain = run_recorded(&scenario, config.clone(), Way::Plain, file(0));
    let other = run_recorded(&scenario, config, way, file(1));
    assert_eq!(plain.difference(&other), None, "draw {seed}: {name}, {way:?}");
    if recorded {
        let [plain, other] = files.map(|file| fs::read_to_string(file).unwrap());
        assert_eq!(first_change(&plain, &other), None, "draw {seed}: {name}, {way:?}");
    }
}

/// `WARPWAVE_DRAWS=A..B` runs these draws instead of the first eight.
#[test]
fn drawn_scenarios_have_the_same_outcome_in_drawn_ways() {
    let draws = std::env::var("WARPWAVE_DRAWS").unwrap_or("0..8".to_owned());
    let (first, end) = draws.split_once("..").expect("WARPWAVE_DRAWS is A..B");
    let folder = tempfile::tempdir().unwrap();
    for seed in first.parse().unwrap()..end.parse().unwrap() {
        println!("draw {seed}");
        assert_same_at(seed, folder.path());
    }
}

#[test]
fn recording_changes_no_outcome_and_the_waveform_is_the_same_in_every_way() {
    let folder = tempfile::tempdir().unwrap();
    for scenario in ["diverge_nested", "histogram_shared"] {
        let recorded =
            |way, file: &Path| run_recorded(&builtin::load(scenario).unwrap(), config("tiny"), way, Some(file));
        let plain_file = folder.path().join("plain.vcd");
        let plain = recorded(Way::Plain, &plain_file);
        assert_eq!(
            plain.difference(&run(scenario, "tiny", Way::Plain)),
            None,
            "{scenario}, not recorded"
        );
        let plain_waveform = fs::read_to_string(plain_file).unwrap();
        assert!(
            plain_waveform.lines().count() > 10_000,
            "{scenario}: too few changes were recorded"
        );
        for way in [
            Way::Quantum(1),
            Way::Threads(3),
            Way::TickOrder(5),
            Way::NoSkipping,
            Way::Everything,
        ] {
            let file = folder.path().join("other.vcd");
            recorded(way, &file);
            let waveform = fs::read_to_string(file).unwrap();
            assert_eq!(
                first_change(&plain_waveform, &waveform),
                None,
                "{scenario}: {way:?} changes the waveform"
            );
        }
    }
}

/// Outcome of a scenario's first launch, on a new machine or on one that was stopped `stopped_after` cycles into the same launch.
/// A new machine is idle until cycle `begin`. The data are restored before the launch.
fn run_after(scenario: &str, stopped_after: Option<u64>, begin: Cycle) -> (Outcome, Cycle) {
    let scenario = builtin::load(scenario).unwrap();
    let mut bench = Bench::new(&scenario, preset::load("tiny", &[]).unwrap().config).unwrap();
    let grid = bench.grids()[0].clone();
    let gpu = bench.gpu_mut();
    match stopped_after {
        Some(cycles) => {
            let stopped = gpu.launch(grid.clone(), Some(cycles), &mut |_| true);
            assert!(
                matches!(stopped, Err(LaunchError::Sim(SimError::CycleLimit { .. }))),
                "{}: {stopped:?} within {cycles} cycles",
                scenario.name
            );
        }
        None => {
            gpu.clock_mut().run(begin, |_| false);
            gpu.clock_mut().skip_to(begin);
        }
    }
    for (buffer, address) in bench.data() {
        bench.gpu().storage().write(address, &buffer.init);
    }
    let gpu = bench.gpu_mut();
    let begin = gpu.clock().now();
    let cycles = gpu.launch(grid, None, &mut |_| true).unwrap().cycles();
    let outcome = Outcome {
        memory: memory(gpu),
        cycles: vec![cycles],
        counts: counts(gpu),
    };
    (outcome, begin)
}

#[test]
fn machine_stopped_in_the_middle_of_a_grid_then_behaves_like_a_new_one() {
    for scenario in ["diverge_nested", "histogram_shared", "transpose_padded", "copy_float4"] {
        for cycles in [1, 50, 300, 700, 1200] {
            let (stopped, begin) = run_after(scenario, Some(cycles), Cycle::ZERO);
            let (new, _) = run_after(scenario, None, begin);
            assert_eq!(
                new.difference(&stopped),
                None,
                "{scenario} stopped after {cycles} cycles"
            );
        }
    }
}

/// The first line that differs in two dumps, with the time before it.
fn first_change<'a>(plain: &'a str, other: &'a str) -> Option<[&'a str; 3]> {
    let mut time = "before the first cycle";
    let mut lines = other.lines();
    for line in plain.lines() {
        let same_place = lines.next().unwrap_or("the end");
        if line != same_place {
            return Some([time, line, same_place]);
        }
        time = if line.starts_with('#') { line } else { time };
    }
    lines.next().map(|line| [time, "the end", line])
}

#[test]
fn different_outcomes_are_distinguished() {
    let plain = run("diverge_nested", "tiny", Way::Plain);
    let other = run("diverge_switch", "tiny", Way::Plain);
    assert!(plain.difference(&other).is_some());
}
