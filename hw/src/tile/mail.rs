//! A mailbox: wake-ups from other tiles for the components of a tile.
//!
//! Each component has one word. Bit n is a wake-up in cycle n (mod 64). A window touches two or three host cache lines.

use super::wheel::{Wheel, first_from};
use super::{HORIZON, MAX_COMPONENTS};
use crate::bits::ones;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::time::Cycle;

/// The wake-up cycles of each component, modulo the horizon, and the components that have any.
#[repr(C)]
pub(crate) struct Mail {
    components: AtomicU64,
    cycles: [AtomicU64; MAX_COMPONENTS],
}

// The bits of a word are the cycles of the horizon.
const _: () = assert!(HORIZON == u64::BITS as u64);

impl Mail {
    /// Creates an empty mailbox.
    pub(super) fn new() -> Self {
        Mail {
            components: AtomicU64::new(0),
            cycles: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Adds a wake-up, while other threads may add more.
    #[inline]
    pub(super) fn post(&self, at: Cycle, component: u8) {
        // A set bit is not set again: a plain load does not take the host cache line from other threads. If a load finds the bit
        // set, the swap of `drain_into` comes later, so the wake-up reaches the wheel.
        let cycles = &self.cycles[component as usize];
        if cycles.load(Ordering::Acquire) & bit(at) == 0 {
            cycles.fetch_or(bit(at), Ordering::AcqRel);
        }
        if self.components.load(Ordering::Acquire) >> component & 1 == 0 {
            self.components.fetch_or(1 << component, Ordering::AcqRel);
        }
    }

    /// The first cycle from `now` on with a wake-up.
    pub(crate) fn next(&self, now: Cycle) -> Cycle {
        let components = ones(self.components.load(Ordering::Acquire));
        let cycles = components.fold(0, |cycles, component| {
            cycles | self.cycles[component].load(Ordering::Acquire)
        });
        first_from(now, cycles)
    }

    /// Moves all wake-ups to `wheel`, while other threads may add more.
    pub(super) fn drain_into(&self, wheel: &Wheel) {
        // The swap runs even if the mailbox looks empty. A sender's write comes before it or after it. Before it: this thread takes the
        // wake-up. After it: the sender sees the raised entry of the due table, and lowers it. A plain load could miss both.
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
    fn wakeups_move_to_the_wheel_once() {
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
        // The next wake-up of a component does not bring back its earlier one.
        mail.post(Cycle(9), 0);
        mail.drain_into(&wheel);
        assert_eq!([3, 9].map(|at| wheel.take(Cycle(at))), [0, 0b1]);
        assert_eq!(
            (mail.next(Cycle(0)), wheel.next(Cycle(0))),
            (Cycle::NEVER, Cycle::NEVER)
        );
    }
}
