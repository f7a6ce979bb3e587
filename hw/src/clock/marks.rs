//! A bit for each tile of a machine, which all threads see.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// One bit for each tile.
pub struct Marks(Box<[AtomicU64]>);

impl Marks {
    /// No mark on any of so many tiles.
    pub fn new(tiles: usize) -> Self {
        Marks((0..tiles.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    /// Sets or takes off the mark of a tile.
    #[inline]
    pub fn set(&self, tile: usize, is_marked: bool) {
        let (word, bit) = (&self.0[tile / 64], 1 << (tile % 64));
        // It mostly is as it should be, and a plain load does not take the line from the other threads.
        let was_marked = word.load(Ordering::Relaxed) & bit != 0;
        if is_marked && !was_marked {
            word.fetch_or(bit, Ordering::AcqRel);
        } else if was_marked && !is_marked {
            word.fetch_and(!bit, Ordering::AcqRel);
        }
    }

    /// The next marked tile in `range`, from its end if `backwards`; the range is what is left of it then.
    #[inline]
    pub fn next(&self, range: &mut Range<usize>, backwards: bool) -> Option<usize> {
        while range.start < range.end {
            let n = if backwards { range.end - 1 } else { range.start } / 64;
            let (from, to) = (range.start.max(n * 64), range.end.min(n * 64 + 64));
            let within = (u64::MAX >> (64 - (to - from))) << (from % 64);
            let bits = self.0[n].load(Ordering::Acquire) & within;
            let found = (bits != 0).then(|| {
                let bit = if backwards { bits.ilog2() } else { bits.trailing_zeros() };
                n * 64 + bit as usize
            });
            if backwards {
                range.end = found.unwrap_or(from);
            } else {
                range.start = found.map_or(to, |tile| tile + 1);
            }
            if found.is_some() {
                return found;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(tiles: &[usize]) -> Marks {
        let marks = Marks::new(200);
        tiles.iter().for_each(|&tile| marks.set(tile, true));
        marks
    }

    fn all(marks: &Marks, mut range: Range<usize>, backwards: bool) -> Vec<usize> {
        std::iter::from_fn(|| marks.next(&mut range, backwards)).collect()
    }

    #[test]
    fn marks_of_a_range_are_found_forth_and_back_across_words() {
        let marks = marked(&[0, 1, 63, 64, 127, 128, 199]);
        assert_eq!(all(&marks, 0..200, false), [0, 1, 63, 64, 127, 128, 199]);
        assert_eq!(all(&marks, 0..200, true), [199, 128, 127, 64, 63, 1, 0]);
        assert_eq!(all(&marks, 1..128, false), [1, 63, 64, 127]);
        assert_eq!(all(&marks, 1..128, true), [127, 64, 63, 1]);
        assert_eq!(all(&marks, 2..63, false), []);
        assert_eq!(all(&marks, 64..64, true), []);
    }

    #[test]
    fn mark_taken_off_is_not_found_and_one_set_while_walking_is() {
        let marks = marked(&[5, 70]);
        marks.set(5, false);
        let mut range = 0..200;
        assert_eq!(marks.next(&mut range, false), Some(70));
        marks.set(150, true);
        assert_eq!(marks.next(&mut range, false), Some(150));
    }
}
