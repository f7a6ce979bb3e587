//! The global clock: runs every tile for a while by itself, lets them exchange, and goes on.
//!
//! Nothing that a tile sends can reach another before the shortest latency between tiles, the *quantum*, is over. So tiles may
//! run that long one after the other, or on several threads, with the same result. Where the tiles fall into hubs and leaves
//! (module `sides`), the two sides run in turn, each until it is one quantum ahead of the other: windows of two quanta (module
//! `window`). A hub with a shorter way to the leaves does not shorten them while it only answers ([`crate::tile::Promise`]). When no
//! tile has anything to do, the clock jumps. Threads run neighbouring tiles and meet where their loads are equal (module `ring`).

mod marks;
mod meeting;
mod plan;
mod ring;
mod share;
mod sides;
mod stretch;
mod window;

use std::panic::resume_unwind;

use crate::tile::bell::Bells;
use crate::tile::{Promise, Tile};
use crate::time::Cycle;
use plan::{Orders, Plan};
use ring::Ring;
use share::Share;
use sides::Side;
use window::Reaches;

/// Longest quantum, whatever the links allow: half the horizon of a tile.
pub const MAX_QUANTUM: u64 = crate::tile::HORIZON / 2;

/// Why [`Clock::run`] came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The caller's condition held.
    Asked,
    /// The cycle limit was reached.
    Limit,
    /// No component has anything to do, now or ever.
    Quiet,
}

/// Ticks all tiles of a machine.
pub struct Clock {
    now: Cycle,
    tiles: Vec<Tile>,
    /// By the tiles' numbers.
    sides: Vec<Side>,
    /// What the links allow, whatever the quantum.
    reaches: Reaches,
    promises: Vec<Promise>,
    bells: Bells,
    quantum: u64,
    threads: usize,
}

impl Clock {
    /// A clock at cycle 0 over these tiles, with the longest quantum that their links allow, on one thread.
    pub fn new(mut tiles: Vec<Tile>) -> Self {
        let bells = Bells::new(tiles.len());
        for (n, tile) in tiles.iter_mut().enumerate() {
            tile.join(&bells, n);
            tile.wake_all(Cycle::ZERO);
        }
        let sides = sides::of(&tiles);
        let (reaches, promises) = reaches(&tiles, &sides);
        Clock {
            now: Cycle::ZERO,
            sides,
            tiles,
            quantum: reaches.hubs,
            reaches,
            promises,
            bells,
            threads: 1,
        }
    }

    /// The next cycle to run.
    pub fn now(&self) -> Cycle {
        self.now
    }

    /// The tiles.
    pub fn tiles(&self) -> &[Tile] {
        &self.tiles
    }

    /// The tiles, to watch, shuffle or reset them between runs.
    /// Each keeps its place: others ring its bell by it.
    pub fn tiles_mut(&mut self) -> &mut [Tile] {
        &mut self.tiles
    }

    /// Cycles that a tile may be ahead of those that it sends to, of hubs that only answer twice as many at most.
    pub fn quantum(&self) -> u64 {
        self.quantum
    }

    /// Shortens the quantum. No result may depend on it.
    ///
    /// # Panics
    /// If it is 0 or longer than the links allow.
    pub fn set_quantum(&mut self, quantum: u64) {
        assert!(
            (1..=self.quantum).contains(&quantum),
            "the quantum must be 1 to {}, not {quantum}",
            self.quantum
        );
        self.quantum = quantum;
    }

    /// Runs on so many threads, at least 1. No result may depend on it.
    pub fn set_threads(&mut self, threads: usize) {
        self.threads = threads.clamp(1, self.tiles.len().max(1));
    }

    /// Moves on to a cycle before which nothing is due; an earlier one is no move.
    ///
    /// # Panics
    /// If something is due before.
    pub fn wait_until(&mut self, at: Cycle) {
        let now = self.now;
        let is_free = self
            .tiles
            .iter()
            .all(|tile| !tile.is_skipping() || tile.next_due(now) >= at);
        assert!(at <= now || is_free, "cycle {now}: something is due before cycle {at}");
        self.now = now.max(at);
        self.begin_windows();
    }

    /// Every component is back to its first state, and due in cycle `at`, which is the next to run.
    pub fn reset(&mut self, at: Cycle) {
        self.tiles.iter_mut().for_each(|tile| tile.reset(at));
        self.now = at;
    }

    /// Runs until `stop` holds (asked after every quantum with the first cycle that not all tiles have run), until `limit`, or until nothing can happen any more.
    ///
    /// # Panics
    /// As a component does, whatever thread ticked it.
    pub fn run(&mut self, limit: Cycle, mut stop: impl FnMut(Cycle) -> bool) -> Stop {
        let reason = self.lead(|plan, _| plan.run(limit, &mut stop));
        if reason == Stop::Limit {
            self.begin_windows();
        }
        reason
    }

    /// Runs, or waits, in steps of so many cycles until no component has had anything under way for a whole step; early only if
    /// something is stuck for good. How many steps that takes does not depend on whether the clock sees that nothing is due.
    ///
    /// # Panics
    /// As a component does, whatever thread ticked it.
    pub fn run_until_still(&mut self, step: u64) {
        self.lead(|plan, ring| {
            let (mut is_still, mut busy) = (false, 0);
            loop {
                let reason = plan.run_to(plan.now() + step)?;
                let was_still = std::mem::replace(&mut is_still, ring.is_still(&mut busy));
                if was_still && is_still || reason == Stop::Quiet && !is_still {
                    return Some(());
                }
            }
        });
    }

    /// Does what is asked for, with this thread leading the others.
    fn lead<T>(&mut self, what: impl FnOnce(&mut Plan, &Ring) -> Option<T>) -> T {
        self.bells.set_alone(self.threads == 1);
        let (threads, quantum, now) = (self.threads, self.quantum, self.now);
        let ring = Ring::new(&mut self.tiles, &self.sides, threads);
        let reaches = ring.reaches(quantum);
        let orders = Orders::new(Share::deal(&ring, &reaches, &self.bells, threads, now));
        let mut plan = Plan::new(&ring, &orders, now, self.reaches.within(quantum), &self.promises);
        let result = std::thread::scope(|scope| {
            let follow = |worker| {
                let orders = &orders;
                scope.spawn(move || orders.follow(worker))
            };
            let others: Vec<_> = (1..threads).map(follow).collect();
            let result = plan.lead(|plan| what(plan, &ring));
            for other in others {
                other.join().unwrap_or_else(|panic| resume_unwind(panic));
            }
            result.expect("all threads came to every meeting")
        });
        self.now = plan.now();
        result
    }

    /// A jump that ticks nothing may pass the first cycle of a window; it shows what there was to see in it.
    fn begin_windows(&mut self) {
        let now = self.now;
        self.tiles.iter_mut().for_each(|tile| _ = tile.begin_passed(now));
    }
}

/// What the links between tiles of these sides allow, and the promises of desks.
fn reaches(tiles: &[Tile], sides: &[Side]) -> (Reaches, Vec<Promise>) {
    let reach = |tile: &Tile| tile.remote_latency().unwrap_or(MAX_QUANTUM).clamp(1, MAX_QUANTUM);
    let of = |side| tiles.iter().filter(move |tile| sides[tile.number()] == side);
    let desks = || of(Side::Desk);
    let ahead = if sides.contains(&Side::Hub) {
        Side::Hub
    } else {
        Side::Leaf
    };
    let reaches = Reaches {
        hubs: of(ahead).map(reach).min().unwrap_or(MAX_QUANTUM),
        desks: desks().map(reach).min(),
        longest: of(ahead).chain(desks()).map(reach).max().unwrap_or(MAX_QUANTUM),
    };
    (reaches, desks().filter_map(Tile::promise).collect())
}
