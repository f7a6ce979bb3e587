//! First in, first out: a hit changes nothing.

use super::Replacement;
use super::lru::Lru;

/// The order of fills in every set: an [`Lru`] without hits.
pub(super) struct Fifo(Lru);

impl Fifo {
    /// A policy for `sets` sets of `ways` ways.
    pub(super) fn new(sets: usize, ways: usize) -> Self {
        Fifo(Lru::new(sets, ways))
    }
}

impl Replacement for Fifo {
    fn touch(&mut self, _: usize, _: usize) {}

    fn insert(&mut self, set: usize, way: usize) {
        self.0.insert(set, way);
    }

    fn victim(&self, set: usize, may_go: &dyn Fn(usize) -> bool) -> Option<usize> {
        self.0.victim(set, may_go)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hit_does_not_save_the_oldest_line() {
        let mut fifo = Fifo::new(1, 4);
        [2, 0, 3, 1].into_iter().for_each(|way| fifo.insert(0, way));
        fifo.touch(0, 2);
        assert_eq!(fifo.victim(0, &|_| true), Some(2));
        assert_eq!(fifo.victim(0, &|way| way != 2), Some(0));
        fifo.insert(0, 2);
        assert_eq!(fifo.victim(0, &|_| true), Some(0));
    }
}
