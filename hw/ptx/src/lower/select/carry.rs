//! Carry chains: `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc`, `madc`.
//!
//! Each instruction that sets the carry flag of PTX writes a new predicate. The flag is the carry of the IADD3: after a subtraction, it is
//! false on a borrow. The PTX ISA speaks of a borrow instead. This differs only where a sum reads the flag of a difference, or the other
//! way round. There the values are those of the vendor's machine code (ptxas 11.8).
//!
//! After a label, or under another guard than the last writer, the writer of a carry is not known. In a function with such a reader,
//! every writer also copies its carry to one predicate, `carry_flag` of the function's frame.

use super::integer::sign;
use super::{Form, Selected, Selector};
use crate::check::{self, Body, Step, Value};
use crate::diag::Diagnostic;
use crate::lower::code::{Arg, Op, VGuard, Wide};
use warpwave_isa::opcode::Opcode;

impl<'t, 'a> Selector<'_, 't, 'a> {
    /// True if the instruction reads or writes the carry flag.
    pub(super) fn is_carry_chain(&self, form: &Form<'t, 'a>) -> bool {
        let may = form.has(".cc") && matches!(form.opcode(), "add" | "sub" | "mad");
        may || matches!(form.opcode(), "addc" | "subc" | "madc")
    }

    /// Selects an instruction with a carry, one IADD3 for each word.
    pub(super) fn carry_chain(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".cc", ".lo", ".hi"])?;
        let result = self.dst(form, 0)?;
        let (a, b) = match form.opcode() {
            "mad" | "madc" => (self.product_word(form)?, self.src(form, 3)?),
            _ => (self.src(form, 1)?, self.src(form, 2)?),
        };
        let subtracts = form.opcode().starts_with("sub");
        let mut carry = match form.opcode() {
            "addc" | "subc" | "madc" => Some(self.carry_in(form)?),
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
            // The carry of each word is the carry-in of the next one.
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
            self.carry = carry;
            if let (Some(flag), Some(carry)) = (self.frame().carry_flag, self.carry) {
                self.copy_pred(Some(flag), carry);
                self.carry = Some(VGuard::pred(flag));
            }
        }
        Ok(())
    }

    /// Returns the carry that an instruction reads.
    fn carry_in(&self, form: &Form<'t, 'a>) -> Result<VGuard, Diagnostic> {
        self.carry.ok_or_else(|| {
            let finding = form.malformed("a carry that no instruction of this function sets");
            finding.help("add `.cc` to the instruction before it")
        })
    }

    /// Returns the low or high half of the product of `mad`, to which the third source is added.
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

/// True if the instruction sets the carry, and true if it reads it.
fn carry_effects(op: &check::Op<'_, '_>) -> (bool, bool) {
    let opcode = op.instruction.opcode.text;
    let reads = matches!(opcode, "addc" | "subc" | "madc");
    let may_set = reads || matches!(opcode, "add" | "sub" | "mad");
    let sets = may_set && op.instruction.qualifiers.iter().any(|name| name.text == ".cc");
    (sets, reads)
}

/// True if the function needs a carry flag: it sets a carry, and one of its reads has no certain writer.
pub(super) fn needs_carry_flag(body: &Body<'_, '_>) -> bool {
    let (mut writer, mut unknown, mut is_set) = (None, false, false);
    for step in &body.code {
        let Step::Op(op) = step else {
            writer = writer.filter(|_| !matches!(step, Step::Label(_)));
            continue;
        };
        let (sets, reads) = carry_effects(op);
        let known = |guard: Option<_>| guard.is_none() || guard == op.guard;
        unknown |= reads && !writer.is_some_and(known);
        if sets {
            is_set = true;
            writer = Some(op.guard);
        }
        // A rewritten guard enables other lanes than it did for the writer.
        writer = writer.filter(|guard| !guard.is_some_and(|(reg, _)| writes(op, reg)));
    }
    unknown && is_set
}

/// True if a predicate is a result of the operation, alone or as part of a pair `p|q`.
fn writes(op: &check::Op<'_, '_>, predicate: check::RegId) -> bool {
    let is_it = |value: &Value<'_>| *value == Value::Register(predicate);
    match op.operands.first() {
        Some(Value::Pair(first, second)) => is_it(first) || is_it(second),
        Some(result) => is_it(result),
        None => false,
    }
}

/// Prepares one word of a subtrahend: negated if no carry comes in, inverted if one does.
fn subtrahend(arg: Arg, has_carry: bool) -> Arg {
    // -b = !b + 1. The carry-in is this 1, or 0 after a borrow.
    if has_carry { arg.inverted() } else { arg.negated() }
}
