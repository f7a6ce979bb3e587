//! Loose round robin: the warps issue in turn, by slot. Preset word `loose-round-robin`.

use super::{Eligible, SchedulingPolicy};
use crate::proto::warp::SlotMask;

/// The next eligible slot after the one that issued last.
pub struct LooseRoundRobin;

impl SchedulingPolicy for LooseRoundRobin {
    #[inline]
    fn choose(&mut self, eligible: &Eligible<'_>) -> usize {
        // `checked_shl`: after slot 63 no slot is above.
        let above = eligible.slots & SlotMask::MAX.checked_shl(eligible.last as u32 + 1).unwrap_or(0);
        let slots = if above != 0 { above } else { eligible.slots };
        slots.trailing_zeros() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::super::chosen;
    use crate::config::SchedulerPolicy;

    #[test]
    fn next_slot_after_the_last_issues_with_wrap_around() {
        let chosen = chosen(SchedulerPolicy::LooseRoundRobin, [0b1011, 0b1011, 0b1011, 0b1011]);
        assert_eq!(chosen, [1, 3, 0, 1]);
    }
}
