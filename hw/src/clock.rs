//! The global clock: runs all tiles in windows of cycles, on one or more host threads.
//!
//! ```text
//!   cycle          now      now+L     now+2L    now+3L    now+4L
//!   leaves         |-- 1 --->|------- 3 ------->|------- 5 ---
//!   interconnect   |------- 2 ------->|------- 4 ------->|
//! ```
//!
//! The *quantum* L, also called the lookahead, is the shortest latency of a link between tiles, capped at [`MAX_QUANTUM`].
//! [`Clock::set_quantum`] lowers it. A message to another tile, sent in cycle t, is visible in cycle t + L or later.
//!
//! If the tile graph is bipartite, each tile has a *role*: leaf or interconnect (module `role`). The roles then run in turn. A role runs
//! at most L cycles ahead of the other role. A message that the other role sends later is visible only after these cycles.
//!
//! A *window* is the range of cycles that one role runs in one turn. The picture numbers the windows in the order in which they run. The
//! first window of a run has at most L cycles, a later one at most 2 L. Long windows mean few barriers. If the earliest due cycle is beyond
//! both roles, the clock jumps to it. The first window after a jump has at most L cycles. Without two such roles, all tiles are leaves and
//! a window has at most L cycles.
//!
//! No tick order, window or thread count changes a result: `hw/docs/time.md` gives the proof.
//!
//! Each host thread runs a fixed range of the tiles of each role (module `worker`). If at most one tile is due in a window, the leader's
//! thread runs the window alone.

pub(crate) mod barrier;
mod leader;
mod role;
mod worker;

use std::panic::resume_unwind;

use bitvec::vec::BitVec;
use tracing::{Span, trace};

use crate::component::Component;
use crate::tile::due::DueTable;
use crate::tile::{HORIZON, Tile};
use crate::time::Cycle;
use leader::{Leader, WorkerPool};
use worker::Worker;

// When a tile sends, the next cycle of the receiver is at most L - 1 cycles earlier. A link between tiles adds at most half a horizon. The
// sum is below one horizon, so a wake-up fits on the receiver's timing wheel.
/// The longest quantum, in cycles: half the [horizon](crate::tile::HORIZON) of a tile.
pub const MAX_QUANTUM: u64 = HORIZON / 2;

/// The reason why [`Clock::run`] returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The caller's condition holds.
    Condition,
    /// The cycle limit is reached.
    Limit,
    /// No component is due in any later cycle.
    Idle,
}

/// A function that reads one component.
type ReadComponent<'a> = dyn FnMut(&dyn Component) + 'a;

/// The machine between two windows of a run.
///
/// One role may be up to one lookahead ahead of the other. So counters of two tiles may be from different cycles. A sum or
/// a difference over tiles is exact only when the run has ended.
pub struct Pause<'a> {
    now: Cycle,
    visit: &'a dyn Fn(&mut ReadComponent<'_>),
}

impl Pause<'_> {
    /// The first cycle that some tile has not run yet.
    pub fn now(&self) -> Cycle {
        self.now
    }

    /// Calls `read` with every component, in any order.
    pub fn each_component(&self, read: &mut dyn FnMut(&dyn Component)) {
        (self.visit)(read);
    }
}

/// The clock of a machine, with all its tiles.
pub struct Clock {
    now: Cycle,
    tiles: Vec<Tile>,
    /// One bit per tile, by tile number: set for an interconnect tile (module `role`).
    interconnect: BitVec,
    due: DueTable,
    quantum: u64,
    threads: usize,
}

impl Clock {
    /// Creates a clock at cycle 0, with the longest quantum that the links and [`MAX_QUANTUM`] allow, and with one thread.
    pub fn new(mut tiles: Vec<Tile>) -> Self {
        let due = DueTable::new(tiles.len());
        for (n, tile) in tiles.iter_mut().enumerate() {
            tile.join_machine(&due, n);
            // A new component has not named its next tick, so all are due in cycle 0.
            tile.wake_all(Cycle::ZERO);
        }
        let latencies = tiles.iter().filter_map(Tile::remote_latency);
        Clock {
            now: Cycle::ZERO,
            interconnect: role::interconnect_of(&tiles),
            // Without links between tiles no message bounds a window.
            quantum: latencies.min().unwrap_or(MAX_QUANTUM).clamp(1, MAX_QUANTUM),
            tiles,
            due,
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

    /// The tiles, to set trace windows, tick orders and idle-skipping between runs.
    pub fn tiles_mut(&mut self) -> &mut [Tile] {
        &mut self.tiles
    }

    /// The quantum, in cycles: the lookahead in use.
    pub fn quantum(&self) -> u64 {
        self.quantum
    }

    /// Sets the quantum, in cycles. No result depends on it.
    ///
    /// # Panics
    /// If `quantum` is 0 or longer than the current quantum.
    pub fn set_quantum(&mut self, quantum: u64) {
        assert!(
            (1..=self.quantum).contains(&quantum),
            "the quantum must be 1 to {}, not {quantum}",
            self.quantum
        );
        self.quantum = quantum;
    }

    /// Sets the number of host threads, clamped to 1 up to the number of tiles. No result depends on it.
    pub fn set_threads(&mut self, threads: usize) {
        self.threads = threads.clamp(1, self.tiles.len().max(1));
    }

    /// Skips to cycle `at` without ticks, unless the clock is there already. Begins each trace window that starts before the clock's cycle.
    ///
    /// # Panics
    /// If a component of a tile with idle-skipping is due before cycle `at`.
    pub fn skip_to(&mut self, at: Cycle) {
        let now = self.now;
        // A tile without idle-skipping counts as due in every cycle, even without work. So it is not checked.
        let none_due = self
            .tiles
            .iter()
            .all(|tile| !tile.is_skipping() || tile.next_due(now) >= at);
        assert!(
            at <= now || none_due,
            "cycle {now}: a component is due before cycle {at}"
        );
        if at > now {
            trace!(cycle = now.0, path = "clock", to = at.0, "clock jumps");
            self.now = at;
        }
        self.begin_passed_trace_windows();
    }

    /// Resets every component. The next cycle to run is `at`, and all components are due in it.
    pub fn reset(&mut self, at: Cycle) {
        self.tiles.iter_mut().for_each(|tile| tile.reset(at));
        self.now = at;
    }

    /// Runs the cycles before `limit`, until `stop` returns true or no component is due.
    ///
    /// The clock calls `stop` after each window, and when no component is due. A long jump pauses for `stop` in a cycle in which every
    /// message to the host is visible. A jump to the limit calls `stop` at the limit too. The argument is the first cycle that some tile
    /// has not run yet.
    ///
    /// # Panics
    /// If a component panics, on any thread.
    pub fn run(&mut self, limit: Cycle, mut stop: impl FnMut(Cycle) -> bool) -> Stop {
        self.run_observed(limit, |pause| stop(pause.now()))
    }

    /// Runs like [`Clock::run`], but `stop` can read the components.
    ///
    /// # Panics
    /// If a component panics, on any thread.
    pub fn run_observed(&mut self, limit: Cycle, mut stop: impl FnMut(&Pause<'_>) -> bool) -> Stop {
        let reason = self.with_leader(|leader| leader.run(limit, &mut stop));
        // A jump to the limit runs no tile, so it begins no trace window that it passes.
        if reason == Stop::Limit {
            self.begin_passed_trace_windows();
        }
        reason
    }

    /// Advances in steps of `step` cycles, until all components are quiescent after two steps in a row.
    ///
    /// Returns after a step that ends in a deadlock: no component is due, but one still holds work. Without idle-skipping a deadlock is not
    /// detected. If the machine becomes quiescent, the number of steps is the same with and without idle-skipping.
    ///
    /// # Panics
    /// If a component panics, on any thread.
    pub fn run_until_quiescent(&mut self, step: u64) {
        self.with_leader(|leader| {
            let mut is_quiescent = false;
            loop {
                let reason = leader.run_to(leader.now() + step)?;
                // A quiescent component may have messages in its links. They arrive in the second step.
                let was_quiescent = std::mem::replace(&mut is_quiescent, leader.is_quiescent());
                if was_quiescent && is_quiescent || reason == Stop::Idle && !is_quiescent {
                    return Some(());
                }
            }
        });
    }

    /// Starts the worker threads and calls `action` with their leader, on this thread.
    fn with_leader<T>(&mut self, action: impl FnOnce(&mut Leader) -> Option<T>) -> T {
        // A reset adds wake-ups to the tile's wheel, but not to the due table. So each entry of the table is lowered to the next due
        // cycle of its tile.
        for tile in &mut self.tiles {
            tile.note_due(self.now);
        }
        // The workers borrow the tiles, so they are made for each run.
        let workers = Worker::split(&mut self.tiles, &self.interconnect, &self.due, self.threads);
        let pool = WorkerPool::new(workers);
        let mut leader = Leader::new(self.now, self.quantum, &self.interconnect, &self.due, &pool);
        let span = Span::current();
        let result = std::thread::scope(|scope| {
            let spawn_follower = |number| {
                let (pool, span) = (&pool, &span);
                scope.spawn(move || span.in_scope(|| pool.follow(number)))
            };
            // Worker 0 runs on this thread.
            let followers: Vec<_> = (1..self.threads).map(spawn_follower).collect();
            let result = leader.with_followers(action);
            // A follower returns when the leader ends the run or a panic breaks the barrier. Its panic goes on here.
            for follower in followers {
                follower.join().unwrap_or_else(|panic| resume_unwind(panic));
            }
            result.expect("no thread has panicked")
        });
        self.now = leader.now();
        result
    }

    /// Advances an idle machine to a cycle that does not depend on windows, threads or watchers. The cycle is at most `limit`.
    ///
    /// After [`Stop::Idle`] the clock's cycle depends on the end of the last window. A tile runs at most two quanta past the last cycle
    /// with a due component. So one [horizon](crate::tile::HORIZON) after that cycle is beyond every window.
    pub fn settle(&mut self, limit: Cycle) {
        let last = self.tiles.iter().map(Tile::last_due).max().unwrap_or(self.now);
        // `max`: the clock never goes back. It may be past that cycle already, after a skip or a jump with nothing due.
        self.now = self.now.max((last + 1 + HORIZON).min(limit));
        self.begin_passed_trace_windows();
    }

    /// Begins the trace windows that start before the clock's cycle. A trace window is the range of cycles that a tile's sampler records.
    fn begin_passed_trace_windows(&mut self) {
        let now = self.now;
        self.tiles
            .iter_mut()
            .for_each(|tile| tile.begin_passed_trace_window(now));
    }
}
