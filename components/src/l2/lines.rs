//! The lines of a slice: tags, bytes, and which bytes are valid and which sectors changed.
//!
//! Set-associative, least recently used out first. Lines are dealt to sets as evenly as the address map deals them to slices.
//! Bytes begin as zeros, so a cache that a program does not fill costs the host little memory.
//!
//! A line is found by its chain ([`crate::chains`]); its set is needed only when it comes.
//!
//! Invariants: a byte that is not valid is not known; a changed sector has at least one valid byte; a line with fetches under
//! way is pinned.

use warpwave_hw::lru::Lru;

use crate::chains::{Chains, Tag, Tagged};
use crate::line_bytes::LineBytes;
use crate::proto::mem::{LINE, SECTOR, SECTORS, byte_mask, copy_bytes, copy_some, each_sector, sector_masks};
use crate::proto::noc::Spread;

/// All bytes of a sector.
pub(super) const FULL: u32 = u32::MAX;

/// Most ways of a set: beyond them nothing is gained but search.
const MOST_WAYS: usize = 256;

/// A place for a line: all that a lookup asks for, in half a line of the host's cache.
#[derive(Clone)]
#[repr(align(32))]
struct Place {
    /// The valid bytes of each sector.
    valid: [u32; SECTORS],
    tag: Tag,
    set: u32,
    /// The entry of the fetches under way plus 1; 0 where there are none.
    fetch: u16,
    /// The changed sectors.
    dirty: u8,
    way: u8,
}

impl Tagged for Place {
    #[inline]
    fn tag(&self) -> Tag {
        self.tag
    }

    #[inline]
    fn tag_mut(&mut self) -> &mut Tag {
        &mut self.tag
    }
}

/// What a set may hold, so that who walks through all lines passes the sets over of which nothing is wanted.
#[derive(Clone, Copy)]
struct Use {
    /// Lines, or the order of their use.
    lines: bool,
    /// Changed sectors.
    changes: bool,
}

impl Use {
    const NONE: Use = Use {
        lines: false,
        changes: false,
    };
}

/// All lines of one slice. A line is named by its place: see [`Lines::place`].
pub(super) struct Lines {
    ways: usize,
    sets: Spread,
    places: Box<[Place]>,
    /// For each set.
    used: Box<[Use]>,
    chains: Chains<0>,
    lru: Lru,
    bytes: LineBytes,
}

impl Lines {
    /// So many bytes of lines, at least one line's, in sets of at most `ways`.
    pub(super) fn new(bytes: u32, ways: u32) -> Self {
        let lines = (bytes as usize / LINE).max(1);
        let ways = (ways as usize).clamp(1, lines.min(MOST_WAYS));
        let sets = lines / ways;
        let place = |n: usize| Place {
            valid: [0; SECTORS],
            tag: Tag::FREE,
            set: (n % sets) as u32,
            fetch: 0,
            dirty: 0,
            way: (ways - 1 - n / sets) as u8,
        };
        Lines {
            ways,
            sets: Spread::new(sets as u32),
            places: (0..sets * ways).map(place).collect(),
            used: vec![Use::NONE; sets].into(),
            chains: Chains::new(sets * ways),
            // As `forget_clean` leaves them, which passes over sets that were never used.
            lru: Lru::highest_first(sets, ways),
            bytes: LineBytes::new(sets * ways),
        }
    }

    /// Forgets everything, fetches too.
    pub(super) fn clear(&mut self) {
        for place in &mut self.places {
            place.fetch = 0;
            place.empty();
        }
        self.chains.clear(&mut self.places);
        self.used.fill(Use::NONE);
        self.lru = Lru::highest_first(self.used.len(), self.ways);
    }

    /// The place of a way of a set. Highest ways are taken first ([`LineBytes`]).
    #[inline]
    fn place(&self, set: usize, way: usize) -> usize {
        (self.ways - 1 - way) * self.used.len() + set
    }

    /// Where a line is, if it is here.
    #[inline]
    pub(super) fn find(&self, line: u32) -> Option<usize> {
        self.chains.find(&self.places, line)
    }

    /// A place for a line that is not here: free, or with a line that may go. None if every line of its set is pinned. `local` gives
    /// the line's number in the slice.
    #[inline]
    pub(super) fn victim(&self, local: impl Fn() -> u64) -> Option<usize> {
        let set = self.sets.deal(local()).0 as usize;
        let is_free_to_go = |way| self.places[self.place(set, way)].fetch == 0;
        self.lru.oldest(set, is_free_to_go).map(|way| self.place(set, way))
    }

    /// Puts a line in a place that has none, with no byte valid.
    pub(super) fn allocate(&mut self, at: usize, line: u32) {
        self.bytes.use_place(at);
        self.places[at].empty();
        self.used[self.places[at].set as usize].lines = true;
        self.chains.put(&mut self.places, at, line);
    }

    /// Takes the line out of a place that has one.
    pub(super) fn evict(&mut self, at: usize) {
        self.chains.take(&mut self.places, at);
    }

    /// Forgets every line that has neither changes nor a fetch under way; the last place of a set is then taken first.
    pub(super) fn forget_clean(&mut self) {
        for set in 0..self.used.len() {
            if !self.used[set].lines {
                continue;
            }
            let mut stays = false;
            for way in 0..self.ways {
                let at = self.place(set, way);
                let is_clean = self.dirty(at) == 0 && self.fetch(at).is_none();
                stays |= !is_clean;
                if is_clean {
                    self.forget(at);
                }
            }
            self.used[set].lines = stays;
        }
    }

    /// The first set from `first` on with a changed sector, and the place of its first way that has one.
    pub(super) fn next_changed(&mut self, first: usize) -> Option<(usize, usize)> {
        for set in first..self.used.len() {
            if !self.used[set].changes {
                continue;
            }
            let mut places = (0..self.ways).map(|way| self.place(set, way));
            let changed = places.find(|&at| self.dirty(at) != 0);
            if let Some(at) = changed {
                return Some((set, at));
            }
            self.used[set].changes = false;
        }
        None
    }

    /// Takes the line out of a place, if one is there, and lets the place be taken before all others.
    fn forget(&mut self, at: usize) {
        if self.line(at).is_some() {
            self.evict(at);
        }
        self.places[at].empty();
        let Place { set, way, .. } = self.places[at];
        self.lru.release(set as usize, way.into());
    }

    /// Notes a use of a place.
    #[inline]
    pub(super) fn touch(&mut self, at: usize) {
        let Place { set, way, .. } = self.places[at];
        self.lru.touch(set as usize, way.into());
    }

    /// The line in a place, if there is one.
    pub(super) fn line(&self, at: usize) -> Option<u32> {
        self.places[at].tag.line()
    }

    /// Sectors of which every byte is valid.
    #[inline]
    pub(super) fn full(&self, at: usize) -> u8 {
        let valid = &self.places[at].valid;
        (0..SECTORS).fold(0, |full, n| full | u8::from(valid[n] == FULL) << n)
    }

    /// Sectors that memory does not have yet.
    #[inline]
    pub(super) fn dirty(&self, at: usize) -> u8 {
        self.places[at].dirty
    }

    /// The sectors are in memory.
    pub(super) fn clean(&mut self, at: usize) {
        self.places[at].dirty = 0;
    }

    /// Valid bytes of the whole line.
    #[inline]
    pub(super) fn valid(&self, at: usize) -> u128 {
        let valid = &self.places[at].valid;
        (0..SECTORS).fold(0, |mask, n| mask | u128::from(valid[n]) << (SECTOR * n))
    }

    /// The entry of the fetches under way for a line.
    #[inline]
    pub(super) fn fetch(&self, at: usize) -> Option<u16> {
        self.places[at].fetch.checked_sub(1)
    }

    /// Pins a line for the fetches of an entry, or unpins it.
    pub(super) fn set_fetch(&mut self, at: usize, entry: Option<u16>) {
        self.places[at].fetch = entry.map_or(0, |entry| entry + 1);
    }

    /// The bytes of a line.
    #[inline]
    pub(super) fn bytes(&self, at: usize) -> &[u8; LINE] {
        &self.bytes[at]
    }

    /// The bytes of a line, to change some and then [`Lines::mark`] them.
    #[inline]
    pub(super) fn bytes_mut(&mut self, at: usize) -> &mut [u8; LINE] {
        &mut self.bytes[at]
    }

    /// The bytes `written` of a sector were written.
    #[inline]
    pub(super) fn mark(&mut self, at: usize, sector: usize, written: u32) {
        let place = &mut self.places[at];
        self.used[place.set as usize].changes = true;
        place.valid[sector] |= written;
        place.dirty |= u8::from(written != 0) << sector;
    }

    /// Writes the bytes `mask` of these sectors.
    #[inline(always)]
    pub(super) fn write(&mut self, at: usize, sectors: u8, mask: u128, from: &[u8; LINE]) {
        let place = &mut self.places[at];
        self.used[place.set as usize].changes = true;
        let to = &mut self.bytes[at];
        let (from, to) = (from.as_chunks::<SECTOR>().0, to.as_chunks_mut::<SECTOR>().0);
        let masks = sector_masks(mask);
        for sector in each_sector(sectors) {
            let written = masks[sector];
            match written {
                FULL => to[sector] = from[sector],
                some => copy_some(&from[sector], &mut to[sector], some),
            }
            place.valid[sector] |= written;
            place.dirty |= u8::from(written != 0) << sector;
        }
    }

    /// Takes sectors from memory in: bytes that are valid already are newer and stay.
    pub(super) fn merge(&mut self, at: usize, sectors: u8, from: &[u8; LINE]) {
        let missing = byte_mask(sectors) & !self.valid(at);
        copy_bytes(from, self.bytes_mut(at), missing);
        let valid = &mut self.places[at].valid;
        each_sector(sectors).for_each(|sector| valid[sector] = FULL);
    }
}

impl Place {
    /// No byte is valid, no sector changed.
    fn empty(&mut self) {
        (self.valid, self.dirty) = ([0; SECTORS], 0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn partly_written_sector_fetched_the_written_bytes_stay() {
        let mut lines = Lines::new(1024, 2);
        lines.allocate(0, 5);
        lines.write(0, 0b0010, 0b10 << 32, &[0x11; LINE]);
        assert_eq!((lines.full(0), lines.dirty(0), lines.valid(0)), (0, 0b0010, 1 << 33));
        lines.merge(0, 0b0010, &[0x22; LINE]);
        assert_eq!(lines.bytes(0)[32..35], [0x22, 0x11, 0x22]);
        assert_eq!((lines.full(0), lines.dirty(0)), (0b0010, 0b0010));
        assert_eq!(lines.bytes(0)[0], 0, "another sector is not touched");
    }

    #[test]
    fn empty_cache_takes_a_place_of_every_set_before_the_second_of_one() {
        let mut lines = Lines::new(32 * LINE as u32, 4);
        let mut taken = [0; 8];
        for line in 1..5 {
            let at = lines.victim(|| line.into()).expect("a free place is a victim");
            lines.allocate(at, line);
            lines.touch(at);
            let set = lines.places[at].set as usize;
            assert_eq!(at, 8 * taken[set] + set);
            taken[set] += 1;
        }
    }

    #[test]
    fn set_full_of_pinned_lines_there_is_no_victim() {
        let mut lines = Lines::new(256, 2);
        let [older, younger] = [10, 11].map(|line| {
            let at = lines.victim(|| 0).expect("a free place is a victim");
            lines.allocate(at, line);
            lines.touch(at);
            lines.set_fetch(at, Some(line as u16));
            at
        });
        assert_eq!(lines.victim(|| 0), None);
        lines.set_fetch(younger, None);
        assert_eq!(lines.victim(|| 0), Some(younger));
        lines.set_fetch(older, None);
        assert_eq!(lines.victim(|| 0), Some(older), "the least recently used");
        assert_eq!((lines.find(11), lines.find(12)), (Some(younger), None));
    }

    #[test]
    fn clean_line_goes_a_changed_one_and_one_with_a_fetch_under_way_stay() {
        let mut lines = Lines::new(512, 4);
        let [_, changed, fetched] = [10, 11, 12].map(|line| {
            let at = lines.victim(|| 0).expect("a free place is a victim");
            lines.allocate(at, line);
            lines.touch(at);
            at
        });
        lines.mark(changed, 0, 1);
        lines.set_fetch(fetched, Some(0));
        let here = |lines: &Lines| [10, 11, 12].map(|line| lines.find(line));
        lines.forget_clean();
        assert_eq!(here(&lines), [None, Some(changed), Some(fetched)]);
        lines.set_fetch(fetched, None);
        lines.clean(changed);
        lines.forget_clean();
        assert_eq!(here(&lines), [None; 3], "the set was not passed over");
    }

    /// Puts the lines in, each with its first sector written.
    fn store(lines: &mut Lines, numbers: &[u32]) {
        for &line in numbers {
            let at = lines.find(line).or_else(|| lines.victim(|| line.into()));
            let at = at.expect("no line is pinned");
            if lines.line(at) != Some(line) {
                if lines.line(at).is_some() {
                    lines.evict(at);
                }
                lines.allocate(at, line);
            }
            lines.write(at, 1, u128::from(FULL), &[line as u8; LINE]);
            lines.touch(at);
        }
    }

    proptest! {
        #[test]
        fn any_changed_places_are_walked_through_in_order_and_what_is_clean_forgotten(
            stored in prop::collection::vec(1..200u32, 0..80),
            // As many as a set has ways: none pushes another out.
            more in prop::collection::vec(1..200u32, 0..=4),
        ) {
            let mut lines = Lines::new(32 * LINE as u32, 4);
            store(&mut lines, &stored);
            let mut changed: Vec<_> = (0..32).filter(|&at| lines.dirty(at) != 0).collect();
            changed.sort_by_key(|&at| (lines.places[at].set, lines.places[at].way));
            let (mut walked, mut first) = (Vec::new(), 0);
            while let Some((set, at)) = lines.next_changed(first) {
                first = set;
                lines.clean(at);
                walked.push(at);
            }
            prop_assert_eq!(walked, changed);

            store(&mut lines, &more);
            lines.forget_clean();
            prop_assert!(stored.iter().all(|line| lines.find(*line).is_some() == more.contains(line)));
            while let Some((_, at)) = lines.next_changed(0) {
                lines.clean(at);
            }
            lines.forget_clean();
            let mut new = Lines::new(32 * LINE as u32, 4);
            store(&mut lines, &stored);
            store(&mut new, &stored);
            prop_assert!((0..32).all(|at| lines.line(at) == new.line(at)), "taken in the order of a new cache");
        }

        #[test]
        fn any_lines_that_come_and_go_are_found_where_they_are_and_nowhere_else(
            steps in prop::collection::vec((1..200u32, any::<bool>()), 300),
        ) {
            let mut lines = Lines::new(32 * LINE as u32, 4);
            let mut held = [None; 32];
            for (line, forgets) in steps {
                let at = lines.find(line);
                prop_assert_eq!(at, held.iter().position(|&other| other == Some(line)));
                match at {
                    Some(at) if forgets => {
                        lines.forget(at);
                        held[at] = None;
                    }
                    Some(at) => lines.touch(at),
                    None => {
                        let at = lines.victim(|| line.into()).expect("no line is pinned");
                        prop_assert_eq!(lines.places[at].set, lines.sets.deal(line.into()).0);
                        prop_assert_eq!(lines.line(at), held[at]);
                        if held[at].is_some() {
                            lines.evict(at);
                        }
                        lines.allocate(at, line);
                        lines.touch(at);
                        held[at] = Some(line);
                    }
                }
            }
        }
    }
}
