//! Calls by name: registers and literals against the parameters and results that the function declares.
//!
//! The lowering checks the sizes of `.param` variables, and calls through a register.

use super::{Checker, Value};
use crate::ast::{Instruction, Operand, OperandKind, Variable};

impl<'a> Checker<'_, 'a> {
    /// Checks each register and literal of a call for the type that the function declares.
    pub(super) fn check_call(&mut self, instruction: &Instruction<'a>, operands: &[Value<'a>]) {
        let called = operands.iter().enumerate().find_map(|(at, value)| match value {
            Value::Function(name) => Some((at, *name)),
            _ => None,
        });
        let Some((at, name)) = called else { return };
        let Some(&function) = self.prototypes.get(name) else {
            return;
        };
        let pairs = [(0, &function.returns), (at + 1, &function.params)];
        for (n, declared) in pairs.into_iter().filter(|&(n, _)| n != at) {
            if let (Some(Value::List(values)), Some(written)) = (operands.get(n), instruction.operands.get(n)) {
                self.check_list(declared, values, written);
            }
        }
    }

    fn check_list(&mut self, declared: &[Variable<'a>], values: &[Value<'a>], written: &Operand<'a>) {
        let OperandKind::List(items) = &written.kind else {
            return;
        };
        for ((param, value), item) in declared.iter().zip(values).zip(items) {
            // An array or a vector is passed as a `.param` variable, or as its elements.
            let is_scalar = param.dims.is_empty() && param.vector == 1;
            if is_scalar && !matches!(value, Value::Vector(_)) {
                self.check_typed(param.ty, param.ty.bits(), value, item.span);
            }
        }
    }
}
