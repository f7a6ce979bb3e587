//! Bit fields, funnel shifts, permutations and bit counts.

use super::integer::{blend, lop, negated_integer, shift_right_signed, sign};
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::diag::Diagnostic;
use crate::lower::code::{Arg, Op, VGuard, VReg, Wide};
use warpwave_isa::inst::{Cmp, Ty};
use warpwave_isa::opcode::Opcode;

impl<'t, 'a> Selector<'_, 't, 'a> {
    /// Selects `shf.l`, the upper word of (b:a) << c, and `shf.r`, the lower word of (b:a) >> c.
    pub(super) fn funnel(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".l", ".r", ".clamp", ".wrap"])?;
        let result = self.dst(form, 0)?;
        let (low, high, count) = (self.src(form, 1)?, self.src(form, 2)?, self.src(form, 3)?);
        let right = form.has(".r");
        let op = Op::machine(Opcode::Shf).src(&[low, count, high]).mods(|mods| {
            mods.right = right;
            mods.high = !right;
            mods.wrap = form.has(".wrap");
        });
        self.emit(op.dst(result));
        Ok(())
    }

    /// Selects `bfe`, `bfi`, `prmt`, `lop3` and `dp4a`.
    pub(super) fn bit_fields(&mut self, form: &Form<'t, 'a>) -> Selected {
        let ty = form.ty();
        if matches!(form.opcode(), "bfe" | "bfi" | "dp4a") {
            form.only(&[])?;
        }
        match (form.opcode(), ty.bits()) {
            ("bfe", 64) => return self.extract_wide(form),
            ("bfi", 64) => return self.insert_wide(form),
            _ => {}
        }
        let &[first_type, ..] = form.types.as_slice() else {
            return Err(form.unsupported());
        };
        let mut args = [Arg::ZERO; 4];
        let used = form.operands().len().min(5);
        let result = self.dst(form, 0)?;
        for n in 1..used {
            args[n - 1] = self.src32(form, n)?;
        }
        let op = match form.opcode() {
            "bfe" => Op::machine(Opcode::Bfe).src(&args).mods(|mods| mods.ty = sign(ty)),
            "bfi" => Op::machine(Opcode::Bfi).src(&args),
            "prmt" => {
                const MODES: [&str; 7] = ["", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"];
                form.only(&MODES)?;
                // The machine numbers the modes in this order.
                let mode = MODES.iter().position(|mode| form.has(mode)).unwrap_or(0);
                Op::machine(Opcode::Prmt).src(&args).mods(|mods| mods.lut = mode as u8)
            }
            "lop3" => {
                form.only(&[])?;
                let Some(lut) = args[3].known() else {
                    return Err(form.malformed("the truth table must be a literal"));
                };
                lop(args[0], args[1], args[2], lut as u8)
            }
            _ => Op::machine(Opcode::Idp4a).src(&args).mods(|mods| {
                mods.from = sign(first_type);
                mods.ty = sign(ty);
            }),
        };
        self.emit(op.dst(result));
        Ok(())
    }

    /// Selects the leading bit of 64: of the upper word, plus 32, or else of the lower word.
    fn leading_wide(&mut self, form: &Form<'t, 'a>, result: VReg, a: Arg) {
        let mut a = a;
        if form.ty().is_signed() {
            // The leading bit of a signed value is the first unlike its sign.
            let mask = self.compute(shift_right_signed(a.part(1), 31));
            let pair = self.code.new_group(2);
            for n in 0..2 {
                self.emit(lop(a.part(n), mask, Arg::ZERO, 0x3c).dst(pair.offset(n)));
            }
            a = Arg::vreg(pair);
        }
        // True if the leading bit is in the upper word.
        let upper = self.code.new_pred();
        let some = Op::machine(Opcode::Isetp).src(&[a.part(1), Arg::ZERO]).pdst(upper);
        self.emit(some.mods(|mods| mods.cmp = Cmp::Ne));
        let choose = |x: Arg, y: Arg| Op::machine(Opcode::Sel).src(&[x, y]).psrc(VGuard::pred(upper));
        let word = self.compute(choose(a.part(1), a.part(0)));
        let position = self.compute(leading(Ty::U32, word, false));
        let op = match form.opcode() {
            "clz" => {
                let from = self.compute(choose(Arg::imm(31), Arg::imm(63)));
                Op::machine(Opcode::Iadd3).src(&[from, position.negated()])
            }
            _ => {
                let more = self.compute(choose(Arg::imm(32), Arg::ZERO));
                Op::machine(Opcode::Iadd3).src(&[position, more])
            }
        };
        self.emit(op.dst(result));
    }

    /// Returns position and length of a 64-bit field, both taken from the low byte. The length is at most 64.
    fn field_of(&mut self, form: &Form<'t, 'a>, n: usize) -> Result<(Arg, Arg), Diagnostic> {
        let byte = |arg| lop(arg, Arg::imm(0xff), Arg::ZERO, 0xc0);
        let position = self.src32(form, n)?;
        let length = self.src32(form, n + 1)?;
        let (position, length) = (self.compute(byte(position)), self.compute(byte(length)));
        // PTX takes a longer field as one of 64 bits.
        let clamped = Op::machine(Opcode::Imnmx)
            .src(&[length, Arg::imm(64)])
            .psrc(VGuard::ALWAYS);
        Ok((position, self.compute(clamped)))
    }

    /// Selects a 64-bit `bfe`: shifts the field to bit 0, to the top, and back with extension.
    fn extract_wide(&mut self, form: &Form<'t, 'a>) -> Selected {
        let result = self.dst(form, 0)?;
        let a = self.src(form, 1)?;
        let (position, length) = self.field_of(form, 2)?;
        let ty = sign(form.ty());
        let right = |value, count| Op::wide(Wide::Shr).src(&[value, count]).mods(|mods| mods.ty = ty);
        let spare = self.compute(Op::machine(Opcode::Iadd3).src(&[Arg::imm(64), length.negated()]));
        let low = self.compute(right(a, position));
        let high = self.compute(Op::wide(Wide::Shl).src(&[low, spare]));
        self.emit(right(high, spare).dst(result));
        Ok(())
    }

    /// Selects a 64-bit `bfi`: the field under a mask, and the other value elsewhere.
    fn insert_wide(&mut self, form: &Form<'t, 'a>) -> Selected {
        let result = self.dst(form, 0)?;
        let (a, b) = (self.src(form, 1)?, self.src(form, 2)?);
        let (position, length) = self.field_of(form, 3)?;
        let left = |value, count| Op::wide(Wide::Shl).src(&[value, count]);
        // A shift by the whole width gives 0, and 0 - 1 is all ones.
        let power = self.compute(left(Arg::imm(1), length));
        let ones = self.compute(Op::wide(Wide::Sub).src(&[power, Arg::imm(1)]));
        let mask = self.compute(left(ones, position));
        let field = self.compute(left(a, position));
        let pair = self.code.new_group(2);
        for n in 0..2 {
            self.emit(blend(field.part(n), mask.part(n), b.part(n)).dst(pair.offset(n)));
        }
        self.emit(Op::wide(Wide::Mov).dst(result).src(&[Arg::vreg(pair)]));
        Ok(())
    }

    /// Selects `bmsk`: `length` ones from bit `position`.
    pub(super) fn bit_mask(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".clamp", ".wrap"])?;
        let result = self.dst(form, 0)?;
        let (position, length) = (self.src32(form, 1)?, self.src32(form, 2)?);
        let left = |value, count| {
            Op::machine(Opcode::Shf)
                .src(&[value, count, Arg::ZERO])
                .mods(|mods| mods.wrap = form.has(".wrap"))
        };
        let power = self.compute(left(Arg::imm(1), length));
        let ones = self.compute(Op::machine(Opcode::Iadd3).src(&[power, Arg::imm(0xffff_ffff)]));
        self.emit(left(ones, position).dst(result));
        Ok(())
    }

    /// Selects `popc`, `clz`, `bfind` and `brev`.
    pub(super) fn bit_counts(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".shiftamt"])?;
        let ty = form.ty();
        let wide = ty.bits() == 64;
        let reverses = form.opcode() == "brev";
        let result = self.dst_of(form, form.operand(0)?, if reverses { ty } else { Type::U32 })?;
        let a = self.src(form, 1)?;
        match (form.opcode(), wide) {
            ("popc", false) => self.emit(Op::machine(Opcode::Popc).dst(result).src(&[a])),
            ("popc", true) => {
                let low = self.compute(Op::machine(Opcode::Popc).src(&[a.part(0)]));
                let high = self.compute(Op::machine(Opcode::Popc).src(&[a.part(1)]));
                self.emit(Op::machine(Opcode::Iadd3).dst(result).src(&[low, high]));
            }
            ("brev", false) => self.emit(Op::machine(Opcode::Brev).dst(result).src(&[a])),
            ("brev", true) => {
                // Kept in a temporary: the result may be the source.
                let low = self.compute(Op::machine(Opcode::Brev).src(&[a.part(1)]));
                self.emit(Op::machine(Opcode::Brev).dst(result.offset(1)).src(&[a.part(0)]));
                self.copy(result, low, Type::B32);
            }
            ("clz" | "bfind", true) if !form.has(".shiftamt") => self.leading_wide(form, result, a),
            ("clz", false) => {
                // Without a leading bit the position is all ones, and 31 minus that is 32.
                let position = self.compute(leading(Ty::U32, a, false));
                let from = Arg::imm(31);
                self.emit(
                    Op::machine(Opcode::Iadd3)
                        .dst(result)
                        .src(&[from, negated_integer(position)]),
                );
            }
            ("bfind", false) => self.emit(leading(sign(ty), a, form.has(".shiftamt")).dst(result)),
            _ => return Err(form.unsupported()),
        }
        Ok(())
    }
}

/// Finds the position of the leading bit.
fn leading(ty: Ty, a: Arg, as_shift: bool) -> Op {
    Op::machine(Opcode::Flo).src(&[a]).mods(|mods| {
        mods.ty = ty;
        mods.sat = as_shift;
    })
}
