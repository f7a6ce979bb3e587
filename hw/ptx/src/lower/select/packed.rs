//! Float forms of newer PTX: pairs of f32, mixed precision, and minimum or maximum of three.

use super::convert::{isa_type, rounding};
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::lower::code::{Arg, Op, VGuard};
use warpwave_isa::inst::Ty;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::reg::Special;

impl<'t, 'a> Selector<'_, 't, 'a> {
    /// Selects `add.f32x2` and similar: two operations on the words of a pair.
    pub(super) fn float_pair(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".rn", ".rz", ".rm", ".rp", ".ftz"])?;
        let opcode = match form.opcode() {
            "add" | "sub" => Opcode::Fadd,
            "mul" => Opcode::Fmul,
            "fma" => Opcode::Ffma,
            _ => return Err(form.unsupported()),
        };
        let result = self.dst(form, 0)?;
        let args = self.float_sources(form)?;
        let words = [0, 1].map(|n| {
            let op = Op::machine(opcode).src(&args.map(|arg| arg.part(n)));
            self.compute(op.mods(|mods| {
                mods.ty = Ty::F32;
                mods.round = rounding(form);
                mods.ftz = form.has(".ftz");
            }))
        });
        // Both words are computed before a copy, because a source may be the result.
        for (n, word) in (0..).zip(words) {
            self.copy(result.offset(n), word, Type::B32);
        }
        Ok(())
    }

    /// Selects `sub.rn.f32.f16`: the half operand is widened, which is exact.
    pub(super) fn mixed_sum(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".rn", ".rz", ".rm", ".rp", ".sat"])?;
        let &[Type::F32, narrow @ (Type::F16 | Type::Bf16)] = form.types.as_slice() else {
            return Err(form.unsupported());
        };
        let result = self.dst_of(form, form.operand(0)?, Type::F32)?;
        let factors = if form.opcode() == "fma" { 2 } else { 1 };
        let mut args = [Arg::ZERO; 3];
        for n in 1..form.operands().len() {
            let ty = if n <= factors { narrow } else { Type::F32 };
            let value = self.arg(form, form.operand(n)?, ty)?;
            args[n - 1] = match n <= factors {
                true => self.compute(Op::machine(Opcode::F2f).src(&[value]).mods(|mods| {
                    (mods.ty, mods.from) = (Ty::F32, isa_type(narrow).unwrap_or_default());
                })),
                false => value,
            };
        }
        let opcode = match form.opcode() {
            "add" | "sub" => Opcode::Fadd,
            "fma" => Opcode::Ffma,
            _ => return Err(form.unsupported()),
        };
        if form.opcode() == "sub" {
            args[1] = args[1].negated();
        }
        self.emit(Op::machine(opcode).dst(result).src(&args).mods(|mods| {
            mods.ty = Ty::F32;
            mods.round = rounding(form);
            mods.sat = form.has(".sat");
        }));
        Ok(())
    }

    /// Selects `elect.sync d|p, mask`: the leading lane of a mask.
    pub(super) fn elect(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".sync"])?;
        self.gather_lanes(form, 1)?;
        let mask = self.src32(form, 1)?;
        // The lowest bit of the mask: 31 minus the leading position of its reverse.
        let reversed = self.compute(Op::machine(Opcode::Brev).src(&[mask]));
        let leader = self.compute(Op::machine(Opcode::Flo).src(&[reversed]).mods(|mods| mods.sat = true));
        let lane = self.special_word(Special::LaneId);
        let (number, elected) = match form.operand(0)? {
            crate::check::Value::Pair(number, elected) => (&**number, self.dst_pred(form, elected)?),
            number => (number, None),
        };
        let number = self.dst_of(form, number, Type::B32)?;
        self.copy(number, leader, Type::B32);
        let mut op = Op::machine(Opcode::Isetp).src(&[leader, lane]);
        op.pdst[0] = elected;
        self.emit(op);
        Ok(())
    }

    /// Selects the first step of `min` or `max` of three.
    pub(super) fn extreme_of_three(
        &mut self,
        form: &Form<'t, 'a>,
        opcode: Opcode,
        select_min: VGuard,
    ) -> Result<Arg, crate::diag::Diagnostic> {
        let first = [self.src(form, 1)?, self.src(form, 2)?];
        let op = self.float_mods(form, Op::machine(opcode).src(&first).psrc(select_min));
        Ok(self.compute(op.mods(|mods| mods.unordered = form.has(".NaN"))))
    }
}
