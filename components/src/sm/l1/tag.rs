//! Which lines the L1 holds, and which sectors of them.
//!
//! Set-associative, least recently used out first, sets by the line number modulo their count, any count: the carve-out
//! decides. A line comes in with its first fill, never before.
//!
//! A line is found by its chain ([`crate::chains`]).

use warpwave_hw::lru::Lru;

use crate::chains::{Chains, Tag, Tagged};
use crate::proto::mem::LINE;

/// Most ways of a set: beyond them nothing is gained but search.
const MOST_WAYS: usize = 256;

/// Neighbours, as warps use them one after the other, are found in one line of the host's cache.
const NEAR: u32 = 3;

/// A place for a line.
#[derive(Clone)]
struct Place(Tag);

impl Tagged for Place {
    #[inline]
    fn tag(&self) -> Tag {
        self.0
    }

    #[inline]
    fn tag_mut(&mut self) -> &mut Tag {
        &mut self.0
    }
}

/// The tags of one L1. A line is named by its place: see [`Tags::place`].
pub(super) struct Tags {
    ways: usize,
    /// Sets in use.
    sets: u32,
    places: Vec<Place>,
    /// Which sectors of its line each place has, apart from the tags: they are few enough to be asked for as a whole.
    sectors: Box<[u8]>,
    chains: Chains<NEAR>,
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
            places: vec![Place(Tag::FREE); sets * ways],
            sectors: vec![0; sets * ways].into(),
            chains: Chains::new(sets * ways),
            lru: Lru::new(sets, ways),
        }
    }

    /// Forgets every line.
    pub(super) fn clear(&mut self) {
        self.chains.clear(&mut self.places);
        self.lru.clear();
    }

    /// Forgets every line, and uses as many sets as `bytes` bytes of lines make, at most those there were at first.
    pub(super) fn hold(&mut self, bytes: u32) {
        self.clear();
        self.sets = (bytes as usize / LINE / self.ways).clamp(1, self.places.len() / self.ways) as u32;
    }

    /// Places that lines may take.
    pub(super) fn places(&self) -> usize {
        self.places.len()
    }

    /// The place of a way of a set. Lowest ways are taken first ([`LineBytes`](crate::line_bytes::LineBytes)).
    #[inline]
    fn place(&self, set: usize, way: usize) -> usize {
        way * self.sets as usize + set
    }

    /// The set and the way of a place.
    #[inline]
    fn set_and_way(&self, place: usize) -> (usize, usize) {
        let place = place as u32;
        ((place % self.sets) as usize, (place / self.sets) as usize)
    }

    /// Where a line is, and its sectors, if it is here.
    #[inline]
    pub(super) fn find(&self, line: u32) -> Option<(usize, u8)> {
        let at = self.chains.find(&self.places, line)?;
        Some((at, self.sectors[at]))
    }

    /// Notes a use.
    #[inline]
    pub(super) fn touch(&mut self, place: usize) {
        let (set, way) = self.set_and_way(place);
        self.lru.touch(set, way);
    }

    /// Gives a line a place, pushing the least recently used one out if need be, and adds sectors. Says whether a line went.
    pub(super) fn install(&mut self, line: u32, sectors: u8) -> (usize, bool) {
        if let Some((place, _)) = self.find(line) {
            self.sectors[place] |= sectors;
            return (place, false);
        }
        let set = (line % self.sets) as usize;
        let way = self.lru.oldest(set, |_| true).expect("a set has at least one way");
        self.lru.touch(set, way);
        let at = self.place(set, way);
        let evicted = self.places[at].tag().line().is_some();
        if evicted {
            self.chains.take(&mut self.places, at);
        }
        self.chains.put(&mut self.places, at, line);
        self.sectors[at] = sectors;
        (at, evicted)
    }

    /// Forgets a line.
    pub(super) fn drop_line(&mut self, line: u32) {
        if let Some((at, _)) = self.find(line) {
            self.chains.take(&mut self.places, at);
            let (set, way) = self.set_and_way(at);
            self.lru.release(set, way);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_installs_and_drops_agree_with_a_search_of_each_sets_lines_in_order_of_use(
            ways in 1..5u32,
            sets in 1..8u32,
            steps in prop::collection::vec((1..4000u32, any::<bool>(), 0..8u32), 300),
        ) {
            let mut tags = Tags::new(ways * sets * LINE as u32, ways);
            let mut lists: Vec<Vec<u32>> = vec![Vec::new(); sets as usize];
            for (line, scattered, kind) in steps {
                let line = if scattered { line } else { 1 + line % 40 };
                let list = &mut lists[(line % sets) as usize];
                let known = list.iter().position(|&other| other == line);
                prop_assert_eq!(tags.find(line).map(|(_, sectors)| sectors), known.map(|_| 0b11));
                match (kind, known) {
                    (0, _) => {
                        tags.drop_line(line);
                        list.retain(|&other| other != line);
                    }
                    (1 | 2, Some(n)) => {
                        tags.touch(tags.find(line).expect("it was found").0);
                        let line = list.remove(n);
                        list.push(line);
                    }
                    _ => {
                        let evicts = known.is_none() && list.len() == ways as usize;
                        prop_assert_eq!(tags.install(line, 0b11).1, evicts);
                        list.drain(..usize::from(evicts));
                        list.extend(known.is_none().then_some(line));
                    }
                }
            }
            let all = || (1..4000u32).filter(|line| lists[(line % sets) as usize].contains(line));
            prop_assert!((1..4000).filter(|&line| tags.find(line).is_some()).eq(all()));
        }
    }

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
    fn empty_cache_takes_the_first_places_whatever_it_holds() {
        let mut tags = Tags::new(1024, 2);
        assert_eq!([100, 101, 103, 104].map(|line| tags.install(line, 0b1).0), [0, 1, 3, 4]);
        tags.hold(512);
        assert_eq!([100, 101, 103, 104].map(|line| tags.install(line, 0b1).0), [0, 1, 3, 2]);
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
