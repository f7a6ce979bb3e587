//! Register pressure over time, and the cheapest value to spill where the pressure is highest.
//!
//! A segment tree over the times of [`live`](crate::lower::live). A live range covers O(log n) nodes. So each step of a spill
//! round takes O(log n) time, and the round over n values O(n log n).

use crate::lower::code::VReg;
use crate::lower::live::LiveRanges;

/// A segment tree over time. Node 1 is the root; the children of node `n` are `2 * n` and `2 * n + 1`.
pub(super) struct PressureTree {
    nodes: Vec<Node>,
    /// Number of leaves, a power of two. Leaf `time` is node `n_leaves + time`.
    n_leaves: usize,
}

/// The times below one node.
#[derive(Clone, Default)]
struct Node {
    /// Registers live at all of these times, and not at all times of the parent.
    live: usize,
    /// Maximum number of registers live at a time, without those of the ancestors.
    peak: usize,
    /// Values that may be spilled, live at all of these times. The cheapest is last.
    candidates: Vec<VReg>,
}

impl PressureTree {
    /// Creates the tree of these registers, without candidates.
    pub fn of(ranges: &[LiveRanges]) -> PressureTree {
        let end = ranges
            .iter()
            .filter_map(|ranges| ranges.last())
            .map(|range| range.1)
            .max();
        let n_leaves = (end.unwrap_or(0) as usize).next_power_of_two();
        let mut tree = PressureTree {
            nodes: vec![Node::default(); 2 * n_leaves],
            n_leaves,
        };
        for &range in ranges.iter().flatten() {
            for_each_node(n_leaves, range, |node| tree.nodes[node].live += 1);
        }
        for node in (1..2 * n_leaves).rev() {
            tree.update(node);
        }
        tree
    }

    /// Adds a value that may be spilled, with the live ranges of one of its registers. The cheapest value is added last.
    pub fn add_candidate(&mut self, value: VReg, ranges: &LiveRanges) {
        for &range in ranges {
            for_each_node(self.n_leaves, range, |node| self.nodes[node].candidates.push(value));
        }
    }

    /// Removes live ranges of a register.
    pub fn remove(&mut self, ranges: &LiveRanges) {
        self.change(ranges, |count| *count -= 1);
    }

    /// Adds live ranges of a register.
    pub fn add(&mut self, ranges: &LiveRanges) {
        self.change(ranges, |count| *count += 1);
    }

    /// Changes the number of live registers at these times.
    fn change(&mut self, ranges: &LiveRanges, step: impl Fn(&mut usize)) {
        for &range in ranges {
            for_each_node(self.n_leaves, range, |node| {
                step(&mut self.nodes[node].live);
                step(&mut self.nodes[node].peak);
            });
            // Only ancestors of both ends have a new maximum: nodes in between are covered as a whole.
            for time in [range.0, range.1 - 1] {
                let mut node = (self.n_leaves + time as usize) / 2;
                while node > 0 {
                    self.update(node);
                    node /= 2;
                }
            }
        }
    }

    /// Returns the maximum number of live registers.
    pub fn peak(&self) -> usize {
        self.nodes[1].peak
    }

    /// Returns the cheapest candidate live when the pressure first reaches its peak. Skips candidates with a decision.
    pub fn cheapest_at_peak(&mut self, is_settled: impl Fn(VReg) -> bool, cost: impl Fn(VReg) -> u64) -> Option<VReg> {
        let mut node = 1;
        let mut cheapest: Option<(u64, VReg)> = None;
        loop {
            let candidates = &mut self.nodes[node].candidates;
            // Such candidates are dropped lazily: only the last one is ever read.
            while candidates.pop_if(|value| is_settled(*value)).is_some() {}
            let found = candidates.last().map(|&value| (cost(value), value));
            cheapest = cheapest.into_iter().chain(found).min();
            if node >= self.n_leaves {
                return cheapest.map(|(_, value)| value);
            }
            let [first, second] = [2 * node, 2 * node + 1];
            // To the left of equal peaks, so that the choice is deterministic.
            let is_first = self.nodes[first].peak >= self.nodes[second].peak;
            node = if is_first { first } else { second };
        }
    }

    /// Computes the peak of a node from those of its children.
    fn update(&mut self, node: usize) {
        let below = match node < self.n_leaves {
            true => self.nodes[2 * node].peak.max(self.nodes[2 * node + 1].peak),
            false => 0,
        };
        self.nodes[node].peak = self.nodes[node].live + below;
    }
}

/// Calls `apply` for the nodes whose times are together the times of a live range.
fn for_each_node(n_leaves: usize, (start, end): (u32, u32), mut apply: impl FnMut(usize)) {
    let (mut first, mut end) = (n_leaves + start as usize, n_leaves + end as usize);
    while first < end {
        if first % 2 == 1 {
            apply(first);
            first += 1;
        }
        if end % 2 == 1 {
            end -= 1;
            apply(end);
        }
        first /= 2;
        end /= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cheapest_value_at_first_peak_is_found() {
        // Live registers at times 0 to 7: 1 2 3 2 3 2 1 1. The peak is first reached at time 2, by values 0, 1 and 2.
        let ranges = [vec![(0, 6)], vec![(1, 3)], vec![(2, 6)], vec![(4, 5), (6, 8)]];
        let mut tree = PressureTree::of(&ranges);
        assert_eq!(tree.peak(), 3);
        let costs = [5, 4, 6, 1];
        let cost = |value: VReg| costs[value.0 as usize];
        for value in [2, 0, 1, 3] {
            tree.add_candidate(VReg(value), &ranges[value as usize]);
        }
        let mut is_spilled = [false; 4];
        // Value 3 is cheaper than value 1, but not live at time 2.
        assert_eq!(
            tree.cheapest_at_peak(|value| is_spilled[value.0 as usize], cost),
            Some(VReg(1))
        );
        tree.remove(&ranges[1]);
        is_spilled[1] = true;
        // 1 1 2 2 3 2 1 1: the peak is at time 4, by values 0, 2 and 3.
        assert_eq!(tree.peak(), 3);
        assert_eq!(
            tree.cheapest_at_peak(|value| is_spilled[value.0 as usize], cost),
            Some(VReg(3))
        );
        tree.remove(&ranges[3]);
        is_spilled[3] = true;
        assert_eq!(tree.peak(), 2);
        assert_eq!(
            tree.cheapest_at_peak(|value| is_spilled[value.0 as usize], cost),
            Some(VReg(0))
        );
        for value in [0, 2] {
            tree.remove(&ranges[value]);
            is_spilled[value] = true;
        }
        assert_eq!(tree.peak(), 0);
        // The register is live once more.
        tree.add(&ranges[2]);
        assert_eq!(tree.peak(), 1);
        assert_eq!(tree.cheapest_at_peak(|value| is_spilled[value.0 as usize], cost), None);
    }

    #[test]
    fn code_without_live_registers_has_no_peak() {
        let mut tree = PressureTree::of(&[LiveRanges::new()]);
        assert_eq!(tree.peak(), 0);
        assert_eq!(tree.cheapest_at_peak(|_| false, |_| 0), None);
    }
}
