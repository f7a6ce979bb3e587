//! If-conversion: replaces a short forward branch by guards.
//!
//! A block of at most [`MAX_OPS`] operations that one branch skips is merged into the block of the branch. It must have no other
//! entry and no other exit than the branch's target. The target is merged too if nothing else leads there, so the scheduler
//! sees one block.
//!
//! Memory accesses, floating-point operations and results read later get the guard. Integer operations run unguarded if no later
//! code reads their results. The vendor's assembler guards floating-point operations too, so a profiler counts only the lanes
//! that need them. The pass needs legalized code after `jumps`.

use super::code::{BlockId, Code, Op, OpKind, VGuard};
use super::graph::Graph;
use super::live;
use warpwave_isa::opcode::{Opcode, Pipe};

/// Maximum number of operations: more cost as much as a branch and its delay.
const MAX_OPS: usize = 7;

pub(super) fn run(code: &mut Code) {
    let live_vregs: Vec<Vec<usize>> = live::live_after_blocks::<live::GeneralRegs>(code, &Graph::of(code));
    let live_preds: Vec<Vec<usize>> = live::live_after_blocks::<live::Predicates>(code, &Graph::of(code));
    for block in 0..code.blocks.len() {
        // The merged target may end in another short branch.
        while let Some(skip) = Skip::after(code, block) {
            let is_live = |op: &Op| {
                op.defs()
                    .any(|vreg| live_vregs[skip.skipped].contains(&(vreg.0 as usize)))
                    || op
                        .pred_defs()
                        .any(|pred| live_preds[skip.skipped].contains(&(pred.0 as usize)))
            };
            let ops = std::mem::take(&mut code.blocks[skip.skipped].ops);
            code.blocks[block].ops.pop();
            for mut op in ops {
                // An unguarded operation does not wait for the predicate.
                if is_live(&op) || !is_cheap(&op) {
                    op.guard = skip.guard;
                }
                code.blocks[block].ops.push(op);
            }
            // One larger block gives `schedule` more operations to hide a latency with.
            if skip.merges_target {
                let tail = std::mem::take(&mut code.blocks[skip.target].ops);
                code.blocks[block].ops.extend(tail);
            }
        }
    }
}

/// A block that a branch skips.
struct Skip {
    skipped: BlockId,
    target: BlockId,
    /// Guard under which the block runs.
    guard: VGuard,
    /// True if nothing else leads to the branch's target.
    merges_target: bool,
}

impl Skip {
    /// Returns the skip at the end of a block, if it can be replaced by guards.
    fn after(code: &Code, block: BlockId) -> Option<Skip> {
        let branch = code.blocks[block].ops.last().filter(|op| op.is(Opcode::Bra))?;
        branch.guard.pred?;
        let skipped = next_nonempty(code, block + 1)?;
        let target = next_nonempty(code, branch.target?)?;
        let ops = &code.blocks[skipped].ops;
        // Forward only: a skipped block that jumps back is a loop.
        let reaches_target = skipped < target && next_nonempty(code, skipped + 1) == Some(target);
        let fits = ops.len() <= MAX_OPS && ops.iter().all(|op| can_be_guarded(op, branch.guard));
        if !reaches_target || !fits || predecessors(code, skipped) != [block] {
            return None;
        }
        Some(Skip {
            skipped,
            target,
            guard: branch.guard.negated(),
            merges_target: predecessors(code, target) == [block, skipped],
        })
    }
}

/// Returns the first block with operations, from `from` on.
fn next_nonempty(code: &Code, from: BlockId) -> Option<BlockId> {
    (from..code.blocks.len()).find(|&block| !code.blocks[block].ops.is_empty())
}

/// Returns the blocks with operations that continue at `block`, in order.
fn predecessors(code: &Code, block: BlockId) -> Vec<BlockId> {
    let goes = |&from: &BlockId| {
        let has_code = !code.blocks[from].ops.is_empty();
        has_code
            && code
                .successors(from)
                .any(|next| next_nonempty(code, next) == Some(block))
    };
    (0..code.blocks.len()).filter(goes).collect()
}

/// True if a guard has the effect of the branch: no exchange between lanes, no control, no write of the branch's predicate.
fn can_be_guarded(op: &Op, branch: VGuard) -> bool {
    let OpKind::Machine(opcode) = op.kind else { return false };
    let is_exchange = matches!(
        opcode,
        Opcode::Vote | Opcode::Match | Opcode::Redux | Opcode::Shfl | Opcode::Mma | Opcode::MmaSp | Opcode::Ldsm
    );
    // The guard must keep its value up to the last operation.
    let is_plain = op.guard == VGuard::ALWAYS && op.pred_defs().all(|pred| branch.pred != Some(pred));
    is_plain && !is_exchange && opcode.info().pipe != Pipe::Control
}

/// True if an operation without a guard costs no more than its issue slot in lanes that do not need it. Floating-point operations are not
/// cheap: they also change the FLOP counts of a profiler.
fn is_cheap(op: &Op) -> bool {
    let OpKind::Machine(opcode) = op.kind else { return false };
    let is_float = matches!(opcode, Opcode::Fadd | Opcode::Fmul | Opcode::Ffma);
    matches!(opcode.info().pipe, Pipe::Int | Pipe::Fp32) && !is_float && !op.has_effect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::code::{Arg, Block, VPred, VReg};

    const FIRST: VGuard = VGuard {
        pred: Some(VPred(0)),
        negated: false,
    };
    const SECOND: VGuard = VGuard {
        pred: Some(VPred(1)),
        negated: false,
    };

    /// A branch under the first guard over a block of these operations, and a store behind it.
    fn converted(skipped: &[Op]) -> Code {
        let mut branch = Op::machine(Opcode::Bra).guard(FIRST);
        branch.target = Some(2);
        let blocks = [&[branch][..], skipped, &[store(9), Op::machine(Opcode::Exit)]];
        let mut code = Code {
            blocks: blocks.map(|ops| Block { ops: ops.to_vec() }).into(),
            n_preds: 2,
            ..Code::default()
        };
        (0..10).for_each(|_| _ = code.new_group(1));
        run(&mut code);
        code
    }

    fn store(value: u32) -> Op {
        Op::machine(Opcode::St).src(&[Arg::vreg(VReg(0)), Arg::vreg(VReg(value))])
    }

    fn compare(result: u32) -> Op {
        Op::machine(Opcode::Isetp)
            .pdst(VPred(result))
            .src(&[Arg::vreg(VReg(1)), Arg::ZERO])
    }

    #[test]
    fn stores_that_a_branch_skips_get_its_guard() {
        let code = converted(&[store(1), store(2)]);
        let guards: Vec<VGuard> = code.blocks[0].ops.iter().map(|op| op.guard).collect();
        let other = FIRST.negated();
        assert_eq!(guards, [other, other, VGuard::ALWAYS, VGuard::ALWAYS]);
    }

    #[test]
    fn block_that_changes_the_guard_or_has_guards_of_its_own_keeps_its_branch() {
        // The store after the comparison runs under the old value of the guard.
        for skipped in [[compare(0), store(2)], [compare(1), store(2).guard(SECOND)]] {
            let code = converted(&skipped);
            let branch = code.blocks[0].ops.last().unwrap();
            assert!(branch.is(Opcode::Bra) && branch.guard == FIRST, "{branch:?}");
            assert_eq!(code.blocks[1].ops, skipped);
        }
    }
}
