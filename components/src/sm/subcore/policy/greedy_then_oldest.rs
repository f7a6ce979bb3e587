//! Greedy then oldest: one warp issues until it stalls. Preset word `greedy-then-oldest`.

use super::{Eligible, SchedulingPolicy};

/// The warp that issued last while it is eligible, then the oldest.
pub struct GreedyThenOldest;

impl SchedulingPolicy for GreedyThenOldest {
    #[inline]
    fn choose(&mut self, eligible: &Eligible<'_>) -> usize {
        match eligible.contains(eligible.last) {
            true => eligible.last,
            false => eligible.oldest(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::chosen;
    use crate::config::SchedulerPolicy;

    #[test]
    fn last_warp_issues_until_it_stalls_then_the_oldest() {
        let chosen = chosen(SchedulerPolicy::GreedyThenOldest, [0b1010, 0b1011, 0b0011, 0b0010]);
        assert_eq!(chosen, [3, 3, 0, 1]);
    }
}
