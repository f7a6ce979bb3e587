//! Tree pseudo-LRU: a binary tree over the ways of a set. The bit of an inner node points to the half used less recently.
//!
//! ```text
//!            1            a use of way 1 points nodes 1 and 2 away from it:
//!        2       3        node 1 points to the right half, node 2 to way 0
//!      0   1   2   3
//! ```
//!
//! The number of leaves is the next power of two of the ways. A leaf without a way is never chosen.

use bitvec::prelude::{BitVec, bitvec};

use super::Replacement;

/// The bits of all sets.
pub(super) struct TreePlru {
    leaves: usize,
    /// Bit `set * leaves + node`: true if `node` points to its right half. Node 1 is the root; the children of n are 2n and 2n + 1.
    points_right: BitVec,
}

impl TreePlru {
    /// A policy for `sets` sets of `ways` ways. Every node points left.
    pub(super) fn new(sets: usize, ways: usize) -> Self {
        let leaves = ways.next_power_of_two();
        TreePlru {
            leaves,
            // Bit 0 of each set is unused, because the root is node 1.
            points_right: bitvec![0; sets * leaves],
        }
    }

    /// The way to which the bits from `node` down point, or the nearest way that may go.
    fn way_under(&self, set: usize, node: usize, may_go: &dyn Fn(usize) -> bool) -> Option<usize> {
        if node >= self.leaves {
            let way = node - self.leaves;
            // False for a leaf beyond the last way.
            return may_go(way).then_some(way);
        }
        let right = usize::from(self.points_right[set * self.leaves + node]);
        let other = || self.way_under(set, 2 * node + 1 - right, may_go);
        self.way_under(set, 2 * node + right, may_go).or_else(other)
    }
}

impl Replacement for TreePlru {
    fn touch(&mut self, set: usize, way: usize) {
        let mut node = self.leaves + way;
        // From the leaf to the root: each node turns to the half that was not used.
        while node > 1 {
            let is_right = node % 2 == 1;
            node /= 2;
            self.points_right.set(set * self.leaves + node, !is_right);
        }
    }

    fn victim(&self, set: usize, may_go: &dyn Fn(usize) -> bool) -> Option<usize> {
        self.way_under(set, 1, may_go)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn victim_of_four_ways_follows_the_bits() {
        let mut tree = TreePlru::new(2, 4);
        // After each use: root, left node, right node (1 points right), worked out by hand.
        for (used, victim) in [(0, 2), (2, 1), (1, 3), (3, 0), (2, 0), (0, 3)] {
            tree.touch(1, used);
            assert_eq!(tree.victim(1, &|_| true), Some(victim), "after way {used}");
        }
        assert_eq!(tree.victim(0, &|_| true), Some(0), "another set does not change");
    }

    #[test]
    fn victim_can_differ_from_exact_lru() {
        let mut tree = TreePlru::new(1, 4);
        [0, 1, 2, 3, 0].into_iter().for_each(|way| tree.touch(0, way));
        // Way 1 was used longest ago; the tree knows only that the left half was used last.
        assert_eq!(tree.victim(0, &|_| true), Some(2));
    }

    #[test]
    fn leaf_without_a_way_is_never_chosen() {
        let mut tree = TreePlru::new(1, 3);
        let is_way = |way: usize| way < 3;
        let victims = [0, 2, 1, 2].map(|way| {
            tree.touch(0, way);
            tree.victim(0, &is_way).unwrap()
        });
        assert_eq!(victims, [2, 1, 2, 0]);
    }
}
