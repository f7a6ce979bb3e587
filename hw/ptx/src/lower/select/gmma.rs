//! Products of a warp group (`wgmma`): each becomes an HGMMA for every eight columns of the result.
//!
//! Registers that a product writes are waited for like all others, so `wgmma.fence` has nothing to do.

use super::integer::parts;
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::check::Value;
use crate::diag::Diagnostic;
use crate::lower::code::{Arg, Op, When};
use warpwave_isa::inst::{MmaShape, Ty};
use warpwave_isa::opcode::Opcode;
use warpwave_isa::reg::Guard;

impl<'t, 'a> Selector<'_, 't, 'a> {
    pub(super) fn warp_group(&mut self, form: &Form<'t, 'a>) -> Selected {
        match () {
            () if form.has(".fence") => Ok(()),
            () if form.has(".commit_group") => {
                self.emit(Op::row(Opcode::GmmaCommit));
                Ok(())
            }
            () if form.has(".wait_group") => {
                let Some(Value::Int(groups)) = form.operands().first() else {
                    return Err(form.malformed("the number of groups is an integer"));
                };
                let groups = u8::try_from(*groups).map_err(|_| form.malformed("at most 255 groups"))?;
                self.emit(Op::row(Opcode::GmmaWait).mods(|mods| mods.count = groups));
                Ok(())
            }
            () => self.group_product(form),
        }
    }

    fn group_product(&mut self, form: &Form<'t, 'a>) -> Selected {
        let (shape, columns) = shape_of(form).ok_or_else(|| form.unsupported())?;
        let [results, a, b, scale, rest @ ..] = form.operands() else {
            return Err(form.unsupported());
        };
        let in_shared = !matches!(a, Value::Vector(_));
        let flags: Vec<bool> = rest.iter().map(|value| *value == Value::Int(1)).collect();
        let (right, trans) = match (in_shared, &flags[..]) {
            (_, [true, true]) => (false, false),
            (true, &[true, true, a, b]) => (a, b),
            (false, &[true, true, b]) => (false, b),
            // A factor of -1 is not modelled.
            _ => return Err(form.unsupported()),
        };
        let registers = parts(results);
        if registers.len() != columns / 2 {
            return Err(form.malformed("the result does not have the registers that this shape needs"));
        }
        let a = match in_shared {
            true => self.arg(form, a, Type::B64)?,
            false => self.fragment(form, a)?,
        };
        let b = self.arg(form, b, Type::B64)?;
        let scale = self.scale(form, scale)?;
        for (n, registers) in (0..).zip(registers.chunks(4)) {
            self.eight_columns(form, [a, b], scale, registers, |mods| {
                mods.mma = shape;
                mods.ty = Ty::F32;
                mods.high = in_shared;
                mods.right = right;
                mods.trans = trans;
                mods.count = n;
            })?;
        }
        Ok(())
    }

    fn eight_columns(
        &mut self,
        form: &Form<'t, 'a>,
        [a, b]: [Arg; 2],
        scale: When,
        registers: &[Value<'a>],
        mods: impl FnOnce(&mut warpwave_isa::inst::Mods),
    ) -> Selected {
        let sums = self.code.group(4);
        for (n, register) in (0..).zip(registers) {
            let source = self.arg(form, register, Type::B32)?;
            self.emit(Op::row(Opcode::Mov).dst(sums.offset(n)).src(&[source]));
        }
        let product = Op::row(Opcode::Hgmma)
            .src(&[a, b, Arg::word(sums)])
            .psrc(scale)
            .mods(mods);
        let Some(group) = self.compute(product).as_word() else {
            return Ok(());
        };
        for (n, register) in (0..).zip(registers) {
            let result = self.dst_of(form, register, Type::B32)?;
            self.copy(result, Arg::word(group.offset(n)), Type::B32);
        }
        Ok(())
    }

    /// Whether the sums so far count: a predicate, 0 or 1.
    fn scale(&mut self, form: &Form<'t, 'a>, value: &Value<'a>) -> Result<When, Diagnostic> {
        match value {
            Value::Int(0) => Ok(When {
                flag: None,
                negated: Guard::NEVER.negated,
            }),
            Value::Int(_) => Ok(When::ALWAYS),
            value => self.when(form, value),
        }
    }
}

/// The shape of a piece, and the columns of the whole: inputs of 16 bits, sums of 32.
fn shape_of(form: &Form<'_, '_>) -> Option<(MmaShape, usize)> {
    let shape = match form.types.as_slice() {
        [Type::F32, Type::F16, Type::F16] => MmaShape::M16n8k16F16,
        [Type::F32, Type::Bf16, Type::Bf16] => MmaShape::M16n8k16Bf16,
        _ => return None,
    };
    let size = form.qualifiers().find_map(|name| name.text.strip_prefix(".m64n"))?;
    let columns: usize = size.strip_suffix("k16")?.parse().ok()?;
    (columns.is_multiple_of(8) && (8..=256).contains(&columns)).then_some((shape, columns))
}
