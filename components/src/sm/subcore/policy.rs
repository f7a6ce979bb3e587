//! Which of the eligible warps issues.

use crate::config::SchedulerPolicy;

/// The choice of a scheduler, and what it remembers for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Policy {
    kind: SchedulerPolicy,
    last: usize,
    /// Resident warps, oldest first.
    by_age: Vec<u8>,
}

impl Policy {
    /// A policy for a scheduler without warps.
    pub fn new(kind: SchedulerPolicy, warps: usize) -> Self {
        Policy {
            kind,
            last: 0,
            by_age: Vec::with_capacity(warps),
        }
    }

    /// A warp has come: the youngest.
    pub fn add(&mut self, warp: usize) {
        self.by_age.push(warp as u8);
    }

    /// A warp has gone.
    pub fn remove(&mut self, warp: usize) {
        self.by_age.retain(|&w| w as usize != warp);
    }

    /// Forgets all warps.
    pub fn clear(&mut self) {
        self.by_age.clear();
        self.last = 0;
    }

    /// Chooses one of a non-empty set of resident warps, bit i for slot i.
    #[inline]
    pub fn choose(&mut self, eligible: u32) -> usize {
        let warp = match self.kind {
            SchedulerPolicy::LooseRoundRobin => next_after(eligible, self.last),
            SchedulerPolicy::GreedyThenOldest if eligible >> self.last & 1 == 1 => self.last,
            SchedulerPolicy::GreedyThenOldest | SchedulerPolicy::OldestFirst => self.oldest(eligible),
        };
        self.last = warp;
        warp
    }

    /// The oldest of a non-empty set of resident warps.
    #[inline]
    pub fn oldest(&self, set: u32) -> usize {
        let found = self.by_age.iter().find(|&&w| set >> w & 1 == 1);
        *found.expect("a chosen warp is resident") as usize
    }

    /// The youngest of a non-empty set of resident warps.
    #[inline]
    pub fn youngest(&self, set: u32) -> usize {
        if set.is_power_of_two() {
            return set.trailing_zeros() as usize;
        }
        let found = self.by_age.iter().rev().find(|&&w| set >> w & 1 == 1);
        *found.expect("a chosen warp is resident") as usize
    }
}

/// The first member above `last`, else the lowest.
fn next_after(set: u32, last: usize) -> usize {
    let above = set & u32::MAX.checked_shl(last as u32 + 1).unwrap_or(0);
    (if above != 0 { above } else { set }).trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(kind: SchedulerPolicy) -> Policy {
        let mut policy = Policy::new(kind, 4);
        [2, 0, 3, 1].into_iter().for_each(|w| policy.add(w));
        policy
    }

    #[test]
    fn loose_round_robin_goes_on_from_the_last_and_wraps() {
        let mut policy = policy(SchedulerPolicy::LooseRoundRobin);
        assert_eq!(
            [0b1011, 0b1011, 0b1011, 0b1011].map(|set| policy.choose(set)),
            [1, 3, 0, 1]
        );
    }

    #[test]
    fn greedy_stays_with_a_warp_then_takes_the_oldest() {
        let mut policy = policy(SchedulerPolicy::GreedyThenOldest);
        assert_eq!(
            [0b1010, 0b1011, 0b0011, 0b0010].map(|set| policy.choose(set)),
            [3, 3, 0, 1]
        );
    }

    #[test]
    fn oldest_first_takes_the_one_that_came_first() {
        let mut policy = policy(SchedulerPolicy::OldestFirst);
        assert_eq!([0b1111, 0b1011, 0b1010].map(|set| policy.choose(set)), [2, 0, 3]);
    }
}
