//! Least recently used, exactly, for the ways of a set-associative store.
//!
//! Each set is a list from the oldest to the youngest, linked by way numbers: a use costs the same for any number of ways.
//!
//! # Promises
//! - The oldest is the way whose last use is longest ago among those allowed; never-used ways come first, the lowest first, or
//!   the highest first if one wants that.
//! - Only the order of the uses counts, never the cycle.

/// The order of use in every set.
///
/// ```
/// use warpwave_hw::lru::Lru;
/// let mut lru = Lru::new(1, 4);
/// [0, 1, 2, 3, 0].into_iter().for_each(|way| lru.touch(0, way));
/// assert_eq!(lru.oldest(0, |_| true), Some(1));
/// assert_eq!(lru.oldest(0, |way| way != 1), Some(2)); // way 1 is pinned
/// ```
#[derive(Clone, Debug)]
pub struct Lru {
    ways: usize,
    /// For each way of each set its neighbours in a ring: behind the youngest comes the oldest.
    links: Box<[Link]>,
    /// The oldest way of each set.
    oldest: Box<[u8]>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    older: u8,
    younger: u8,
}

impl Lru {
    /// `sets` sets of `ways` ways, none used yet.
    ///
    /// # Panics
    /// If there are no ways, or more than 256.
    pub fn new(sets: usize, ways: usize) -> Self {
        Self::linked(sets, ways, |n| n)
    }

    /// The same with the highest way first: the order of ways that were released from the lowest to the highest.
    pub fn highest_first(sets: usize, ways: usize) -> Self {
        Self::linked(sets, ways, |n| ways - 1 - n)
    }

    /// Every set in the same order: `nth` gives the n-th way from the oldest on.
    fn linked(sets: usize, ways: usize, nth: impl Fn(usize) -> usize) -> Self {
        assert!(
            (1..=256).contains(&ways),
            "the order of use is kept for 1 to 256 ways, not {ways}"
        );
        let mut set = vec![Link { older: 0, younger: 0 }; ways];
        for n in 0..ways {
            let [older, younger] = [n + ways - 1, n + 1].map(|n| nth(n % ways) as u8);
            set[nth(n)] = Link { older, younger };
        }
        Lru {
            ways,
            links: set.repeat(sets).into(),
            oldest: vec![nth(0) as u8; sets].into(),
        }
    }

    /// Way `way` of set `set` is used now.
    #[inline(always)]
    pub fn touch(&mut self, set: usize, way: usize) {
        let links = &mut self.links[set * self.ways..][..self.ways];
        let oldest = &mut self.oldest[set];
        let Link { older, younger } = links[way];
        if usize::from(*oldest) == way {
            // The ring is turned by one.
            *oldest = younger;
            return;
        }
        if younger == *oldest {
            return;
        }
        links[usize::from(older)].younger = younger;
        links[usize::from(younger)].older = older;
        let youngest = std::mem::replace(&mut links[usize::from(*oldest)].older, way as u8);
        links[usize::from(youngest)].younger = way as u8;
        links[way] = Link {
            older: youngest,
            younger: *oldest,
        };
    }

    /// Way `way` of set `set` is free: it is as if it were never used.
    pub fn release(&mut self, set: usize, way: usize) {
        if usize::from(self.oldest[set]) != way {
            // In the ring the youngest stands before the oldest.
            self.touch(set, way);
            self.oldest[set] = way as u8;
        }
    }

    /// The least recently used way of a set among those allowed; `None` if none is.
    #[inline]
    pub fn oldest(&self, set: usize, allowed: impl Fn(usize) -> bool) -> Option<usize> {
        let links = &self.links[set * self.ways..][..self.ways];
        let oldest = self.oldest[set];
        let mut way = oldest;
        while !allowed(usize::from(way)) {
            way = links[usize::from(way)].younger;
            if way == oldest {
                return None;
            }
        }
        Some(usize::from(way))
    }

    /// Forgets all uses, as a reset does.
    pub fn clear(&mut self) {
        *self = Self::new(self.oldest.len(), self.ways);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_used_ways_go_first_the_lowest_first() {
        let mut lru = Lru::new(2, 3);
        lru.touch(1, 0);
        assert_eq!(lru.oldest(1, |_| true), Some(1));
        assert_eq!(lru.oldest(0, |_| true), Some(0));
        assert_eq!(lru.oldest(1, |_| false), None);
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
            lists[set].retain(|&other| other != way);
            if random >> 40 & 3 == 0 {
                lru.release(set, way);
                lists[set].insert(0, way);
            } else {
                lru.touch(set, way);
                lists[set].push(way);
            }
            let expected = lists[set].iter().copied().find(|way| allowed >> way & 1 == 1);
            assert_eq!(lru.oldest(set, |way| allowed >> way & 1 == 1), expected);
        }
        lru.clear();
        assert_eq!(lru.oldest(3, |_| true), Some(0));
    }

    #[test]
    fn ways_released_upwards_have_the_order_of_highest_first() {
        let (mut released, mut new) = (Lru::new(1, 4), Lru::highest_first(1, 4));
        [2, 0, 3].into_iter().for_each(|way| released.touch(0, way));
        (0..4).for_each(|way| released.release(0, way));
        for lru in [&mut released, &mut new] {
            for way in [3, 2, 1, 0, 3] {
                assert_eq!(lru.oldest(0, |_| true), Some(way));
                lru.touch(0, way);
            }
        }
    }

    #[test]
    fn sets_of_one_way_and_of_256_know_their_oldest() {
        for ways in [1, 256] {
            let mut lru = Lru::new(2, ways);
            (0..ways).for_each(|way| lru.touch(1, ways - 1 - way));
            assert_eq!(lru.oldest(1, |_| true), Some(ways - 1));
            lru.release(1, 0);
            assert_eq!(lru.oldest(1, |_| true), Some(0));
        }
    }
}
