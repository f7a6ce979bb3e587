//! The lines of a slice: tags, bytes, and which bytes are valid and which sectors changed.
//!
//! Set-associative, least recently used out first. Lines are dealt to sets as evenly as the address map deals them to slices.
//! Arrays begin as zeros, so a cache that a program does not fill costs the host no memory.
//!
//! Invariants: a byte that is not valid is not known; a changed sector has at least one valid byte; a line with fetches under
//! way is pinned.

use warpwave_hw::lru::Lru;

use crate::proto::mem::{LINE, SECTOR, SECTORS, byte_mask, copy_bytes, each_sector};
use crate::proto::noc::Spread;

/// No line: device memory begins far above line 0.
const NONE: u32 = 0;

/// All bytes of a sector.
pub(super) const FULL: u32 = u32::MAX;

/// Most ways of a set: beyond them nothing is gained but search.
const MOST_WAYS: usize = 256;

/// What an access finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// The line, here.
    Line(usize),
    /// A place for it, free or with a line that may go.
    Victim(usize),
    /// Every line of its set is pinned.
    Pinned,
}

/// Of a line: the valid bytes of each sector; the fetch entry plus 1, 0 where none; the changed sectors. They stand together as
/// a lookup asks for all of them, and in a tuple as arrays of those begin as zeros.
type State = ([u32; SECTORS], u16, u8);

/// All lines of one slice. A line is named by its place: set * ways + way.
pub(super) struct Lines {
    ways: usize,
    sets: Spread,
    tags: Vec<u32>,
    state: Vec<State>,
    lru: Lru,
    bytes: Vec<u8>,
}

impl Lines {
    /// So many bytes of lines, at least one line's, in sets of at most `ways`.
    pub(super) fn new(bytes: u32, ways: u32) -> Self {
        let lines = (bytes as usize / LINE).max(1);
        let ways = (ways as usize).clamp(1, lines.min(MOST_WAYS));
        let sets = lines / ways;
        let places = sets * ways;
        Lines {
            ways,
            sets: Spread::new(sets as u32),
            tags: vec![NONE; places],
            state: vec![State::default(); places],
            lru: Lru::new(sets, ways),
            bytes: vec![0; places * LINE],
        }
    }

    /// Places that lines may take.
    pub(super) fn places(&self) -> usize {
        self.tags.len()
    }

    /// Forgets everything, fetches too.
    pub(super) fn clear(&mut self) {
        self.tags.fill(NONE);
        self.state.fill(State::default());
        self.lru.clear();
    }

    /// The set of a line, `local` being its number in the slice.
    #[inline]
    pub(super) fn set_of(&self, local: u64) -> usize {
        self.sets.deal(local).0 as usize
    }

    /// Looks for a line in its set.
    #[inline]
    pub(super) fn find(&self, set: usize, line: u32) -> Found {
        let first = set * self.ways;
        let tags = &self.tags[first..first + self.ways];
        // The way plus 1, as one way at most has the line. Compares many at a time, which a search does not.
        let found = (1..)
            .zip(tags)
            .fold(0u32, |found, (n, &tag)| found | if tag == line { n } else { 0 });
        if found != 0 {
            return Found::Line(first + found as usize - 1);
        }
        let victim = self.lru.oldest(set, |way| self.state[first + way].1 == 0);
        victim.map_or(Found::Pinned, |way| Found::Victim(first + way))
    }

    /// Puts a line in a place, with no byte valid.
    pub(super) fn allocate(&mut self, place: usize, line: u32) {
        self.tags[place] = line;
        let (valid, _, dirty) = &mut self.state[place];
        *valid = [0; SECTORS];
        *dirty = 0;
    }

    /// Forgets a line.
    pub(super) fn forget(&mut self, place: usize) {
        self.allocate(place, NONE);
        self.lru.release(place / self.ways, place % self.ways);
    }

    /// Notes a use of a place of this set.
    #[inline]
    pub(super) fn touch(&mut self, set: usize, place: usize) {
        self.lru.touch(set, place - set * self.ways);
    }

    /// The line in a place, if there is one.
    pub(super) fn line(&self, place: usize) -> Option<u32> {
        (self.tags[place] != NONE).then_some(self.tags[place])
    }

    /// Sectors of which every byte is valid.
    #[inline]
    pub(super) fn full(&self, place: usize) -> u8 {
        let (valid, ..) = &self.state[place];
        (0..SECTORS).fold(0, |full, n| full | u8::from(valid[n] == FULL) << n)
    }

    /// Sectors that memory does not have yet.
    #[inline]
    pub(super) fn dirty(&self, place: usize) -> u8 {
        self.state[place].2
    }

    /// The sectors are in memory.
    pub(super) fn clean(&mut self, place: usize) {
        self.state[place].2 = 0;
    }

    /// Valid bytes of the whole line.
    #[inline]
    pub(super) fn valid(&self, place: usize) -> u128 {
        let (valid, ..) = &self.state[place];
        (0..SECTORS).fold(0, |mask, n| mask | u128::from(valid[n]) << (SECTOR * n))
    }

    /// The entry of the fetches under way for a line.
    #[inline]
    pub(super) fn fetch(&self, place: usize) -> Option<u16> {
        self.state[place].1.checked_sub(1)
    }

    /// Pins a line for the fetches of an entry, or unpins it.
    pub(super) fn set_fetch(&mut self, place: usize, entry: Option<u16>) {
        self.state[place].1 = entry.map_or(0, |entry| entry + 1);
    }

    /// The bytes of a line.
    #[inline]
    pub(super) fn bytes(&self, place: usize) -> &[u8; LINE] {
        &self.bytes.as_chunks().0[place]
    }

    /// The bytes of a line, to change some and then [`Lines::mark`] them.
    #[inline]
    pub(super) fn bytes_mut(&mut self, place: usize) -> &mut [u8; LINE] {
        &mut self.bytes.as_chunks_mut().0[place]
    }

    /// The bytes `mask` of the line were written.
    #[inline]
    pub(super) fn mark(&mut self, place: usize, mask: u128) {
        let (valid, _, dirty) = &mut self.state[place];
        for (n, valid) in valid.iter_mut().enumerate() {
            let written = (mask >> (SECTOR * n)) as u32;
            *valid |= written;
            *dirty |= u8::from(written != 0) << n;
        }
    }

    /// Takes sectors from memory in: bytes that are valid already are newer and stay.
    pub(super) fn merge(&mut self, place: usize, sectors: u8, from: &[u8; LINE]) {
        let missing = byte_mask(sectors) & !self.valid(place);
        copy_bytes(from, self.bytes_mut(place), missing);
        let (valid, ..) = &mut self.state[place];
        each_sector(sectors).for_each(|sector| valid[sector] = FULL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partly_written_sector_fetched_the_written_bytes_stay() {
        let mut lines = Lines::new(1024, 2);
        lines.allocate(0, 5);
        lines.bytes_mut(0)[33] = 0x11;
        lines.mark(0, 0b10 << 32);
        assert_eq!((lines.full(0), lines.dirty(0), lines.valid(0)), (0, 0b0010, 1 << 33));
        lines.merge(0, 0b0010, &[0x22; LINE]);
        assert_eq!(lines.bytes(0)[32..35], [0x22, 0x11, 0x22]);
        assert_eq!((lines.full(0), lines.dirty(0)), (0b0010, 0b0010));
        assert_eq!(lines.bytes(0)[0], 0, "another sector is not touched");
    }

    #[test]
    fn set_full_of_pinned_lines_there_is_no_victim() {
        let mut lines = Lines::new(256, 2);
        for place in 0..2 {
            let Found::Victim(at) = lines.find(0, 10 + place) else {
                panic!("a free place is a victim");
            };
            lines.allocate(at, 10 + place);
            lines.touch(0, at);
            lines.set_fetch(at, Some(place as u16));
        }
        assert_eq!(lines.find(0, 12), Found::Pinned);
        lines.set_fetch(1, None);
        assert_eq!(lines.find(0, 12), Found::Victim(1));
        lines.set_fetch(0, None);
        assert_eq!(lines.find(0, 12), Found::Victim(0), "the least recently used");
        assert_eq!(lines.find(0, 11), Found::Line(1));
    }
}
