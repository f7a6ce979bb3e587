//! Guards of stores: a store gets a comparison of its own where predicates run out.
//!
//! Compilers of array languages guard each access of an element: comparisons, loads, arithmetic, stores. The guards of the stores would be
//! live while the loads are on their way, and a thread has seven predicates. So a store behind a load gets a comparison of its own:
//!
//! ```text
//! setp p0, i0, n; ... setp p7, i7, n      setp p0, i0, n; ...
//! @p0 ld a0; ... @p7 ld a7                @p0 ld a0; ...
//! add ...                                 add ...
//! @p0 st a0; ... @p7 st a7                setp q0, i0, n; @q0 st a0; ...
//! ```
//!
//! The comparison must be an ISETP without a guard in the same block, and its operands must hold the same values at the store. Without this
//! pass, `predicates` keeps such a guard in a general register, and `schedule` delays loads that have no predicate.

use std::collections::HashMap;

use super::code::{Code, Op, VGuard, VPred, VReg};
use super::graph::Graph;
use super::live;
use super::schedule::{FREE_PREDICATES, LiveSet};
use warpwave_isa::inst::Join;
use warpwave_isa::opcode::Opcode;

pub(super) fn run(code: &mut Code) {
    let graph = Graph::of(code);
    let preds_out = live::live_after_blocks::<live::Predicates>(code, &graph);
    for (block, preds) in preds_out.iter().enumerate() {
        if most_live(&code.blocks[block].ops, preds) > FREE_PREDICATES {
            compare_at_stores(code, block);
        }
    }
}

/// Returns the largest number of predicates that are live at once in a block.
fn most_live(ops: &[Op], after: &[usize]) -> usize {
    let mut live_set = LiveSet::of(&[], after);
    let mut most = live_set.preds.len();
    for op in ops.iter().rev() {
        live_set.step_preds_back(op);
        most = most.max(live_set.preds.len());
    }
    most
}

/// What is known at a place in a block.
#[derive(Default)]
struct Known {
    /// Number of loads so far.
    loads: usize,
    /// Comparisons whose operands have not changed, and the loads in front of them, by their result.
    compares: HashMap<VPred, (Op, usize)>,
    /// Results of the comparisons that read a register.
    readers: HashMap<VReg, Vec<VPred>>,
    /// Results of the second comparisons, and the loads in front of them.
    own: HashMap<VPred, (VPred, usize)>,
}

fn compare_at_stores(code: &mut Code, block: usize) {
    let mut known = Known::default();
    let ops = std::mem::take(&mut code.blocks[block].ops);
    let mut out = Vec::with_capacity(ops.len());
    for mut op in ops {
        let guard = op.guard.pred.filter(|_| op.is(Opcode::St));
        if let Some((pred, compare)) = guard.and_then(|pred| Some((pred, known.old_compare(pred)?))) {
            let loads = known.loads;
            let of_now = known.own.get(&pred).filter(|(_, before)| *before == loads);
            let own = of_now.map(|(own, _)| *own).unwrap_or_else(|| {
                let own = code.new_pred();
                out.push(Op {
                    pdst: [Some(own), None],
                    ..compare
                });
                known.own.insert(pred, (own, loads));
                own
            });
            op.guard.pred = Some(own);
        }
        known.step(&op);
        out.push(op);
    }
    code.blocks[block].ops = out;
}

impl Known {
    /// Returns the comparison of a predicate, if a load follows it.
    fn old_compare(&self, pred: VPred) -> Option<Op> {
        let (compare, before) = self.compares.get(&pred)?;
        (*before < self.loads).then_some(*compare)
    }

    /// Notes the results of an operation.
    fn step(&mut self, op: &Op) {
        let stale = op.defs().filter_map(|vreg| self.readers.remove(&vreg)).flatten();
        for pred in stale.chain(op.pred_defs()) {
            self.compares.remove(&pred);
            self.own.remove(&pred);
        }
        self.loads += usize::from(op.is(Opcode::Ld));
        if let Some(pred) = compared(op) {
            self.compares.insert(pred, (*op, self.loads));
            op.uses()
                .for_each(|vreg| self.readers.entry(vreg).or_default().push(pred));
        }
    }
}

/// Returns the result of a comparison of two general operands, without a guard or a second predicate.
fn compared(op: &Op) -> Option<VPred> {
    let is_plain =
        op.guard == VGuard::ALWAYS && op.psrc[0] == VGuard::ALWAYS && op.mods.join == Join::And && !op.mods.extended;
    match op.pdst {
        [Some(pred), None] if is_plain && op.is(Opcode::Isetp) => Some(pred),
        _ => None,
    }
}
