//! The directory of a home slice: the sectors of its lines that the near slice of the other partition may hold.
//!
//! It mirrors the tags of the near slice, way by way. A fetch names the way that its copy takes, so a new copy replaces the old one here
//! too. The near slice evicts copies without a message. So the directory may name a copy that is gone, but never lacks one that exists.

use crate::cache::line_index::LineIndex;

/// The copies of one slice's lines in the other partition.
pub(super) struct Directory {
    index: LineIndex,
    /// Mask of the sectors that the copy in each way of the near slice may hold.
    sectors: Box<[u8]>,
}

impl Directory {
    /// An empty directory of a near slice with `ways` ways.
    pub(super) fn new(ways: usize) -> Self {
        Directory {
            index: LineIndex::new(ways),
            sectors: vec![0; ways].into(),
        }
    }

    /// Sectors of `line` that may have a copy.
    #[inline]
    pub(super) fn sectors(&self, line: u32) -> u8 {
        self.index.find(line).map_or(0, |way| self.sectors[way])
    }

    /// Adds `sectors` of `line` to the copy in `way` of the near slice.
    pub(super) fn add(&mut self, line: u32, way: usize, sectors: u8) {
        match self.index.find(line) {
            // One more sector of a copy that is known.
            Some(found) if found == way => self.sectors[way] |= sectors,
            found => {
                // A line has at most one way, and a way one line. So older entries of either name copies that are gone.
                if let Some(old) = found {
                    self.index.remove(old);
                }
                if self.index.line(way).is_some() {
                    self.index.remove(way);
                }
                self.index.insert(way, line);
                self.sectors[way] = sectors;
            }
        }
    }

    /// Removes `sectors` of `line`: the near slice has dropped them.
    pub(super) fn remove(&mut self, line: u32, sectors: u8) {
        if let Some(way) = self.index.find(line) {
            self.sectors[way] &= !sectors;
            if self.sectors[way] == 0 {
                self.index.remove(way);
            }
        }
    }

    /// Removes all copies.
    pub(super) fn clear(&mut self) {
        self.index.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_copy_in_a_way_replaces_the_old_one() {
        let mut directory = Directory::new(4);
        directory.add(10, 2, 0b0001);
        directory.add(10, 2, 0b0100);
        assert_eq!(directory.sectors(10), 0b0101);
        directory.add(11, 2, 0b0010);
        assert_eq!((directory.sectors(10), directory.sectors(11)), (0, 0b0010));
    }

    #[test]
    fn line_that_returns_to_another_way_leaves_its_old_one() {
        let mut directory = Directory::new(4);
        directory.add(10, 2, 0b0011);
        directory.add(10, 3, 0b1000);
        assert_eq!(directory.sectors(10), 0b1000);
        directory.add(11, 2, 0b0001);
        assert_eq!((directory.sectors(10), directory.sectors(11)), (0b1000, 0b0001));
    }

    #[test]
    fn removed_sectors_have_no_copy() {
        let mut directory = Directory::new(4);
        directory.add(10, 0, 0b0111);
        directory.remove(10, 0b1001);
        assert_eq!(directory.sectors(10), 0b0110);
        directory.remove(10, 0b0110);
        directory.remove(12, 0b1111);
        assert_eq!(directory.sectors(10), 0);
        directory.add(11, 0, 0b0001);
        directory.clear();
        assert_eq!(directory.sectors(11), 0);
    }
}
