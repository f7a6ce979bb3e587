//! Constant folding of one operation.

use super::arg::source;
use super::code::{Arg, Bits, Op, OpKind, VGuard, Wide};
use warpwave_isa::exec::{Operands, Results, execute};
use warpwave_isa::inst::{Cmp, Inst, Join, Mods, Operand, Source, Ty};
use warpwave_isa::lane::{LaneMask, Lanes};
use warpwave_isa::opcode::Opcode;
use warpwave_isa::program::{Decoded, WordSource};
use warpwave_isa::reg::{Guard, Pred, Reg};

/// Results of an operation with known sources.
pub(super) struct Folded {
    pub words: Vec<u32>,
    pub preds: [bool; 2],
}

/// Computes an operation whose sources are all known. `None` for one with an unknown source, or with an opcode that is not folded.
pub(super) fn evaluate(op: &Op) -> Option<Folded> {
    let known = |guard: &VGuard| guard.pred.is_none();
    if op.guard != VGuard::ALWAYS || !op.psrc.iter().all(known) {
        return None;
    }
    match op.kind {
        OpKind::Machine(opcode) => machine(op, opcode),
        OpKind::Wide(wide) => wide_result(op, wide),
    }
}

/// Computes a machine operation with the arithmetic of the machine itself.
fn machine(op: &Op, opcode: Opcode) -> Option<Folded> {
    use Opcode::*;
    let folds = matches!(
        opcode,
        Mov | Sel
            | Prmt
            | Iadd3
            | Lea
            | Lop3
            | Imnmx
            | Iabs
            | Popc
            | Flo
            | Brev
            | Shf
            | Bfe
            | Bfi
            | Imad
            | ImadWide
            | Isetp
    );
    let shape = op.shape();
    let is_known = |slot: usize| shape.src[slot] == 0 || matches!(op.src[slot].bits, Bits::Zero | Bits::Imm(_));
    if !folds || !(0..4).all(is_known) {
        return None;
    }
    let mut inst = Inst::new(opcode);
    inst.mods = op.mods;
    inst.dst = Reg(0);
    // An addition with a carry output computes the carry.
    inst.pdst = [0, 1].map(|n| op.pdst[n].map_or(Pred::TRUE, |_| Pred(n as u8)));
    inst.src = op.src.map(operand);
    inst.psrc = op.psrc.map(|guard| Guard {
        pred: Pred::TRUE,
        negated: guard.negated,
    });
    let decoded = Decoded::of(&inst);
    let mut operands = Operands::default();
    for n in 0..decoded.source_words as usize {
        operands.words[n] = match decoded.sources[n] {
            WordSource::Imm(word) => Lanes::splat(word),
            _ => Lanes::ZERO,
        };
    }
    operands.preds = op
        .psrc
        .map(|guard| if guard.negated { LaneMask::NONE } else { LaneMask::ALL });
    let mut results = Results::default();
    execute(&inst, &decoded, LaneMask::ALL, &operands, &mut results);
    Some(Folded {
        words: results.words[..shape.dst as usize]
            .iter()
            .map(|word| word.0[0])
            .collect(),
        preds: [0, 1].map(|n| results.preds[n] == LaneMask::ALL),
    })
}

fn operand(arg: Arg) -> Operand {
    Operand {
        source: source(arg.bits).unwrap_or(Source::Reg(Reg::ZERO)),
        neg: arg.neg,
        abs: arg.abs,
        not: arg.not,
    }
}

/// Computes a 64-bit operation.
fn wide_result(op: &Op, wide: Wide) -> Option<Folded> {
    let [a, b, c, _] = op.src;
    let value = match wide {
        Wide::Mov => a.known()?,
        Wide::Add => a.known()?.wrapping_add(b.known()?),
        Wide::Sub => a.known()?.wrapping_sub(b.known()?),
        // The shift clamps at 64.
        Wide::Shl => a.known()?.checked_shl(b.known()? as u32).unwrap_or(0),
        Wide::Mad => a.known()?.wrapping_mul(b.known()?).wrapping_add(c.known()?),
        Wide::Setp => return comparison(op, a.known()?, b.known()?),
        Wide::Lop | Wide::Shr | Wide::Sel => return None,
    };
    Some(Folded {
        words: vec![value as u32, (value >> 32) as u32],
        preds: [false; 2],
    })
}

/// Computes a 64-bit comparison without a join.
fn comparison(op: &Op, a: u64, b: u64) -> Option<Folded> {
    let plain = op.psrc[0] == VGuard::ALWAYS && op.mods.join == Join::And;
    let holds = plain.then(|| compare(op.mods.cmp, op.mods.ty, a, b))??;
    Some(Folded {
        words: Vec::new(),
        preds: [holds, !holds],
    })
}

/// Compares two integers of a type. `None` for a comparison of floats.
pub(super) fn compare(cmp: Cmp, ty: Ty, a: u64, b: u64) -> Option<bool> {
    let [a, b] = [a, b].map(|value| number(ty, value));
    Some(match cmp {
        Cmp::Eq => a == b,
        Cmp::Ne => a != b,
        Cmp::Lt => a < b,
        Cmp::Le => a <= b,
        Cmp::Gt => a > b,
        Cmp::Ge => a >= b,
        Cmp::Num | Cmp::Nan => return None,
    })
}

/// Returns the number that the low bits of a word or a 64-bit value stand for.
pub(super) fn number(ty: Ty, value: u64) -> i128 {
    match ty {
        Ty::S64 => i128::from(value as i64),
        Ty::U64 => i128::from(value),
        Ty::S32 => i128::from(value as u32 as i32),
        _ => i128::from(value as u32),
    }
}

/// Returns an equal operation with less arithmetic, where some sources are known: a sum in place of a product.
pub(super) fn simplified(op: Op) -> Op {
    let [a, b, c, _] = op.src;
    let sum = |kind: OpKind, addend: Arg, value: u64| {
        let mut sum = Op { kind, ..op };
        sum.src = [addend, Arg::imm(value), Arg::ZERO, Arg::ZERO];
        sum.psrc = [VGuard::ALWAYS; 2];
        sum.mods = Mods::default();
        sum
    };
    let iadd3 = OpKind::Machine(Opcode::Iadd3);
    let carries = op.pdst[0].is_some() || op.mods.extended;
    match (op.kind, a.known(), b.known()) {
        (OpKind::Machine(Opcode::ImadWide), Some(a), Some(b)) if c.is_plain() => {
            let product = |ty| number(ty, a).wrapping_mul(number(ty, b)) as u64;
            let ty = if op.mods.ty.is_signed() { Ty::S32 } else { Ty::U32 };
            sum(OpKind::Wide(Wide::Add), c, product(ty))
        }
        (OpKind::Machine(Opcode::Imad), Some(a), Some(b)) if c.is_plain() && !op.mods.high => {
            sum(iadd3, c, u64::from((a as u32).wrapping_mul(b as u32)))
        }
        (OpKind::Machine(Opcode::Lea), Some(a), _) if b.is_plain() && !op.mods.high && !carries => {
            sum(iadd3, b, u64::from((a as u32) << (op.mods.lut & 31)))
        }
        (OpKind::Machine(Opcode::Iadd3), Some(a), Some(b)) if c.is_plain() && !carries => {
            sum(iadd3, c, u64::from((a as u32).wrapping_add(b as u32)))
        }
        _ => op,
    }
}

/// Returns a move for a logic operation that its known sources make a constant or a copy. Returns other operations as they are.
///
/// The upper word of a zero-extended value is zero, and so is the upper word of its `and`.
pub(super) fn logic_as_move(op: Op) -> Op {
    let reads_signs = op.src[..3].iter().any(|arg| !arg.is_plain());
    if !op.is(Opcode::Lop3) || reads_signs {
        return op;
    }
    // The entries of the table with a bit of this source, and their distance to the entries without it.
    let inputs: [(u8, u32); 3] = [(0xf0, 4), (0xcc, 2), (0xaa, 1)];
    let mut table = op.mods.lut;
    for (arg, (input, distance)) in op.src.iter().zip(inputs) {
        table = match arg.known().map(|value| value as u32) {
            Some(0) => table & !input | (table & !input) << distance,
            Some(u32::MAX) => table & input | (table & input) >> distance,
            _ => table,
        };
    }
    let source = match table {
        0 => Some(Arg::ZERO),
        0xff => Some(Arg::imm(u64::from(u32::MAX))),
        _ => inputs
            .iter()
            .position(|&(input, _)| input == table)
            .map(|slot| op.src[slot]),
    };
    source.map_or(op, |source| Op {
        kind: OpKind::Machine(Opcode::Mov),
        src: [source, Arg::ZERO, Arg::ZERO, Arg::ZERO],
        mods: Mods::default(),
        ..op
    })
}
