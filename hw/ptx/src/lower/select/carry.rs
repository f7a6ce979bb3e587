//! Carry chains: `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc`, `madc`.
//!
//! PTX has one carry flag, and a subtraction sets it on a borrow. The IADD3 of a subtraction gives the opposite of the borrow. So
//! each instruction writes a new predicate, and the reader knows if it is inverted.

use super::integer::sign;
use super::{Form, Selected, Selector};
use crate::diag::Diagnostic;
use crate::lower::code::{Arg, Op, VGuard, Wide};
use warpwave_isa::opcode::Opcode;

impl<'t, 'a> Selector<'_, 't, 'a> {
    /// True if the instruction reads or writes the carry flag.
    pub(super) fn is_carry_chain(&self, form: &Form<'t, 'a>) -> bool {
        let may = form.has(".cc") && matches!(form.opcode(), "add" | "sub" | "mad");
        may || matches!(form.opcode(), "addc" | "subc" | "madc")
    }

    pub(super) fn carry_chain(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".cc", ".lo", ".hi"])?;
        let result = self.dst(form, 0)?;
        let (a, b) = match form.opcode() {
            "mad" | "madc" => (self.product_word(form)?, self.src(form, 3)?),
            _ => (self.src(form, 1)?, self.src(form, 2)?),
        };
        let subtracts = form.opcode().starts_with("sub");
        let mut carry = match form.opcode() {
            "addc" | "subc" | "madc" => Some(self.carry_in(form, subtracts)?),
            _ => None,
        };
        for n in 0..(form.ty().bits() / 32).max(1) as u8 {
            let last = n + 1 == (form.ty().bits() / 32).max(1) as u8;
            let out = (!last || form.has(".cc")).then(|| self.code.new_pred());
            let addend = if subtracts {
                subtrahend(b.part(n), carry.is_some())
            } else {
                b.part(n)
            };
            let mut op = Op::machine(Opcode::Iadd3)
                .dst(result.offset(n))
                .src(&[a.part(n), addend]);
            op.pdst[0] = out;
            if let Some(predicate) = carry {
                op.psrc[0] = predicate;
                op.mods.extended = true;
            }
            self.emit(op);
            carry = out.map(VGuard::pred);
        }
        if form.has(".cc") {
            self.carry = carry.map(|predicate| if subtracts { predicate.negated() } else { predicate });
        }
        Ok(())
    }

    /// Returns the carry in the polarity of this instruction.
    fn carry_in(&self, form: &Form<'t, 'a>, subtracts: bool) -> Result<VGuard, Diagnostic> {
        let carry = self.carry.ok_or_else(|| {
            Diagnostic::unsupported(
                form.op.instruction.span,
                "a carry without a `.cc` instruction after the last label",
            )
        })?;
        Ok(if subtracts { carry.negated() } else { carry })
    }

    /// Returns the half of the product that `mad` adds to.
    fn product_word(&mut self, form: &Form<'t, 'a>) -> Result<Arg, Diagnostic> {
        let args = [self.src(form, 1)?, self.src(form, 2)?];
        if form.ty().bits() == 64 {
            let product = self.temp_pair();
            match form.has(".hi") {
                true => self.high_64(form, product, [args[0], args[1], Arg::ZERO])?,
                false => self.emit(Op::wide(Wide::Mad).dst(product).src(&args)),
            }
            return Ok(Arg::vreg(product));
        }
        Ok(self.compute(Op::machine(Opcode::Imad).src(&args).mods(|mods| {
            mods.ty = sign(form.ty());
            mods.high = form.has(".hi");
        })))
    }
}

/// Prepares one word of a subtrahend: the first is negated, and later ones are inverted.
fn subtrahend(arg: Arg, has_carry: bool) -> Arg {
    // The carry into a later word completes its negation.
    if has_carry { arg.inverted() } else { arg.negated() }
}
