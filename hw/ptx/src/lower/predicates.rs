//! Predicate allocation: virtual predicates to P0..P6.
//!
//! If more than seven are live at a time, the longest-lived ones are kept in general registers. A SEL saves such a
//! predicate, and an ISETP restores it before each use.

use super::code::{Arg, Code, Op, OpKind, VGuard, VPred, VReg};
use super::graph::Graph;
use super::live::{self, LiveRanges};
use warpwave_isa::inst::Cmp;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::reg::Pred;

/// Returns the physical predicate of each virtual predicate. May add operations to the code.
pub(super) fn run(code: &mut Code) -> Vec<Pred> {
    loop {
        let ranges = live::live_ranges::<live::Predicates>(code, &Graph::of(code));
        match assign(&ranges) {
            Ok(preds) => return preds,
            Err(conflicting) => {
                // The longest range frees a predicate for the most code.
                let longest = conflicting.into_iter().max_by_key(|&pred| length(&ranges[pred]));
                let Some(pred) = longest else { return Vec::new() };
                keep_in_vreg(code, VPred(pred as u32));
            }
        }
    }
}

fn length(ranges: &LiveRanges) -> u32 {
    ranges.iter().map(|(start, end)| end - start).sum()
}

/// Assigns predicates by first fit, in order of start.
///
/// # Errors
///
/// Returns the predicates with live ranges that overlap the one without a place. It is one of them.
fn assign(ranges: &[LiveRanges]) -> Result<Vec<Pred>, Vec<usize>> {
    let mut order: Vec<usize> = (0..ranges.len()).filter(|&pred| !ranges[pred].is_empty()).collect();
    // For ranges without holes, first fit in this order needs no more predicates than are live at a time.
    order.sort_by_key(|&pred| ranges[pred][0]);
    let mut taken: [LiveRanges; Pred::COUNT] = Default::default();
    let mut preds = vec![Pred::TRUE; ranges.len()];
    for &pred in &order {
        let free = taken.iter().position(|taken| !live::overlap(taken, &ranges[pred]));
        let Some(index) = free else {
            let overlaps = |&&other: &&usize| live::overlap(&ranges[other], &ranges[pred]);
            return Err(order.iter().filter(overlaps).copied().collect());
        };
        live::merge(&mut taken[index], &ranges[pred]);
        preds[pred] = Pred(index as u8);
    }
    Ok(preds)
}

/// Rewrites every definition and use of a predicate to go through a general register.
fn keep_in_vreg(code: &mut Code, pred: VPred) {
    let vreg = code.new_group(1);
    for block in 0..code.blocks.len() {
        let ops = std::mem::take(&mut code.blocks[block].ops);
        let mut out = Vec::with_capacity(ops.len() + 2);
        for mut op in ops {
            let reads = op.pred_uses().any(|used| used == pred);
            let writes = op.pred_defs().any(|written| written == pred);
            if !reads && !writes {
                out.push(op);
                continue;
            }
            // Each use has a new predicate, which lives for this operation only.
            let temp = code.new_pred();
            // A guarded write keeps the old value in other lanes.
            if reads || op.guard != VGuard::ALWAYS {
                out.push(restore(vreg, temp, op.line));
            }
            rename(&mut op, pred, temp);
            let ends = op.is(Opcode::Bra) || op.is(Opcode::Exit);
            let line = op.line;
            out.push(op);
            if writes && !ends {
                out.push(save(vreg, temp, line));
            }
        }
        code.blocks[block].ops = out;
    }
}

fn restore(vreg: VReg, pred: VPred, line: u32) -> Op {
    let mut op = Op::machine(Opcode::Isetp)
        .src(&[Arg::vreg(vreg), Arg::ZERO])
        .pdst(pred)
        .mods(|mods| mods.cmp = Cmp::Ne);
    op.line = line;
    op
}

fn save(vreg: VReg, pred: VPred, line: u32) -> Op {
    let mut op = Op::machine(Opcode::Sel)
        .dst(vreg)
        // A literal is never the first operand, and `operands` has run before.
        .src(&[Arg::ZERO, Arg::imm(1)])
        .psrc(VGuard::pred(pred).negated());
    op.line = line;
    op
}

fn rename(op: &mut Op, from: VPred, to: VPred) {
    let renamed = |pred: Option<VPred>| if pred == Some(from) { Some(to) } else { pred };
    op.guard.pred = renamed(op.guard.pred);
    for guard in &mut op.psrc {
        guard.pred = renamed(guard.pred);
    }
    for pred in &mut op.pdst {
        *pred = renamed(*pred);
    }
    debug_assert!(matches!(op.kind, OpKind::Machine(_)));
}
