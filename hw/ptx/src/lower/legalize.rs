//! Legalisation: splits 64-bit integer operations into operations on two words.
//!
//! After the pass no [`Wide`] operation is left. The result may share registers with a source, so each word is written after its
//! last use.

use super::code::{Arg, Code, Op, OpKind, VGuard, VReg, Wide};
use warpwave_isa::inst::{Cmp, Ty};
use warpwave_isa::opcode::Opcode;

pub(super) fn run(code: &mut Code) {
    for block in 0..code.blocks.len() {
        let ops = std::mem::take(&mut code.blocks[block].ops);
        let mut out = Vec::with_capacity(ops.len());
        for op in ops {
            match op.kind {
                OpKind::Wide(wide) => Splitter {
                    code,
                    op,
                    out: &mut out,
                }
                .split(wide),
                OpKind::Machine(_) => out.push(op),
            }
        }
        code.blocks[block].ops = out;
    }
}

struct Splitter<'c, 'o> {
    code: &'c mut Code,
    op: Op,
    out: &'o mut Vec<Op>,
}

impl Splitter<'_, '_> {
    fn split(&mut self, wide: Wide) {
        match wide {
            Wide::Mov => self.by_word(|op, n| Op::machine(Opcode::Mov).src(&[op.src[0].part(n)])),
            Wide::Lop => self.by_word(|op, n| {
                let args = [op.src[0].part(n), op.src[1].part(n), Arg::ZERO];
                Op::machine(Opcode::Lop3).src(&args).mods(|mods| mods.lut = op.mods.lut)
            }),
            Wide::Sel => self.by_word(|op, n| {
                Op::machine(Opcode::Sel)
                    .src(&[op.src[0].part(n), op.src[1].part(n)])
                    .psrc(op.psrc[0])
            }),
            Wide::Add => self.sum(false),
            Wide::Sub => self.sum(true),
            Wide::Shl => self.shift_left(),
            Wide::Shr => self.shift_right(),
            Wide::Setp => self.compare(),
            Wide::Mad => self.multiply_add(),
        }
    }

    /// Appends an operation with the guard and line of the 64-bit operation.
    fn push(&mut self, dst: Option<VReg>, mut op: Op) {
        op.dst = dst;
        op.line = self.op.line;
        op.guard = self.op.guard;
        self.out.push(op);
    }

    fn result(&self, n: u8) -> Option<VReg> {
        self.op.dst.map(|vreg| vreg.offset(n))
    }

    fn by_word(&mut self, part: impl Fn(&Op, u8) -> Op) {
        let whole = self.op;
        for n in 0..2 {
            // Word n of the result depends on word n of the sources alone, so they may share registers.
            self.push(self.result(n), part(&whole, n));
        }
    }

    /// Adds or subtracts: low words, then high words plus the carry.
    fn sum(&mut self, subtract: bool) {
        let [a, b, ..] = self.op.src;
        // a - b = a + !b + 1: negation of the low word supplies the + 1.
        let (low, high) = if subtract {
            (b.part(0).negated(), b.part(1).inverted())
        } else {
            (b.part(0), b.part(1))
        };
        let carry = self.code.new_pred();
        self.push(
            self.result(0),
            Op::machine(Opcode::Iadd3).src(&[a.part(0), low]).pdst(carry),
        );
        let upper = Op::machine(Opcode::Iadd3)
            .src(&[a.part(1), high])
            .psrc(VGuard::pred(carry));
        self.push(self.result(1), upper.mods(|mods| mods.extended = true));
    }

    /// Shifts left: the upper word takes bits of the lower one.
    fn shift_left(&mut self) {
        let [a, count, ..] = self.op.src;
        // A shift by a word or more leaves one word.
        if let Some(more @ 0..32) = count.known().and_then(|count| count.checked_sub(32)) {
            let upper = match more {
                0 => Op::machine(Opcode::Mov).src(&[a.part(0)]),
                _ => Op::machine(Opcode::Shf).src(&[a.part(0), Arg::imm(more), Arg::ZERO]),
            };
            self.push(self.result(1), upper);
            self.push(self.result(0), Op::machine(Opcode::Mov).src(&[Arg::ZERO]));
            return;
        }
        let shift = |above, high| {
            Op::machine(Opcode::Shf).src(&[a.part(0), count, above]).mods(|mods| {
                // The count clamps at 64 instead of 32.
                mods.ty = Ty::U64;
                mods.high = high;
            })
        };
        // The high word first: it reads the low source word, which the result may overwrite.
        self.push(self.result(1), shift(a.part(1), true));
        self.push(self.result(0), shift(Arg::ZERO, false));
    }

    /// Shifts right: the lower word takes bits of the upper one.
    fn shift_right(&mut self) {
        let [a, count, ..] = self.op.src;
        // A 64-bit type: the count clamps at 64 instead of 32.
        let ty = if self.op.mods.ty.is_signed() { Ty::S64 } else { Ty::U64 };
        if let Some(more @ 0..32) = count.known().and_then(|count| count.checked_sub(32)) {
            self.shift_right_by_word(more);
            return;
        }
        let shift = |below, high| {
            Op::machine(Opcode::Shf).src(&[below, count, a.part(1)]).mods(|mods| {
                mods.ty = ty;
                mods.right = true;
                mods.high = high;
            })
        };
        // The low word first: it reads the high source word, which the result may overwrite.
        self.push(self.result(0), shift(a.part(0), false));
        self.push(self.result(1), shift(Arg::ZERO, true));
    }

    /// Shifts right by 32 + `more`: the lower word comes from the upper one.
    fn shift_right_by_word(&mut self, more: u64) {
        let upper = self.op.src[0].part(1);
        let is_signed = self.op.mods.ty.is_signed();
        let shift = |count| {
            Op::machine(Opcode::Shf)
                .src(&[Arg::ZERO, Arg::imm(count), upper])
                .mods(|mods| {
                    mods.ty = if is_signed { Ty::S32 } else { Ty::U32 };
                    mods.right = true;
                    mods.high = true;
                })
        };
        let copy = |arg| Op::machine(Opcode::Mov).src(&[arg]);
        let low = if more == 0 { copy(upper) } else { shift(more) };
        self.push(self.result(0), low);
        let high = if is_signed { shift(31) } else { copy(Arg::ZERO) };
        self.push(self.result(1), high);
    }

    /// Compares the high words. If they are equal, an unsigned comparison of the low words decides.
    fn compare(&mut self) {
        let [a, b, ..] = self.op.src;
        let mods = self.op.mods;
        let below = self.code.new_pred();
        // The type stays U32, because a low word has no sign.
        let low = Op::machine(Opcode::Isetp)
            .src(&[a.part(0), b.part(0)])
            .pdst(below)
            .mods(|low| low.cmp = mods.cmp);
        self.push(None, low);
        let mut high = Op::machine(Opcode::Isetp).src(&[a.part(1), b.part(1)]).mods(|high| {
            high.cmp = mods.cmp;
            high.ty = if mods.ty.is_signed() { Ty::S32 } else { Ty::U32 };
            high.join = mods.join;
            high.extended = true;
        });
        high.pdst = self.op.pdst;
        high.psrc = [self.op.psrc[0], VGuard::pred(below)];
        debug_assert!(!matches!(mods.cmp, Cmp::Num | Cmp::Nan));
        self.push(None, high);
    }

    /// Computes (a1 b0 + a0 b1) 2^32 + a0 b0 + c.
    fn multiply_add(&mut self) {
        let [a, b, c, _] = self.op.src;
        let product = self.code.new_group(2);
        let unsigned = |op: Op| op.mods(|mods| mods.ty = Ty::U32);
        let args = [a.part(0), b.part(0), c];
        self.push(Some(product), unsigned(Op::machine(Opcode::ImadWide).src(&args)));
        let mut high = Arg::vreg(product.offset(1));
        for (x, y) in [(a.part(1), b.part(0)), (a.part(0), b.part(1))] {
            // The high word of a zero-extended factor adds nothing.
            if x == Arg::ZERO || y == Arg::ZERO {
                continue;
            }
            let sum = self.code.new_group(1);
            self.push(Some(sum), unsigned(Op::machine(Opcode::Imad).src(&[x, y, high])));
            high = Arg::vreg(sum);
        }
        // Moved only now, because the result may overwrite a source.
        self.push(self.result(0), Op::machine(Opcode::Mov).src(&[Arg::vreg(product)]));
        self.push(self.result(1), Op::machine(Opcode::Mov).src(&[high]));
    }
}
