//! The lines of a slice: tags, bytes, valid bytes and dirty sectors.
//!
//! The address map gives each line its set, by the same kind of interleave as its slice.
//!
//! A line of the twin slice is a *copy*: its home is in the other partition, and it is never dirty.
//!
//! Invariants: a dirty sector has at least one valid byte. A line with a fetch in flight is pinned: it cannot be the victim.

use bitvec::prelude::{BitVec, bitvec};
use warpwave_hw::invariant::Invariants;

use crate::cache::line_store::LineStore;
use crate::cache::replacement::NewReplacement;
use crate::cache::tags::{Shape, Tags};
use crate::proto::mem::{LINE, SECTOR, SECTORS, byte_mask, each_sector, sector_masks};
use crate::proto::noc::Interleave;

/// All bytes of a sector.
pub(super) const FULL: u32 = u32::MAX;

/// No fetch in flight.
const NO_FETCH: u32 = u32::MAX;

/// The state of one way, in 32 bytes: half a host cache line.
#[derive(Clone)]
#[repr(align(32))]
struct LineState {
    /// The valid bytes of each sector.
    valid: [u32; SECTORS],
    /// The set of this way.
    set: u32,
    /// The MSHR entry of the fetches in flight, or [`NO_FETCH`].
    fetch: u32,
    /// Dirty sectors: memory does not have their bytes yet.
    dirty: u8,
    /// True for a copy of a line of the other partition.
    is_copy: bool,
    /// Sectors in flight for a copy that a recall or a passing request has dropped. Their fill serves the waiting packets, and is not kept.
    stale: u8,
    /// Sectors whose copy in the other partition is recalled. The answer brings no bytes.
    recalled: u8,
}

/// All lines of one slice, addressed by way.
pub(super) struct Lines {
    tags: Tags,
    sets: Interleave,
    states: Box<[LineState]>,
    /// Number of copies with a fetch in flight, by set.
    copies_in_flight: Box<[u8]>,
    /// The sets that may have a dirty sector. A write-back of all lines skips the others.
    dirty_sets: BitVec,
    bytes: LineStore,
    /// Number of sectors that atomics have changed.
    atomic_sectors_changed: u64,
}

impl Lines {
    /// An empty cache of `shape`. `sets` maps the lines of the slice to its sets.
    pub(super) fn new(shape: Shape, replacement: &NewReplacement, sets: Interleave) -> Self {
        let ways = shape.sets * shape.ways;
        let tags = Tags::new(shape, replacement);
        let state = |way: usize| LineState {
            valid: [0; SECTORS],
            set: tags.set_of(way) as u32,
            fetch: NO_FETCH,
            dirty: 0,
            is_copy: false,
            stale: 0,
            recalled: 0,
        };
        Lines {
            states: (0..ways).map(state).collect(),
            tags,
            sets,
            copies_in_flight: vec![0; shape.sets].into(),
            dirty_sets: bitvec![0; shape.sets],
            bytes: LineStore::new(ways),
            atomic_sectors_changed: 0,
        }
    }

    /// The way of a line, if it is present.
    #[inline]
    pub(super) fn find(&self, line: u32) -> Option<usize> {
        self.tags.find(line)
    }

    /// The line in a way.
    pub(super) fn line(&self, way: usize) -> Option<u32> {
        self.tags.line(way)
    }

    /// Tells the replacement policy that `way` was hit.
    #[inline]
    pub(super) fn touch(&mut self, way: usize) {
        self.tags.touch(way);
    }

    /// The way that an absent line takes. `local` is its number in the slice. Returns `None` if every line of its set is pinned.
    #[inline]
    pub(super) fn victim(&self, local: u64) -> Option<usize> {
        let set = self.sets.map(local).0 as usize;
        self.tags.victim(set, |way| self.states[way].fetch == NO_FETCH)
    }

    /// The way that an absent copy takes, as [`Lines::victim`] chooses it. Returns `None` too if copies in flight pin all ways of the set
    /// but one. The last way is left to lines of this slice, so that their misses never wait for the other partition.
    pub(super) fn copy_victim(&self, local: u64) -> Option<usize> {
        let set = self.sets.map(local).0 as usize;
        let in_flight = usize::from(self.copies_in_flight[set]);
        if in_flight + 1 >= self.tags.ways() {
            return None;
        }
        self.victim(local)
    }

    /// Puts a line without valid bytes in a way. Drops the line there: the caller has written it back.
    pub(super) fn allocate(&mut self, way: usize, line: u32, is_copy: bool) {
        self.tags.insert(way, line);
        self.bytes.prepare(way);
        let state = &mut self.states[way];
        (state.valid, state.dirty, state.is_copy, state.stale) = ([0; SECTORS], 0, is_copy, 0);
    }

    /// Stale sectors of a copy: their fill serves only the packets that wait for it.
    #[inline]
    pub(super) fn stale(&self, way: usize) -> u8 {
        self.states[way].stale
    }

    /// Sectors in flight for a recall that lack bytes here. Only a store may wait with them: the answer brings no bytes.
    #[inline]
    pub(super) fn recalled_in_part(&self, way: usize) -> u8 {
        self.states[way].recalled & !self.full(way)
    }

    /// Notes that a recall of `sectors` begins or ends.
    pub(super) fn set_recalled(&mut self, way: usize, sectors: u8, is_recalled: bool) {
        let recalled = &mut self.states[way].recalled;
        match is_recalled {
            true => *recalled |= sectors,
            false => *recalled &= !sectors,
        }
    }

    /// Drops the bytes of `sectors` of a copy. Marks the sectors `in_flight` as stale.
    pub(super) fn drop_copy(&mut self, way: usize, sectors: u8, in_flight: u8) {
        let state = &mut self.states[way];
        debug_assert!(state.is_copy && state.dirty == 0, "only a clean copy is dropped");
        each_sector(sectors).for_each(|sector| state.valid[sector] = 0);
        state.stale |= in_flight;
        self.free_empty_copy(way);
    }

    /// Drops the stale sectors among `sectors`, which have arrived.
    pub(super) fn drop_stale(&mut self, way: usize, sectors: u8) {
        let state = &mut self.states[way];
        let stale = state.stale & sectors;
        if stale != 0 {
            state.stale &= !stale;
            each_sector(stale).for_each(|sector| state.valid[sector] = 0);
            self.free_empty_copy(way);
        }
    }

    /// Invalidates a copy without valid sectors and without a fetch in flight.
    fn free_empty_copy(&mut self, way: usize) {
        let state = &self.states[way];
        // A free way spares the set an eviction. A pinned one must keep its tag for the fill.
        if state.valid == [0; SECTORS] && state.fetch == NO_FETCH {
            self.tags.invalidate(way);
        }
    }

    /// Invalidates every line without dirty sectors and without a fetch in flight.
    pub(super) fn invalidate_clean(&mut self) {
        let states = &self.states;
        // A dirty line has the only copy of its bytes, and a fill needs its tag.
        self.tags
            .retain(|way| states[way].dirty != 0 || states[way].fetch != NO_FETCH);
    }

    /// The first set from `first` on with a dirty sector, and its lowest way with one.
    pub(super) fn next_dirty(&mut self, first: usize) -> Option<(usize, usize)> {
        let mut first = first;
        while let Some(next) = self.dirty_sets[first..].first_one() {
            let set = first + next;
            let dirty = self.tags.ways_of(set).find(|&way| self.states[way].dirty != 0);
            if let Some(way) = dirty {
                return Some((set, way));
            }
            // All its lines have been written back since.
            self.dirty_sets.set(set, false);
            first = set;
        }
        None
    }

    /// Sectors with every byte valid.
    #[inline]
    pub(super) fn full(&self, way: usize) -> u8 {
        let valid = &self.states[way].valid;
        (0..SECTORS).fold(0, |full, n| full | u8::from(valid[n] == FULL) << n)
    }

    /// The dirty sectors of a line.
    #[inline]
    pub(super) fn dirty(&self, way: usize) -> u8 {
        self.states[way].dirty
    }

    /// Marks a line clean: its dirty sectors are on their way to memory.
    pub(super) fn clean(&mut self, way: usize) {
        self.states[way].dirty = 0;
    }

    /// The valid bytes of a line.
    #[inline]
    pub(super) fn valid(&self, way: usize) -> u128 {
        let valid = &self.states[way].valid;
        (0..SECTORS).fold(0, |mask, n| mask | u128::from(valid[n]) << (SECTOR * n))
    }

    /// The MSHR entry of the fetches in flight for a line.
    #[inline]
    pub(super) fn fetch(&self, way: usize) -> Option<u32> {
        let entry = self.states[way].fetch;
        (entry != NO_FETCH).then_some(entry)
    }

    /// Pins a line for the fetches of an MSHR entry, or unpins it.
    pub(super) fn set_fetch(&mut self, way: usize, entry: Option<u32>) {
        let state = &mut self.states[way];
        if state.is_copy {
            let in_flight = &mut self.copies_in_flight[state.set as usize];
            *in_flight = *in_flight + u8::from(entry.is_some()) - u8::from(state.fetch != NO_FETCH);
        }
        state.fetch = entry.unwrap_or(NO_FETCH);
    }

    /// Checks the tags, the dirty sectors, that copies are clean, and the counts of copies in flight.
    pub(super) fn invariants(&self, check: &mut Invariants) {
        self.tags.invariants(check);
        let (mut in_flight, mut without_bytes, mut in_clean_sets) = (0, 0, 0);
        for way in self.tags.valid_ways() {
            let state = &self.states[way];
            let is_empty = |&sector: &usize| state.dirty >> sector & 1 == 1 && state.valid[sector] == 0;
            without_bytes += (0..SECTORS).filter(is_empty).count() as u64;
            in_clean_sets += u64::from(state.dirty != 0 && !self.dirty_sets[state.set as usize]);
            if state.is_copy {
                check.equal(
                    format_args!("dirty sectors of the copy in way {way}"),
                    state.dirty.into(),
                    0,
                );
                in_flight += u64::from(state.fetch != NO_FETCH);
            }
        }
        check.equal("dirty sectors without a valid byte", without_bytes, 0);
        check.equal("dirty lines in clean sets", in_clean_sets, 0);
        let counted = self.copies_in_flight.iter().map(|&n| u64::from(n)).sum();
        check.equal("copies in flight", counted, in_flight);
    }

    /// The bytes of a line.
    #[inline]
    pub(super) fn bytes(&self, way: usize) -> &[u8; LINE] {
        self.bytes.line(way)
    }

    /// The bytes of a line, for an atomic. The caller [`mark`](Lines::mark)s the bytes that it writes.
    #[inline]
    pub(super) fn bytes_mut(&mut self, way: usize) -> &mut [u8; LINE] {
        self.bytes.line_mut(way)
    }

    /// Sectors that atomics have changed.
    pub(super) fn atomic_sectors_changed(&self) -> u64 {
        self.atomic_sectors_changed
    }

    /// Counts a sector whose bytes an atomic has changed.
    #[inline]
    pub(super) fn count_atomic_change(&mut self, changed: bool) {
        self.atomic_sectors_changed += u64::from(changed);
    }

    /// Marks the bytes `written` of a sector valid, and the sector dirty.
    #[inline]
    pub(super) fn mark(&mut self, way: usize, sector: usize, written: u32) {
        let state = &mut self.states[way];
        // The bit stays set after an eviction or a write-back. `next_dirty` clears it when it finds the set clean.
        self.dirty_sets.set(state.set as usize, true);
        state.valid[sector] |= written;
        state.dirty |= u8::from(written != 0) << sector;
    }

    /// Stores the bytes of `sectors` that are in `mask`, and marks them.
    #[inline(always)]
    pub(super) fn write(&mut self, way: usize, sectors: u8, mask: u128, from: &[u8; LINE]) {
        // A store can wait for some sectors: those bytes are written later.
        let written = mask & byte_mask(sectors);
        self.bytes.write(way, written, from);
        let masks = sector_masks(written);
        each_sector(sectors).for_each(|sector| self.mark(way, sector, masks[sector]));
    }

    /// Fills sectors from memory, except for bytes that are valid already.
    pub(super) fn merge(&mut self, way: usize, sectors: u8, from: &[u8; LINE]) {
        // A store wrote the valid bytes, so they are newer than memory.
        let missing = byte_mask(sectors) & !self.valid(way);
        self.bytes.write(way, missing, from);
        let valid = &mut self.states[way].valid;
        each_sector(sectors).for_each(|sector| valid[sector] = FULL);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::ReplacementPolicy;
    use crate::proto::noc::AddressMap;

    fn lines(bytes: u32, associativity: u32) -> Lines {
        let shape = Shape::new(bytes, associativity);
        let sets = AddressMap::new(1, 1).sets(shape.sets as u32);
        Lines::new(shape, &ReplacementPolicy::Lru.new_replacement(), sets)
    }

    /// Allocates `line`, which has the number `local` in the slice.
    fn insert(lines: &mut Lines, line: u32, local: u64) -> usize {
        let way = lines.victim(local).expect("no line is pinned");
        lines.allocate(way, line, false);
        way
    }

    #[test]
    fn fill_keeps_the_written_bytes_of_a_sector() {
        let mut lines = lines(1024, 2);
        lines.allocate(0, 5, false);
        lines.write(0, 0b0010, 0b10 << 32, &[0x11; LINE]);
        assert_eq!((lines.full(0), lines.dirty(0), lines.valid(0)), (0, 0b0010, 1 << 33));
        lines.merge(0, 0b0010, &[0x22; LINE]);
        assert_eq!(lines.bytes(0)[32..35], [0x22, 0x11, 0x22]);
        assert_eq!((lines.full(0), lines.dirty(0)), (0b0010, 0b0010));
        assert_eq!(lines.bytes(0)[0], 0, "another sector does not change");
    }

    #[test]
    fn dirty_line_in_a_clean_set_and_dirty_sector_without_a_byte_are_reported() {
        let broken = |lines: &Lines| Invariants::broken(|check| lines.invariants(check));
        let mut lines = lines(1024, 2);
        let way = insert(&mut lines, 5, 0);
        lines.write(way, 0b0010, 0b10 << 32, &[0x11; LINE]);
        assert_eq!(broken(&lines), [""; 0]);
        lines.states[way].dirty = 0b0110;
        assert_eq!(broken(&lines), ["dirty sectors without a valid byte: 1, not 0"]);
        lines.states[way].dirty = 0b0010;
        lines.dirty_sets.fill(false);
        assert_eq!(broken(&lines), ["dirty lines in clean sets: 1, not 0"]);
    }

    #[test]
    fn first_lines_of_each_set_take_the_lowest_ways() {
        let mut lines = lines(32 * LINE as u32, 4);
        let mut taken = [0; 8];
        for line in 1..5 {
            let way = insert(&mut lines, line, line.into());
            let set = lines.states[way].set as usize;
            assert_eq!(way, 8 * taken[set] + set);
            taken[set] += 1;
        }
    }

    #[test]
    fn set_of_pinned_lines_has_no_victim() {
        let mut lines = lines(256, 2);
        let [older, younger] = [10, 11].map(|line| {
            let way = insert(&mut lines, line, 0);
            lines.set_fetch(way, Some(line));
            way
        });
        assert_eq!(lines.victim(0), None);
        lines.set_fetch(younger, None);
        assert_eq!(lines.victim(0), Some(younger));
        lines.set_fetch(older, None);
        assert_eq!(lines.victim(0), Some(older), "the least recently used");
        assert_eq!((lines.find(11), lines.find(12)), (Some(younger), None));
    }

    #[test]
    fn invalidation_of_clean_lines_keeps_dirty_and_pinned_ones() {
        let mut lines = lines(512, 4);
        let [_, dirty, fetched] = [10, 11, 12].map(|line| insert(&mut lines, line, 0));
        lines.mark(dirty, 0, 1);
        lines.set_fetch(fetched, Some(0));
        let here = |lines: &Lines| [10, 11, 12].map(|line| lines.find(line));
        lines.invalidate_clean();
        assert_eq!(here(&lines), [None, Some(dirty), Some(fetched)]);
        lines.set_fetch(fetched, None);
        lines.clean(dirty);
        lines.invalidate_clean();
        assert_eq!(here(&lines), [None; 3]);
    }

    /// Puts the lines in, each with its first sector written.
    fn store(lines: &mut Lines, numbers: &[u32]) {
        for &line in numbers {
            let way = match lines.find(line) {
                Some(way) => {
                    lines.touch(way);
                    way
                }
                None => insert(lines, line, line.into()),
            };
            lines.write(way, 1, u128::from(FULL), &[line as u8; LINE]);
        }
    }

    proptest! {
        #[test]
        fn dirty_lines_are_visited_in_order_and_clean_lines_invalidated(
            stored in prop::collection::vec(1..200u32, 0..80),
            // At most the ways of a set: none evicts another.
            more in prop::collection::vec(1..200u32, 0..=4),
        ) {
            let mut lines = lines(32 * LINE as u32, 4);
            store(&mut lines, &stored);
            let by_set = (0..8).flat_map(|set| lines.tags.ways_of(set).collect::<Vec<_>>());
            let dirty: Vec<_> = by_set.filter(|&way| lines.dirty(way) != 0).collect();
            let (mut visited, mut first) = (Vec::new(), 0);
            while let Some((set, way)) = lines.next_dirty(first) {
                first = set;
                lines.clean(way);
                visited.push(way);
            }
            prop_assert_eq!(visited, dirty);

            store(&mut lines, &more);
            lines.invalidate_clean();
            prop_assert!(stored.iter().all(|line| lines.find(*line).is_some() == more.contains(line)));
            while let Some((_, way)) = lines.next_dirty(0) {
                lines.clean(way);
            }
            lines.invalidate_clean();
            let mut new = super::tests::lines(32 * LINE as u32, 4);
            store(&mut lines, &stored);
            store(&mut new, &stored);
            prop_assert!((0..32).all(|way| lines.line(way) == new.line(way)), "ways are taken as in a new cache");
        }

        #[test]
        fn line_is_found_in_its_way_and_nowhere_else(
            steps in prop::collection::vec((1..200u32, any::<bool>()), 300),
        ) {
            let mut lines = lines(32 * LINE as u32, 4);
            let mut held = [None; 32];
            for (line, invalidates) in steps {
                let found = lines.find(line);
                prop_assert_eq!(found, held.iter().position(|&other| other == Some(line)));
                match found {
                    Some(_) if invalidates => {
                        lines.invalidate_clean();
                        held = [None; 32];
                    }
                    Some(way) => lines.touch(way),
                    None => {
                        let way = lines.victim(line.into()).expect("no line is pinned");
                        prop_assert_eq!(lines.states[way].set, lines.sets.map(line.into()).0);
                        prop_assert_eq!(lines.line(way), held[way]);
                        lines.allocate(way, line, false);
                        held[way] = Some(line);
                    }
                }
            }
        }
    }
}
