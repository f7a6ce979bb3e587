//! Not recently used: one bit per way says that the way was used since the last reset of its set.
//!
//! If a use sets the last clear bit, the bits of all other ways are cleared. The victim is the lowest way with a clear bit. So low ways
//! go more often, and a loop somewhat larger than the cache keeps a part of its lines.

use bitvec::prelude::{BitVec, bitvec};

use super::Replacement;

/// The bits of all sets.
pub(super) struct Nru {
    ways: usize,
    /// Bit `set * ways + way`: true if the way is used.
    used: BitVec,
}

impl Nru {
    /// A policy for `sets` sets of `ways` ways. No way is used.
    pub(super) fn new(sets: usize, ways: usize) -> Self {
        Nru {
            ways,
            used: bitvec![0; sets * ways],
        }
    }
}

impl Replacement for Nru {
    fn touch(&mut self, set: usize, way: usize) {
        let used = &mut self.used[set * self.ways..][..self.ways];
        if used.replace(way, true) || !used.all() {
            return;
        }
        used.fill(false);
        used.set(way, true);
    }

    fn victim(&self, set: usize, may_go: &dyn Fn(usize) -> bool) -> Option<usize> {
        let used = &self.used[set * self.ways..][..self.ways];
        let lowest_clear = used.iter_zeros().find(|&way| may_go(way));
        // Every way with a clear bit must stay: take the lowest that may go.
        lowest_clear.or_else(|| (0..self.ways).find(|&way| may_go(way)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn victim_is_the_lowest_way_that_is_not_used() {
        let mut nru = Nru::new(2, 4);
        // After each use, worked out by hand. The use of way 1 is the fourth: it clears the bits of 0, 2 and 3.
        for (used, victim) in [(2, 0), (0, 1), (3, 1), (1, 0), (0, 2), (1, 2), (2, 3), (3, 0)] {
            nru.touch(1, used);
            assert_eq!(nru.victim(1, &|_| true), Some(victim), "after way {used}");
        }
        assert_eq!(nru.victim(0, &|_| true), Some(0), "another set does not change");
    }

    #[test]
    fn used_way_goes_if_all_others_must_stay() {
        let mut nru = Nru::new(1, 4);
        nru.touch(0, 2);
        assert_eq!(nru.victim(0, &|way| way == 2), Some(2));
        assert_eq!(nru.victim(0, &|_| false), None);
    }

    #[test]
    fn set_of_one_way_gives_up_that_way() {
        let mut nru = Nru::new(1, 1);
        nru.touch(0, 0);
        assert_eq!(nru.victim(0, &|_| true), Some(0));
    }
}
