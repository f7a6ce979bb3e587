//! Minimum and maximum of three operands: `add` and `min` or `max` become one VIADDMNMX, and two `min` or `max` one VIMNMX3.
//!
//! The first instruction is removed. So its result must have no other reader, and nothing between the two may write its operands.

use super::code::{Arg, Code, Op, OpKind, VGuard, VReg};
use std::collections::HashMap;
use warpwave_isa::opcode::Opcode;

pub(super) fn run(code: &mut Code) {
    let mut n_reads = vec![0u32; code.groups.len()];
    for vreg in code.ops().flat_map(Op::uses) {
        n_reads[vreg.0 as usize] += 1;
    }
    for block in &mut code.blocks {
        fuse(&mut block.ops, &n_reads);
    }
}

/// Positions in a block of the last write and the last read of each register.
#[derive(Default)]
struct Positions {
    writes: HashMap<VReg, usize>,
    reads: HashMap<VReg, usize>,
}

/// Fuses the operations of a block, from the first to the last.
fn fuse(ops: &mut Vec<Op>, n_reads: &[u32]) {
    let mut last = Positions::default();
    let mut removed = vec![false; ops.len()];
    for at in 0..ops.len() {
        if let Some((first, op)) = fused(ops, at, &last, n_reads) {
            removed[first] = true;
            ops[at] = op;
        }
        let op = &ops[at];
        last.reads.extend(op.uses().map(|vreg| (vreg, at)));
        // A removed write stays in the map. It makes later answers too careful, never wrong.
        last.writes.extend(op.defs().map(|vreg| (vreg, at)));
    }
    let mut removed = removed.into_iter();
    ops.retain(|_| !removed.next().unwrap_or(false));
}

/// Returns the fused operation for position `at`, and the position of the earlier operation that it replaces.
fn fused(ops: &[Op], at: usize, last: &Positions, n_reads: &[u32]) -> Option<(usize, Op)> {
    let op = ops[at];
    let [a, b, ..] = op.src;
    if !op.is(Opcode::Imnmx) || !a.is_plain() || !b.is_plain() {
        return None;
    }
    [(a, b), (b, a)].into_iter().find_map(|(part, other)| {
        let vreg = part.as_vreg()?;
        let first = *last.writes.get(&vreg)?;
        let def = ops[first];
        let opcode = opcode(&def, &op)?;
        let [x, y, ..] = def.src;
        let is_unchanged = |arg: Arg| {
            let write = arg.as_vreg().and_then(|vreg| last.writes.get(&vreg));
            arg.is_plain() && write.is_none_or(|&write| write <= first)
        };
        // The first result is gone if this operation overwrites it.
        let is_overwritten = op.dst == Some(vreg)
            && op.guard == VGuard::ALWAYS
            && other.as_vreg() != Some(vreg)
            && last.reads.get(&vreg).is_none_or(|&read| read <= first);
        // The first instruction goes, so nothing else may read its result.
        let is_unread = n_reads[vreg.0 as usize] == 1 || is_overwritten;
        let can_fuse = is_unread && is_unchanged(x) && is_unchanged(y);
        can_fuse.then(|| {
            let kind = OpKind::Machine(opcode);
            let fused = Op { kind, ..op };
            (first, fused.src(&[x, y, other]))
        })
    })
}

/// Returns the opcode of `def` and `op` as one operation, where `op` is a minimum or maximum.
fn opcode(def: &Op, op: &Op) -> Option<Opcode> {
    if def.guard != VGuard::ALWAYS {
        return None;
    }
    match def.kind {
        OpKind::Machine(Opcode::Iadd3) if def.src[2] == Arg::ZERO && def.pdst[0].is_none() && !def.mods.extended => {
            Some(Opcode::Viaddmnmx)
        }
        // A predicate may change between the two.
        OpKind::Machine(Opcode::Imnmx)
            if def.psrc[0] == op.psrc[0] && op.psrc[0].pred.is_none() && def.mods.ty == op.mods.ty =>
        {
            Some(Opcode::Vimnmx3)
        }
        _ => None,
    }
}
