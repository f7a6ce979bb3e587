//! Dead code elimination: removes operations without effects and without readers.
//!
//! Operations with effects stay, in order. An atomic with an unread old value becomes a reduction, or returns the value to RZ.
//! Then no scoreboard entry waits for the value.

use super::code::{Code, Op, OpKind};
use warpwave_isa::inst::AtomOp;
use warpwave_isa::opcode::Opcode;

pub(super) fn run(code: &mut Code) {
    let mut reads = Reads::of(code);
    // A reader in an earlier block of a loop may be removed after its source was visited.
    loop {
        let mut removed = false;
        // Backwards, so a chain of unread operations goes in one pass.
        for block in code.blocks.iter_mut().rev() {
            for op in block.ops.iter_mut().rev() {
                reads.drop_unread_results(op);
            }
            block.ops.retain(|op| {
                // Results that only removed operations read are unread too, as their reads no longer count.
                let keep = op.has_effect() || reads.is_read(op);
                if !keep {
                    reads.count(op, u32::wrapping_sub);
                    removed = true;
                }
                keep
            });
        }
        if !removed {
            return;
        }
    }
}

/// Number of reads of each register and predicate.
struct Reads {
    vregs: Vec<u32>,
    preds: Vec<u32>,
}

impl Reads {
    fn of(code: &Code) -> Reads {
        let mut reads = Reads {
            vregs: vec![0; code.groups.len()],
            preds: vec![0; code.n_preds as usize],
        };
        for op in code.ops() {
            // Wrapping only to name the operation as a function: no count overflows.
            reads.count(op, u32::wrapping_add);
        }
        reads
    }

    fn count(&mut self, op: &Op, change: fn(u32, u32) -> u32) {
        for vreg in op.uses() {
            let n = &mut self.vregs[vreg.0 as usize];
            *n = change(*n, 1);
        }
        for pred in op.pred_uses() {
            let n = &mut self.preds[pred.0 as usize];
            *n = change(*n, 1);
        }
    }

    fn is_read(&self, op: &Op) -> bool {
        op.defs().any(|vreg| self.vregs[vreg.0 as usize] > 0)
            || op.pred_defs().any(|pred| self.preds[pred.0 as usize] > 0)
    }

    /// Removes unread results of an operation that stays.
    fn drop_unread_results(&self, op: &mut Op) {
        for pred in &mut op.pdst {
            *pred = pred.filter(|pred| self.preds[pred.0 as usize] > 0);
        }
        if op.is(Opcode::Atom) && !self.is_read(op) {
            op.dst = None;
            // The machine has no reduction of these two operations: their old value goes to RZ.
            if !matches!(op.mods.atom, AtomOp::Cas | AtomOp::Exch) {
                op.kind = OpKind::Machine(Opcode::Red);
            }
        }
    }
}
