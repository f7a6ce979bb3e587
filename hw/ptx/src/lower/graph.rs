//! The control-flow graph: edges, dominators and loops; and the registers with a single definition.

pub(super) mod order;

use super::code::{Bits, BlockId, Code, Op, VGuard, VReg};
use order::Forest;

/// Edges and dominators of a kernel's blocks.
pub(super) struct Graph {
    pub successors: Vec<Vec<BlockId>>,
    pub predecessors: Vec<Vec<BlockId>>,
    /// Immediate dominator; `None` for the entry and for unreachable blocks.
    pub dominator: Vec<Option<BlockId>>,
    /// Immediate post-dominator; `None` where lanes may end before they reconverge.
    pub post_dominator: Vec<Option<BlockId>>,
    dominated: Forest,
    post_dominated: Forest,
}

impl Graph {
    pub fn of(code: &Code) -> Graph {
        let n = code.blocks.len();
        let successors: Vec<Vec<BlockId>> = (0..n).map(|block| code.successors(block).collect()).collect();
        let mut predecessors = vec![Vec::new(); n];
        for (block, nexts) in successors.iter().enumerate() {
            for &next in nexts {
                predecessors[next].push(block);
            }
        }
        let dominator = dominators(0, &successors, &predecessors);
        let post_dominator = post_dominators(&successors, &predecessors);
        Graph {
            dominated: Forest::of(&dominator),
            post_dominated: Forest::of(&post_dominator),
            successors,
            predecessors,
            dominator,
            post_dominator,
        }
    }

    pub fn is_reachable(&self, block: BlockId) -> bool {
        block == 0 || self.dominator[block].is_some()
    }

    /// True if every path to `block` passes through `over`.
    pub fn dominates(&self, over: BlockId, block: BlockId) -> bool {
        self.dominated.is_ancestor(over, block)
    }

    /// True if every path from `block` to the end passes through `over`.
    pub fn post_dominates(&self, over: BlockId, block: BlockId) -> bool {
        self.post_dominated.is_ancestor(over, block)
    }

    /// Marks the blocks reachable from `starts` without entering `stop`.
    pub fn reachable_from(&self, starts: &[BlockId], stop: Option<BlockId>) -> Vec<bool> {
        let mut visited = vec![false; self.successors.len()];
        let mut worklist: Vec<BlockId> = starts.iter().copied().filter(|&block| Some(block) != stop).collect();
        while let Some(block) = worklist.pop() {
            if std::mem::replace(&mut visited[block], true) {
                continue;
            }
            worklist.extend(
                self.successors[block]
                    .iter()
                    .copied()
                    .filter(|&next| Some(next) != stop),
            );
        }
        visited
    }

    /// True if control can return to `block` without passing `stop`.
    pub fn is_in_cycle(&self, block: BlockId, stop: BlockId) -> bool {
        self.reachable_from(&self.successors[block], Some(stop))[block]
    }

    /// Marks the blocks that are part of a cycle.
    pub fn in_cycles(&self) -> Vec<bool> {
        order::in_cycles(&self.successors)
    }
}

/// Computes immediate dominators with the iterative algorithm of Cooper, Harvey and Kennedy.
fn dominators(root: BlockId, successors: &[Vec<BlockId>], predecessors: &[Vec<BlockId>]) -> Vec<Option<BlockId>> {
    let order = post_order(root, successors);
    let mut rank = vec![usize::MAX; successors.len()];
    for (n, &block) in order.iter().enumerate() {
        rank[block] = n;
    }
    let mut parent: Vec<Option<BlockId>> = vec![None; successors.len()];
    // A root that is its own parent ends every walk upwards.
    parent[root] = Some(root);
    let mut changed = true;
    while changed {
        changed = false;
        // In reverse post-order most predecessors come first, so a reducible graph settles in two rounds.
        for &block in order.iter().rev().filter(|&&block| block != root) {
            // Predecessors without a dominator yet, and unreachable ones, do not count.
            let known = predecessors[block]
                .iter()
                .copied()
                .filter(|&before| parent[before].is_some());
            let common = known.reduce(|a, b| common_ancestor(&parent, &rank, a, b));
            changed |= parent[block] != common;
            parent[block] = common;
        }
    }
    parent[root] = None;
    parent
}

/// Returns the nearest common ancestor of two blocks.
fn common_ancestor(parent: &[Option<BlockId>], rank: &[usize], mut a: BlockId, mut b: BlockId) -> BlockId {
    while a != b {
        // A block nearer to the root has a higher post-order number.
        while rank[a] < rank[b] {
            a = parent[a].unwrap_or(a);
        }
        while rank[b] < rank[a] {
            b = parent[b].unwrap_or(b);
        }
    }
    a
}

/// Returns the blocks reachable from `root`, each after its successors.
fn post_order(root: BlockId, successors: &[Vec<BlockId>]) -> Vec<BlockId> {
    let mut order = Vec::new();
    let mut visited = vec![false; successors.len()];
    // An explicit stack: inlined code has paths that are deeper than a host thread's stack.
    let mut stack = vec![(root, 0)];
    visited[root] = true;
    while let Some((block, next)) = stack.pop() {
        match successors[block].get(next) {
            Some(&child) => {
                stack.push((block, next + 1));
                if !std::mem::replace(&mut visited[child], true) {
                    stack.push((child, 0));
                }
            }
            None => order.push(block),
        }
    }
    order
}

/// Computes dominators of the reversed graph, with one extra block after all blocks that end.
fn post_dominators(successors: &[Vec<BlockId>], predecessors: &[Vec<BlockId>]) -> Vec<Option<BlockId>> {
    let end = successors.len();
    let ends = (0..end).filter(|&block| successors[block].is_empty());
    let mut backward = predecessors.to_vec();
    backward.push(ends.clone().collect());
    let mut forward = successors.to_vec();
    forward.push(Vec::new());
    for block in ends {
        forward[block].push(end);
    }
    let mut parent = dominators(end, &backward, &forward);
    parent.pop();
    parent
        .into_iter()
        // The extra block has no code, so it is no place for a BSYNC.
        .map(|block| block.filter(|&block| block != end))
        .collect()
}

/// Single definitions: the registers with one definition that comes before all their uses.
///
/// Such a register can be replaced by its definition, if the sources of the definition are such registers too.
pub(super) struct Values {
    defs: Vec<Definitions>,
}

#[derive(Clone, Copy, PartialEq)]
enum Definitions {
    None,
    One(BlockId, usize),
    Many,
}

impl Values {
    pub fn of(code: &Code, graph: &Graph) -> Values {
        let mut values = Values {
            defs: vec![Definitions::None; code.groups.len()],
        };
        for (block, index, op) in indexed_ops(code) {
            for vreg in op.defs() {
                let def = &mut values.defs[vreg.0 as usize];
                // A guarded definition keeps the old value in some lanes.
                let sole = *def == Definitions::None && op.guard == VGuard::ALWAYS;
                *def = if sole {
                    Definitions::One(block, index)
                } else {
                    Definitions::Many
                };
            }
        }
        for (block, index, op) in indexed_ops(code) {
            for vreg in op.uses() {
                let Definitions::One(at, n) = values.defs[vreg.0 as usize] else {
                    continue;
                };
                // A use before its definition reads the value of an earlier iteration.
                let before = if at == block {
                    n < index
                } else {
                    graph.dominates(at, block)
                };
                if !before {
                    values.defs[vreg.0 as usize] = Definitions::Many;
                }
            }
        }
        values
    }

    /// Returns the single definition of a register.
    pub fn definition<'c>(&self, code: &'c Code, vreg: VReg) -> Option<&'c Op> {
        match self.defs[vreg.0 as usize] {
            Definitions::One(block, index) => code.blocks[block].ops.get(index),
            _ => None,
        }
    }

    /// Returns the single operation that defines both registers of a 64-bit value.
    pub fn pair_definition<'c>(&self, code: &'c Code, vreg: VReg) -> Option<&'c Op> {
        let low = self.definition(code, vreg)?;
        self.is_fixed(vreg.offset(1))
            .then_some(low)
            .filter(|op| op.dst == Some(vreg) && op.shape().dst == 2)
    }

    /// True if the register has the same value at every use.
    pub fn is_fixed(&self, vreg: VReg) -> bool {
        matches!(self.defs[vreg.0 as usize], Definitions::One(..))
    }

    /// True if an operand of `words` words has the same value everywhere.
    pub fn is_fixed_bits(&self, bits: Bits, words: u8) -> bool {
        match bits {
            Bits::VReg(vreg) => (0..words).all(|n| self.is_fixed(vreg.offset(n))),
            // A clock or a timer reads differently each time.
            Bits::Special(_) => false,
            _ => true,
        }
    }
}

/// Iterates over all operations with their block and their index in it.
pub(super) fn indexed_ops(code: &Code) -> impl Iterator<Item = (BlockId, usize, &Op)> {
    let blocks = code.blocks.iter().enumerate();
    blocks.flat_map(|(block, body)| body.ops.iter().enumerate().map(move |(index, op)| (block, index, op)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::code::{Block, VPred};
    use warpwave_isa::opcode::Opcode;

    /// Builds one block for each jump: its target and whether it is conditional. `None` is an EXIT.
    fn code(jumps: &[Option<(BlockId, bool)>]) -> Code {
        let block = |jump: &Option<(BlockId, bool)>| {
            let mut op = Op::machine(Opcode::Exit);
            if let Some((target, conditional)) = *jump {
                op = Op::machine(Opcode::Bra);
                op.target = Some(target);
                if conditional {
                    op.guard = VGuard::pred(VPred(0));
                }
            }
            Block { ops: vec![op] }
        };
        Code {
            blocks: jumps.iter().map(block).collect(),
            ..Code::default()
        }
    }

    #[test]
    fn sides_of_diamond_reconverge_in_last_block() {
        let code = code(&[Some((2, true)), Some((3, false)), Some((3, false)), None]);
        let graph = Graph::of(&code);
        assert_eq!(graph.dominator, [None, Some(0), Some(0), Some(0)]);
        assert_eq!(graph.post_dominator, [Some(3), Some(3), Some(3), None]);
    }

    #[test]
    fn loop_header_dominates_latch_and_exit() {
        let code = code(&[Some((1, false)), Some((3, true)), Some((1, false)), None]);
        let graph = Graph::of(&code);
        assert_eq!(graph.dominator, [None, Some(0), Some(1), Some(1)]);
        assert_eq!(graph.in_cycles(), [false, true, true, false]);
        assert!(!graph.is_in_cycle(2, 1));
    }

    #[test]
    fn endless_loop_has_no_post_dominator() {
        let graph = Graph::of(&code(&[Some((0, false))]));
        assert_eq!(graph.post_dominator, [None]);
    }
}
