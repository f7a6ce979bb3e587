//! Which lines the L1 holds, and which sectors of them.
//!
//! Set-associative, least recently used out first, sets by the line number modulo their count, any count: the carve-out
//! decides. A line comes in with its first fill, never before.

use warpwave_hw::lru::Lru;

use crate::proto::mem::LINE;

/// No line: device memory begins far above line 0.
const NONE: u32 = 0;

/// Most ways of a set: beyond them nothing is gained but search.
const MOST_WAYS: usize = 256;

/// The tags of one L1. A line is named by its place: set * ways + way.
pub(super) struct Tags {
    ways: usize,
    sets: u32,
    lines: Vec<u32>,
    sectors: Vec<u8>,
    lru: Lru,
}

impl Tags {
    /// Tags of `bytes` bytes of lines, at least one line's, in sets of at most `ways`.
    pub(super) fn new(bytes: u32, ways: u32) -> Self {
        let lines = (bytes as usize / LINE).max(1);
        let ways = (ways as usize).clamp(1, lines.min(MOST_WAYS));
        let sets = lines / ways;
        Tags {
            ways,
            sets: sets as u32,
            lines: vec![NONE; sets * ways],
            sectors: vec![0; sets * ways],
            lru: Lru::new(sets, ways),
        }
    }

    /// Forgets every line.
    pub(super) fn clear(&mut self) {
        self.lines.fill(NONE);
        self.sectors.fill(0);
        self.lru.clear();
    }

    /// Forgets every line, and uses as many sets as `bytes` bytes of lines make, at most those there were at first.
    pub(super) fn hold(&mut self, bytes: u32) {
        self.clear();
        let sets = bytes as usize / LINE / self.ways;
        self.sets = sets.clamp(1, self.lines.len() / self.ways) as u32;
    }

    /// Places that lines may take.
    pub(super) fn places(&self) -> usize {
        self.lines.len()
    }

    /// Where a line is, and its sectors, if it is here.
    #[inline]
    pub(super) fn find(&self, line: u32) -> Option<(usize, u8)> {
        let first = self.set(line) * self.ways;
        let set = &self.lines[first..first + self.ways];
        // Compares many at a time, which a search for the place does not.
        if !set.contains(&line) {
            return None;
        }
        let way = set.iter().position(|&tag| tag == line)?;
        Some((first + way, self.sectors[first + way]))
    }

    /// Notes a use.
    #[inline]
    pub(super) fn touch(&mut self, place: usize) {
        self.lru.touch(place / self.ways, place % self.ways);
    }

    /// Gives a line a place, pushing the least recently used one out if need be, and adds sectors. Says whether a line went.
    pub(super) fn install(&mut self, line: u32, sectors: u8) -> (usize, bool) {
        if let Some((place, _)) = self.find(line) {
            self.sectors[place] |= sectors;
            return (place, false);
        }
        let set = self.set(line);
        let way = self.lru.oldest(set, |_| true).expect("a set has at least one way");
        self.lru.touch(set, way);
        let place = set * self.ways + way;
        let evicted = self.lines[place] != NONE;
        self.lines[place] = line;
        self.sectors[place] = sectors;
        (place, evicted)
    }

    /// Forgets a line.
    pub(super) fn drop_line(&mut self, line: u32) {
        if let Some((place, _)) = self.find(line) {
            self.lines[place] = NONE;
            self.sectors[place] = 0;
            self.lru.release(place / self.ways, place % self.ways);
        }
    }

    #[inline]
    fn set(&self, line: u32) -> usize {
        (line % self.sets) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_ways_of_two_sets() -> Tags {
        Tags::new(512, 2)
    }

    #[test]
    fn set_full_least_recently_used_line_goes() {
        let mut tags = two_ways_of_two_sets();
        assert!(!tags.install(100, 0b1).1);
        assert!(!tags.install(102, 0b1).1);
        tags.touch(tags.find(100).unwrap().0);
        assert!(tags.install(104, 0b1).1);
        assert!(tags.find(102).is_none() && tags.find(100).is_some());
    }

    #[test]
    fn line_present_second_fill_adds_its_sectors() {
        let mut tags = two_ways_of_two_sets();
        let (place, _) = tags.install(100, 0b0001);
        tags.install(100, 0b1000);
        assert_eq!(tags.find(100), Some((place, 0b1001)));
    }

    #[test]
    fn size_leaves_seven_sets_all_places_take_a_line() {
        let mut tags = Tags::new(28_672, 32); // 256 KiB less a carve-out of 228 KiB
        assert_eq!(tags.places(), 224);
        assert!((1000..1224).all(|line| !tags.install(line, 0b1).1));
        assert!(tags.install(1224, 0b1).1);
        tags.clear();
        assert!(tags.find(1224).is_none());
    }

    #[test]
    fn holding_fewer_bytes_uses_fewer_sets_and_forgets_what_was_there() {
        let mut tags = Tags::new(1024, 2);
        tags.install(100, 0b1);
        tags.hold(512);
        assert!(tags.find(100).is_none());
        assert!(![100, 102, 101, 103].iter().any(|&line| tags.install(line, 0b1).1));
        assert!(tags.install(104, 0b1).1, "two sets of two");
        tags.hold(1 << 20);
        assert!(
            (100..108).all(|line| !tags.install(line, 0b1).1),
            "never more than at first"
        );
    }
}
