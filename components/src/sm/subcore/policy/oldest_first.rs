//! Oldest first: the warp that started first issues. Preset word `oldest-first`.

use super::{Eligible, SchedulingPolicy};

/// The oldest eligible warp.
pub struct OldestFirst;

impl SchedulingPolicy for OldestFirst {
    #[inline]
    fn choose(&mut self, eligible: &Eligible<'_>) -> usize {
        eligible.oldest()
    }
}

#[cfg(test)]
mod tests {
    use super::super::chosen;
    use crate::config::SchedulerPolicy;

    #[test]
    fn eligible_warp_that_started_first_issues() {
        let chosen = chosen(SchedulerPolicy::OldestFirst, [0b1111, 0b1011, 0b1010]);
        assert_eq!(chosen, [2, 0, 3]);
    }
}
