//! Operand modifiers: changes to a source between register file and arithmetic.
//!
//! - Negating a float flips its sign bit, in packed halves both sign bits.
//! - Integers are inverted, or negated in two's complement over their whole width.
//! - `ftz` turns denormal inputs into zeros of the same sign.
//! - IADD3 and LEA apply their own modifiers, because the plus one of a negation takes part in the carry.

use super::Operands;
use super::map::{map1, update};
use crate::inst::{Inst, Operand, Ty};
use crate::lane::{Lanes, WARP_SIZE};
use crate::opcode::Opcode;
use crate::program::Decoded;

/// Maximum source words of an opcode with operand modifiers (DFMA: three pairs).
const MAX_WORDS: usize = 6;

/// Kind of an opcode's sources, which selects the arithmetic of the modifiers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OperandKind {
    /// No modifier applies here.
    Raw,
    Int,
    Half,
    Bf16,
    F32,
    F64,
}

impl OperandKind {
    fn of(inst: &Inst) -> OperandKind {
        use Opcode::*;
        match inst.op {
            Iadd3 | Lea | S2r | Mma | MmaSp | Shfl | Ld | St | Atom | Red | Ldc | Ldsm | Ldgsts | Syncs | Tex
            | Suld | Sust => OperandKind::Raw,
            Fadd | Fmul | Ffma | Fmnmx | Fsetp | Fchk | F2fp => OperandKind::F32,
            Dadd | Dmul | Dfma | Dmnmx | Dsetp => OperandKind::F64,
            Hadd2 | Hmul2 | Hfma2 | Hmnmx2 | Hsetp2 => OperandKind::float(inst.mods.ty),
            F2i | F2f => OperandKind::float(inst.mods.from),
            Mufu => match inst.mods.ty {
                Ty::F16 | Ty::F16x2 => OperandKind::Half,
                Ty::Bf16 | Ty::Bf16x2 => OperandKind::Bf16,
                _ => OperandKind::F32,
            },
            _ => OperandKind::Int,
        }
    }

    /// Returns the mask of sign bits of a word. Wide operands have them in the upper word.
    fn signs(self) -> u32 {
        match self {
            OperandKind::Raw | OperandKind::Int => 0,
            OperandKind::Half | OperandKind::Bf16 => 0x8000_8000,
            OperandKind::F32 | OperandKind::F64 => 0x8000_0000,
        }
    }

    fn float(ty: Ty) -> OperandKind {
        match ty {
            Ty::F16 | Ty::F16x2 => OperandKind::Half,
            Ty::Bf16 | Ty::Bf16x2 => OperandKind::Bf16,
            Ty::F64 => OperandKind::F64,
            _ => OperandKind::F32,
        }
    }
}

/// True if denormal sources are flushed to zero. In conversions `ftz` applies only to f32.
fn flushes(inst: &Inst, kind: OperandKind) -> bool {
    let is_conversion = matches!(inst.op, Opcode::F2f | Opcode::F2i | Opcode::F2fp);
    inst.mods.ftz && (kind == OperandKind::F32 || !is_conversion)
}

/// True if no modifier changes a source.
pub(crate) fn is_unmodified(inst: &Inst) -> bool {
    let kind = OperandKind::of(inst);
    let slots = inst.op.info().src.len();
    let changes = inst.src[..slots]
        .iter()
        .any(|operand| operand.neg || operand.abs || operand.not);
    kind == OperandKind::Raw || !(flushes(inst, kind) || changes)
}

/// Applies the modifiers to at most three sources of one word each.
pub(super) fn apply_narrow(inst: &Inst, operands: &Operands) -> [Lanes; 3] {
    let kind = OperandKind::of(inst);
    let ftz = flushes(inst, kind);
    let mut words = [Lanes::ZERO; 3];
    let slots = inst.op.info().src.len();
    for (slot, word) in words[..slots].iter_mut().enumerate() {
        let operand = inst.src[slot];
        let Masks { keep, flip, add } = Masks::of(kind, operand);
        if kind == OperandKind::Int && operand.abs {
            map1(word, &operands.words[slot], |bits| {
                // `abs` comes before `neg`.
                ((bits as i32).unsigned_abs() ^ flip).wrapping_add(add)
            });
        } else {
            map1(word, &operands.words[slot], |bits| {
                ((bits & keep) ^ flip).wrapping_add(add)
            });
        }
        if ftz {
            flush(kind, word);
        }
    }
    words
}

/// A modifier of a one-word operand as arithmetic: `((word & keep) ^ flip) + add`.
struct Masks {
    keep: u32,
    flip: u32,
    add: u32,
}

impl Masks {
    fn of(kind: OperandKind, operand: Operand) -> Masks {
        if kind == OperandKind::Int {
            // A negation is an inversion plus one, so an inverted operand that is negated is not flipped.
            let flip = if operand.neg != operand.not { u32::MAX } else { 0 };
            return Masks {
                keep: u32::MAX,
                flip,
                add: operand.neg.into(),
            };
        }
        let signs = kind.signs();
        Masks {
            // Signs are cleared before they are flipped: -|x|.
            keep: if operand.abs { !signs } else { u32::MAX },
            flip: if operand.neg { signs } else { 0 },
            add: 0,
        }
    }
}

/// Applies the modifiers to sources of any width.
pub(super) fn apply(inst: &Inst, decoded: &Decoded, operands: &Operands) -> [Lanes; MAX_WORDS] {
    let mut words = [Lanes::ZERO; MAX_WORDS];
    let kind = OperandKind::of(inst);
    for (slot, width) in inst.op.info().src.iter().enumerate() {
        let first = decoded.first_word[slot] as usize;
        let all = first..first + width.of(&inst.mods) as usize;
        words[all.clone()].copy_from_slice(&operands.words[all.clone()]);
        change(kind, inst.src[slot], flushes(inst, kind), &mut words[all]);
    }
    words
}

fn change(kind: OperandKind, operand: Operand, ftz: bool, words: &mut [Lanes]) {
    let Some(last) = words.last_mut() else { return };
    if kind == OperandKind::Int {
        change_int(operand, words);
        return;
    }
    let Masks { keep, flip, .. } = Masks::of(kind, operand);
    // The sign of a two-word float is in its upper word.
    update(last, |bits| (bits & keep) ^ flip);
    if ftz {
        flush(kind, last);
    }
}

/// Flushes denormals to zeros of the same sign, in both halves of a packed word.
#[inline(always)]
fn flush(kind: OperandKind, word: &mut Lanes) {
    let signs = kind.signs();
    let mut flush_number = |number: u32, exponent: u32| {
        update(word, |bits| {
            // A zero exponent field: zero or denormal.
            if bits & exponent == 0 {
                bits & (!number | signs)
            } else {
                bits
            }
        });
    };
    match kind {
        OperandKind::F32 => flush_number(u32::MAX, 0x7f80_0000),
        OperandKind::Half => {
            flush_number(0xffff, 0x7c00);
            flush_number(0xffff_0000, 0x7c00_0000);
        }
        OperandKind::Bf16 => {
            flush_number(0xffff, 0x7f80);
            flush_number(0xffff_0000, 0x7f80_0000);
        }
        OperandKind::Raw | OperandKind::Int | OperandKind::F64 => {}
    }
}

fn change_int(operand: Operand, words: &mut [Lanes]) {
    let flip = if operand.neg != operand.not { u32::MAX } else { 0 };
    for lane in 0..WARP_SIZE {
        let negative = words[words.len() - 1].0[lane] >> 31 == 1;
        let absolute = operand.abs && negative;
        // The absolute value of a negative number is its negation. Two negations cancel.
        let flip = if absolute { !flip } else { flip };
        let mut carry = operand.neg != absolute;
        for word in words.iter_mut() {
            (word.0[lane], carry) = (word.0[lane] ^ flip).overflowing_add(u32::from(carry));
        }
    }
}
