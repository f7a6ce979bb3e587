//! Registers that no iteration passes on, to the next one or to the code after the loop. Each copy has its own.

use super::loops::Loop;
use crate::lower::code::{BlockId, Code, VGuard, VPred, VReg};
use crate::lower::graph::Graph;
use crate::lower::live::{GeneralRegs, Predicates, live_after_blocks};
use std::collections::HashSet;

/// Registers and predicates that are live after each block.
pub(super) struct Live {
    vregs: Vec<Vec<usize>>,
    preds: Vec<Vec<usize>>,
}

/// Register groups and predicates of one iteration.
pub(super) struct Locals {
    pub groups: Vec<(VReg, u8)>,
    pub preds: Vec<VPred>,
    /// Counters that code after the loop reads.
    pub read_after: HashSet<VReg>,
}

impl Live {
    pub fn of(code: &Code, graph: &Graph) -> Live {
        Live {
            vregs: live_after_blocks::<GeneralRegs>(code, graph),
            preds: live_after_blocks::<Predicates>(code, graph),
        }
    }

    /// Returns what a loop writes and reads in the same iteration alone.
    pub fn locals(&self, code: &Code, graph: &Graph, shape: &Loop) -> Locals {
        // A jump to the header begins the next iteration.
        let leaves = |&block: &BlockId| {
            let mut next = graph.successors[block].iter();
            next.any(|next| *next == shape.header || !shape.blocks().contains(next))
        };
        let ends: Vec<BlockId> = shape.blocks().filter(leaves).collect();
        let of_ends = |live: &[Vec<usize>]| -> HashSet<usize> {
            ends.iter().flat_map(|&block| live[block].iter().copied()).collect()
        };
        let (vregs, preds) = (of_ends(&self.vregs), of_ends(&self.preds));
        let after = shape.test.map(|test| exit(code, shape, test.block));
        let is_read = |vreg: &VReg| after.is_none_or(|block| self.is_read_from(code, block, *vreg));
        let words = shape.counters.iter().map(|counter| (counter.vreg, counter.words));
        let read_after = words.filter(|&(vreg, words)| (0..words).any(|n| is_read(&vreg.offset(n))));
        let mut locals = Locals {
            groups: Vec::new(),
            preds: Vec::new(),
            read_after: read_after.map(|(vreg, _)| vreg).collect(),
        };
        let (mut seen, mut seen_preds) = (HashSet::new(), HashSet::new());
        for op in code.blocks[shape.blocks()].iter().flat_map(|block| &block.ops) {
            for vreg in op.defs() {
                let (first, words) = code.groups[vreg.0 as usize];
                let is_local = (0..words).all(|n| !vregs.contains(&(first.offset(n).0 as usize)));
                if seen.insert(first) && is_local {
                    locals.groups.push((first, words));
                }
            }
            for pred in op.pred_defs() {
                if seen_preds.insert(pred) && !preds.contains(&(pred.0 as usize)) {
                    locals.preds.push(pred);
                }
            }
        }
        locals
    }

    /// True if code from a block on reads the value of a register there.
    fn is_read_from(&self, code: &Code, block: BlockId, vreg: VReg) -> bool {
        for op in &code.blocks[block].ops {
            if op.uses().any(|read| read == vreg) {
                return true;
            }
            if op.guard == VGuard::ALWAYS && op.defs().any(|written| written == vreg) {
                return false;
            }
        }
        self.vregs[block].contains(&(vreg.0 as usize))
    }
}

/// Returns the block to which the test of a loop leaves.
fn exit(code: &Code, shape: &Loop, test: BlockId) -> BlockId {
    let target = code.blocks[test].ops.last().and_then(|op| op.target);
    target.filter(|_| test != shape.latch).unwrap_or(shape.latch + 1)
}
