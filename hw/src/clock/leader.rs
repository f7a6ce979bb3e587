//! The leader chooses the next window. The worker pool runs it on all threads.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bitvec::slice::BitSlice;
use crossbeam::utils::CachePadded;
use tracing::trace;

use super::barrier::ThreadBarrier;
use super::role::Role;
use super::worker::{Window, Worker};
use super::{MAX_QUANTUM, Pause, ReadComponent, Stop};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::tile::due::DueTable;
use crate::time::Cycle;

/// The workers of a run, one for each host thread. Worker 0 is the leader's.
pub(super) struct WorkerPool<'a> {
    workers: Vec<CachePadded<Mutex<Worker<'a>>>>,
    window: PostedWindow,
    /// True once the leader has ended the run.
    is_over: AtomicBool,
    barrier: ThreadBarrier,
}

impl<'a> WorkerPool<'a> {
    /// Creates a pool with one thread per worker.
    pub(super) fn new(workers: Vec<Worker<'a>>) -> Self {
        WorkerPool {
            barrier: ThreadBarrier::new(workers.len()),
            workers: workers.into_iter().map(Mutex::new).map(CachePadded::new).collect(),
            window: PostedWindow::default(),
            is_over: AtomicBool::new(false),
        }
    }

    /// Runs each window on worker `number`, until the leader ends the run.
    pub(super) fn follow(&self, number: usize) {
        // A panic of this thread breaks the barrier, so no other thread waits for it.
        let _guard = self.barrier.guard();
        // The first barrier follows the post of a window, the second its end. Between windows only the leader uses the workers.
        while self.barrier.wait() && !self.is_over.load(Ordering::Acquire) {
            self.worker(number).run(self.window.read());
            // The result is not read: a broken barrier also ends the next wait.
            self.barrier.wait();
        }
    }

    /// Locks worker `number`. One thread uses a worker at a time, so the lock is free.
    fn worker(&self, number: usize) -> MutexGuard<'_, Worker<'a>> {
        self.workers[number].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks each worker in turn.
    fn workers(&self) -> impl Iterator<Item = MutexGuard<'_, Worker<'a>>> {
        (0..self.workers.len()).map(|number| self.worker(number))
    }

    /// Runs a window on all threads, or on this thread if `fits_one_thread` returns true. Returns `None` if another thread has panicked.
    fn run(&self, window: Window, fits_one_thread: impl FnOnce() -> bool) -> Option<()> {
        if self.workers.len() == 1 || fits_one_thread() {
            // No barrier: the followers wait for a posted window, and hold no worker.
            self.workers().for_each(|mut worker| worker.run(window));
            return Some(());
        }
        // Posted before the barrier, which makes it visible to the followers.
        self.window.post(window);
        let no_panic = self.barrier.wait() && {
            self.worker(0).run(window);
            self.barrier.wait()
        };
        no_panic.then_some(())
    }
}

/// The window that all threads read. The barrier orders the accesses.
#[derive(Default)]
struct PostedWindow {
    is_interconnect: AtomicBool,
    from: AtomicU64,
    end: AtomicU64,
}

impl PostedWindow {
    fn post(&self, window: Window) {
        let is_interconnect = window.role == Role::Interconnect;
        self.is_interconnect.store(is_interconnect, Ordering::Release);
        self.from.store(window.from.0, Ordering::Release);
        self.end.store(window.end.0, Ordering::Release);
    }

    fn read(&self) -> Window {
        Window {
            role: match self.is_interconnect.load(Ordering::Acquire) {
                true => Role::Interconnect,
                false => Role::Leaf,
            },
            from: Cycle(self.from.load(Ordering::Acquire)),
            end: Cycle(self.end.load(Ordering::Acquire)),
        }
    }
}

/// The leader of the threads: it chooses the next window by the progress of the two roles.
pub(super) struct Leader<'a> {
    /// The first cycle that interconnect tiles have not run.
    interconnect_at: Cycle,
    /// The first cycle that leaves have not run.
    leaves_at: Cycle,
    lookahead: u64,
    /// One bit per tile, by tile number.
    interconnect_tiles: &'a BitSlice,
    due: &'a DueTable,
    pool: &'a WorkerPool<'a>,
}

impl<'a> Leader<'a> {
    /// Creates a leader. All tiles have run up to cycle `now`.
    pub(super) fn new(
        now: Cycle,
        lookahead: u64,
        interconnect_tiles: &'a BitSlice,
        due: &'a DueTable,
        pool: &'a WorkerPool<'a>,
    ) -> Self {
        Leader {
            interconnect_at: now,
            leaves_at: now,
            lookahead,
            interconnect_tiles,
            due,
            pool,
        }
    }

    /// The first cycle that some tile has not run: the cycle of the role that is behind.
    pub(super) fn now(&self) -> Cycle {
        self.interconnect_at.min(self.leaves_at)
    }

    /// The first cycle that no tile has run: the cycle of the role that is ahead.
    fn furthest(&self) -> Cycle {
        self.interconnect_at.max(self.leaves_at)
    }

    /// Calls `action` while the other threads follow, then ends them. Returns `None` if one of them has panicked.
    pub(super) fn with_followers<T>(&mut self, action: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let pool = self.pool;
        // A panic in `action` breaks the barrier, so the followers return.
        let _guard = pool.barrier.guard();
        let result = action(self)?;
        // The followers read it after the barrier, and return.
        pool.is_over.store(true, Ordering::Release);
        pool.barrier.wait().then_some(result)
    }

    /// Runs until `stop` returns true, until no component is due, or until cycle `limit`. At the end all tiles have reached the same cycle.
    pub(super) fn run(&mut self, limit: Cycle, stop: &mut impl FnMut(&Pause<'_>) -> bool) -> Option<Stop> {
        let reason = loop {
            // A lower bound of the next due cycle. It can lie before the cycle of the role that is ahead, if the other role has not run it.
            let next = self.due.earliest();
            if next == Cycle::NEVER {
                // No tile is due, so the roles meet in one cycle before `stop` reads the components.
                self.align()?;
                break if self.call_stop(stop) {
                    Stop::Condition
                } else {
                    Stop::Idle
                };
            }
            if self.jump(next.min(limit), limit, stop) {
                break Stop::Condition;
            }
            if self.now() >= limit {
                break Stop::Limit;
            }
            self.run_window(limit)?;
            if self.call_stop(stop) {
                break Stop::Condition;
            }
        };
        self.align()?;
        Some(reason)
    }

    /// Skips to cycle `to`: no component is due before it, so none sends before it. Returns true if `stop` returns true on the way.
    ///
    /// A message to the host may be in flight. It is visible at most [`MAX_QUANTUM`] cycles after the last cycle that ran. So a longer jump
    /// pauses there, and `stop` can take the message before the run continues. A jump to the limit pauses at the limit too.
    fn jump(&mut self, to: Cycle, limit: Cycle, stop: &mut impl FnMut(&Pause<'_>) -> bool) -> bool {
        // No link between tiles, the host's included, has a longer latency.
        let visible = self.furthest() + MAX_QUANTUM;
        if visible < to {
            self.skip_to(visible);
            if self.call_stop(stop) {
                return true;
            }
        }
        let is_jump = to > self.furthest();
        self.skip_to(to);
        is_jump && to == limit && self.call_stop(stop)
    }

    /// Calls `stop` between two windows.
    fn call_stop(&self, stop: &mut impl FnMut(&Pause<'_>) -> bool) -> bool {
        let visit = |read: &mut ReadComponent<'_>| {
            for mut worker in self.pool.workers() {
                // Between windows the followers wait at the barrier, so no lock is held.
                let components = worker.tiles().flat_map(|tile| tile.components());
                components.for_each(|component| read(component.as_ref()));
            }
        };
        stop(&Pause {
            now: self.now(),
            visit: &visit,
        })
    }

    /// Runs to cycle `at`, with ticks where components are due.
    pub(super) fn run_to(&mut self, at: Cycle) -> Option<Stop> {
        let reason = self.run(at, &mut |_| false)?;
        self.skip_to(at);
        for mut worker in self.pool.workers() {
            worker.tiles().for_each(|tile| tile.begin_passed_trace_window(at));
        }
        Some(reason)
    }

    /// True if every component of every tile is quiescent.
    pub(super) fn is_quiescent(&self) -> bool {
        self.pool
            .workers()
            .all(|mut worker| worker.tiles().all(|tile| tile.is_quiescent()))
    }

    /// Skips to cycle `to` without ticks: no component is due before it. Does nothing if a tile has run cycle `to`.
    fn skip_to(&mut self, to: Cycle) {
        let from = self.furthest();
        if to > from {
            trace!(cycle = from.0, path = "clock", to = to.0, "clock jumps");
            (self.interconnect_at, self.leaves_at) = (to, to);
        }
    }

    /// Runs the role that is behind until it is one lookahead ahead of the other, or until `limit`.
    fn run_window(&mut self, limit: Cycle) -> Option<()> {
        let has_interconnect = self.interconnect_tiles.any();
        let (role, from, other) = if has_interconnect && self.interconnect_at < self.leaves_at {
            (Role::Interconnect, self.interconnect_at, self.leaves_at)
        } else {
            // At the start both roles are in one cycle, and the leaves go first.
            (Role::Leaf, self.leaves_at, self.interconnect_at)
        };
        // A later message of the other role is visible in `other + lookahead` or later.
        let end = (other + self.lookahead).min(limit);
        assert!(end <= Cycle::LAST, "cycle {end} is beyond the last, {}", Cycle::LAST);
        self.pool
            .run(Window { role, from, end }, || self.fits_one_thread(role, end))?;
        match role {
            Role::Interconnect => self.interconnect_at = end,
            Role::Leaf => self.leaves_at = end,
        }
        if !has_interconnect {
            // Leaves send to leaves, so no leaf may run ahead of the others. Both cycles advance together.
            self.interconnect_at = self.leaves_at;
        }
        Some(())
    }

    /// True if at most one tile is due in the window. Then one thread runs it.
    fn fits_one_thread(&self, role: Role, end: Cycle) -> bool {
        let is_due = |&tile: &usize| self.due.get(tile) < end;
        match role {
            // `nth(1)` is the second due tile.
            Role::Interconnect => self.interconnect_tiles.iter_ones().filter(is_due).nth(1).is_none(),
            Role::Leaf => self.interconnect_tiles.iter_zeros().filter(is_due).nth(1).is_none(),
        }
    }

    /// Runs the role that is behind up to the cycle of the other.
    fn align(&mut self) -> Option<()> {
        let furthest = self.furthest();
        while self.now() < furthest {
            // With this limit the role that is behind stops in the cycle of the other.
            self.run_window(furthest)?;
        }
        Some(())
    }
}
