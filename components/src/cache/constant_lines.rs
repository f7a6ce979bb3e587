//! Lines of constant banks in a small cache that only reads: the constant cache of a sub-core, or that of an SM's constant loads.
//!
//! A lookup is a hit, or it joins the fill of its line. A line has one fill in flight at a time. The first lookup of a launch empties the
//! cache.
//!
//! Invariant: no line is both in the cache and in flight.

use warpwave_hw::invariant::Invariants;

use super::tags::{Shape, Tags};
use crate::config::{self, ReplacementPolicy};
use crate::proto::constant::ConstantLine;

/// Outcome of a lookup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lookup {
    /// The cache holds the line.
    Hit,
    /// The line is in flight.
    Pending,
    /// The line has to be requested.
    Miss,
}

/// The lines of one cache.
pub(crate) struct ConstantLines {
    tags: Tags,
    shape: Shape,
    /// Lines in flight, at most `capacity`.
    pending: Vec<u32>,
    capacity: usize,
    /// The launch of the lines.
    grid: Option<u32>,
}

impl ConstantLines {
    /// An empty cache of `bytes` bytes in sets of `ways` lines of `line` bytes, with at most `capacity` lines in flight.
    pub(crate) fn new(bytes: u32, ways: u32, line: u32, capacity: usize) -> Self {
        let ways = ways as usize;
        let shape = Shape {
            sets: ((bytes / line) as usize / ways).max(1),
            ways,
        };
        ConstantLines {
            tags: Tags::new(shape, &ReplacementPolicy::Lru.new_replacement()),
            shape,
            pending: Vec::with_capacity(capacity),
            capacity,
            grid: None,
        }
    }

    /// Looks a line up.
    ///
    /// # Panics
    /// If more lines are in flight than the capacity.
    #[inline]
    pub(crate) fn look_up(&mut self, ConstantLine { grid, line }: ConstantLine) -> Lookup {
        if self.grid != Some(grid) {
            self.clear(grid);
        }
        if let Some(way) = self.tags.find(line) {
            self.tags.touch(way);
            return Lookup::Hit;
        }
        if self.pending.contains(&line) {
            return Lookup::Pending;
        }
        assert!(
            self.pending.len() < self.capacity,
            "more constant lines in flight than {}",
            self.capacity
        );
        self.pending.push(line);
        Lookup::Miss
    }

    #[cold]
    fn clear(&mut self, grid: u32) {
        self.tags.retain(|_| false);
        // A fill of the last launch may be in flight: `fill` refuses it.
        self.pending.clear();
        self.grid = Some(grid);
    }

    /// Puts a line in the cache. Returns false if it belongs to another launch.
    pub(crate) fn fill(&mut self, ConstantLine { grid, line }: ConstantLine) -> bool {
        let Some(at) = self.pending.iter().position(|&pending| pending == line) else {
            return false;
        };
        // Line numbers repeat from launch to launch.
        if self.grid != Some(grid) {
            return false;
        }
        self.pending.swap_remove(at);
        let way = self.tags.victim(line as usize % self.shape.sets, |_| true);
        self.tags.insert(way.expect("every line may go"), line);
        true
    }

    /// Number of lines in flight.
    pub(crate) fn n_pending(&self) -> usize {
        self.pending.len()
    }

    /// Checks that a line is in one place.
    pub(crate) fn invariants(&self, check: &mut Invariants) {
        self.tags.invariants(check);
        check.at_most(
            "constant lines in flight",
            self.pending.len() as u64,
            self.capacity as u64,
        );
        let in_both = self.pending.iter().filter(|&&line| self.tags.find(line).is_some());
        check.equal(
            "constant lines both in the cache and in flight",
            in_both.count() as u64,
            0,
        );
    }
}

/// The cache of one sub-core for operands of instructions.
pub(crate) fn immediate(config: &config::Constant, warps: usize) -> ConstantLines {
    // A warp waits for one line at a time.
    ConstantLines::new(config.immediate_size, config.immediate_ways, config.line, warps)
}

/// The cache of an SM for constant loads.
pub(crate) fn indexed(config: &config::Constant) -> ConstantLines {
    let lines = config.indexed_loads as usize * warpwave_isa::lane::WARP_SIZE;
    ConstantLines::new(config.indexed_size, config.indexed_ways, config.line, lines)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A cache of two sets of two lines.
    fn cache() -> ConstantLines {
        ConstantLines::new(256, 2, 64, 4)
    }

    fn of_launch_7(line: u32) -> ConstantLine {
        ConstantLine { grid: 7, line }
    }

    /// A cache as a list of lines per set, the least recently used one first, and a list of the lines in flight.
    #[derive(Default)]
    struct Model {
        grid: Option<u32>,
        sets: Vec<Vec<u32>>,
        in_flight: Vec<u32>,
    }

    impl Model {
        fn look_up(&mut self, ConstantLine { grid, line }: ConstantLine) -> Lookup {
            if self.grid != Some(grid) {
                self.grid = Some(grid);
                self.sets.iter_mut().for_each(Vec::clear);
                self.in_flight.clear();
            }
            let n = line as usize % self.sets.len();
            let set = &mut self.sets[n];
            if let Some(at) = set.iter().position(|&held| held == line) {
                let held = set.remove(at);
                set.push(held);
                return Lookup::Hit;
            }
            if self.in_flight.contains(&line) {
                return Lookup::Pending;
            }
            self.in_flight.push(line);
            Lookup::Miss
        }

        fn fill(&mut self, ConstantLine { grid, line }: ConstantLine, ways: usize) -> bool {
            if self.grid != Some(grid) || !self.in_flight.contains(&line) {
                return false;
            }
            self.in_flight.retain(|&other| other != line);
            let n = line as usize % self.sets.len();
            let set = &mut self.sets[n];
            if set.len() == ways {
                set.remove(0);
            }
            set.push(line);
            true
        }
    }

    proptest! {
        #[test]
        fn lookups_and_fills_are_those_of_a_list_of_lines(
            (sets, ways) in prop::sample::select(vec![(1, 1), (2, 2), (1, 4), (4, 2), (3, 1)]),
            steps in prop::collection::vec((1..25u32, 0..3u8, 0..16u8), 0..200),
        ) {
            let mut cache = ConstantLines::new(64 * sets * ways, ways, 64, 24);
            let mut model = Model { sets: vec![Vec::new(); sets as usize], ..Model::default() };
            let mut launch = 0;
            for (line, action, choice) in steps {
                // One step in 16 begins another launch. Fills of the last one may come later.
                launch += u32::from(choice == 0);
                let line = ConstantLine { grid: launch - u32::from(choice == 1 && launch > 0), line };
                if action == 0 {
                    prop_assert_eq!(cache.fill(line), model.fill(line, ways as usize));
                } else if line.grid == launch {
                    prop_assert_eq!(cache.look_up(line), model.look_up(line));
                }
                prop_assert_eq!(cache.n_pending(), model.in_flight.len());
                let broken = Invariants::broken(|check| cache.invariants(check));
                prop_assert!(broken.is_empty(), "{broken:?}");
            }
        }
    }

    #[test]
    fn line_misses_once_then_is_in_flight_then_hits() {
        let mut cache = cache();
        let line = of_launch_7(9);
        assert_eq!(cache.look_up(line), Lookup::Miss);
        assert_eq!(cache.look_up(line), Lookup::Pending);
        assert!(cache.fill(line));
        assert_eq!(cache.look_up(line), Lookup::Hit);
        assert_eq!(
            Invariants::broken(|check| cache.invariants(check)),
            Vec::<String>::new()
        );
    }

    #[test]
    fn third_line_of_a_set_evicts_the_one_used_longest_ago() {
        let mut cache = cache();
        for line in [2, 4, 6] {
            cache.look_up(of_launch_7(line));
            cache.fill(of_launch_7(line));
            // Line 2 is used last before line 6 comes.
            assert!(line == 6 || cache.look_up(of_launch_7(2)) == Lookup::Hit);
        }
        let found = [2, 4, 6].map(|line| cache.look_up(of_launch_7(line)));
        assert_eq!(found, [Lookup::Hit, Lookup::Miss, Lookup::Hit]);
    }

    #[test]
    fn first_lookup_of_a_launch_empties_the_cache_and_drops_late_fills() {
        let mut cache = cache();
        cache.look_up(of_launch_7(2));
        cache.fill(of_launch_7(2));
        cache.look_up(of_launch_7(4));
        let next = |line| ConstantLine { grid: 8, line };
        assert_eq!(cache.look_up(next(2)), Lookup::Miss);
        assert!(!cache.fill(of_launch_7(4)), "a fill of the launch before");
        assert_eq!(cache.look_up(next(4)), Lookup::Miss);
    }

    #[test]
    fn line_in_both_places_breaks_the_invariants() {
        let mut cache = cache();
        cache.look_up(of_launch_7(2));
        cache.fill(of_launch_7(2));
        cache.pending.push(2);
        let broken = Invariants::broken(|check| cache.invariants(check));
        assert_eq!(broken, ["constant lines both in the cache and in flight: 1, not 0"]);
    }
}
