//! Dispatch orders: policies that choose the SM of the next CTA. Preset key `gigathread.order`.
//!
//! | Preset word | Module | SM of the next CTA |
//! |---|---|---|
//! | `breadth-first` | `breadth_first` | the SM with the most free CTA slots, the first among equals |
//! | `depth-first` | `depth_first` | the first SM with a free CTA slot |
//!
//! For a cluster, the policy first chooses among the GPCs with room for all CTAs, and then the SM of each CTA.

mod breadth_first;
mod depth_first;

use crate::config::CtaOrder;

/// An SM or a GPC that may get the next CTA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Number of the SM or GPC.
    pub index: usize,
    /// Free CTA slots.
    pub free_slots: u32,
}

impl CtaOrder {
    /// Chooses one of `candidates`: SMs in the order of `%smid`, or GPCs and their SMs by number. `can_send` is true for one that can be sent a
    /// CTA in this cycle.
    #[inline]
    pub(super) fn choose(
        self,
        candidates: impl Iterator<Item = Candidate>,
        can_send: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let candidates = candidates.filter(|candidate| candidate.free_slots > 0);
        match self {
            CtaOrder::BreadthFirst => breadth_first::choose(candidates, can_send),
            CtaOrder::DepthFirst => depth_first::choose(candidates, can_send),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates<const N: usize>(free_slots: [u32; N]) -> impl Iterator<Item = Candidate> {
        let slots = free_slots.into_iter().enumerate();
        slots.map(|(index, free_slots)| Candidate { index, free_slots })
    }

    /// The SMs of successive CTAs, until no slot is free.
    fn filled(order: CtaOrder, mut free_slots: [u32; 3]) -> Vec<usize> {
        let choose_next = || {
            let sm = order.choose(candidates(free_slots), |_| true)?;
            free_slots[sm] -= 1;
            Some(sm)
        };
        std::iter::from_fn(choose_next).collect()
    }

    #[test]
    fn breadth_first_takes_the_emptiest_and_the_first_among_equals() {
        assert_eq!(filled(CtaOrder::BreadthFirst, [2, 2, 3]), [2, 0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn depth_first_fills_one_sm_before_the_next() {
        assert_eq!(filled(CtaOrder::DepthFirst, [2, 0, 3]), [0, 0, 2, 2, 2]);
    }

    #[test]
    fn busy_sm_breadth_first_skips_it_and_depth_first_waits() {
        let choose = |order: CtaOrder| order.choose(candidates([2, 1]), |sm| sm != 0);
        assert_eq!(CtaOrder::ALL.map(choose), [Some(1), None]);
    }
}
