//! Neighbours in a ring.

use std::ops::Range;

/// So many neighbours in a ring from the first on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stretch {
    pub first: usize,
    pub len: usize,
}

impl Stretch {
    /// Whether it holds a place of a ring of `n`.
    pub fn contains(self, place: usize, n: usize) -> bool {
        self.ahead(place, n) < self.len
    }

    /// Its places, as one or two ranges in the order in which they are walked.
    pub fn ranges(self, n: usize, backwards: bool) -> [Range<usize>; 2] {
        let end = self.first + self.len;
        let [first, second] = [self.first..end.min(n), 0..end.saturating_sub(n)];
        if backwards { [second, first] } else { [first, second] }
    }

    /// What is walked before one of its places.
    pub fn before(self, place: usize, n: usize, backwards: bool) -> Stretch {
        let ahead = self.ahead(place, n);
        if !backwards {
            return Stretch { len: ahead, ..self };
        }
        Stretch {
            first: (place + 1) % n,
            len: self.len - ahead - 1,
        }
    }

    /// It and what is walked after it, up to a place and with that.
    pub fn up_to(self, place: usize, n: usize, backwards: bool) -> Stretch {
        if !backwards {
            let len = self.ahead(place, n) + 1;
            return Stretch { len, ..self };
        }
        Stretch {
            first: place,
            len: self.len + (self.first + n - place - 1) % n + 1,
        }
    }

    /// Places from its first to this one.
    fn ahead(self, place: usize, n: usize) -> usize {
        (place + n - self.first) % n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: usize = 10;

    fn places(stretch: Stretch, backwards: bool) -> Vec<usize> {
        let ranges = stretch.ranges(N, backwards).into_iter();
        ranges
            .flat_map(|range| {
                if backwards {
                    range.rev().collect::<Vec<_>>()
                } else {
                    range.collect()
                }
            })
            .collect()
    }

    #[test]
    fn stretch_over_the_seam_is_walked_across_it() {
        let stretch = Stretch { first: 8, len: 4 };
        assert_eq!(places(stretch, false), [8, 9, 0, 1]);
        assert_eq!(places(stretch, true), [1, 0, 9, 8]);
        let inside = (0..N).filter(|&place| stretch.contains(place, N));
        assert_eq!(inside.collect::<Vec<_>>(), [0, 1, 8, 9]);
        assert_eq!(places(Stretch { first: 3, len: N }, false).len(), N);
    }

    #[test]
    fn two_that_meet_part_where_they_met() {
        // One comes from 8 on, the other from 5 back; the one takes 2 and 3 of the other.
        let (one, other) = (Stretch { first: 8, len: 4 }, Stretch { first: 2, len: 4 });
        assert_eq!(places(one.up_to(3, N, false), false), [8, 9, 0, 1, 2, 3]);
        assert_eq!(places(other.before(3, N, true), true), [5, 4]);
        // The other takes 1 and 0 of the one.
        assert_eq!(places(other.up_to(0, N, true), true), [5, 4, 3, 2, 1, 0]);
        assert_eq!(places(one.before(0, N, false), false), [8, 9]);
    }

    #[test]
    fn stretch_of_which_all_is_taken_is_empty_and_grows_again() {
        let stretch = Stretch { first: 8, len: 4 };
        assert_eq!(places(stretch.before(8, N, false), false), []);
        assert_eq!(places(stretch.before(1, N, true), true), []);
        let empty = Stretch { first: 2, len: 0 };
        assert_eq!(places(empty.up_to(2, N, false), false), [2]);
        assert_eq!(places(empty.up_to(1, N, true), true), [1]);
        for (last, backwards) in [(1, false), (2, true)] {
            assert_eq!(empty.up_to(last, N, backwards).len, N, "all the way round");
        }
    }
}
