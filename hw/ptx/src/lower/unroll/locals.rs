//! Registers that no iteration passes on, to the next one or to the code after the loop. Each copy has its own.

use super::loops::Loop;
use crate::lower::code::{BlockId, Code, VPred, VReg};
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
        let mut locals = Locals { groups: Vec::new(), preds: Vec::new() };
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
}
