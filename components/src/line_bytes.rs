//! The bytes of a cache's lines, by place. They take memory of the host as far as places were used: a full chip's caches hold tens of
//! megabytes, which most runs never fill. So caches number their places in the order in which an empty cache takes them: the place that
//! each set takes first, then those they take second, and so on.

use std::ops::{Index, IndexMut};

use crate::grow::grow;
use crate::proto::mem::LINE;

/// One line's bytes for each place that was used, and for some more.
pub(crate) struct LineBytes {
    most: usize,
    lines: Vec<[u8; LINE]>,
}

impl LineBytes {
    /// Bytes for so many places, none used.
    pub(crate) fn new(places: usize) -> Self {
        LineBytes {
            most: places,
            lines: Vec::new(),
        }
    }

    /// Sees to it that a place has bytes.
    ///
    /// # Panics
    /// If there is no such place.
    #[inline]
    pub(crate) fn use_place(&mut self, place: usize) {
        if place >= self.lines.len() {
            self.grow(place);
        }
    }

    #[cold]
    fn grow(&mut self, place: usize) {
        assert!(place < self.most, "place {place} of {}", self.most);
        let lines = (place + 1).next_power_of_two().min(self.most);
        grow(&mut self.lines, lines, [0; LINE]);
    }
}

impl Index<usize> for LineBytes {
    type Output = [u8; LINE];

    #[inline]
    fn index(&self, place: usize) -> &[u8; LINE] {
        &self.lines[place]
    }
}

impl IndexMut<usize> for LineBytes {
    #[inline]
    fn index_mut(&mut self, place: usize) -> &mut [u8; LINE] {
        &mut self.lines[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_that_was_used_has_bytes_and_keeps_them_however_many_are_used() {
        let mut bytes = LineBytes::new(100);
        assert_eq!(bytes.lines.len(), 0);
        bytes.use_place(9);
        assert_eq!(bytes.lines.len(), 16, "no more than twice what is used");
        bytes[9][127] = 7;
        bytes.use_place(99);
        assert_eq!((bytes[9][127], bytes[99]), (7, [0; LINE]));
        assert_eq!(bytes.lines.len(), 100);
    }

    #[test]
    #[should_panic(expected = "place 100 of 100")]
    fn place_that_the_cache_does_not_have_is_refused() {
        LineBytes::new(100).use_place(100);
    }
}
