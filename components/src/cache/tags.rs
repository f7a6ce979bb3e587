//! Tags of a set-associative cache: the line of each way, and the way that a new line takes.
//!
//! A new line takes an invalid way of its set, the highest first. If all are valid, it takes the victim of the [`Replacement`] policy. The
//! cache maps lines to sets, and keeps its own state of a line by way.
//!
//! A way has two names. Callers use its number over the whole cache: first the highest way of every set, then the next lower one. The
//! policy and the valid bits use its set, and its place within the set. The cache also chooses the numbers of its lines.
//!
//! Invariant: a way is valid exactly if the index holds a line for it.

use bitvec::prelude::{BitVec, bitvec};
use warpwave_hw::invariant::Invariants;

use super::line_index::LineIndex;
use super::replacement::{MOST_WAYS, NewReplacement, Replacement};
use crate::proto::mem::LINE;

/// Sets and ways of a cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    /// Sets, at least 1.
    pub(crate) sets: usize,
    /// Ways of a set, 1 to [`MOST_WAYS`].
    pub(crate) ways: usize,
}

impl Shape {
    /// The shape of a cache of `bytes` bytes, at least one line, in sets of at most `ways` ways.
    pub(crate) fn new(bytes: u32, ways: u32) -> Self {
        let lines = (bytes as usize / LINE).max(1);
        let ways = (ways as usize).clamp(1, lines.min(MOST_WAYS));
        Shape {
            sets: lines / ways,
            ways,
        }
    }
}

/// The tags of one cache.
pub(crate) struct Tags {
    shape: Shape,
    index: LineIndex,
    /// The valid ways: bit `set * ways + way`.
    valid: BitVec,
    replacement: Box<dyn Replacement>,
}

impl Tags {
    /// Tags without lines.
    pub(crate) fn new(shape: Shape, replacement: &NewReplacement) -> Self {
        let Shape { sets, ways } = shape;
        Tags {
            shape,
            index: LineIndex::new(sets * ways),
            valid: bitvec![0; sets * ways],
            replacement: replacement(sets, ways),
        }
    }

    /// A way is valid exactly if it has a line, and no line is in two ways.
    pub(crate) fn invariants(&self, check: &mut Invariants) {
        let is_wrong = |&way: &usize| self.line(way).is_none_or(|line| self.find(line) != Some(way));
        let wrong = self.valid_ways().filter(is_wrong).count();
        check.equal("ways with a wrong line", wrong as u64, 0);
        let valid = self.valid.count_ones() as u64;
        check.equal("lines of all ways", self.index.n_lines() as u64, valid);
    }

    /// The valid ways, set by set.
    pub(crate) fn valid_ways(&self) -> impl Iterator<Item = usize> {
        let ways = self.shape.ways;
        self.valid.iter_ones().map(move |at| self.number(at / ways, at % ways))
    }

    /// Sets in use.
    #[inline]
    pub(crate) fn sets(&self) -> usize {
        self.shape.sets
    }

    /// Ways of a set.
    #[inline]
    pub(crate) fn ways(&self) -> usize {
        self.shape.ways
    }

    /// Invalidates every line, and has `shape` from now on. It has no more lines than the first shape.
    pub(crate) fn resize(&mut self, shape: Shape, replacement: &NewReplacement) {
        // The arrays by way keep their size: a smaller cache uses their first part.
        debug_assert!(shape.sets * shape.ways <= self.index.slots());
        self.shape = shape;
        self.index.clear();
        self.valid.fill(false);
        // A policy knows its sets and ways, so a new one starts without history.
        self.replacement = replacement(shape.sets, shape.ways);
    }

    /// The way of `line`, if the cache holds it.
    #[inline]
    pub(crate) fn find(&self, line: u32) -> Option<usize> {
        self.index.find(line)
    }

    /// The line in `way`.
    #[inline]
    pub(crate) fn line(&self, way: usize) -> Option<u32> {
        self.index.line(way)
    }

    /// Tells the replacement policy of a hit in `way`.
    #[inline]
    pub(crate) fn touch(&mut self, way: usize) {
        let (set, way) = self.position(way);
        self.replacement.touch(set, way);
    }

    /// The way that a new line of `set` takes: an invalid way, or a victim. `may_go` is false for the way of a line that must stay.
    pub(crate) fn victim(&self, set: usize, may_go: impl Fn(usize) -> bool) -> Option<usize> {
        let first = set * self.shape.ways;
        let of_set = &self.valid[first..first + self.shape.ways];
        // The highest invalid way, which has the lowest number.
        let free = of_set.last_zero();
        // A policy may ask for ways beyond the last: the leaves of a tree are a power of two.
        let may_go = |way| way < self.shape.ways && may_go(self.number(set, way));
        let way = free.or_else(|| self.replacement.victim(set, &may_go))?;
        Some(self.number(set, way))
    }

    /// Puts `line` in `way`. Returns the line that it evicts.
    pub(crate) fn insert(&mut self, way: usize, line: u32) -> Option<u32> {
        let evicted = self.line(way);
        if evicted.is_some() {
            self.index.remove(way);
        }
        self.index.insert(way, line);
        let (set, way) = self.position(way);
        self.valid.set(set * self.shape.ways + way, true);
        self.replacement.insert(set, way);
        evicted
    }

    /// Invalidates the line in `way`, which is valid.
    pub(crate) fn invalidate(&mut self, way: usize) {
        self.index.remove(way);
        let (set, way) = self.position(way);
        self.valid.set(set * self.shape.ways + way, false);
    }

    /// Invalidates every line whose way `keep` refuses.
    pub(crate) fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        let mut from = 0;
        while let Some(next) = self.valid[from..].first_one() {
            let at = from + next;
            let way = self.number(at / self.shape.ways, at % self.shape.ways);
            if !keep(way) {
                self.invalidate(way);
            }
            from = at + 1;
        }
    }

    /// The ways of `set`, from the lowest to the highest.
    pub(crate) fn ways_of(&self, set: usize) -> impl Iterator<Item = usize> {
        (0..self.shape.ways).map(move |way| self.number(set, way))
    }

    /// The set of `way`.
    pub(crate) fn set_of(&self, way: usize) -> usize {
        self.position(way).0
    }

    /// The number, over the whole cache, of a way of a set.
    #[inline]
    fn number(&self, set: usize, way: usize) -> usize {
        // An empty set fills its highest way first. So a cache fills from number 0 on. The host's memory for its bytes (`LineStore`) grows
        // with the highest number in use.
        (self.shape.ways - 1 - way) * self.shape.sets + set
    }

    /// The set and the way within it that have this number.
    #[inline]
    fn position(&self, number: usize) -> (usize, usize) {
        // 32 bits are enough, and the host divides them faster.
        let (number, sets) = (number as u32, self.shape.sets as u32);
        ((number % sets) as usize, self.shape.ways - 1 - (number / sets) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ReplacementPolicy;

    #[test]
    fn way_without_a_line_and_line_without_a_way_are_reported() {
        let broken = |tags: &Tags| Invariants::broken(|check| tags.invariants(check));
        let policy = ReplacementPolicy::Lru.new_replacement();
        let mut tags = Tags::new(Shape { sets: 4, ways: 2 }, &policy);
        let way = tags.victim(1, |_| true).expect("a set without lines");
        tags.insert(way, 7);
        assert_eq!(broken(&tags), [""; 0]);
        assert_eq!(tags.valid_ways().collect::<Vec<_>>(), [way]);
        tags.valid.fill(false);
        assert_eq!(broken(&tags), ["lines of all ways: 1, not 0"]);
        tags.valid.fill(true);
        let expected = ["ways with a wrong line: 7, not 0", "lines of all ways: 1, not 8"];
        assert_eq!(broken(&tags), expected);
    }

    #[test]
    fn full_set_gives_up_one_of_its_ways_with_each_policy_and_number_of_ways() {
        for policy in ReplacementPolicy::ALL {
            for ways in [1, 2, 3, 5, 6, 7, 12, 20, 255, 256] {
                let mut tags = Tags::new(Shape { sets: 2, ways }, &policy.new_replacement());
                // Number 0 is no line.
                for line in 1..=4 * ways as u32 {
                    let way = tags.victim(1, |_| true).expect("every line may leave");
                    assert_eq!(tags.set_of(way), 1, "{policy:?}, {ways} ways");
                    let evicted = tags.insert(way, line);
                    assert_eq!(evicted.is_some(), line > ways as u32, "{policy:?}, {ways} ways");
                }
            }
        }
    }
}
