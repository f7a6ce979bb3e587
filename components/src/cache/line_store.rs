//! The bytes of a cache's lines, by way.
//!
//! Host memory grows with the ways in use. An empty cache takes its ways in the order
//! of their numbers ([`Tags`](super::tags::Tags)), so the ways in use are the first ones.

use warpwave_hw::grow::grow;

use crate::proto::mem::{LINE, copy_bytes, copy_sectors};

/// One line's bytes for each way in use.
pub(crate) struct LineStore {
    ways: usize,
    lines: Vec<[u8; LINE]>,
}

impl LineStore {
    /// A store for `ways` ways, none in use.
    pub(crate) fn new(ways: usize) -> Self {
        LineStore {
            ways,
            lines: Vec::new(),
        }
    }

    /// Allocates the bytes of `way` before its first use.
    ///
    /// # Panics
    /// If the cache has no such way.
    #[inline]
    pub(crate) fn prepare(&mut self, way: usize) {
        if way >= self.lines.len() {
            self.grow(way);
        }
    }

    #[cold]
    fn grow(&mut self, way: usize) {
        assert!(way < self.ways, "way {way} of {}", self.ways);
        // Most runs never fill the caches of a full chip.
        let lines = (way + 1).next_power_of_two().min(self.ways);
        grow(&mut self.lines, lines, [0; LINE]);
    }

    /// The bytes of a line.
    #[inline]
    pub(crate) fn line(&self, way: usize) -> &[u8; LINE] {
        &self.lines[way]
    }

    /// The bytes of a line, for writing.
    #[inline]
    pub(crate) fn line_mut(&mut self, way: usize) -> &mut [u8; LINE] {
        &mut self.lines[way]
    }

    /// Copies `sectors` of a line to a packet.
    #[inline]
    pub(crate) fn read(&self, way: usize, sectors: u8, to: &mut [u8; LINE]) {
        copy_sectors(&self.lines[way], to, sectors);
    }

    /// Copies `sectors` of a fill into a line.
    #[inline]
    pub(crate) fn fill(&mut self, way: usize, sectors: u8, from: &[u8; LINE]) {
        copy_sectors(from, &mut self.lines[way], sectors);
    }

    /// Copies the bytes in `mask` of a store into a line.
    #[inline]
    pub(crate) fn write(&mut self, way: usize, mask: u128, from: &[u8; LINE]) {
        // By a mask of bytes, since a store need not fill its sectors.
        copy_bytes(from, &mut self.lines[way], mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_way_stay_when_the_store_grows() {
        let mut store = LineStore::new(100);
        assert_eq!(store.lines.len(), 0);
        store.prepare(9);
        assert_eq!(store.lines.len(), 16, "at most twice the ways in use");
        store.line_mut(9)[127] = 7;
        store.prepare(99);
        assert_eq!((store.line(9)[127], *store.line(99)), (7, [0; LINE]));
        assert_eq!(store.lines.len(), 100);
    }

    #[test]
    #[should_panic(expected = "way 100 of 100")]
    fn way_beyond_the_last_is_refused() {
        LineStore::new(100).prepare(100);
    }
}
