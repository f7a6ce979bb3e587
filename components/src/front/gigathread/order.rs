//! Dispatch orders: where the next CTA goes. Preset key `gigathread.order`.
//!
//! | Preset word | Module | The next CTA goes to |
//! |---|---|---|
//! | `breadth-first` | `breadth_first` | the SM with the most free CTA slots, the first among equals |
//! | `depth-first` | `depth_first` | the first SM with a free CTA slot |
//!
//! The same rule places clusters: it chooses the GPC among those with room for all CTAs, and then the SM of each CTA.

mod breadth_first;
mod depth_first;

use crate::config::CtaOrder;

/// A place for a CTA: an SM or a GPC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its number.
    pub number: usize,
    /// Free CTA slots.
    pub free: u32,
}

impl CtaOrder {
    /// Chooses among `places`, in the order of their numbers. `can_take` holds for a place that can take a CTA in this cycle.
    #[inline]
    pub(super) fn choose(self, places: impl Iterator<Item = Place>, can_take: impl Fn(usize) -> bool) -> Option<usize> {
        let places = places.filter(|place| place.free > 0);
        match self {
            CtaOrder::BreadthFirst => breadth_first::choose(places, can_take),
            CtaOrder::DepthFirst => depth_first::choose(places, can_take),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places that CTAs take one after the other, as long as there is room.
    fn filled(order: CtaOrder, free: [u32; 3]) -> Vec<usize> {
        let mut free = free;
        let mut taken = Vec::new();
        loop {
            let places = free
                .into_iter()
                .enumerate()
                .map(|(number, free)| Place { number, free });
            let Some(place) = order.choose(places, |_| true) else {
                return taken;
            };
            free[place] -= 1;
            taken.push(place);
        }
    }

    #[test]
    fn breadth_first_takes_the_emptiest_and_the_first_among_equals() {
        assert_eq!(filled(CtaOrder::BreadthFirst, [2, 2, 3]), [2, 0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn depth_first_fills_one_place_before_the_next() {
        assert_eq!(filled(CtaOrder::DepthFirst, [2, 0, 3]), [0, 0, 2, 2, 2]);
    }

    #[test]
    fn place_that_cannot_take_now_breadth_first_passes_it_over_and_depth_first_waits() {
        let places = || {
            [2, 1]
                .into_iter()
                .enumerate()
                .map(|(number, free)| Place { number, free })
        };
        let choose = |order: CtaOrder| order.choose(places(), |number| number != 0);
        assert_eq!(CtaOrder::ALL.map(choose), [Some(1), None]);
    }
}
