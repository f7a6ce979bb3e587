//! Replacement policies: choose the line that a fill evicts from a full set.
//!
//! | Preset word | Policy | A hit | A fill |
//! |---|---|---|---|
//! | `lru` | least recently used, exactly | makes a way the youngest | makes a way the youngest |
//! | `tree-plru` | tree pseudo-LRU: one bit per node of a binary tree | points the bits of its path away from the way | as a hit |
//! | `nru` | not recently used: one bit per way; the lowest way with a clear bit goes | sets the bit, and clears the others if all are set | as a hit |
//! | `fifo` | first in, first out | changes nothing | makes a way the youngest |
//! | `random` | a generator with a fixed seed | changes nothing | draws the next number |
//!
//! Tags fill invalid ways first, under each policy. A policy sees hits and fills in order, and no cycle numbers.
//!
//! To add a policy, implement [`Replacement`] and pass a [`NewReplacement`], which makes one policy per cache:
//!
//! ```
//! use std::sync::Arc;
//! use warpwave_components::cache::replacement::{NewReplacement, Replacement};
//!
//! /// Most recently used: keeps part of a loop that is larger than the cache.
//! struct Mru(Vec<usize>);
//!
//! impl Replacement for Mru {
//!     fn touch(&mut self, set: usize, way: usize) {
//!         self.0[set] = way;
//!     }
//!     fn victim(&self, set: usize, may_go: &dyn Fn(usize) -> bool) -> Option<usize> {
//!         Some(self.0[set]).filter(|&way| may_go(way)).or_else(|| (0..256).find(|&way| may_go(way)))
//!     }
//! }
//!
//! let new: NewReplacement = Arc::new(|sets, _ways| Box::new(Mru(vec![0; sets])));
//! let mut policy = new(4, 2);
//! policy.insert(3, 1);
//! assert_eq!(policy.victim(3, &|_| true), Some(1));
//! ```

mod fifo;
mod lru;
mod nru;
mod random;
mod tree_plru;

use std::sync::Arc;

use crate::config::ReplacementPolicy;

/// Maximum number of ways of a set: the policies number them in a byte.
pub const MOST_WAYS: usize = 256;

/// The replacement policy of one cache, for all its sets. Ways are numbered within their set.
pub trait Replacement: Send {
    /// Records a hit in `way` of `set`.
    fn touch(&mut self, set: usize, way: usize);

    /// Records the fill of a new line in `way` of `set`. It counts as a hit unless the policy overrides this.
    fn insert(&mut self, set: usize, way: usize) {
        // A fill is mostly caused by an access, so the line counts as used.
        self.touch(set, way);
    }

    /// The way of `set` that gives up its line. All ways are valid. `may_go` is true for a way whose line may leave: one without a fill
    /// in flight. It is false beyond the last way. Returns `None` if it is true for no way.
    ///
    /// The result must not change before the next `touch` or `insert`: a stalled cache may call it again in any cycle.
    fn victim(&self, set: usize, may_go: &dyn Fn(usize) -> bool) -> Option<usize>;
}

/// Makes the policy of a cache from its number of sets and its ways per set.
pub type NewReplacement = Arc<dyn Fn(usize, usize) -> Box<dyn Replacement> + Send + Sync>;

impl ReplacementPolicy {
    /// The factory of this policy.
    pub fn new_replacement(self) -> NewReplacement {
        Arc::new(move |sets, ways| match self {
            ReplacementPolicy::Lru => Box::new(lru::Lru::new(sets, ways)),
            ReplacementPolicy::TreePlru => Box::new(tree_plru::TreePlru::new(sets, ways)),
            ReplacementPolicy::Nru => Box::new(nru::Nru::new(sets, ways)),
            ReplacementPolicy::Fifo => Box::new(fifo::Fifo::new(sets, ways)),
            ReplacementPolicy::Random => Box::new(random::Random::new(ways)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hits of `rounds` passes over `lines` lines in one set of `ways` ways.
    fn hits(policy: ReplacementPolicy, ways: usize, lines: usize, rounds: usize) -> usize {
        let mut policy = policy.new_replacement()(1, ways);
        let mut held = vec![None; ways];
        let mut hits = 0;
        for line in (0..rounds).flat_map(|_| 0..lines) {
            if let Some(way) = held.iter().position(|&other| other == Some(line)) {
                policy.touch(0, way);
                hits += 1;
                continue;
            }
            let free = held.iter().position(Option::is_none);
            let way = free.or_else(|| policy.victim(0, &|way| way < ways)).unwrap();
            held[way] = Some(line);
            policy.insert(0, way);
        }
        hits
    }

    #[test]
    fn loop_over_one_line_more_than_the_ways_hits_with_nru_and_random() {
        for policy in [ReplacementPolicy::Lru, ReplacementPolicy::Fifo] {
            assert_eq!(
                hits(policy, 8, 9, 100),
                0,
                "{policy:?} drops each line just before its next use"
            );
        }
        let hits_of_tree = hits(ReplacementPolicy::TreePlru, 8, 9, 100);
        assert!(
            (1..18).contains(&hits_of_tree),
            "hits in the first rounds, then none: {hits_of_tree}"
        );
        // One line of 9 is absent at a time. A miss evicts each of the 8 others with the same probability. So the next miss is 1 to 8
        // lines later, 4.5 on average. The hit rate is 1 - 1/4.5 = 78 %.
        let hits_of_random = hits(ReplacementPolicy::Random, 8, 9, 1000);
        assert!(
            (6_840..7_160).contains(&hits_of_random),
            "76 to 80 % of 9000: {hits_of_random}"
        );
        // The 8 fills leave way 7 used. Lines 8 and 0 to 5 miss and take ways 0 to 6, which clears all bits but that of way 6. Line 6 misses
        // and takes way 0, and line 7 hits in way 7.
        assert_eq!(hits(ReplacementPolicy::Nru, 8, 9, 2), 1, "one hit in the second round");
    }

    #[test]
    fn loop_over_as_many_lines_as_ways_misses_in_the_first_round_only() {
        for policy in ReplacementPolicy::ALL {
            assert_eq!(hits(policy, 8, 8, 100), 99 * 8, "{policy:?}");
        }
    }

    #[test]
    fn way_that_may_not_go_is_never_the_victim() {
        for policy in ReplacementPolicy::ALL {
            for ways in [1, 3, 8, 24, 256] {
                let mut policy = policy.new_replacement()(2, ways);
                (0..2 * ways).for_each(|n| policy.insert(1, n % ways));
                assert_eq!(policy.victim(1, &|_| false), None);
                for only in 0..ways {
                    assert_eq!(policy.victim(1, &|way| way == only), Some(only));
                    policy.touch(1, only);
                }
                let any = policy.victim(1, &|way| way < ways).unwrap();
                assert_eq!(
                    policy.victim(1, &|way| way < ways),
                    Some(any),
                    "the same until the next use"
                );
            }
        }
    }
}
