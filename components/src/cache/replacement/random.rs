//! Random replacement with a fixed seed: equal runs have equal victims.
//!
//! One generator serves all sets of a cache and advances at each fill, as the free-running counter of a hardware cache does.

use super::Replacement;

/// A linear congruential generator of 64 bits, with the constants of Knuth's MMIX.
pub(super) struct Random {
    ways: u64,
    state: u64,
}

impl Random {
    /// A policy for sets of `ways` ways.
    pub(super) fn new(ways: usize) -> Self {
        Random {
            ways: ways as u64,
            state: 1,
        }
    }
}

impl Replacement for Random {
    fn touch(&mut self, _: usize, _: usize) {}

    fn insert(&mut self, _: usize, _: usize) {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
    }

    /// The way drawn, or the next one that may go.
    fn victim(&self, _: usize, may_go: &dyn Fn(usize) -> bool) -> Option<usize> {
        // The low bits of such a generator have short periods.
        let drawn = ((self.state >> 32) * self.ways) >> 32;
        // If the drawn way must stay, take the next one that may go.
        let mut ways = (drawn..self.ways).chain(0..drawn).map(|way| way as usize);
        ways.find(|&way| may_go(way))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_drawn_evenly_and_a_second_run_draws_the_same() {
        let run = || {
            let mut random = Random::new(6);
            let mut draw = |_| {
                random.insert(0, 0);
                random.victim(0, &|_| true).unwrap()
            };
            (0..6000).map(&mut draw).collect::<Vec<_>>()
        };
        let drawn = run();
        for way in 0..6 {
            let times = drawn.iter().filter(|&&other| other == way).count();
            assert!((850..1150).contains(&times), "way {way}: {times} of 6000");
        }
        assert_eq!(drawn, run());
    }

    #[test]
    fn next_way_that_may_go_replaces_the_drawn_one() {
        let random = Random::new(4); // The seed draws way 0.
        assert_eq!(random.victim(0, &|_| true), Some(0));
        assert_eq!(random.victim(0, &|way| way >= 2), Some(2));
    }
}
