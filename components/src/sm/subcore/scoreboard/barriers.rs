//! Dependency barriers of one warp: counters of the results in flight that hold them.
//!
//! The compiler gives each result of variable latency one of six barriers. Issue counts it up, write-back counts it down. An instruction
//! waits until every barrier that it names is at zero. Results that share a barrier may return in any order, so a reader waits for all.

use warpwave_hw::invariant::Invariants;
use warpwave_isa::control::DEP_BARRIERS;

use crate::proto::predecoded::Predecoded;

/// The dependency barriers of one warp.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Barriers {
    /// Results in flight of each barrier. At most one per register and predicate.
    counts: [u16; DEP_BARRIERS],
    /// Barriers with results in flight, bit i for barrier i.
    held: u8,
    /// Held barriers that have had a result from behind the L1 since they were free.
    long: u8,
}

impl Barriers {
    /// Takes the barrier of an issued instruction, if it has one.
    #[inline]
    pub fn take(&mut self, inst: &Predecoded, is_long: bool) {
        if let Some(barrier) = inst.barrier {
            self.counts[usize::from(barrier)] += 1;
            self.held |= 1 << barrier;
            self.long |= u8::from(is_long) << barrier;
        }
    }

    /// Frees the barrier of a completed instruction, if no other result holds it.
    #[inline]
    pub fn free(&mut self, inst: &Predecoded) {
        let Some(barrier) = inst.barrier else { return };
        let count = &mut self.counts[usize::from(barrier)];
        *count -= 1;
        if *count == 0 {
            self.held &= !(1 << barrier);
            self.long &= !(1 << barrier);
        }
    }

    /// True if an instruction waits for a barrier.
    #[inline]
    pub fn stall(&self, inst: &Predecoded) -> bool {
        self.held & inst.waits != 0
    }

    /// True if an instruction waits for a barrier with a result from behind the L1.
    #[inline]
    pub fn stall_long(&self, inst: &Predecoded) -> bool {
        self.long & inst.waits != 0
    }

    /// Checks that counts and held barriers equal `owned`. A barrier stays long until it is free.
    pub fn check_owners(&self, slot: usize, owned: &Barriers, check: &mut Invariants) {
        for (n, (&found, &expected)) in self.counts.iter().zip(&owned.counts).enumerate() {
            check.equal(
                format_args!("results with dependency barrier {n} of slot {slot}"),
                found.into(),
                expected.into(),
            );
        }
        check.equal(
            format_args!("held dependency barriers of slot {slot}"),
            self.held.into(),
            owned.held.into(),
        );
        for (mask, all) in [(owned.long, self.long), (self.long, self.held)] {
            check.within(
                format_args!("long dependency barriers of slot {slot}"),
                mask.into(),
                all.into(),
            );
        }
    }
}
