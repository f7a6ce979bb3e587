//! Where the threads of a clock meet: a barrier that nobody waits at for ever.
//!
//! Quanta are short, so a thread that waits spins at first; when there are more threads than cores, or the others take long, it
//! sleeps. A thread that panics breaks the meeting up: all others learn it instead of waiting for it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Looks at the round before a thread sleeps: some tens of microseconds.
const SPINS: u32 = 4096;

/// A barrier for a fixed number of threads.
pub struct Meeting {
    threads: usize,
    spins: u32,
    arrived: AtomicUsize,
    round: AtomicUsize,
    broken: AtomicBool,
    sleepers: AtomicUsize,
    bed: Mutex<()>,
    bell: Condvar,
}

impl Meeting {
    /// A meeting of so many threads.
    pub fn new(threads: usize) -> Self {
        // Asked only where it matters: the system reads files to answer, and a clock that stops often meets often.
        let has_cores = threads > 1 && std::thread::available_parallelism().is_ok_and(|cores| threads <= cores.get());
        Meeting {
            threads,
            spins: if has_cores { SPINS } else { 0 },
            arrived: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            sleepers: AtomicUsize::new(0),
            bed: Mutex::new(()),
            bell: Condvar::new(),
        }
    }

    /// Waits until all threads are here; false if they will not come any more.
    pub fn meet(&self) -> bool {
        if self.threads == 1 {
            return true;
        }
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Release);
            // A sleeper counts itself before it looks at the round; so either it sees this or we see it.
            self.round.fetch_add(1, Ordering::SeqCst);
            if self.sleepers.load(Ordering::SeqCst) > 0 {
                self.ring();
            }
        } else {
            self.wait(round);
        }
        !self.broken.load(Ordering::Acquire)
    }

    /// Nobody is to wait any more.
    pub fn break_up(&self) {
        self.broken.store(true, Ordering::SeqCst);
        self.ring();
    }

    /// Breaks the meeting up if this thread panics while it holds the result.
    pub fn attend(&self) -> Attendance<'_> {
        Attendance(self)
    }

    fn is_over(&self, round: usize) -> bool {
        self.round.load(Ordering::SeqCst) != round || self.broken.load(Ordering::SeqCst)
    }

    fn wait(&self, round: usize) {
        for _ in 0..self.spins {
            if self.is_over(round) {
                return;
            }
            std::hint::spin_loop();
        }
        let mut bed = self.lie_down();
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        while !self.is_over(round) {
            bed = self.bell.wait(bed).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    fn ring(&self) {
        drop(self.lie_down());
        self.bell.notify_all();
    }

    fn lie_down(&self) -> MutexGuard<'_, ()> {
        self.bed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Held by a thread as long as the others count on it.
pub struct Attendance<'a>(&'a Meeting);

impl Drop for Attendance<'_> {
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
    fn more_threads_than_cores_nobody_is_ever_a_round_ahead() {
        const THREADS: usize = 7;
        let meeting = Meeting::new(THREADS);
        let counts: Vec<AtomicUsize> = (0..THREADS).map(|_| AtomicUsize::new(0)).collect();
        std::thread::scope(|scope| {
            for own in &counts {
                let (meeting, counts) = (&meeting, &counts);
                scope.spawn(move || {
                    for round in 1..=300 {
                        own.store(round, Ordering::Relaxed);
                        assert!(meeting.meet());
                        let all: Vec<_> = counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
                        assert_eq!(all, [round; THREADS]);
                        assert!(meeting.meet());
                    }
                });
            }
        });
    }

    #[test]
    fn thread_that_panics_the_others_are_let_go() {
        let meeting = Meeting::new(3);
        std::thread::scope(|scope| {
            let waiting: Vec<_> = (0..2).map(|_| scope.spawn(|| meeting.meet())).collect();
            let failing = scope.spawn(|| {
                let _attendance = meeting.attend();
                panic!("on purpose");
            });
            assert!(failing.join().is_err());
            for thread in waiting {
                assert!(!thread.join().expect("let go"));
            }
        });
    }
}
