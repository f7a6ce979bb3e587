//! Timers of warps that wait for a guard. A predicate becomes visible to guards in a known cycle, which no message announces.

use warpwave_hw::bits::ones;
use warpwave_hw::time::Cycle;

use crate::proto::warp::{MAX_SLOTS, SlotMask};

/// One timer per warp slot.
///
/// Invariant: no timer in `running` is due before `next`. `next` may be earlier than every timer, after a timer was set again.
#[derive(Clone, Debug)]
pub(super) struct GuardTimers {
    /// Slots with a timer, bit i for slot i.
    running: SlotMask,
    /// First cycle in which a timer ends.
    next: Cycle,
    /// End of each running timer.
    due: [Cycle; MAX_SLOTS],
}

impl Default for GuardTimers {
    fn default() -> Self {
        GuardTimers {
            running: 0,
            next: Cycle::NEVER,
            due: [Cycle::ZERO; MAX_SLOTS],
        }
    }
}

impl GuardTimers {
    /// Sets the timer of a slot, unless its end `due` is not after `now`.
    #[inline]
    pub(super) fn set(&mut self, slot: usize, due: Cycle, now: Cycle) {
        // A warp stalls as `wait` for other reasons too: a pending result, a pause. Then its guard may be visible, and needs no timer.
        if due > now {
            self.running |= 1 << slot;
            self.due[slot] = due;
            self.next = self.next.min(due);
        }
    }

    /// First cycle in which a timer ends, or [`Cycle::NEVER`].
    #[inline]
    pub(super) fn next(&self) -> Cycle {
        self.next
    }

    /// Ends the timers that are due. Returns their slots as a mask.
    #[inline]
    pub(super) fn take_due(&mut self, now: Cycle) -> SlotMask {
        if self.next > now { 0 } else { self.end_due(now) }
    }

    fn end_due(&mut self, now: Cycle) -> SlotMask {
        let mut ended = 0;
        self.next = Cycle::NEVER;
        for slot in ones(self.running) {
            if self.due[slot] <= now {
                ended |= 1 << slot;
            } else {
                self.next = self.next.min(self.due[slot]);
            }
        }
        self.running &= !ended;
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_end_in_their_cycle_whatever_the_order_of_their_start() {
        let mut timers = GuardTimers::default();
        assert_eq!((timers.next(), timers.take_due(Cycle(5))), (Cycle::NEVER, 0));
        timers.set(63, Cycle(20), Cycle(6));
        timers.set(0, Cycle(12), Cycle(7));
        timers.set(4, Cycle(12), Cycle(8));
        assert_eq!((timers.next(), timers.take_due(Cycle(11))), (Cycle(12), 0));
        assert_eq!(timers.take_due(Cycle(12)), 0b10001);
        assert_eq!((timers.next(), timers.take_due(Cycle(12))), (Cycle(20), 0));
        assert_eq!((timers.take_due(Cycle(25)), timers.next()), (1 << 63, Cycle::NEVER));
    }

    #[test]
    fn timer_that_would_have_ended_is_not_set() {
        let mut timers = GuardTimers::default();
        timers.set(3, Cycle(9), Cycle(9));
        timers.set(3, Cycle::ZERO, Cycle(9));
        assert_eq!(timers.next(), Cycle::NEVER);
    }

    #[test]
    fn later_end_replaces_an_earlier_one() {
        let mut timers = GuardTimers::default();
        timers.set(3, Cycle(9), Cycle(1));
        timers.set(3, Cycle(13), Cycle(5));
        // The first end is a spurious wake-up of no slot.
        assert_eq!(timers.take_due(Cycle(9)), 0);
        assert_eq!(timers.take_due(Cycle(13)), 1 << 3);
    }
}
