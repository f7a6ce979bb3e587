//! Least recently used, exactly.
//!
//! Each set is a linked ring of its ways, from the oldest to the youngest. A use takes the same host time for any number of ways.

use super::{MOST_WAYS, Replacement};

/// The order of use in every set.
pub(super) struct Lru {
    ways: usize,
    /// The neighbours of each way of each set. The oldest follows the youngest.
    links: Box<[Link]>,
    /// The oldest way of each set.
    oldest: Box<[u8]>,
}

#[derive(Clone, Copy)]
struct Link {
    older: u8,
    younger: u8,
}

impl Lru {
    /// A policy for `sets` sets of `ways` ways. The lowest way is the oldest.
    ///
    /// # Panics
    /// If there are no ways, or more than [`MOST_WAYS`].
    pub(super) fn new(sets: usize, ways: usize) -> Self {
        assert!(
            (1..=MOST_WAYS).contains(&ways),
            "LRU supports 1 to {MOST_WAYS} ways, not {ways}"
        );
        let link = |way: usize| Link {
            older: ((way + ways - 1) % ways) as u8,
            younger: ((way + 1) % ways) as u8,
        };
        let set: Vec<Link> = (0..ways).map(link).collect();
        Lru {
            ways,
            links: set.repeat(sets).into(),
            oldest: vec![0; sets].into(),
        }
    }
}

impl Replacement for Lru {
    #[inline]
    fn touch(&mut self, set: usize, way: usize) {
        let links = &mut self.links[set * self.ways..][..self.ways];
        let oldest = &mut self.oldest[set];
        let Link { older, younger } = links[way];
        if usize::from(*oldest) == way {
            // The oldest way is next to the youngest: the ring turns by one.
            *oldest = younger;
            return;
        }
        // It is the youngest already.
        if younger == *oldest {
            return;
        }
        // Takes the way out of the ring.
        links[usize::from(older)].younger = younger;
        links[usize::from(younger)].older = older;
        // Puts it between the youngest and the oldest.
        let youngest = std::mem::replace(&mut links[usize::from(*oldest)].older, way as u8);
        links[usize::from(youngest)].younger = way as u8;
        links[way] = Link {
            older: youngest,
            younger: *oldest,
        };
    }

    fn victim(&self, set: usize, may_go: &dyn Fn(usize) -> bool) -> Option<usize> {
        let links = &self.links[set * self.ways..][..self.ways];
        let oldest = self.oldest[set];
        let mut way = oldest;
        // Back at the oldest way: none may go.
        while !may_go(usize::from(way)) {
            way = links[usize::from(way)].younger;
            if way == oldest {
                return None;
            }
        }
        Some(usize::from(way))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_recently_used_way_goes_first() {
        let mut lru = Lru::new(1, 4);
        [0, 1, 2, 3, 0].into_iter().for_each(|way| lru.touch(0, way));
        assert_eq!(lru.victim(0, &|_| true), Some(1));
        assert_eq!(lru.victim(0, &|way| way != 1), Some(2), "way 1 must stay");
    }

    #[test]
    fn ring_agrees_with_a_move_to_front_list() {
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
            assert_eq!(lru.victim(set, &|way| allowed >> way & 1 == 1), expected);
        }
    }

    #[test]
    fn oldest_is_right_in_sets_of_1_and_256_ways() {
        for ways in [1, 256] {
            let mut lru = Lru::new(2, ways);
            (0..ways).for_each(|way| lru.touch(1, ways - 1 - way));
            assert_eq!(lru.victim(1, &|_| true), Some(ways - 1));
        }
    }
}
