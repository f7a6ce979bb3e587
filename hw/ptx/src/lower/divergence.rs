//! Divergence analysis: branches on which all lanes agree, and blocks where lanes may be diverged.
//!
//! A uniform branch is uniform for every input. Its guard depends only on parameters, constants, block indices and sizes, through
//! definitions that all lanes execute together. Everything else may diverge. The pass needs legalized code.

use super::code::{Bits, BlockId, Code, Op, OpKind, VGuard};
use super::graph::Graph;
use super::spin;
use warpwave_isa::opcode::{Opcode, Pipe};
use warpwave_isa::reg::Special;

/// Registers, predicates and blocks that may differ between the lanes of a warp.
pub(super) struct Divergence {
    vregs: Vec<bool>,
    preds: Vec<bool>,
    /// Blocks that end with a branch on which lanes may disagree.
    pub divergent_branch: Vec<bool>,
    /// Blocks that lanes may execute at different times.
    pub divergent_block: Vec<bool>,
    /// Blocks that end by leaving a loop that waits for memory. Lanes that leave it stay diverged.
    pub leaves_spin: Vec<bool>,
}

impl Divergence {
    pub fn of(code: &Code, graph: &Graph) -> Divergence {
        let n = code.blocks.len();
        let mut divergence = Divergence {
            vregs: vec![!code.all_diverge; code.groups.len()],
            preds: vec![!code.all_diverge; code.n_preds as usize],
            divergent_branch: vec![false; n],
            divergent_block: vec![false; n],
            leaves_spin: spin::spin_exits(code, graph),
        };
        while divergence.mark_values(code) | divergence.mark_regions(code, graph) {}
        divergence
    }

    /// Marks results of divergent sources, and everything written while lanes are diverged. Returns true after a change.
    fn mark_values(&mut self, code: &Code) -> bool {
        let mut changed = false;
        for (block, body) in code.blocks.iter().enumerate() {
            for op in &body.ops {
                if !self.divergent_block[block] && self.is_uniform(op) {
                    continue;
                }
                for vreg in op.defs() {
                    changed |= std::mem::replace(&mut self.vregs[vreg.0 as usize], false);
                }
                for pred in op.pred_defs() {
                    changed |= std::mem::replace(&mut self.preds[pred.0 as usize], false);
                }
            }
        }
        changed
    }

    fn is_uniform(&self, op: &Op) -> bool {
        let from_memory = match op.kind {
            // All lanes get the same result.
            OpKind::Machine(Opcode::Vote) => false,
            // Constants do not change, so the address decides.
            OpKind::Machine(Opcode::Ldc) => false,
            OpKind::Machine(opcode) => matches!(opcode.info().pipe, Pipe::Lsu | Pipe::Tensor) || opcode == Opcode::P2r,
            OpKind::Wide(_) => false,
        };
        let special = |bits| match bits {
            Bits::Special(special) => matches!(
                special,
                Special::BarrierCount
                    | Special::CtaidX
                    | Special::CtaidY
                    | Special::CtaidZ
                    | Special::GridId
                    | Special::SmId
                    | Special::NSmId
            ),
            _ => true,
        };
        !from_memory
            && op.src.iter().all(|arg| special(arg.bits))
            && op.uses().all(|vreg| self.vregs[vreg.0 as usize])
            && op.pred_uses().all(|pred| self.preds[pred.0 as usize])
    }

    /// True if all registers that the operation reads are uniform.
    pub fn reads_uniform(&self, op: &Op) -> bool {
        op.uses().all(|vreg| self.vregs[vreg.0 as usize])
    }

    /// Marks the blocks between a divergent branch and its reconvergence. Returns true after a change.
    fn mark_regions(&mut self, code: &Code, graph: &Graph) -> bool {
        let mut changed = false;
        for block in 0..code.blocks.len() {
            if self.divergent_branch[block] || !self.may_disagree(code, block, graph) {
                continue;
            }
            changed = true;
            self.divergent_branch[block] = true;
            let region = self.region(graph, block);
            for (is_diverged, in_region) in self.divergent_block.iter_mut().zip(region) {
                *is_diverged |= in_region;
            }
        }
        changed
    }

    fn may_disagree(&self, code: &Code, block: BlockId, graph: &Graph) -> bool {
        let Some(op) = code.blocks[block].ops.last() else {
            return false;
        };
        let conditional = op.is(Opcode::Bra) && op.guard != VGuard::ALWAYS && graph.successors[block].len() > 1;
        let promised = op.uniform && !code.all_diverge;
        let is_uniform = promised || op.guard.pred.is_none_or(|pred| self.preds[pred.0 as usize]);
        conditional && !is_uniform
    }

    /// Returns the blocks between a branch and its reconvergence.
    fn region(&self, graph: &Graph, branch: BlockId) -> Vec<bool> {
        let join = graph.post_dominator[branch].filter(|_| !self.leaves_spin[branch]);
        let mut sides = graph.successors[branch]
            .iter()
            .map(|&next| graph.reachable_from(&[next], join));
        let first = sides.next().unwrap_or_default();
        let second = sides.next().unwrap_or_default();
        let reconverges = join.is_some() || first.iter().zip(&second).any(|(a, b)| *a && *b);
        // Sides that never reconverge each run on as a whole warp.
        first
            .iter()
            .zip(&second)
            .map(|(a, b)| reconverges && (*a || *b))
            .collect()
    }
}
