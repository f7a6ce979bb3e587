//! Matrix products on the tensor cores.

use super::integer::parts;
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::check::Value;
use crate::diag::Diagnostic;
use crate::lower::code::{Arg, Op};
use warpwave_isa::inst::{MmaShape, Ty};
use warpwave_isa::opcode::Opcode;

impl<'t, 'a> Selector<'_, 't, 'a> {
    pub(super) fn mma(&mut self, form: &Form<'t, 'a>) -> Selected {
        const KNOWN: &[&str] = &[
            ".sync",
            ".aligned",
            ".row",
            ".col",
            ".satfinite",
            ".m16n8k16",
            ".m16n8k8",
            ".m16n8k4",
            ".m16n8k32",
            ".m8n8k4",
        ];
        form.only(KNOWN)?;
        let (shape, ty) = shape_of(form).ok_or_else(|| form.unsupported())?;
        let [results, a, b, c] = form.operands() else {
            return Err(form.unsupported());
        };
        let args = [
            self.fragment(form, a)?,
            self.fragment(form, b)?,
            self.fragment(form, c)?,
        ];
        let op = Op::row(Opcode::Mma).src(&args).mods(|mods| {
            mods.mma = shape;
            mods.ty = ty;
            mods.sat = form.has(".satfinite");
        });
        let words = op.shape();
        let given = [results, a, b, c].map(|value| self.fragment_words(value));
        if given != [words.dst, words.src[0], words.src[1], words.src[2]] {
            return Err(form.malformed("the fragments do not have the registers that this shape needs"));
        }
        let Some(group) = self.compute(op).as_word() else {
            return Ok(());
        };
        let mut at = 0;
        for result in parts(results) {
            let words = self.words_of(result);
            let ty = if words == 2 { Type::B64 } else { Type::B32 };
            let register = self.dst_of(form, result, ty)?;
            self.copy(register, Arg::word(group.offset(at)), ty);
            at += words;
        }
        Ok(())
    }

    fn fragment_words(&self, value: &Value<'a>) -> u8 {
        parts(value).iter().map(|part| self.words_of(part)).sum()
    }

    /// The registers of a fragment, side by side.
    pub(super) fn fragment(&mut self, form: &Form<'t, 'a>, value: &Value<'a>) -> Result<Arg, Diagnostic> {
        let group = self.code.group(self.fragment_words(value));
        let mut at = 0;
        for part in parts(value) {
            let words = self.words_of(part);
            let ty = if words == 2 { Type::B64 } else { Type::B32 };
            let source = self.arg(form, part, ty)?;
            for n in 0..words {
                self.emit(Op::row(Opcode::Mov).dst(group.offset(at + n)).src(&[source.part(n)]));
            }
            at += words;
        }
        Ok(Arg::word(group))
    }
}

/// The shape, and the type of the accumulator; only 32-bit accumulators and doubles are modelled.
fn shape_of(form: &Form<'_, '_>) -> Option<(MmaShape, Ty)> {
    let &[d, a, b, c] = form.types.as_slice() else {
        return None;
    };
    if a != b || c != d {
        return None;
    }
    let has = |shape: &str| form.has(shape);
    Some(match (a, d) {
        (Type::F16, Type::F32) if has(".m16n8k16") => (MmaShape::M16n8k16F16, Ty::F32),
        (Type::F16, Type::F32) if has(".m16n8k8") => (MmaShape::M16n8k8F16, Ty::F32),
        (Type::Bf16, Type::F32) if has(".m16n8k16") => (MmaShape::M16n8k16Bf16, Ty::F32),
        (Type::Tf32, Type::F32) if has(".m16n8k8") => (MmaShape::M16n8k8Tf32, Ty::F32),
        (Type::Tf32, Type::F32) if has(".m16n8k4") => (MmaShape::M16n8k4Tf32, Ty::F32),
        (Type::S8, Type::S32) if has(".m16n8k32") => (MmaShape::M16n8k32S8, Ty::S32),
        (Type::U8, Type::S32) if has(".m16n8k32") => (MmaShape::M16n8k32U8, Ty::S32),
        (Type::S8, Type::S32) if has(".m16n8k16") => (MmaShape::M16n8k16S8, Ty::S32),
        (Type::U8, Type::S32) if has(".m16n8k16") => (MmaShape::M16n8k16U8, Ty::S32),
        (Type::F64, Type::F64) if has(".m8n8k4") => (MmaShape::M8n8k4F64, Ty::F64),
        _ => return None,
    })
}
