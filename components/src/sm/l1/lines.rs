//! The lines of the L1: tags, valid sectors, bytes.
//!
//! The set of a line is its number modulo the number of sets. The carve-out for shared memory takes sets or ways ([`CarveoutTakes`]). A line
//! is allocated with its first valid sectors. No line is dirty: every store goes on to the L2.

use warpwave_hw::invariant::Invariants;

use crate::cache::line_store::LineStore;
use crate::cache::replacement::NewReplacement;
use crate::cache::tags::{Shape, Tags};
use crate::config::CarveoutTakes;
use crate::proto::mem::{ALL_SECTORS, LINE};

/// All lines of one L1, addressed by way.
pub(super) struct Lines {
    tags: Tags,
    /// The valid sectors of each way with a valid tag. Each lookup reads them with the tag.
    sectors: Box<[u8]>,
    bytes: LineStore,
    /// Sets and ways without a carve-out.
    whole: Shape,
    /// What a smaller L1 has fewer of.
    carveout_takes: CarveoutTakes,
    /// Makes a new policy when the L1 changes its size.
    replacement: NewReplacement,
}

impl Lines {
    /// An empty cache.
    pub(super) fn new(shape: Shape, carveout_takes: CarveoutTakes, replacement: &NewReplacement) -> Self {
        let ways = shape.sets * shape.ways;
        Lines {
            tags: Tags::new(shape, replacement),
            sectors: vec![0; ways].into(),
            bytes: LineStore::new(ways),
            whole: shape,
            carveout_takes,
            replacement: replacement.clone(),
        }
    }

    /// Invalidates every line, and holds `bytes` bytes from now on. They never exceed those of the first shape.
    pub(super) fn resize(&mut self, bytes: u32) {
        let (lines, Shape { sets, ways }) = (bytes as usize / LINE, self.whole);
        let shape = match self.carveout_takes {
            CarveoutTakes::Sets => Shape {
                sets: (lines / ways).clamp(1, sets),
                ways,
            },
            CarveoutTakes::Ways => Shape {
                sets,
                ways: (lines / sets).clamp(1, ways),
            },
        };
        self.tags.resize(shape, &self.replacement);
    }

    /// Each line has a tag of its own in the set of its number, and at least one valid sector.
    pub(super) fn invariants(&self, check: &mut Invariants) {
        self.tags.invariants(check);
        let illegal = (self.tags.valid_ways()).filter(|&way| !(1..=ALL_SECTORS).contains(&self.sectors[way]));
        check.equal("lines without valid sectors", illegal.count() as u64, 0);
        let ways = (0..self.tags.sets()).flat_map(|set| self.tags.ways_of(set));
        let misplaced = ways.filter(|&way| {
            let line = self.tags.line(way);
            line.is_some_and(|line| self.set_of(line) != self.tags.set_of(way))
        });
        check.equal("lines in the set of another", misplaced.count() as u64, 0);
    }

    /// The set of a line.
    #[inline]
    fn set_of(&self, line: u32) -> usize {
        // Not a mask: the carve-out for shared memory leaves any number of sets.
        line as usize % self.tags.sets()
    }

    /// The way and the valid sectors of a line, if it is present.
    #[inline]
    pub(super) fn find(&self, line: u32) -> Option<(usize, u8)> {
        let way = self.tags.find(line)?;
        Some((way, self.sectors[way]))
    }

    /// Reads sectors for a load that hits.
    #[inline]
    pub(super) fn read(&mut self, way: usize, sectors: u8, to: &mut [u8; LINE]) {
        self.tags.touch(way);
        self.bytes.read(way, sectors, to);
    }

    /// Makes sectors of a line valid, and allocates the line if it is absent. Returns true if this evicts another line.
    pub(super) fn install(&mut self, line: u32, sectors: u8, from: &[u8; LINE]) -> bool {
        let mut evicts = false;
        let way = self.tags.find(line).unwrap_or_else(|| {
            let way = self
                .tags
                .victim(self.set_of(line), |_| true)
                .expect("every line of the L1 may leave");
            evicts = self.tags.insert(way, line).is_some();
            // The valid sectors were those of the victim.
            self.sectors[way] = 0;
            self.bytes.prepare(way);
            way
        });
        // A further sector of a present line is no use of it, so the replacement order stays.
        self.sectors[way] |= sectors;
        self.bytes.fill(way, sectors, from);
        evicts
    }

    /// Writes the bytes in `mask`. They must be in valid sectors.
    #[inline]
    pub(super) fn write(&mut self, way: usize, mask: u128, from: &[u8; LINE]) {
        self.bytes.write(way, mask, from);
    }

    /// Invalidates sectors of a line, and the line with its last valid sector.
    pub(super) fn invalidate(&mut self, way: usize, sectors: u8) {
        self.sectors[way] &= !sectors;
        if self.sectors[way] == 0 {
            self.tags.invalidate(way);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::ReplacementPolicy;

    const NO_BYTES: [u8; LINE] = [0; LINE];

    fn lines(bytes: u32, ways: u32) -> Lines {
        lines_less(CarveoutTakes::Sets, bytes, ways)
    }

    fn lines_less(takes: CarveoutTakes, bytes: u32, ways: u32) -> Lines {
        Lines::new(
            Shape::new(bytes, ways),
            takes,
            &ReplacementPolicy::Lru.new_replacement(),
        )
    }

    /// Installs a line. Returns true if this evicts another.
    fn install(lines: &mut Lines, line: u32) -> bool {
        lines.install(line, 0b11, &NO_BYTES)
    }

    fn load(lines: &mut Lines, line: u32) {
        let (way, sectors) = lines.find(line).expect("the line is here");
        lines.read(way, sectors, &mut [0; LINE]);
    }

    proptest! {
        #[test]
        fn any_fills_and_invalidations_agree_with_a_list_per_set_in_order_of_use(
            ways in 1..5u32,
            sets in 1..8u32,
            steps in prop::collection::vec((1..4000u32, any::<bool>(), 0..8u32), 300),
        ) {
            let mut lines = lines(ways * sets * LINE as u32, ways);
            let mut lists: Vec<Vec<u32>> = vec![Vec::new(); sets as usize];
            for (line, scattered, kind) in steps {
                let line = if scattered { line } else { 1 + line % 40 };
                let list = &mut lists[(line % sets) as usize];
                let known = list.iter().position(|&other| other == line);
                prop_assert_eq!(lines.find(line).map(|(_, sectors)| sectors), known.map(|_| 0b11));
                match (kind, known) {
                    (0, Some(n)) => {
                        let (way, _) = lines.find(line).expect("it was found");
                        lines.invalidate(way, ALL_SECTORS);
                        list.remove(n);
                    }
                    (1 | 2, Some(n)) => {
                        load(&mut lines, line);
                        let line = list.remove(n);
                        list.push(line);
                    }
                    _ => {
                        let evicts = known.is_none() && list.len() == ways as usize;
                        prop_assert_eq!(install(&mut lines, line), evicts);
                        list.drain(..usize::from(evicts));
                        list.extend(known.is_none().then_some(line));
                    }
                }
            }
            let all = || (1..4000u32).filter(|line| lists[(line % sets) as usize].contains(line));
            prop_assert!((1..4000).filter(|&line| lines.find(line).is_some()).eq(all()));
        }
    }

    #[test]
    fn full_set_evicts_its_least_recently_used_line() {
        let mut lines = lines(512, 2); // 2 sets of 2 ways
        assert!(!install(&mut lines, 100) && !install(&mut lines, 102));
        load(&mut lines, 100);
        assert!(install(&mut lines, 104));
        assert!(lines.find(102).is_none() && lines.find(100).is_some());
    }

    #[test]
    fn empty_cache_takes_low_ways_first_after_a_resize_too() {
        let mut lines = lines(1024, 2);
        let ways = |lines: &mut Lines| {
            [100, 101, 103, 104].map(|line| {
                install(lines, line);
                lines.find(line).map(|(way, _)| way)
            })
        };
        assert_eq!(ways(&mut lines), [0, 1, 3, 4].map(Some));
        lines.resize(512);
        assert_eq!(ways(&mut lines), [0, 1, 3, 2].map(Some));
    }

    #[test]
    fn second_fill_adds_sectors_and_an_invalidation_removes_only_its_own() {
        let mut lines = lines(512, 2);
        lines.install(100, 0b0001, &NO_BYTES);
        lines.install(100, 0b1000, &NO_BYTES);
        let (way, sectors) = lines.find(100).unwrap();
        assert_eq!(sectors, 0b1001);
        lines.invalidate(way, 0b0111);
        assert_eq!(lines.find(100), Some((way, 0b1000)));
        lines.invalidate(way, 0b1000);
        assert_eq!(lines.find(100), None, "a line without valid sectors is absent");
    }

    #[test]
    fn seven_sets_use_all_their_ways() {
        let mut lines = lines(28_672, 32); // 256 KiB less a carve-out of 228 KiB
        assert!((1000..1224).all(|line| !install(&mut lines, line)));
        assert!(install(&mut lines, 1224));
    }

    #[test]
    fn smaller_size_uses_fewer_sets_and_drops_every_line() {
        let mut lines = lines(1024, 2);
        install(&mut lines, 100);
        lines.resize(512);
        assert!(lines.find(100).is_none());
        assert!(![100, 102, 101, 103].iter().any(|&line| install(&mut lines, line)));
        assert!(install(&mut lines, 104), "2 sets of 2 ways");
        lines.resize(1 << 20);
        assert!(
            (100..108).all(|line| !install(&mut lines, line)),
            "never above the first size"
        );
    }

    #[test]
    fn carveout_that_takes_ways_leaves_every_set_its_share() {
        let mut lines = lines_less(CarveoutTakes::Ways, 2048, 4); // 4 sets of 4 ways
        lines.resize(1024);
        assert!((100..108).all(|line| !install(&mut lines, line)), "4 sets of 2 ways");
        assert!(install(&mut lines, 108), "set 0 has lines 100 and 104");
        assert!(lines.find(100).is_none() && lines.find(104).is_some());
        lines.resize(1 << 20);
        assert!((100..116).all(|line| !install(&mut lines, line)));
        assert!(install(&mut lines, 116), "never above the first size");
    }

    #[test]
    fn l1_of_four_sets_holds_a_whole_ring_beside_each_carveout_and_no_set_exceeds_its_ways() {
        let mut lines = lines_less(CarveoutTakes::Ways, 131_072, 256);
        // The carve-outs 8 KiB, 96 KiB and 0 leave these lines and ways of 4 sets.
        for (bytes, held, ways) in [(122_880, 960, 240), (32_768, 256, 64), (131_072, 1024, 256)] {
            lines.resize(bytes);
            for stride in [1u32, 2, 4, 8] {
                // A power of two beyond 4 sets leaves the others empty: 4 lines apart use one set.
                let fits = held / stride.min(4);
                lines.resize(bytes);
                let mut install = |n| install(&mut lines, 5000 + n * stride);
                assert!((0..fits).all(|n| !install(n)), "{bytes} bytes, stride {stride}");
                assert!(install(fits), "{bytes} bytes, stride {stride}");
            }
            assert_eq!(lines.tags.ways(), ways);
            assert!(Invariants::broken(|check| lines.invariants(check)).is_empty());
        }
    }

    #[test]
    fn line_in_a_wrong_set_breaks_an_invariant() {
        let mut lines = lines(1024, 2); // 4 sets
        let way = lines.tags.victim(2, |_| true).unwrap();
        lines.tags.insert(way, 101);
        lines.sectors[way] = 1;
        let broken = Invariants::broken(|check| lines.invariants(check));
        assert_eq!(broken.len(), 1, "{broken:?}");
        assert!(broken[0].contains("lines in the set of another"), "{broken:?}");
    }
}
