//! A timing wheel: a mask of components for each of the next [`HORIZON`] cycles.
//!
//! One bit scan finds the next cycle with an entry. Entries lie less than the horizon ahead of the reader.

use super::HORIZON;
use crate::bits::ones;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::time::Cycle;

/// For each cycle modulo the horizon, the components to tick. A mask marks the cycles with components.
pub(crate) struct Wheel {
    due: [AtomicU64; HORIZON as usize],
    cycles: AtomicU64,
}

impl Wheel {
    /// Creates a wheel without entries.
    pub(crate) fn new() -> Self {
        Wheel {
            due: std::array::from_fn(|_| AtomicU64::new(0)),
            cycles: AtomicU64::new(0),
        }
    }

    /// Adds components in cycle `at`. Only the tile's own thread writes.
    #[inline]
    pub(crate) fn add(&self, at: Cycle, components: u64) {
        let index = (at.0 % HORIZON) as usize;
        // A load and a store instead of a slow `fetch_or`, because one thread writes.
        self.due[index].store(self.due[index].load(Ordering::Relaxed) | components, Ordering::Relaxed);
        self.cycles
            .store(self.cycles.load(Ordering::Relaxed) | 1 << index, Ordering::Relaxed);
    }

    /// Adds a component in each cycle of a mask. Bit n is cycle n modulo the horizon.
    #[inline]
    pub(crate) fn add_all(&self, cycles: u64, component: usize) {
        for index in ones(cycles) {
            let due = &self.due[index];
            due.store(due.load(Ordering::Relaxed) | 1 << component, Ordering::Relaxed);
        }
        self.cycles
            .store(self.cycles.load(Ordering::Relaxed) | cycles, Ordering::Relaxed);
    }

    /// Removes and returns the components due in a cycle.
    #[inline]
    pub(crate) fn take(&self, at: Cycle) -> u64 {
        let index = (at.0 % HORIZON) as usize;
        self.cycles
            .store(self.cycles.load(Ordering::Relaxed) & !(1 << index), Ordering::Relaxed);
        let due = self.due[index].load(Ordering::Relaxed);
        self.due[index].store(0, Ordering::Relaxed);
        due
    }

    /// The components due from cycle `from` up to `end`, which is not included.
    pub(crate) fn between(&self, from: Cycle, end: Cycle) -> u64 {
        // One turn of the wheel at most, so no index counts twice.
        let indices = (from.0..end.0.min(from.0 + HORIZON)).map(|at| (at % HORIZON) as usize);
        indices.fold(0, |due, index| due | self.due[index].load(Ordering::Relaxed))
    }

    /// The first cycle from `now` on with an entry.
    #[inline]
    pub(crate) fn next(&self, now: Cycle) -> Cycle {
        first_from(now, self.cycles.load(Ordering::Acquire))
    }
}

/// The first cycle from `now` on in a mask. Bit n is cycle n modulo the horizon.
#[inline]
pub(super) fn first_from(now: Cycle, cycles: u64) -> Cycle {
    if cycles == 0 {
        return Cycle::NEVER;
    }
    // The rotation makes `now` bit 0, so the bits after it wrap to later cycles.
    now + u64::from(cycles.rotate_right((now.0 % HORIZON) as u32).trailing_zeros())
}
