//! Warp scheduling policies: each chooses the eligible warp that issues.
//!
//! | Preset word (`sm.scheduler`) | Policy | Chooses |
//! |---|---|---|
//! | `loose-round-robin` | [`LooseRoundRobin`] | the next eligible slot after the one that issued last |
//! | `greedy-then-oldest` | [`GreedyThenOldest`] | the warp that issued last while it is eligible, then the oldest |
//! | `greedy-then-youngest` | [`GreedyThenYoungest`] | the warp that issued last while it is eligible, then the youngest |
//! | `oldest-first` | [`OldestFirst`] | the oldest |
//!
//! A user's policy implements [`SchedulingPolicy`] and is set with [`Factory`](crate::gpu::Factory):
//!
//! ```
//! use warpwave_components::sm::subcore::policy::{Eligible, SchedulingPolicy};
//!
//! struct YoungestFirst;
//!
//! impl SchedulingPolicy for YoungestFirst {
//!     fn choose(&mut self, eligible: &Eligible<'_>) -> usize {
//!         eligible.youngest()
//!     }
//! }
//!
//! let eligible = Eligible { slots: 0b0101, last: 1, residents: &[2, 1, 0] };
//! assert_eq!(YoungestFirst.choose(&eligible), 0);
//! ```

mod greedy_then_oldest;
mod greedy_then_youngest;
mod loose_round_robin;
mod oldest_first;

pub use greedy_then_oldest::GreedyThenOldest;
pub use greedy_then_youngest::GreedyThenYoungest;
pub use loose_round_robin::LooseRoundRobin;
pub use oldest_first::OldestFirst;

use crate::config::SchedulerPolicy;
use crate::proto::warp::SlotMask;

/// The warps that a policy chooses from.
#[derive(Clone, Copy, Debug)]
pub struct Eligible<'a> {
    /// Slots of the warps whose next instruction can issue, bit i for slot i. At least one bit is set.
    pub slots: SlotMask,
    /// Slot of the warp that issued last.
    pub last: usize,
    /// Slots of all resident warps, oldest first.
    pub residents: &'a [u8],
}

impl Eligible<'_> {
    /// True if the warp in `slot` is eligible.
    #[inline]
    pub fn contains(&self, slot: usize) -> bool {
        // A user's policy may name any slot: 32 or more is not eligible.
        self.slots.checked_shr(slot as u32).is_some_and(|slots| slots & 1 == 1)
    }

    /// Slots of the eligible warps, oldest first.
    pub fn by_age(&self) -> impl DoubleEndedIterator<Item = usize> {
        let slots = self.residents.iter().map(|&slot| usize::from(slot));
        slots.filter(|&slot| self.contains(slot))
    }

    /// Slot of the oldest eligible warp.
    #[inline]
    pub fn oldest(&self) -> usize {
        self.by_age().next().expect("an eligible warp is resident")
    }

    /// Slot of the youngest eligible warp.
    #[inline]
    pub fn youngest(&self) -> usize {
        self.by_age().next_back().expect("an eligible warp is resident")
    }
}

/// Chooses the warp that issues.
pub trait SchedulingPolicy: Send {
    /// Chooses one eligible slot. Called exactly once for each issued instruction.
    fn choose(&mut self, eligible: &Eligible<'_>) -> usize;

    /// Returns to the state after construction.
    fn reset(&mut self) {}
}

/// The policy of a scheduler: named by the preset, or a user's type.
enum Policy {
    Named(SchedulerPolicy),
    Custom(Box<dyn SchedulingPolicy>),
}

impl SchedulingPolicy for Policy {
    #[inline]
    fn choose(&mut self, eligible: &Eligible<'_>) -> usize {
        match self {
            Policy::Named(SchedulerPolicy::LooseRoundRobin) => LooseRoundRobin.choose(eligible),
            Policy::Named(SchedulerPolicy::GreedyThenOldest) => GreedyThenOldest.choose(eligible),
            Policy::Named(SchedulerPolicy::GreedyThenYoungest) => GreedyThenYoungest.choose(eligible),
            Policy::Named(SchedulerPolicy::OldestFirst) => OldestFirst.choose(eligible),
            Policy::Custom(policy) => policy.choose(eligible),
        }
    }

    fn reset(&mut self) {
        if let Policy::Custom(policy) = self {
            policy.reset();
        }
    }
}

/// The policy of a scheduler, and the order in which its resident warps started.
pub struct WarpSelector {
    policy: Policy,
    last: usize,
    /// Resident warps, oldest first.
    residents: Vec<u8>,
}

impl WarpSelector {
    /// A selector without warps.
    pub fn new(policy: SchedulerPolicy, warps: usize) -> Self {
        WarpSelector {
            policy: Policy::Named(policy),
            last: 0,
            residents: Vec::with_capacity(warps),
        }
    }

    /// Replaces the policy with a user's.
    pub fn set_policy(&mut self, policy: Box<dyn SchedulingPolicy>) {
        self.policy = Policy::Custom(policy);
    }

    /// Adds a warp, the youngest.
    pub fn add(&mut self, warp: usize) {
        self.residents.push(warp as u8);
    }

    /// Removes a warp.
    pub fn remove(&mut self, warp: usize) {
        // Keeps the order of ages.
        self.residents.retain(|&w| w as usize != warp);
    }

    /// Removes all warps.
    pub fn clear(&mut self) {
        self.residents.clear();
        self.last = 0;
        self.policy.reset();
    }

    /// Chooses one of a non-empty set of resident warps, bit i for slot i.
    #[inline]
    pub fn choose(&mut self, eligible: SlotMask) -> usize {
        self.last = self.policy.choose(&Eligible {
            slots: eligible,
            last: self.last,
            residents: &self.residents,
        });
        self.last
    }

    /// The youngest of a non-empty set of resident warps. The fetch stage prefers it too.
    #[inline]
    pub fn youngest(&self, set: SlotMask) -> usize {
        // One warp only: no search by age.
        if set.is_power_of_two() {
            return set.trailing_zeros() as usize;
        }
        let found = self.residents.iter().rev().find(|&&w| set >> w & 1 == 1);
        *found.expect("a chosen warp is resident") as usize
    }
}

/// Slots that a policy chooses from successive sets of eligible slots. The warps started in the order 2, 0, 3, 1.
#[cfg(test)]
fn chosen<const N: usize>(policy: SchedulerPolicy, eligible: [SlotMask; N]) -> [usize; N] {
    let mut selector = WarpSelector::new(policy, 4);
    [2, 0, 3, 1].into_iter().for_each(|warp| selector.add(warp));
    eligible.map(|set| selector.choose(set))
}
