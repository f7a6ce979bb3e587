//! What the ground costs: a message over a link, a tick, a tile with nothing to do, a meeting of threads. Each is the best of nine.

use std::time::Instant;

use warpwave_hw::clock::Clock;
use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::{LinkConfig, link};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::tile::{Tile, TileBuilder};
use warpwave_hw::time::Cycle;

fn main() {
    println!(
        "message sent and received, 8 bytes:    {:8.2} ns",
        best(1_000_000, |n| messages(n, 0u64))
    );
    println!(
        "message sent and received, 136 bytes:  {:8.2} ns",
        best(1_000_000, |n| messages(n, [0u64; 17]))
    );
    println!(
        "failed look at an empty link:          {:8.2} ns",
        best(1_000_000, looks)
    );
    println!(
        "tick of a busy component:              {:8.2} ns",
        best(1_000_000, |n| run(vec![tile(8, 1)], n / 8))
    );
    println!(
        "cycle of a tile of 8 with one busy:    {:8.2} ns",
        best(1_000_000, |n| run(vec![tile(1, 1), tile(7, 1 << 40)], n))
    );
    println!(
        "quantum of 32, each idle tile of 1000: {:8.2} ns",
        best(100_000, idle_tiles)
    );
    println!(
        "sleep of a million cycles:             {:8.2} ns",
        best(10_000, |n| run(vec![tile(1, 1_000_000)], n * 1_000_000))
    );
    println!("quantum of 32 on two threads:          {:8.2} ns", best(10_000, quanta));
}

/// Nanoseconds for each of `n`, at best.
fn best(n: u64, mut work: impl FnMut(u64)) -> f64 {
    let mut once = || {
        let start = Instant::now();
        work(n);
        start.elapsed().as_nanos() as f64 / n as f64
    };
    (0..9).map(|_| once()).fold(f64::MAX, f64::min)
}

/// Names its next cycle, and does nothing.
struct Ticker(Path, u64);

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

fn run(tiles: Vec<Tile>, cycles: u64) {
    Clock::new(tiles).run(Cycle(cycles), |_| false);
}

fn messages<T: Send + Copy + 'static>(n: u64, message: T) {
    let mut tile = TileBuilder::new();
    let (from, to) = (tile.slot(), tile.slot());
    let config = LinkConfig {
        path: Path::root("link"),
        latency: 1,
        depth: 2,
    };
    let (mut output, mut input) = link(&config, &from, &to);
    for now in (0..n).map(Cycle) {
        std::hint::black_box(input.recv(now));
        if output.has_room(now) {
            output.send(now, std::hint::black_box(message));
        }
    }
}

fn looks(n: u64) {
    let mut tile = TileBuilder::new();
    let (from, to) = (tile.slot(), tile.slot());
    let config = LinkConfig {
        path: Path::root("link"),
        latency: 1,
        depth: 2,
    };
    let (_output, mut input) = link::<u64>(&config, &from, &to);
    for now in (0..n).map(Cycle) {
        std::hint::black_box(input.recv(now));
    }
}

/// One busy tile, and 1000 that sleep: what each of them adds to a quantum.
fn idle_tiles(n: u64) {
    let mut tiles = vec![tile(1, 1)];
    tiles.extend((0..1000).map(|_| tile(8, 1 << 40)));
    run(tiles, n / 1000 * 32);
}

fn quanta(n: u64) {
    let mut clock = Clock::new(vec![tile(1, 1), tile(1, 1)]);
    clock.set_threads(2);
    clock.run(Cycle(n * 32), |_| false);
}
