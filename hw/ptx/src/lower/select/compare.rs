//! Comparisons, predicate logic and selections.

use super::integer::sign;
use super::qualifiers::COMPARISON_QUALIFIERS;
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::diag::Diagnostic;
use crate::lower::code::{Arg, Op, VGuard, Wide};
use warpwave_isa::inst::{Cmp, Join};
use warpwave_isa::opcode::Opcode;

impl<'t, 'a> Selector<'_, 't, 'a> {
    /// Selects `and.pred`, `or.pred`, `xor.pred` and `not.pred`.
    pub(super) fn predicate_logic(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[])?;
        // Columns of the truth table of PLOP3, with index 2p + q.
        const P: u8 = 0b1100;
        const Q: u8 = 0b1010;
        let first = self.src_pred(form, form.operand(1)?)?;
        let (second, lut) = match form.opcode() {
            "not" => (VGuard::ALWAYS, !P & 0xf),
            "and" => (self.src_pred(form, form.operand(2)?)?, P & Q),
            "or" => (self.src_pred(form, form.operand(2)?)?, P | Q),
            "xor" => (self.src_pred(form, form.operand(2)?)?, P ^ Q),
            _ => return Err(form.unsupported()),
        };
        let mut op = Op::machine(Opcode::Plop3).psrc(first).mods(|mods| mods.lut = lut);
        op.psrc[1] = second;
        op.pdst[0] = self.dst_pred(form, form.operand(0)?)?;
        self.emit(op);
        Ok(())
    }

    pub(super) fn compare(&mut self, form: &Form<'t, 'a>) -> Selected {
        let (cmp, _) = comparison_of(form)?;
        form.only(COMPARISON_QUALIFIERS)?;
        let a = self.extended_src(form, 1)?;
        let b = self.extended_src(form, 2)?;
        let op = self.comparison(form.ty(), cmp, a, b);
        self.finish_compare(form, op)
    }

    /// Emits a `setp` with its fourth operand joined.
    pub(super) fn finish_compare(&mut self, form: &Form<'t, 'a>, mut op: Op) -> Selected {
        op.mods.join = match () {
            () if form.has(".or") => Join::Or,
            () if form.has(".xor") => Join::Xor,
            // Without a fourth operand the other input is true, so `and` changes nothing.
            () => Join::And,
        };
        if let Some(value) = form.operands().get(3) {
            op.psrc[0] = self.src_pred(form, value)?;
        }
        op.pdst = self.dst_preds(form, form.operand(0)?)?;
        self.emit(op);
        Ok(())
    }

    /// Creates an integer comparison of type `ty`, without its result.
    pub(super) fn comparison(&self, ty: Type, cmp: Cmp, a: Arg, b: Arg) -> Op {
        // `legalize` compares the words of a 64-bit value later.
        let op = if ty.bits() == 64 {
            Op::wide(Wide::Setp)
        } else {
            Op::machine(Opcode::Isetp)
        };
        op.src(&[a, b]).mods(|mods| {
            mods.cmp = cmp;
            mods.ty = sign(ty);
        })
    }

    pub(super) fn selection(&self, ty: Type) -> Op {
        if ty.bits() == 64 {
            Op::wide(Wide::Sel)
        } else {
            Op::machine(Opcode::Sel)
        }
    }

    /// Selects `selp`. A float is selected as bits.
    pub(super) fn selp(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[])?;
        let result = self.dst(form, 0)?;
        let a = self.src(form, 1)?;
        let b = self.src(form, 2)?;
        let source = self.src_pred(form, form.operand(3)?)?;
        self.emit(self.selection(form.ty()).dst(result).src(&[a, b]).psrc(source));
        Ok(())
    }
}

/// Returns the comparison of a `setp`; true if it also holds for NaN.
pub(super) fn comparison_of(form: &Form<'_, '_>) -> Result<(Cmp, bool), Diagnostic> {
    for name in form.qualifiers() {
        let found = match name.text {
            ".eq" => (Cmp::Eq, false),
            ".ne" => (Cmp::Ne, false),
            ".lt" | ".lo" => (Cmp::Lt, false),
            ".le" | ".ls" => (Cmp::Le, false),
            ".gt" | ".hi" => (Cmp::Gt, false),
            ".ge" | ".hs" => (Cmp::Ge, false),
            ".equ" => (Cmp::Eq, true),
            ".neu" => (Cmp::Ne, true),
            ".ltu" => (Cmp::Lt, true),
            ".leu" => (Cmp::Le, true),
            ".gtu" => (Cmp::Gt, true),
            ".geu" => (Cmp::Ge, true),
            ".num" => (Cmp::Num, false),
            ".nan" => (Cmp::Nan, false),
            _ => continue,
        };
        return Ok(found);
    }
    Err(form.malformed("this comparison has no operator"))
}
