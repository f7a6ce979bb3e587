//! A wheel: a mask of components for each of the next [`HORIZON`] cycles.
//!
//! The next cycle with an entry is one bit scan away. Entries lie less than the horizon ahead of the reader.

use std::sync::atomic::{AtomicU64, Ordering};

use super::HORIZON;
use crate::bits::ones;
use crate::time::Cycle;

/// For each cycle modulo the horizon, the components to tick; and which cycles have any.
pub struct Wheel {
    due: [AtomicU64; HORIZON as usize],
    cycles: AtomicU64,
}

impl Wheel {
    /// Nothing is due.
    pub fn new() -> Self {
        Wheel {
            due: [const { AtomicU64::new(0) }; HORIZON as usize],
            cycles: AtomicU64::new(0),
        }
    }

    /// Adds components, on the tile's own thread: no other writes.
    #[inline]
    pub fn add(&self, at: Cycle, components: u64) {
        let place = (at.0 % HORIZON) as usize;
        self.due[place].store(self.due[place].load(Ordering::Relaxed) | components, Ordering::Relaxed);
        self.cycles
            .store(self.cycles.load(Ordering::Relaxed) | 1 << place, Ordering::Relaxed);
    }

    /// Adds a component in each of these cycles, modulo the horizon.
    #[inline]
    pub fn add_all(&self, cycles: u64, component: usize) {
        for place in ones(cycles) {
            let due = &self.due[place];
            due.store(due.load(Ordering::Relaxed) | 1 << component, Ordering::Relaxed);
        }
        self.cycles
            .store(self.cycles.load(Ordering::Relaxed) | cycles, Ordering::Relaxed);
    }

    /// The components due in a cycle, taken off.
    #[inline]
    pub fn take(&self, at: Cycle) -> u64 {
        let place = (at.0 % HORIZON) as usize;
        self.cycles
            .store(self.cycles.load(Ordering::Relaxed) & !(1 << place), Ordering::Relaxed);
        let due = self.due[place].load(Ordering::Relaxed);
        self.due[place].store(0, Ordering::Relaxed);
        due
    }

    /// The components due from `from` until before `end`.
    pub fn between(&self, from: Cycle, end: Cycle) -> u64 {
        let places = (from.0..end.0.min(from.0 + HORIZON)).map(|at| (at % HORIZON) as usize);
        places.fold(0, |due, place| due | self.due[place].load(Ordering::Relaxed))
    }

    /// The first cycle from `now` on with an entry.
    #[inline]
    pub fn next(&self, now: Cycle) -> Cycle {
        first_from(now, self.cycles.load(Ordering::Acquire))
    }
}

/// The first cycle from `now` on whose bit, modulo the horizon, is set.
#[inline]
pub(super) fn first_from(now: Cycle, cycles: u64) -> Cycle {
    if cycles == 0 {
        return Cycle::NEVER;
    }
    now + u64::from(cycles.rotate_right((now.0 % HORIZON) as u32).trailing_zeros())
}
