//! A mailbox: for each component of a tile the cycles in which messages of other tiles come.
//!
//! Few components of a tile hear of others, and a window's cycles are the bits of a word: so all mail of a window lies in two or three
//! lines of the processor's cache, which the threads of both tiles take from each other.

use std::sync::atomic::{AtomicU64, Ordering};

use super::wheel::{Wheel, first_from};
use super::{HORIZON, MAX_COMPONENTS};
use crate::bits::ones;
use crate::time::Cycle;

/// For each component the cycles modulo the horizon; and which components have any.
#[repr(C)]
pub struct Mail {
    components: AtomicU64,
    cycles: [AtomicU64; MAX_COMPONENTS],
}

/// A cycle is a bit of a word.
const _: () = assert!(HORIZON == u64::BITS as u64);

impl Mail {
    /// No mail.
    pub fn new() -> Self {
        Mail {
            components: AtomicU64::new(0),
            cycles: [const { AtomicU64::new(0) }; MAX_COMPONENTS],
        }
    }

    /// Adds a wake-up, while other threads may add more.
    ///
    /// What is set already need not be set again, and a plain load does not take the line from others: who reads a bit that is
    /// being taken off reads it before that, so it is taken over for this message too.
    #[inline]
    pub fn post(&self, at: Cycle, component: u8) {
        let cycles = &self.cycles[component as usize];
        if cycles.load(Ordering::Acquire) & bit(at) == 0 {
            cycles.fetch_or(bit(at), Ordering::AcqRel);
        }
        if self.components.load(Ordering::Acquire) >> component & 1 == 0 {
            self.components.fetch_or(1 << component, Ordering::AcqRel);
        }
    }

    /// The first cycle from `now` on in which a message comes.
    pub fn next(&self, now: Cycle) -> Cycle {
        let components = ones(self.components.load(Ordering::Acquire));
        let cycles = components.fold(0, |cycles, component| {
            cycles | self.cycles[component].load(Ordering::Acquire)
        });
        first_from(now, cycles)
    }

    /// Puts all on `wheel`, while other threads may leave more.
    pub fn drain_into(&self, wheel: &Wheel) {
        if self.components.load(Ordering::Relaxed) == 0 {
            return;
        }
        for component in ones(self.components.swap(0, Ordering::AcqRel)) {
            wheel.add_all(self.cycles[component].swap(0, Ordering::AcqRel), component);
        }
    }
}

/// The bit of a cycle.
#[inline]
fn bit(at: Cycle) -> u64 {
    1 << (at.0 % HORIZON)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wake_ups_are_on_the_wheel_once_and_the_mailbox_is_empty() {
        let (mail, wheel) = (Mail::new(), Wheel::new());
        for (at, component) in [(3, 0), (3, 2), (63, 1), (70, 3)] {
            mail.post(Cycle(at), component);
        }
        assert_eq!(mail.next(Cycle(60)), Cycle(63));
        mail.drain_into(&wheel);
        assert_eq!([3, 6, 63].map(|at| wheel.take(Cycle(at))), [0b101, 0b1000, 0b10]);
        mail.drain_into(&wheel);
        assert_eq!(
            (mail.next(Cycle(0)), wheel.next(Cycle(0))),
            (Cycle::NEVER, Cycle::NEVER)
        );
    }
}
