//! Leaves with uneven work on several threads: each is ticked in the cycles that it asked for, once, and watched alike.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use warpwave_hw::clock::Clock;
use warpwave_hw::component::{Activity, Component};
use warpwave_hw::link::{LinkConfig, OutPort, link};
use warpwave_hw::path::Path;
use warpwave_hw::probe::Probe;
use warpwave_hw::stats::Report;
use warpwave_hw::tile::{Sampler, Tile, TileBuilder};
use warpwave_hw::time::Cycle;

const LAST: u64 = 3000;

/// Cycles that a component lets pass after its tick in a cycle: mostly few, at times many windows.
fn pause(component: usize, now: u64) -> u64 {
    let mixed = (now * 64 + component as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    if mixed.is_multiple_of(16) {
        1 + mixed % 400
    } else {
        1 + mixed % 4
    }
}

/// The cycles in which a component is due, by its pauses alone.
fn due(component: usize) -> Vec<u64> {
    let next = |&now: &u64| Some(now + pause(component, now));
    std::iter::successors(Some(0), next)
        .take_while(|&now| now < LAST)
        .collect()
}

/// A component that acts.
struct Actor<F> {
    path: Path,
    act: F,
    _port: Option<OutPort<u64>>,
}

impl<F: FnMut(Cycle) -> Activity + Send + 'static> warpwave_hw::warm::Warm for Actor<F> {}

impl<F: FnMut(Cycle) -> Activity + Send + 'static> Component for Actor<F> {
    fn path(&self) -> &Path {
        &self.path
    }
    fn tick(&mut self, now: Cycle) -> Activity {
        (self.act)(now)
    }
    fn reset(&mut self) {}
    fn is_quiescent(&self) -> bool {
        true
    }
    fn probe(&self, _: &mut dyn Probe) {}
    fn stats(&self, _: &mut dyn Report) {}
}

/// A hub that does nothing, and leaves joined to it.
fn star<F: FnMut(Cycle) -> Activity + Send + 'static>(acts: impl Iterator<Item = F>) -> Vec<Tile> {
    let mut hub = TileBuilder::new();
    let middle = hub.slot();
    let mut inputs = Vec::new();
    let mut tiles = Vec::new();
    for act in acts {
        let mut tile = TileBuilder::new();
        let slot = tile.slot();
        let config = LinkConfig {
            path: Path::root("link"),
            latency: 20,
            depth: 1,
        };
        let (port, input) = link(&config, &slot, &middle);
        inputs.push(input);
        let actor = Actor {
            path: Path::root("leaf"),
            act,
            _port: Some(port),
        };
        tile.fill(&slot, actor);
        tiles.push(tile.build());
    }
    let act = move |_| {
        // It holds the ends of the links, and nothing comes.
        assert!(inputs.iter().all(|input| input.is_empty()));
        Activity::Idle
    };
    let actor = Actor {
        path: Path::root("hub"),
        act,
        _port: None,
    };
    hub.fill(&middle, actor);
    tiles.push(hub.build());
    tiles
}

/// Works for a random time of up to some microseconds.
fn work(component: usize, now: u64) {
    for _ in 0..pause(component, now * 7) * 8 {
        std::hint::spin_loop();
    }
}

/// Writes down when it begins, and what it sees in which cycle.
struct Notes(Arc<Mutex<Vec<String>>>);

impl Sampler for Notes {
    fn begin(&mut self, now: Cycle, _: &[Box<dyn Component>]) {
        self.0
            .lock()
            .expect("no panic while it is held")
            .push(format!("begin {now}"));
    }
    fn sample(&mut self, now: Cycle, _: usize, _: &dyn Component) {
        self.0
            .lock()
            .expect("no panic while it is held")
            .push(format!("at {now}"));
    }
    fn flush(&mut self, _: Cycle) {}
}

/// The window in which a leaf is watched.
fn window(leaf: u64) -> Range<u64> {
    600 + 70 * leaf..800 + 70 * leaf
}

/// The ticks that 30 leaves record on `threads` threads, and the samples of the watched ones.
fn run(threads: usize, watched: bool) -> (Vec<Vec<u64>>, Vec<Vec<String>>) {
    let ticks: Vec<Arc<Mutex<Vec<u64>>>> = (0..30).map(|_| Arc::default()).collect();
    let acts = ticks.iter().cloned().enumerate().map(|(n, ticks)| {
        move |now: Cycle| {
            ticks.lock().expect("no panic while it is held").push(now.0);
            work(n, now.0);
            Activity::Until(now + pause(n, now.0))
        }
    });
    let mut clock = Clock::new(star(acts));
    let notes: Vec<Arc<Mutex<Vec<String>>>> = (0..30).map(|_| Arc::default()).collect();
    let watched = if watched { notes.len() } else { 0 };
    for ((tile, notes), n) in clock.tiles_mut().iter_mut().zip(&notes).zip(0..).take(watched) {
        let Range { start, end } = window(n);
        tile.watch(Box::new(Notes(notes.clone())), 1, Cycle(start)..Cycle(end));
    }
    clock.set_threads(threads);
    clock.run(Cycle(LAST), |_| false);
    let of = |lists: &[Arc<Mutex<Vec<u64>>>]| lists.iter().map(|list| list.lock().expect("over").clone()).collect();
    let seen = notes.iter().map(|list| list.lock().expect("over").clone()).collect();
    (of(&ticks), seen)
}

#[test]
fn leaves_with_uneven_work_tick_in_the_same_cycles_with_any_thread_count() {
    let expected: Vec<_> = (0..30).map(due).collect();
    for threads in [1, 2, 3, 4, 7, 40] {
        assert!(run(threads, false).0 == expected, "threads: {threads}");
    }
}

#[test]
fn sampling_of_an_idle_leaf_begins_in_the_same_cycle_with_any_thread_count() {
    let (_, alone) = run(1, true);
    for (n, seen) in alone.iter().enumerate() {
        let ticked = due(n).into_iter().filter(|now| window(n as u64).contains(now)).count();
        let sampled = seen.iter().filter(|note| note.starts_with("at")).count();
        assert!(seen[0].starts_with("begin") && sampled >= ticked, "leaf {n}: {seen:?}");
    }
    // What changes threads while it sleeps differs from run to run.
    for threads in [2, 3, 4].repeat(5) {
        assert_eq!(run(threads, true).1, alone, "threads: {threads}");
    }
}

#[test]
fn leaf_that_runs_alone_wakes_no_other_thread() {
    const LEAVES: usize = 8;
    let threads: Arc<Mutex<Vec<(u64, ThreadId)>>> = Arc::default();
    // The last leaf was dealt to the second thread. The others tick once at first, which two threads may share.
    let acts = (0..LEAVES).map(|n| {
        let threads = Arc::clone(&threads);
        move |now: Cycle| {
            if n + 1 < LEAVES {
                return Activity::Idle;
            }
            let tick = (now.0, thread::current().id());
            threads.lock().expect("no panic while it is held").push(tick);
            Activity::Until(now + 10)
        }
    });
    let mut clock = Clock::new(star(acts));
    clock.set_threads(2);
    clock.run(Cycle(LAST), |_| false);
    let ticks = threads.lock().expect("over").clone();
    assert_eq!(ticks.len() as u64, LAST / 10);
    let elsewhere = |tick: &&(u64, ThreadId)| tick.0 >= 200 && tick.1 != thread::current().id();
    assert_eq!(ticks.iter().find(elsewhere), None);
}
