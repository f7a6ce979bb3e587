//! Speed of recording, in value changes per second: the VCD and the FST writer alone, and a whole machine. Each rate is the best of five
//! runs.

use std::time::Instant;

use warpwave_hw::clock::Clock;
use warpwave_hw::component::{Activity, Component};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::tile::TileBuilder;
use warpwave_hw::time::Cycle;
#[cfg(feature = "fst")]
use warpwave_waveforms::file::create_fst;
use warpwave_waveforms::file::{RunInfo, create_vcd};
use warpwave_waveforms::flight::FlightRecorder;
use warpwave_waveforms::recorder::Change;
use warpwave_waveforms::select::Selection;
use warpwave_waveforms::signal::{Kind, Signal};
use warpwave_waveforms::sink::Sink;
use warpwave_waveforms::waveform::Waveform;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.vcd");
    let best = |run: &dyn Fn(&std::path::Path) -> (u64, f64)| {
        let rates = (0..5)
            .map(|_| run(&file))
            .map(|(changes, seconds)| changes as f64 / seconds / 1e6);
        rates.fold(0.0, f64::max)
    };
    println!("VCD alone:       {:6.1} M changes/s", best(&vcd_alone));
    #[cfg(feature = "fst")]
    println!("FST alone:       {:6.1} M changes/s", best(&fst_alone));
    println!("watched machine: {:6.1} M changes/s", best(&watched_machine));
    println!("flight recorder: {:6.2} ns per change", flight_ns());
    println!("unwatched machine: {:.1} ns per tick of a component", unwatched_ns());
}

fn vcd_alone(file: &std::path::Path) -> (u64, f64) {
    let run = RunInfo::new(1_000_000, Vec::new());
    writer_alone(|signals| create_vcd(file, &[], &run, signals).expect("a file"))
}

#[cfg(feature = "fst")]
fn fst_alone(file: &std::path::Path) -> (u64, f64) {
    let run = RunInfo::new(1_000_000, Vec::new());
    writer_alone(|signals| create_fst(file, &run, signals).expect("a file"))
}

/// 10,000 signals (60 % bits, 15 % of 8, 20 % of 32, 5 % of 64 bits), 50 random changes a cycle.
fn writer_alone(create: impl Fn(&[Signal]) -> Box<dyn Sink>) -> (u64, f64) {
    let signals: Vec<Signal> = (0..10_000)
        .map(|n| {
            let kind = match n % 20 {
                0..12 => Kind::Bit,
                12..15 => Kind::Vector(8),
                15..19 => Kind::Vector(32),
                _ => Kind::Vector(64),
            };
            Signal::new(&format!("top.sm[{}].signal_{}", n / 100, n % 100), kind)
        })
        .collect();
    let mut random = 1u64;
    let mut draw = || {
        random = random
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        random >> 11
    };
    let changes: Vec<Change> = (0..5_000_000)
        .map(|_| {
            let n = draw() % 10_000;
            let value = draw() & (u64::MAX >> (64 - signals[n as usize].kind.width()));
            (n as u32, Some(value))
        })
        .collect();
    let start = Instant::now();
    let mut writer = create(&signals);
    writer.begin(0, &vec![None; signals.len()]).expect("a file");
    for (cycle, changes) in changes.chunks(50).enumerate() {
        writer.changes(cycle as u64 + 1, changes).expect("a file");
    }
    writer.finish(100_001).expect("a file");
    (changes.len() as u64, start.elapsed().as_secs_f64())
}

/// Time per change of the flight recorder, in ns.
fn flight_ns() -> f64 {
    let steps: Vec<Vec<Change>> = (0..1000)
        .map(|step| {
            (0..50)
                .map(|n| (n * 199 + step % 7, Some(u64::from(n + step))))
                .collect()
        })
        .collect();
    let values = vec![None; 10_000];
    let mut flight = FlightRecorder::new(20_000);
    let start = Instant::now();
    for cycle in 0..100_000u64 {
        flight.record(Cycle(cycle), &steps[cycle as usize % 1000], &values);
    }
    start.elapsed().as_nanos() as f64 / 5_000_000.0
}

/// A component with 16 signals of 8 to 32 bits. Four change in each cycle.
struct Busy(Path, [u64; 16], usize);

impl warpwave_hw::warm::Warm for Busy {}

impl Component for Busy {
    fn path(&self) -> &Path {
        &self.0
    }
    fn tick(&mut self, now: Cycle) -> Activity {
        for n in 0..4 {
            self.1[(self.2 + n) % 16] = now.0.wrapping_mul(2_654_435_761) >> n & 0xff;
        }
        self.2 += 4;
        Activity::Busy
    }
    fn reset(&mut self) {}
    fn is_quiescent(&self) -> bool {
        true
    }
    fn probe(&self, probe: &mut dyn Probe) {
        const NAMES: [&str; 16] = [
            "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p",
        ];
        for (n, name) in NAMES.into_iter().enumerate() {
            probe.vector(name, 8 + 8 * (n as u32 % 4), Some(self.1[n]));
        }
    }
    fn stats(&self, _: &mut dyn Report) {}
}

fn machine() -> Clock {
    let tiles = (0..4).map(|tile| {
        let mut builder = TileBuilder::new();
        for n in 0..16 {
            let slot = builder.slot();
            builder.fill(
                &slot,
                Busy(Path::root("gpu").at("tile", tile).at("busy", n), [0; 16], n),
            );
        }
        builder.build()
    });
    Clock::new(tiles.collect())
}

fn watched_machine(file: &std::path::Path) -> (u64, f64) {
    let run = RunInfo::new(1_000_000, Vec::new());
    let mut clock = machine();
    let start = Instant::now();
    let mut waveform = Waveform::create(file, &Selection::all(), &run, &mut clock).expect("a file");
    clock.run(Cycle(20_000), |now| waveform.collect(now).is_err());
    let summary = waveform.finish(clock.now()).expect("a file");
    (summary.changes, start.elapsed().as_secs_f64())
}

fn unwatched_ns() -> f64 {
    let mut clock = machine();
    let start = Instant::now();
    clock.run(Cycle(20_000), |_| false);
    start.elapsed().as_nanos() as f64 / (20_000.0 * 64.0)
}
