//! Operand legalisation: brings operands into forms that the machine can encode.
//!
//! Memory and matrix instructions read registers only. Any other instruction has at most one operand outside registers, which is
//! not the first of several. No literal is wider than 32 bits. Other operands are moved into registers, once per block and value.

use super::code::{Arg, Bits, Code, Op, OpKind, VReg};
use std::collections::HashMap;
use warpwave_isa::inst::Cmp;
use warpwave_isa::opcode::{Opcode, Pipe};

pub(super) fn run(code: &mut Code) {
    for block in 0..code.blocks.len() {
        let ops = std::mem::take(&mut code.blocks[block].ops);
        let mut fitter = Fitter {
            code,
            known: HashMap::new(),
            out: Vec::with_capacity(ops.len()),
        };
        for op in ops {
            let fitted = fitter.fit(op);
            fitter.out.push(fitted);
        }
        code.blocks[block].ops = fitter.out;
    }
}

/// A value outside registers: its bits and its number of words.
type Key = (u64, u64, u8);

struct Fitter<'c> {
    code: &'c mut Code,
    known: HashMap<Key, VReg>,
    out: Vec<Op>,
}

impl Fitter<'_> {
    /// Returns the operation with operands that it can encode. Moves the others into registers before it.
    fn fit(&mut self, op: Op) -> Op {
        let OpKind::Machine(opcode) = op.kind else { return op };
        let mut op = with_register_first(op);
        let shape = op.shape();
        let pipe = opcode.info().pipe;
        let registers_only = matches!(pipe, Pipe::Lsu | Pipe::Tensor) && !matches!(opcode, Opcode::Shfl);
        // Control instructions take literal masks and barrier numbers, and S2R its special register.
        if pipe == Pipe::Control || matches!(opcode, Opcode::S2r | Opcode::Shfl) {
            return self.fit_shuffle(op);
        }
        let n_sources = shape.src.iter().filter(|&&words| words > 0).count();
        // An encoding has one field for a literal or a constant.
        let mut free = !registers_only;
        // Backwards: slot 0 can hold neither if there are more sources.
        for slot in (0..4).rev().filter(|&slot| shape.src[slot] > 0) {
            let arg = op.src[slot];
            if is_register(arg.bits) || is_copy_size(&op, slot) {
                continue;
            }
            let first = slot == 0 && n_sources > 1;
            let fits = free && !first && fits_word(opcode, arg.bits, shape.src[slot]);
            if fits {
                free = false;
            } else {
                op.src[slot].bits = Bits::VReg(self.register(arg.bits, shape.src[slot], op.line));
            }
        }
        op
    }

    /// Legalises a shuffle: its data is a register; lane and clamp may be literals.
    fn fit_shuffle(&mut self, mut op: Op) -> Op {
        let must_be_register = op.is(Opcode::Shfl) && !is_register(op.src[0].bits);
        if must_be_register {
            op.src[0].bits = Bits::VReg(self.register(op.src[0].bits, 1, op.line));
        }
        op
    }

    /// Returns a register that holds the value until the end of the block.
    fn register(&mut self, bits: Bits, words: u8, line: u32) -> VReg {
        let key = match bits {
            Bits::Const { bank, offset } => (u64::from(bank), u64::from(offset), words),
            // No constant bank has this number.
            Bits::Imm(value) => (u64::MAX, value, words),
            _ => (u64::MAX, 0, words),
        };
        if let Some(&vreg) = self.known.get(&key) {
            return vreg;
        }
        // Per block: a constant that lives across blocks would hold its register in loops that do not need it.
        let group = self.code.new_group(words);
        for n in 0..words {
            let mut op = Op::machine(Opcode::Mov)
                .dst(group.offset(n))
                .src(&[Arg::of(bits).part(n)]);
            op.line = line;
            self.out.push(op);
        }
        self.known.insert(key, group);
        group
    }
}

fn is_register(bits: Bits) -> bool {
    matches!(bits, Bits::VReg(_) | Bits::Zero | Bits::Special(_))
}

/// True for the size of an asynchronous copy, which the instruction can hold as a literal.
fn is_copy_size(op: &Op, slot: usize) -> bool {
    op.is(Opcode::Ldgsts) && slot == 2
}

/// True if the instruction can encode the value: the high word of a double, or any 32-bit literal.
fn fits_word(opcode: Opcode, bits: Bits, words: u8) -> bool {
    match bits {
        // The low word of such a double is zero.
        Bits::Imm(value) if words == 2 => opcode.info().pipe == Pipe::Fp64 && value & 0xffff_ffff == 0,
        _ => true,
    }
}

/// Swaps the first two operands if that brings a register to the front and keeps the meaning.
fn with_register_first(mut op: Op) -> Op {
    let [a, b, ..] = op.src;
    if is_register(a.bits) || !is_register(b.bits) {
        return op;
    }
    match op.kind {
        OpKind::Machine(
            Opcode::Iadd3
            | Opcode::Imad
            | Opcode::ImadWide
            | Opcode::Imnmx
            | Opcode::Viaddmnmx
            | Opcode::Vimnmx3
            | Opcode::Fadd
            | Opcode::Fmul
            | Opcode::Ffma
            | Opcode::Fmnmx
            | Opcode::Hadd2
            | Opcode::Hmul2
            | Opcode::Hfma2
            | Opcode::Dadd
            | Opcode::Dmul
            | Opcode::Dfma
            | Opcode::Dmnmx,
        ) => {}
        // a < b is b > a, for NaN too.
        OpKind::Machine(Opcode::Isetp | Opcode::Fsetp | Opcode::Dsetp) => op.mods.cmp = mirrored(op.mods.cmp),
        OpKind::Machine(Opcode::Sel) => op.psrc[0] = op.psrc[0].negated(),
        OpKind::Machine(Opcode::Lop3) => op.mods.lut = swapped_table(op.mods.lut),
        _ => return op,
    }
    op.src.swap(0, 1);
    op
}

/// Returns the comparison of the same operands in the other order.
pub(super) fn mirrored(cmp: Cmp) -> Cmp {
    match cmp {
        Cmp::Lt => Cmp::Gt,
        Cmp::Gt => Cmp::Lt,
        Cmp::Le => Cmp::Ge,
        Cmp::Ge => Cmp::Le,
        same => same,
    }
}

/// Returns the truth table with its first two inputs exchanged: bits 2, 3 swap with bits 4, 5.
fn swapped_table(lut: u8) -> u8 {
    (lut & 0xc3) | ((lut & 0x0c) << 2) | ((lut & 0x30) >> 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symmetric_truth_table_is_unchanged_by_exchanged_inputs() {
        let and_not = 0xf0 & !0xcc;
        assert_eq!(swapped_table(and_not), 0xcc & !0xf0);
        assert_eq!(swapped_table(0xf0 ^ 0xcc ^ 0xaa), 0xf0 ^ 0xcc ^ 0xaa);
    }
}
