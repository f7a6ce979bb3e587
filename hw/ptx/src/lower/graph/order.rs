//! Graph walks done once, then queried often: ancestors in a tree, and members of cycles.

use crate::lower::code::BlockId;

/// A forest of blocks. Intervals of a depth-first walk answer ancestor queries.
pub(super) struct Forest {
    /// Times at which the walk enters and leaves each block.
    intervals: Vec<(u32, u32)>,
}

impl Forest {
    pub fn of(parent: &[Option<BlockId>]) -> Forest {
        let mut children = vec![Vec::new(); parent.len()];
        for (block, parent) in parent.iter().enumerate() {
            if let Some(parent) = *parent {
                children[parent].push(block);
            }
        }
        let mut forest = Forest {
            intervals: vec![(0, 0); parent.len()],
        };
        let mut time = 0;
        for root in (0..parent.len()).filter(|&block| parent[block].is_none()) {
            forest.walk(root, &children, &mut time);
        }
        forest
    }

    fn walk(&mut self, root: BlockId, children: &[Vec<BlockId>], time: &mut u32) {
        let mut stack = vec![(root, 0)];
        while let Some((block, next)) = stack.pop() {
            if next == 0 {
                self.intervals[block].0 = *time;
                *time += 1;
            }
            match children[block].get(next) {
                Some(&child) => stack.extend([(block, next + 1), (child, 0)]),
                None => self.intervals[block].1 = *time,
            }
        }
    }

    /// True if `ancestor` is an ancestor of `block` or `block` itself.
    pub fn is_ancestor(&self, ancestor: BlockId, block: BlockId) -> bool {
        let ((begin, end), (at, _)) = (self.intervals[ancestor], self.intervals[block]);
        // The walk enters all descendants of a block before it leaves the block.
        begin <= at && at < end
    }
}

/// Marks the blocks that are part of a cycle, with Tarjan's strongly connected components.
pub(in crate::lower) fn in_cycles(successors: &[Vec<BlockId>]) -> Vec<bool> {
    const NONE: usize = usize::MAX;
    let n = successors.len();
    let (mut number, mut lowest) = (vec![NONE; n], vec![NONE; n]);
    let (mut is_open, mut in_cycle) = (vec![false; n], vec![false; n]);
    let (mut component, mut count) = (Vec::new(), 0);
    for root in 0..n {
        let mut walk = if number[root] == NONE {
            vec![(root, 0)]
        } else {
            Vec::new()
        };
        while let Some((block, next)) = walk.pop() {
            if next == 0 {
                (number[block], lowest[block]) = (count, count);
                count += 1;
                is_open[block] = true;
                component.push(block);
            } else {
                // The walk is back from this successor.
                let child = successors[block][next - 1];
                // A closed successor belongs to a finished component, which does not lead back here.
                if is_open[child] {
                    lowest[block] = lowest[block].min(lowest[child]);
                }
            }
            if let Some(&child) = successors[block].get(next) {
                walk.push((block, next + 1));
                if number[child] == NONE {
                    walk.push((child, 0));
                }
            } else if lowest[block] == number[block] {
                // This block is the root of a component: the blocks above it on the stack.
                let first = component.iter().rposition(|&member| member == block).unwrap_or(0);
                let members = component.split_off(first);
                // A component of one block is a cycle only if the block jumps to itself.
                let returns = members.len() > 1 || successors[block].contains(&block);
                for member in members {
                    is_open[member] = false;
                    in_cycle[member] = returns;
                }
            }
        }
    }
    in_cycle
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forest_tells_ancestors_from_other_blocks() {
        let forest = Forest::of(&[None, Some(0), Some(1), Some(0), None]);
        for (ancestor, block) in [(0, 0), (0, 2), (1, 2), (0, 3), (4, 4)] {
            assert!(forest.is_ancestor(ancestor, block), "{ancestor} {block}");
        }
        for (other, block) in [(1, 3), (2, 1), (3, 2), (4, 0), (0, 4)] {
            assert!(!forest.is_ancestor(other, block), "{other} {block}");
        }
    }

    #[test]
    fn in_cycles_marks_exactly_the_loop_blocks() {
        // 0 -> 1 <-> 2 -> 3 -> 3, 3 -> 4; the unreachable 5 -> 1.
        let successors = [vec![1], vec![2], vec![1, 3], vec![3, 4], vec![], vec![1]];
        assert_eq!(in_cycles(&successors), [false, true, true, true, false, false]);
        // The end of this cycle is visited first.
        assert_eq!(in_cycles(&[vec![1, 2], vec![], vec![0]]), [true, false, true]);
    }
}
