//! Sums as operands: `register+offset` and `variable+offset`.
//!
//! The sum of a register and an offset gets a new register ([`Sum`]). The lowering computes it before the instruction. The sum of
//! a variable and an offset is an address. Only integer sources can be sums.

use super::{Checker, Sum, Value};
use crate::ast::{Instruction, Name, Operand, OperandKind, Type};
use crate::check::RegId;
use crate::diag::Diagnostic;

impl<'a> Checker<'_, 'a> {
    /// Starts an instruction: clears the sums, and reports sums in operands that allow none.
    pub(super) fn begin_sums(&mut self, instruction: &Instruction<'a>) {
        self.sums.clear();
        self.non_integer = non_integer_type(instruction);
        if let Some(first) = instruction.operands.first()
            && !reads_first(instruction)
        {
            self.refuse_sums(first, "a result takes no offset");
        }
        for operand in &instruction.operands {
            match &operand.kind {
                OperandKind::List(items) => {
                    let why = "a call passes a whole variable, without an offset";
                    items.iter().for_each(|item| self.refuse_sums(item, why));
                }
                OperandKind::Minus(inner) => self.refuse_sums(inner, "a negated register takes no offset"),
                _ => {}
            }
        }
    }

    /// Reports every sum in an operand. An address in brackets is not a sum.
    fn refuse_sums(&mut self, operand: &Operand<'a>, why: &str) {
        match &operand.kind {
            OperandKind::Offset(name, offset) => {
                let finding = Diagnostic::malformed(operand.span, format!("{why}: `{name}{offset:+}`"));
                self.findings.push(finding);
            }
            OperandKind::Vector(parts) => parts.iter().for_each(|part| self.refuse_sums(part, why)),
            OperandKind::Pair(first, second) => {
                self.refuse_sums(first, why);
                self.refuse_sums(second, why);
            }
            _ => {}
        }
    }

    /// Resolves a name plus an offset, used as a value.
    pub(super) fn sum(&mut self, name: Name<'a>, offset: i64) -> Value<'a> {
        let before = self.findings.len();
        let value = self.named(name);
        if self.findings.len() > before || self.findings.iter().any(|finding| finding.span == name.span) {
            return value;
        }
        match value {
            Value::Register(reg) => self.register_sum(name, reg, offset),
            Value::Symbol(symbol, _) => Value::Symbol(symbol, offset),
            Value::Int(value) => Value::Int(value + i128::from(offset)),
            other => {
                let what = format!(
                    "only a register or a variable takes an offset: `{}{offset:+}`",
                    name.text
                );
                self.report(name.span, what);
                other
            }
        }
    }

    fn register_sum(&mut self, name: Name<'a>, base: RegId, offset: i64) -> Value<'a> {
        let ty = self.type_of(base);
        let source_type = self.non_integer.or(Some(ty).filter(|&ty| is_non_integer(ty)));
        let fault = match source_type {
            _ if ty == Type::Pred => Some("a predicate takes no offset".to_owned()),
            Some(ty) => Some(format!("an offset applies to integers, not to {}", ty.dotted())),
            // The sum is computed by an integer addition, which has at most 64 bits.
            None if ty.bits() > 64 => Some("an offset applies to at most 64 bits".to_owned()),
            None => None,
        };
        if let Some(fault) = fault {
            let finding = Diagnostic::malformed(name.span, format!("{fault}: `{}{offset:+}`", name.text));
            self.findings.push(match source_type {
                Some(_) => finding.help("compute the sum in a separate instruction"),
                None => finding,
            });
            return Value::Register(base);
        }
        // A new register for each use, because `base` may change between two instructions.
        let result = RegId(self.body.registers.len() as u32);
        self.body.registers.push(ty);
        self.sums.push(Sum { result, base, offset });
        Value::Register(result)
    }
}

/// Returns the source type of an instruction if it is not an integer type.
fn non_integer_type(instruction: &Instruction<'_>) -> Option<Type> {
    let types = instruction
        .qualifiers
        .iter()
        .filter_map(|name| Type::from_dotted(name.text));
    // Conversions and texture fetches write the source type last.
    let n_types = match instruction.opcode.text {
        "cvt" | "tex" | "tld4" => 1,
        _ => usize::MAX,
    };
    types.rev().take(n_types).find(|&ty| is_non_integer(ty))
}

/// True for a floating-point type or a pair of 16-bit integers.
fn is_non_integer(ty: Type) -> bool {
    ty.is_float() || matches!(ty, Type::U16x2 | Type::S16x2)
}

/// True if the first operand of an instruction is a source, though it may be a register.
pub(crate) fn reads_first(instruction: &Instruction<'_>) -> bool {
    let is_reduction = instruction.qualifiers.iter().any(|name| name.text == ".red");
    match instruction.opcode.text {
        "bar" | "barrier" => !is_reduction,
        "bra" | "brx" | "call" | "nanosleep" | "pmevent" | "setmaxnreg" | "stackrestore" => true,
        _ => false,
    }
}
