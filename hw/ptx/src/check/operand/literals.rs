//! Literals: an integer in a float instruction, and a float of the wrong width, are refused.

use super::{Checker, Value};
use crate::ast::{Instruction, Type};
use crate::diag::{Diagnostic, Span};

impl<'t, 'a> Checker<'t, 'a> {
    /// Checks a literal where the instruction takes `bits` bits of type `ty`. A bit type accepts a float literal of the same width.
    pub(super) fn check_literal(&mut self, ty: Type, bits: u32, value: &Value<'a>, span: Span) {
        let works_on = format!("literal where the instruction works on {}", ty.dotted());
        match value {
            Value::Int(_) if ty.is_float() => {
                let help = match ty {
                    Type::F32 => "write `2.0` or `0f40000000` for 2",
                    Type::F64 => "write `2.0` or `0d4000000000000000` for 2",
                    _ => "move the bits into a register first",
                };
                let finding = Diagnostic::malformed(span, format!("integer {works_on}"));
                self.findings.push(finding.help(help));
            }
            Value::Float(_) if ty.is_float() && !matches!(ty, Type::F32 | Type::F64) => {
                let finding = Diagnostic::malformed(span, format!("float {works_on}"));
                self.findings.push(finding.help("move the bits into a register first"));
            }
            Value::Float(float) if ty.is_bits() && float.bits() != bits => {
                let message = format!(
                    "float literal of {} bits where the instruction takes {bits}",
                    float.bits()
                );
                let help = "`1.0` has 64 bits; write the bits of a float of 32 as `0f3F800000`";
                self.findings.push(Diagnostic::malformed(span, message).help(help));
            }
            Value::Float(_) if !ty.is_float() && !ty.is_bits() => self.report(span, format!("float {works_on}")),
            _ => {}
        }
    }

    /// Checks the literals of opcodes with a signature that does not give the types of the sources.
    pub(super) fn check_literals(&mut self, instruction: &Instruction<'a>, types: &[Type], operands: &[Value<'a>]) {
        let (Some(&first), Some(&last)) = (types.first(), types.last()) else {
            return;
        };
        let ends_with_type = instruction
            .qualifiers
            .last()
            .is_some_and(|name| Type::from_dotted(name.text) == Some(last));
        let sources: &[Type] = match instruction.opcode.text {
            "mov" => &[last],
            // A conversion to a pair has two sources. The last qualifier may be a format without a `Type`, such as `.e2m1x2`.
            "cvt" if ends_with_type => &[last, last],
            "set" => &[last, last],
            "slct" => &[first, first, last],
            "testp" => &[last],
            _ => return,
        };
        let spans = instruction.operands.iter().map(|operand| operand.span);
        for ((value, span), &ty) in operands.iter().zip(spans).skip(1).zip(sources) {
            self.check_literal(ty, ty.bits(), value, span);
        }
    }
}
