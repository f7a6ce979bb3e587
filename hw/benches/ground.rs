//! What the ground costs: a message over a link, a tick, tiles with nothing to do, a meeting of threads. Each
//! figure is the best of nine.

use std::time::Instant;

use warpwave_hw::clock::Clock;
use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::{InPort, LinkConfig, OutPort, link};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::tile::{Tile, TileBuilder};
use warpwave_hw::time::Cycle;

fn main() {
    show("message sent and received, 8 bytes", best(1_000_000, || messages(0u64)));
    show(
        "message sent and received, 136 bytes",
        best(1_000_000, || messages([0u64; 17])),
    );
    show("failed look at an empty link", best(1_000_000, looks));
    show(
        "tick of a busy component",
        best(1_000_000, || run(vec![tile(8, 1)], 1, 8)),
    );
    show(
        "cycle of a tile with one busy",
        best(1_000_000, || run(vec![tile(1, 1)], 1, 1)),
    );
    show(
        "sleep of a million cycles",
        best(10_000, || run(vec![tile(1, 1_000_000)], 1_000_000, 1)),
    );
    show(
        "quantum of 32, one tile busy",
        best(10_000, || run(vec![tile(1, 1)], 32, 1)),
    );
    show(
        "the same beside 1000 tiles asleep",
        best(10_000, || run(one_busy_of(1001), 32, 1)),
    );
    show("quantum of 32 on two threads", best(10_000, quanta));
}

fn show(what: &str, ns: f64) {
    println!("{what:37} {ns:8.2} ns");
}

/// Nanoseconds for each of `n`, at best; the work is made ready before the time is taken.
fn best<W: FnOnce(u64)>(n: u64, ready: impl Fn() -> W) -> f64 {
    let once = || {
        let work = ready();
        let start = Instant::now();
        work(n);
        start.elapsed().as_nanos() as f64 / n as f64
    };
    (0..9).map(|_| once()).fold(f64::MAX, f64::min)
}

/// Names its next cycle, and does nothing.
struct Ticker(Path, u64);

impl warpwave_hw::warm::Warm for Ticker {}

impl Component for Ticker {
    fn path(&self) -> &Path {
        &self.0
    }
    fn tick(&mut self, now: Cycle) -> Activity {
        if self.1 == 1 {
            Activity::Busy
        } else {
            Activity::Until(now + self.1)
        }
    }
    fn reset(&mut self) {}
    fn is_quiescent(&self) -> bool {
        true
    }
    fn probe(&self, _: &mut dyn Probe) {}
    fn stats(&self, _: &mut dyn Report) {}
}

fn tile(components: usize, interval: u64) -> Tile {
    let mut tile = TileBuilder::new();
    for n in 0..components {
        let slot = tile.slot();
        tile.fill(&slot, Ticker(Path::root("ticker").at("n", n), interval));
    }
    tile.build()
}

/// Runs `cycles` cycles, `n` times. Each cycle counts as `parts`.
fn run(tiles: Vec<Tile>, cycles: u64, parts: u64) -> impl FnOnce(u64) {
    let mut clock = Clock::new(tiles);
    move |n| {
        clock.run(Cycle(n * cycles / parts), |_| false);
    }
}

fn one_busy_of(n: usize) -> Vec<Tile> {
    (0..n)
        .map(|n| if n == 0 { tile(1, 1) } else { tile(8, 1 << 40) })
        .collect()
}

fn quanta() -> impl FnOnce(u64) {
    let mut clock = Clock::new(vec![tile(1, 1), tile(1, 1)]);
    clock.set_threads(2);
    move |n| {
        clock.run(Cycle(n * 32), |_| false);
    }
}

fn joined<T: Send>() -> (OutPort<T>, InPort<T>) {
    let mut tile = TileBuilder::new();
    let (from, to) = (tile.slot(), tile.slot());
    let config = LinkConfig {
        path: Path::root("link"),
        latency: 1,
        depth: 2,
    };
    link(&config, &from, &to)
}

fn messages<T: Send + Copy + 'static>(message: T) -> impl FnOnce(u64) {
    let (mut output, mut input) = joined();
    move |n| {
        for now in (0..n).map(Cycle) {
            std::hint::black_box(input.recv(now));
            if output.has_room(now) {
                output.send(now, std::hint::black_box(message));
            }
        }
    }
}

fn looks() -> impl FnOnce(u64) {
    let (_output, mut input) = joined::<u64>();
    move |n| {
        for now in (0..n).map(Cycle) {
            std::hint::black_box(input.recv(now));
        }
    }
}
