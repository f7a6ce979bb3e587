//! Least recently used, exactly, for the ways of a set-associative store.
//!
//! Each set is a list from the oldest to the youngest, linked by way numbers: a use costs the same for any number of ways.
//!
//! # Promises
//! - The oldest is the way whose last use is longest ago among those allowed; never-used ways come first, the lowest first, or
//!   the highest first if one wants that.
//! - Only the order of the uses counts, never the cycle.

use crate::prefetch::prefetch;

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
    /// For each way of each set its neighbours; beyond the ends they mean nothing.
    links: Box<[Link]>,
    ends: Box<[Ends]>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    older: u8,
    younger: u8,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    oldest: u8,
    youngest: u8,
}

impl Lru {
    /// `sets` sets of `ways` ways, none used yet.
    ///
    /// # Panics
    /// If there are no ways, or more than 256.
    pub fn new(sets: usize, ways: usize) -> Self {
        let ends = [0, ways.wrapping_sub(1)];
        let neighbours = |way: usize| [way.wrapping_sub(1), way + 1];
        Self::linked(sets, ways, ends, neighbours)
    }

    /// The same with the highest way first: the order of ways that were released from the lowest to the highest.
    pub fn highest_first(sets: usize, ways: usize) -> Self {
        let ends = [ways.wrapping_sub(1), 0];
        let neighbours = |way: usize| [way + 1, way.wrapping_sub(1)];
        Self::linked(sets, ways, ends, neighbours)
    }

    /// Every set with the same oldest and youngest way, and for each way the next older and the next younger.
    fn linked(sets: usize, ways: usize, ends: [usize; 2], neighbours: impl Fn(usize) -> [usize; 2]) -> Self {
        assert!(
            (1..=256).contains(&ways),
            "the order of use is kept for 1 to 256 ways, not {ways}"
        );
        let [oldest, youngest] = ends.map(|way| way as u8);
        let link = |way| {
            let [older, younger] = neighbours(way).map(|way| way as u8);
            Link { older, younger }
        };
        Lru {
            ways,
            links: (0..sets * ways).map(|n| link(n % ways)).collect(),
            ends: vec![Ends { oldest, youngest }; sets].into(),
        }
    }

    /// Way `way` of set `set` is used now.
    #[inline]
    pub fn touch(&mut self, set: usize, way: usize) {
        let ends = &mut self.ends[set];
        if usize::from(ends.youngest) == way {
            return;
        }
        let links = &mut self.links[set * self.ways..][..self.ways];
        // Not the youngest, so there is a younger one.
        let Link { older, younger } = links[way];
        links[usize::from(younger)].older = older;
        if usize::from(ends.oldest) == way {
            ends.oldest = younger;
        } else {
            links[usize::from(older)].younger = younger;
        }
        links[usize::from(ends.youngest)].younger = way as u8;
        links[way].older = ends.youngest;
        ends.youngest = way as u8;
    }

    /// Asks for what [`Lru::touch`] will read of a way ([`prefetch`]).
    #[inline]
    pub fn prefetch(&self, set: usize, way: usize) {
        prefetch(&self.ends[set]);
        prefetch(&self.links[set * self.ways + way]);
    }

    /// Way `way` of set `set` is free: it is as if it were never used.
    pub fn release(&mut self, set: usize, way: usize) {
        let oldest = self.ends[set].oldest;
        if usize::from(oldest) == way {
            return;
        }
        self.unlink(set, way);
        let links = &mut self.links[set * self.ways..][..self.ways];
        links[usize::from(oldest)].older = way as u8;
        links[way].younger = oldest;
        self.ends[set].oldest = way as u8;
    }

    /// The least recently used way of a set among those allowed; `None` if none is.
    #[inline]
    pub fn oldest(&self, set: usize, allowed: impl Fn(usize) -> bool) -> Option<usize> {
        let links = &self.links[set * self.ways..][..self.ways];
        let Ends { oldest, youngest } = self.ends[set];
        let mut way = oldest;
        loop {
            if allowed(usize::from(way)) {
                return Some(usize::from(way));
            }
            if way == youngest {
                return None;
            }
            way = links[usize::from(way)].younger;
        }
    }

    /// Forgets all uses, as a reset does.
    pub fn clear(&mut self) {
        *self = Self::new(self.ends.len(), self.ways);
    }

    /// Takes a way out of its list, which has at least one more.
    #[inline]
    fn unlink(&mut self, set: usize, way: usize) {
        let ends = &mut self.ends[set];
        let links = &mut self.links[set * self.ways..][..self.ways];
        let Link { older, younger } = links[way];
        if usize::from(ends.oldest) == way {
            ends.oldest = younger;
        } else {
            links[usize::from(older)].younger = younger;
        }
        if usize::from(ends.youngest) == way {
            ends.youngest = older;
        } else {
            links[usize::from(younger)].older = older;
        }
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
