//! Least recently used, exactly, for the ways of a set-associative store.
//!
//! # Promises
//! - The oldest is the way whose last use is longest ago among those allowed; never-used ways come first, the lowest first.
//! - Only the order of the uses counts, never the cycle.

/// The order of use in every set.
///
/// ```
/// use warpwave_hw::lru::Lru;
/// let mut lru = Lru::new(1, 4);
/// [0, 1, 2, 3, 0].into_iter().for_each(|way| lru.touch(0, way));
/// assert_eq!(lru.oldest(0, u64::MAX), Some(1));
/// assert_eq!(lru.oldest(0, 0b1101), Some(2)); // way 1 is pinned
/// ```
#[derive(Clone, Debug)]
pub struct Lru {
    ways: usize,
    last_use: Box<[u64]>,
    uses: u64,
}

impl Lru {
    /// `sets` sets of `ways` ways, none used yet.
    ///
    /// # Panics
    /// If there are no ways, or more than the 64 bits of a mask.
    pub fn new(sets: usize, ways: usize) -> Self {
        assert!(
            (1..=64).contains(&ways),
            "the order of use is kept for 1 to 64 ways, not {ways}"
        );
        Lru {
            ways,
            last_use: vec![0; sets * ways].into_boxed_slice(),
            uses: 0,
        }
    }

    /// Way `way` of set `set` is used now.
    #[inline]
    pub fn touch(&mut self, set: usize, way: usize) {
        debug_assert!(way < self.ways, "way {way} of {}", self.ways);
        self.uses += 1;
        self.last_use[set * self.ways + way] = self.uses;
    }

    /// The least recently used way of a set among those whose bit is set in `allowed`; `None` if it has none of them.
    #[inline]
    pub fn oldest(&self, set: usize, allowed: u64) -> Option<usize> {
        let last_use = &self.last_use[set * self.ways..][..self.ways];
        (0..self.ways)
            .filter(|way| allowed >> way & 1 == 1)
            .min_by_key(|&way| last_use[way])
    }

    /// Forgets all uses, as a reset does.
    pub fn clear(&mut self) {
        self.last_use.fill(0);
        self.uses = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_used_ways_go_first_the_lowest_first() {
        let mut lru = Lru::new(2, 3);
        lru.touch(1, 0);
        assert_eq!(lru.oldest(1, u64::MAX), Some(1));
        assert_eq!(lru.oldest(0, u64::MAX), Some(0));
        assert_eq!(lru.oldest(1, 0), None);
        assert_eq!(lru.oldest(1, 0b1000), None);
    }

    #[test]
    fn any_sequence_of_uses_agrees_with_a_list_moved_to_front() {
        let (mut lru, mut random) = (Lru::new(4, 8), 1u64);
        let mut lists: Vec<Vec<usize>> = vec![(0..8).collect(); 4];
        for _ in 0..2000 {
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let (set, way, allowed) = (
                (random >> 60) as usize % 4,
                (random >> 50) as usize % 8,
                random >> 20 & 0xff,
            );
            lru.touch(set, way);
            lists[set].retain(|&other| other != way);
            lists[set].push(way);
            let expected = lists[set].iter().copied().find(|way| allowed >> way & 1 == 1);
            assert_eq!(lru.oldest(set, allowed), expected);
        }
        lru.clear();
        assert_eq!(lru.oldest(3, u64::MAX), Some(0));
    }
}
