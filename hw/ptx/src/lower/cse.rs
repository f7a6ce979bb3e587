//! Common subexpression elimination within a block.
//!
//! An operation equal to an earlier one in its block, on fixed values, becomes a copy of the earlier result. The copies are left
//! for `copy_prop`. Of moves, only those into a wide value count: a matrix fragment that two products read is gathered once.

use super::code::{Arg, Bits, Code, Op, OpKind, VGuard, VPred, VReg};
use super::copy_prop::PredDefs;
use super::graph::{Graph, Values};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use warpwave_isa::inst::Mods;
use warpwave_isa::opcode::{Opcode, Pipe};

pub(super) fn run(code: &mut Code) {
    let graph = Graph::of(code);
    let values = Values::of(code, &graph);
    let preds = PredDefs::of(code, &graph);
    let groups = &code.groups;
    for block in &mut code.blocks {
        let mut computed = Computed::default();
        let mut out = Vec::with_capacity(block.ops.len());
        for op in block.ops.drain(..) {
            let op = computed.with_originals(op, groups);
            if !is_pure(&op, &values, &preds, groups) {
                out.push(op);
            } else if let Some(first) = computed.ops.get(&key(&op)).copied() {
                // The first operation is earlier in this block, so its result is there on every path.
                computed.rename(&first, &op);
                out.extend(copies(&first, &op));
            } else {
                computed.ops.insert(key(&op), op);
                out.push(op);
            }
        }
        block.ops = out;
    }
}

/// Operations and copies of a block so far.
#[derive(Default)]
struct Computed {
    ops: HashMap<Key, Op>,
    /// Originals of registers that became copies.
    vregs: HashMap<VReg, VReg>,
    preds: HashMap<VPred, VPred>,
}

impl Computed {
    fn rename(&mut self, first: &Op, second: &Op) {
        self.vregs.extend(second.defs().zip(first.defs()));
        self.preds.extend(second.pred_defs().zip(first.pred_defs()));
    }

    /// Returns the operation with copies replaced by their originals. Those of a wide operand are one aligned part of a group.
    fn with_originals(&self, mut op: Op, groups: &[(VReg, u8)]) -> Op {
        let shape = op.shape();
        for (arg, words) in op.src.iter_mut().zip(shape.src) {
            let Some(vreg) = arg.as_vreg() else { continue };
            let original = |n| self.vregs.get(&vreg.offset(n)).copied();
            let Some(first) = original(0) else { continue };
            let (start, of_group) = groups[first.0 as usize];
            let at = (first.0 - start.0) as u8;
            // A wide operand is encoded as one register number, which must be aligned.
            let is_part = at.is_multiple_of(words) && at + words <= of_group;
            if is_part && (1..words).all(|n| original(n) == Some(first.offset(n))) {
                arg.bits = Bits::VReg(first);
            }
        }
        for guard in &mut op.psrc[..shape.psrc] {
            guard.pred = guard.pred.map(|pred| self.preds.get(&pred).copied().unwrap_or(pred));
        }
        op
    }
}

/// An operation without its results. Only the presence of each predicate result counts.
#[derive(PartialEq, Eq)]
struct Key {
    kind: OpKind,
    src: [Arg; 4],
    psrc: [VGuard; 2],
    mods: Mods,
    pdst: [bool; 2],
}

impl Hash for Key {
    /// Hashes the fields that differ most often.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.kind, self.src[0].bits, self.src[1].bits).hash(state);
    }
}

fn key(op: &Op) -> Key {
    Key {
        kind: op.kind,
        src: op.src,
        psrc: op.psrc,
        mods: op.mods,
        pdst: op.pdst.map(|pred| pred.is_some()),
    }
}

/// True if an operation gives the same result at every position, and its sources and results are fixed.
fn is_pure(op: &Op, values: &Values, preds: &PredDefs, groups: &[(VReg, u8)]) -> bool {
    let OpKind::Machine(opcode) = op.kind else { return false };
    // Constants do not change while a kernel runs, so equal LDCs are equal.
    let reads_memory = opcode.info().pipe == Pipe::Lsu && opcode != Opcode::Ldc;
    let fixed_vregs = op.uses().chain(op.defs()).all(|vreg| values.is_fixed(vreg));
    let fixed_preds = op.pred_uses().chain(op.pred_defs()).all(|pred| preds.is_fixed(pred));
    let is_wide = op.dst.is_some_and(|vreg| groups[vreg.0 as usize].1 > 1);
    // P2R reads predicates that are not among its operands.
    let is_copy = opcode == Opcode::P2r || opcode == Opcode::Mov && !is_wide;
    !op.has_effect() && !reads_memory && !is_copy && op.guard == VGuard::ALWAYS && fixed_vregs && fixed_preds
}

/// Returns copies from the results of `first` to the results of `second`.
fn copies(first: &Op, second: &Op) -> Vec<Op> {
    let line = |op: Op| Op {
        line: second.line,
        ..op
    };
    let vregs = first
        .defs()
        .zip(second.defs())
        .map(|(from, to)| line(Op::machine(Opcode::Mov).dst(to).src(&[Arg::vreg(from)])));
    let preds = first.pred_defs().zip(second.pred_defs()).map(|(from, to)| {
        line(
            Op::machine(Opcode::Plop3)
                .psrc(VGuard::pred(from))
                .pdst(to)
                // The truth table of the first input.
                .mods(|mods| mods.lut = 0b1100),
        )
    });
    vregs.chain(preds).collect()
}
