//! Divergence analysis: branches on which all lanes agree, and blocks where lanes may be diverged.
//!
//! A branch counts as uniform only if it is so for every input. Its guard depends only on parameters, constants, block indices
//! and sizes, through definitions that all lanes execute together. Everything else may diverge. The pass needs legalized code.

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
    /// Analyses a kernel: all values start uniform and are marked until nothing changes.
    pub fn of(code: &Code, graph: &Graph) -> Divergence {
        let n = code.blocks.len();
        let mut divergence = Divergence {
            vregs: vec![!code.all_diverge; code.groups.len()],
            preds: vec![!code.all_diverge; code.n_preds as usize],
            divergent_branch: vec![false; n],
            divergent_block: vec![false; n],
            leaves_spin: spin::spin_exits(code, graph),
        };
        // `|` does not short-circuit, so each round runs both.
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

    /// True if the results are uniform where all lanes execute the operation together.
    fn is_uniform(&self, op: &Op) -> bool {
        let from_memory = match op.kind {
            // With uniform sources, all lanes get the same result.
            OpKind::Machine(Opcode::Vote) => false,
            // Constants do not change, so the address decides.
            OpKind::Machine(Opcode::Ldc) => false,
            OpKind::Machine(opcode) => matches!(opcode.info().pipe, Pipe::Lsu | Pipe::Tensor) || opcode == Opcode::P2r,
            OpKind::Wide(_) => false,
        };
        // Equal for all threads of a CTA. Thread, lane and warp numbers are not in the list.
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

    /// True if all lanes agree on the operation's guard.
    pub fn has_uniform_guard(&self, op: &Op) -> bool {
        op.guard.pred.is_none_or(|pred| self.preds[pred.0 as usize])
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
                // A value written here may be old in lanes that took the other side.
                *is_diverged |= in_region;
            }
        }
        changed
    }

    /// True if a block ends by a branch that some lanes take and others do not.
    fn may_disagree(&self, code: &Code, block: BlockId, graph: &Graph) -> bool {
        let Some(op) = code.blocks[block].ops.last() else {
            return false;
        };
        let conditional = op.is(Opcode::Bra) && op.guard != VGuard::ALWAYS && graph.successors[block].len() > 1;
        // `bra.uni` is a promise of the text. Without the pass `uniformity` it is not used.
        let promised = op.uniform && !code.all_diverge;
        let is_uniform = promised || self.has_uniform_guard(op);
        conditional && !is_uniform
    }

    /// Returns the blocks between a branch and its reconvergence.
    fn region(&self, graph: &Graph, branch: BlockId) -> Vec<bool> {
        // Lanes that leave a spin loop do not wait, so this region has no end.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::code::{Arg, Block, VPred, VReg};

    /// A first block with a branch to `target` in which lanes may disagree, then these blocks.
    fn divergent_blocks(target: BlockId, others: &[Op]) -> Vec<bool> {
        let thread = Op::machine(Opcode::S2r)
            .dst(VReg(0))
            .src(&[Arg::of(Bits::Special(Special::TidX))]);
        let compare = Op::machine(Opcode::Isetp)
            .pdst(VPred(0))
            .src(&[Arg::vreg(VReg(0)), Arg::ZERO]);
        let first = vec![thread, compare, jump(target, 0)];
        let blocks = others.iter().map(|op| Block { ops: vec![*op] });
        let mut code = Code {
            blocks: std::iter::once(Block { ops: first }).chain(blocks).collect(),
            n_preds: 2,
            ..Code::default()
        };
        _ = code.new_group(1);
        let divergence = Divergence::of(&code, &Graph::of(&code));
        assert!(divergence.divergent_branch[0]);
        divergence.divergent_block
    }

    /// A branch under a predicate.
    fn jump(target: BlockId, pred: u32) -> Op {
        let mut op = Op::machine(Opcode::Bra).guard(VGuard::pred(VPred(pred)));
        op.target = Some(target);
        op
    }

    #[test]
    fn lanes_are_diverged_up_to_the_block_in_which_the_sides_meet() {
        let (nop, exit) = (Op::machine(Opcode::Nop), Op::machine(Opcode::Exit));
        assert_eq!(divergent_blocks(2, &[nop, exit]), [false, true, false]);
    }

    #[test]
    fn sides_that_meet_although_one_may_exit_before_are_diverged() {
        let (nop, exit) = (Op::machine(Opcode::Nop), Op::machine(Opcode::Exit));
        // Block 1 may leave to the exit in block 4. Otherwise it goes on to block 2, where the other side is.
        assert_eq!(
            divergent_blocks(2, &[jump(4, 1), nop, exit, exit]),
            [false, true, true, true, true]
        );
    }

    #[test]
    fn sides_that_never_meet_run_as_whole_warps() {
        let exit = Op::machine(Opcode::Exit);
        assert_eq!(divergent_blocks(2, &[exit, exit]), [false; 3]);
    }
}
