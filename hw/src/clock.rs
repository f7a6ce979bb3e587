//! The global clock: runs every tile for a quantum, lets them exchange, and goes on.
//!
//! The quantum is at most the shortest latency between tiles, so nothing that a tile sends can be due in another tile within
//! the same quantum: tiles may run one after the other, or on several threads, with the same result. When no tile has anything
//! to do, the clock jumps.

mod meeting;
mod share;

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::tile::Tile;
use crate::tile::bell::Bells;
use crate::time::Cycle;
use meeting::Meeting;
use share::Share;

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
    bells: Bells,
    quantum: u64,
    threads: usize,
}

impl Clock {
    /// A clock at cycle 0 over these tiles, with the longest quantum that their links allow, on one thread.
    pub fn new(mut tiles: Vec<Tile>) -> Self {
        let shortest = tiles.iter().filter_map(Tile::remote_latency).min();
        let quantum = shortest.unwrap_or(MAX_QUANTUM).clamp(1, MAX_QUANTUM);
        let bells = Bells::new(tiles.len());
        for (n, tile) in tiles.iter_mut().enumerate() {
            tile.join(&bells, n);
            tile.wake_all(Cycle::ZERO);
        }
        Clock {
            now: Cycle::ZERO,
            tiles,
            bells,
            quantum,
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

    /// Cycles that a tile runs by itself.
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

    /// Runs until `stop` holds (asked after every quantum), until `limit`, or until nothing can happen any more.
    ///
    /// # Panics
    /// As a component does, whatever thread ticked it.
    pub fn run(&mut self, limit: Cycle, mut stop: impl FnMut(Cycle) -> bool) -> Stop {
        let plan = Plan::new(self.threads);
        let (mut now, quantum) = (self.now, self.quantum);
        let mut shares = Share::deal(&mut self.tiles, &self.bells, self.threads, now).into_iter();
        let reason = std::thread::scope(|scope| {
            let mut own = shares.next().expect("at least one thread");
            let follow = |(n, share)| {
                let plan = &plan;
                scope.spawn(move || plan.follow(n + 1, share))
            };
            let others: Vec<_> = shares.enumerate().map(follow).collect();
            let reason = plan.lead(&mut now, limit, quantum, &mut own, &mut stop);
            for other in others {
                other.join().unwrap_or_else(|panic| resume_unwind(panic));
            }
            reason.expect("all threads came to every meeting")
        });
        self.now = now;
        if reason == Stop::Limit {
            self.begin_windows();
        }
        reason
    }

    /// A jump that ticks nothing may pass the first cycle of a window; it shows what there was to see in it.
    fn begin_windows(&mut self) {
        let now = self.now;
        let begin = self.tiles.iter_mut().filter(|tile| tile.next_window() < now);
        begin.for_each(|tile| tile.run(now, now));
    }
}

/// What the leading thread tells the others, and where all meet.
struct Plan {
    from: AtomicU64,
    end: AtomicU64,
    done: AtomicBool,
    next_due: Vec<AtomicU64>,
    meeting: Meeting,
}

impl Plan {
    fn new(threads: usize) -> Self {
        Plan {
            from: AtomicU64::new(0),
            end: AtomicU64::new(0),
            done: AtomicBool::new(false),
            next_due: (0..threads).map(|_| AtomicU64::new(u64::MAX)).collect(),
            meeting: Meeting::new(threads),
        }
    }

    /// A worker's life: each round, either say when its tiles are due next (an empty window) or run them.
    fn follow(&self, worker: usize, mut share: Share) {
        let _attendance = self.meeting.attend();
        while self.meeting.meet() && !self.done.load(Ordering::Acquire) {
            self.window(worker, &mut share);
            self.meeting.meet();
        }
    }

    /// The leader's: plans the windows, runs its own share, and sends the workers home. `None` if one of them panicked.
    fn lead(
        &self,
        now: &mut Cycle,
        limit: Cycle,
        quantum: u64,
        own: &mut Share,
        stop: &mut impl FnMut(Cycle) -> bool,
    ) -> Option<Stop> {
        let _attendance = self.meeting.attend();
        let reason = loop {
            let next = self.next_due(*now, own)?;
            if next == Cycle::NEVER {
                break Stop::Quiet;
            }
            if next >= limit {
                *now = limit.max(*now);
                break Stop::Limit;
            }
            *now = next.max(*now);
            let end = (*now + quantum).min(limit);
            self.round(*now, end, own)?;
            *now = end;
            if stop(end) {
                break Stop::Asked;
            }
        };
        self.done.store(true, Ordering::Release);
        self.meeting.meet().then_some(reason)
    }

    /// Runs the tiles through the window, and says when they are due next. In a full window that may miss what others are
    /// just sending; an empty one is there to ask again.
    fn window(&self, worker: usize, share: &mut Share) {
        let from = Cycle(self.from.load(Ordering::Acquire));
        let end = Cycle(self.end.load(Ordering::Acquire));
        let next = if from < end {
            share.run(from, end)
        } else {
            share.next_due(from)
        };
        self.next_due[worker].store(next.0, Ordering::Release);
    }

    /// Lets every thread do its window; `None` if one panicked.
    fn round(&self, from: Cycle, end: Cycle, own: &mut Share) -> Option<()> {
        self.from.store(from.0, Ordering::Release);
        self.end.store(end.0, Ordering::Release);
        let all_well = self.meeting.meet() && {
            self.window(0, own);
            self.meeting.meet()
        };
        all_well.then_some(())
    }

    /// When anything is due next; asks only if the last window did not say that it is at once.
    fn next_due(&self, now: Cycle, own: &mut Share) -> Option<Cycle> {
        if self.earliest() > now {
            self.round(now, now, own)?;
        }
        Some(self.earliest())
    }

    fn earliest(&self) -> Cycle {
        let next = self.next_due.iter().map(|next| next.load(Ordering::Acquire));
        Cycle(next.min().unwrap_or(u64::MAX))
    }
}
