//! A wheel: a mask of components for each of the next [`HORIZON`] cycles.
//!
//! The next cycle in which anything is due is one bit scan away. Entries lie less than the horizon ahead of whoever reads them.

use std::sync::atomic::{AtomicU64, Ordering};

use super::HORIZON;
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

    /// Adds components where no other thread writes, so that plain loads and stores do: on the tile's own, or on the only one.
    #[inline]
    pub fn add(&self, at: Cycle, components: u64) {
        let place = (at.0 % HORIZON) as usize;
        self.due[place].store(self.due[place].load(Ordering::Relaxed) | components, Ordering::Relaxed);
        self.cycles
            .store(self.cycles.load(Ordering::Relaxed) | 1 << place, Ordering::Relaxed);
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
        let cycles = self.cycles.load(Ordering::Acquire);
        if cycles == 0 {
            return Cycle::NEVER;
        }
        now + u64::from(cycles.rotate_right((now.0 % HORIZON) as u32).trailing_zeros())
    }

    /// Adds components from another thread.
    ///
    /// What is set already need not be set again, and a plain load does not take the line from others: who reads a bit that is
    /// being taken off reads it before that, so it is taken over for this message too.
    #[inline]
    pub fn post(&self, at: Cycle, components: u64) {
        let place = (at.0 % HORIZON) as usize;
        let due = &self.due[place];
        if due.load(Ordering::Acquire) & components != components {
            due.fetch_or(components, Ordering::AcqRel);
        }
        if self.cycles.load(Ordering::Acquire) >> place & 1 == 0 {
            self.cycles.fetch_or(1 << place, Ordering::AcqRel);
        }
    }

    /// Moves all entries into `wheel`, on the only thread.
    pub fn empty_into(&self, wheel: &Wheel) {
        let mut cycles = self.cycles.load(Ordering::Relaxed);
        while cycles != 0 {
            let at = Cycle(u64::from(cycles.trailing_zeros()));
            cycles &= cycles - 1;
            wheel.add(at, self.take(at));
        }
    }

    /// Moves all entries into `wheel`, while other threads may add some.
    pub fn drain_into(&self, wheel: &Wheel) {
        if self.cycles.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut cycles = self.cycles.swap(0, Ordering::AcqRel);
        while cycles != 0 {
            let place = cycles.trailing_zeros();
            cycles &= cycles - 1;
            let components = self.due[place as usize].swap(0, Ordering::AcqRel);
            wheel.add(Cycle(u64::from(place)), components);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_of_one_thread_and_of_several_puts_the_same_on_the_wheel_once() {
        let entries = [(3, 0b1), (3, 0b100), (63, 0b10), (70, 0b1000)].map(|(at, who)| (Cycle(at), who));
        let (alone, shared, first, second) = (Wheel::new(), Wheel::new(), Wheel::new(), Wheel::new());
        for (at, who) in entries {
            alone.add(at, who);
            shared.post(at, who);
        }
        alone.empty_into(&first);
        shared.drain_into(&second);
        for wheel in [&first, &second] {
            assert_eq!([3, 6, 63].map(|at| wheel.take(Cycle(at))), [0b101, 0b1000, 0b10]);
        }
        for mail in [&alone, &shared] {
            mail.drain_into(&first);
            assert_eq!(
                (mail.next(Cycle(0)), first.next(Cycle(0))),
                (Cycle::NEVER, Cycle::NEVER)
            );
        }
    }
}
