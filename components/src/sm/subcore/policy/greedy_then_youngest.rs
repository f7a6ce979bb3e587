//! Greedy then youngest: one warp issues until it stalls. Preset word `greedy-then-youngest`.
//!
//! The policy of Turing and later (huerta25), where control words of the compiler decide when the greedy warp yields. Here its hazards do.

use super::{Eligible, SchedulingPolicy};

/// The warp that issued last while it is eligible, then the youngest.
pub struct GreedyThenYoungest;

impl SchedulingPolicy for GreedyThenYoungest {
    #[inline]
    fn choose(&mut self, eligible: &Eligible<'_>) -> usize {
        match eligible.contains(eligible.last) {
            true => eligible.last,
            false => eligible.youngest(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::chosen;
    use crate::config::SchedulerPolicy;

    #[test]
    fn last_warp_issues_until_it_stalls_then_the_youngest() {
        let policy = SchedulerPolicy::GreedyThenYoungest;
        let chosen = chosen(policy, [0b0101, 0b1101, 0b1110, 0b0110, 0b0100]);
        // The warps started in the order 2, 0, 3, 1: of 0 and 2 the youngest is 0.
        assert_eq!(chosen, [0, 0, 1, 1, 2]);
    }
}
