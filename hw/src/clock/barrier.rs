//! A barrier for the host threads of a clock.
//!
//! Windows are short, so a waiting thread spins first. It sleeps after `SPINS` reads of the round, or at once if there are more threads
//! than cores. A thread that panics breaks the barrier. The other threads then return from `wait` with `false`.

use std::sync::PoisonError;

use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard, spin_loop};

/// Reads of the round before a thread sleeps: about 10 us. A larger number keeps the core from other programs
/// (`hw/docs/performance.md`).
const SPINS: u32 = 1024;

/// A barrier for a fixed number of threads.
pub(crate) struct ThreadBarrier {
    threads: usize,
    spins: u32,
    /// Threads that have arrived in this round.
    arrived: AtomicUsize,
    /// The number of the round. It rises when all threads have arrived.
    round: AtomicUsize,
    /// True once a thread has panicked.
    broken: AtomicBool,
    /// Threads that sleep, or are about to.
    sleepers: AtomicUsize,
    sleep_lock: Mutex<()>,
    wake: Condvar,
}

impl ThreadBarrier {
    /// Creates a barrier for `threads` threads.
    pub(super) fn new(threads: usize) -> Self {
        // The query is slow, and one thread never waits.
        let has_cores = threads > 1 && std::thread::available_parallelism().is_ok_and(|cores| threads <= cores.get());
        ThreadBarrier::with_spins(threads, if has_cores { SPINS } else { 0 })
    }

    /// Creates a barrier with `spins` reads of the round before a thread sleeps.
    pub(crate) fn with_spins(threads: usize, spins: u32) -> Self {
        ThreadBarrier {
            threads,
            spins,
            arrived: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            sleepers: AtomicUsize::new(0),
            sleep_lock: Mutex::new(()),
            wake: Condvar::new(),
        }
    }

    /// Waits until all threads have arrived. Returns false if a thread has panicked.
    pub(crate) fn wait(&self) -> bool {
        if self.threads == 1 {
            return true;
        }
        // Read before the arrival, because the last thread to arrive ends the round at once.
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            // Reset before the round ends. No other thread arrives until it has seen the next round.
            self.arrived.store(0, Ordering::Release);
            // A sleeper counts itself before it reads the round. So this thread sees the sleeper, or the sleeper sees the new round.
            // An addition of 0 reads the count: the later of the two additions sees what the earlier thread has written.
            self.round.fetch_add(1, Ordering::AcqRel);
            if self.sleepers.fetch_add(0, Ordering::AcqRel) > 0 {
                self.wake_all();
            }
        } else {
            self.wait_for_next(round);
        }
        !self.broken.load(Ordering::Acquire)
    }

    /// Breaks the barrier: every wait ends with `false`.
    pub(crate) fn break_up(&self) {
        self.broken.store(true, Ordering::Release);
        self.wake_all();
    }

    /// A guard that breaks the barrier if its thread panics.
    pub(super) fn guard(&self) -> PanicGuard<'_> {
        PanicGuard(self)
    }

    fn is_over(&self, round: usize) -> bool {
        self.round.load(Ordering::Acquire) != round || self.broken.load(Ordering::Acquire)
    }

    /// Waits until round `round` is over: spins first, then sleeps.
    fn wait_for_next(&self, round: usize) {
        for _ in 0..self.spins {
            if self.is_over(round) {
                return;
            }
            spin_loop();
        }
        // The lock is held from here to the wait, so no wake-up comes in between.
        let mut lock = self.lock();
        self.sleepers.fetch_add(1, Ordering::AcqRel);
        while !self.is_over(round) {
            lock = self.wake.wait(lock).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, Ordering::AcqRel);
    }

    fn wake_all(&self) {
        // A sleeper holds the lock from its last test of the round until it sleeps. After this lock it is asleep, or it sees the round.
        drop(self.lock());
        self.wake.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        // The lock guards no data, so a panic of its holder breaks nothing.
        self.sleep_lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Breaks the barrier if its thread panics ([`ThreadBarrier::guard`]).
pub(super) struct PanicGuard<'a>(&'a ThreadBarrier);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.break_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_thread_is_a_round_ahead_with_more_threads_than_cores() {
        const THREADS: usize = 7;
        let barrier = ThreadBarrier::new(THREADS);
        let counts: Vec<AtomicUsize> = (0..THREADS).map(|_| AtomicUsize::new(0)).collect();
        std::thread::scope(|scope| {
            for own in &counts {
                let (barrier, counts) = (&barrier, &counts);
                scope.spawn(move || {
                    for round in 1..=300 {
                        own.store(round, Ordering::Relaxed);
                        assert!(barrier.wait());
                        let all: Vec<_> = counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
                        assert_eq!(all, [round; THREADS]);
                        assert!(barrier.wait());
                    }
                });
            }
        });
    }

    #[test]
    fn panic_of_a_thread_ends_the_wait_of_the_others() {
        let barrier = ThreadBarrier::new(3);
        std::thread::scope(|scope| {
            let waiting: Vec<_> = (0..2).map(|_| scope.spawn(|| barrier.wait())).collect();
            let failing = scope.spawn(|| {
                let _guard = barrier.guard();
                panic!("on purpose");
            });
            assert!(failing.join().is_err());
            for thread in waiting {
                assert!(!thread.join().expect("the barrier is broken"));
            }
        });
    }
}
