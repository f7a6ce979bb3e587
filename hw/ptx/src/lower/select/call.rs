//! Calls: each call is replaced by the code of its function.
//!
//! Parameters and results are in registers (`param`, `arguments`). `copy_prop` and register allocation remove the copies. A call through a
//! register tests all functions with matching parameters and a taken address. A recursive call is in `recursion`.

use super::{Form, Frame, Selected, Selector};
use crate::ast::Type;
use crate::check::{Body, SymbolId, Value};
use crate::diag::Diagnostic;
use crate::heap;
use crate::lower::callgraph;
use crate::lower::code::{Arg, Op, VGuard};
use warpwave_isa::inst::Cmp;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::program::Assertion;

/// Maximum nesting of inlined calls. No compiler's output comes near, and each level uses host stack.
const MAX_CALL_DEPTH: usize = 128;

/// Remedy for a call through a pointer that names no function.
const NO_FUNCTION: &str =
    "it is null, or not the address of a function of this module with these parameters: set it before the call";

/// Minimum register count of a kernel with real calls in the vendor's assembler: by register, system and recursive calls.
pub(super) const CALL_REGISTERS: usize = 24;

impl<'t, 'a> Selector<'_, 't, 'a> {
    /// Selects `call`: by name, through a register, or of a system function.
    pub(super) fn call(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".uni"])?;
        let name = form.operands().iter().find_map(|value| match value {
            Value::Function(name) => Some(*name),
            _ => None,
        });
        let Some(name) = name else {
            return self.call_pointer(form);
        };
        let callee = self.checked.body(name);
        let skip_label = self.skip_if_guarded();
        let Some(callee) = callee else {
            // A function without a body is a system call, or the text lacks its definition.
            let unknown = Err(self.undefined_function(name));
            self.code.min_registers = CALL_REGISTERS;
            let selected = self.system_call(form, name, argument_lists(form.operands()));
            self.end_skip(skip_label);
            return selected.unwrap_or(unknown);
        };
        self.call_function(form, callee, argument_lists(form.operands()))?;
        self.end_skip(skip_label);
        Ok(())
    }

    /// Returns the finding for a use of a function without a body.
    pub(super) fn undefined_function(&self, name: &str) -> Diagnostic {
        let declaration = self.checked.functions.get(name).copied().unwrap_or_default();
        callgraph::undefined(name, declaration)
    }

    /// Selects a call through a register: compares with each candidate's address, and calls the match.
    fn call_pointer(&mut self, form: &Form<'t, 'a>) -> Selected {
        let at = form
            .operands()
            .iter()
            .position(|value| matches!(value, Value::Register(_)))
            .ok_or_else(|| form.malformed("a call needs a function, or a register with a function's address"))?;
        self.code.min_registers = CALL_REGISTERS;
        let pointer = self.arg(form, form.operand(at)?, Type::U64)?;
        let given = lists_around(form.operands(), at);
        let bodies = &self.checked.bodies;
        let candidates = self.layout.address_taken().iter().map(|&n| &bodies[n]);
        let candidates: Vec<&Body<'t, 'a>> = candidates.filter(|body| self.fits(body, given)).collect();
        let skip_label = self.skip_if_guarded();
        let end = self.new_label();
        for body in candidates {
            // A candidate has a body, so it has an address.
            let address = callgraph::address(self.checked, body.function.name.text).unwrap_or(0);
            let other = self.code.new_pred();
            // Function addresses fit in the low word.
            let compare = Op::machine(Opcode::Isetp).src(&[pointer.part(0), Arg::imm(address)]);
            self.emit(compare.pdst(other).mods(|mods| mods.cmp = Cmp::Ne));
            let next = self.branch_if(VGuard::pred(other));
            self.call_function(form, body, given)?;
            self.jump(end, VGuard::ALWAYS);
            self.label(next);
        }
        self.code.assertions.push(Assertion {
            line: self.line,
            message: "the pointer of the call names no function".to_owned(),
            remedy: Some(NO_FUNCTION),
            file: String::new(),
            source_line: 0,
            function: String::new(),
        });
        self.emit(Op::machine(Opcode::Trap));
        self.label(end);
        self.end_skip(skip_label);
        Ok(())
    }

    /// True if the function has the results and arguments of the call.
    fn fits(&self, body: &Body<'t, 'a>, given: (&[Value<'a>], &[Value<'a>])) -> bool {
        let (returns, params) = body.params.split_at(body.function.returns.len());
        let same = |expected: &[SymbolId], values: &[Value<'a>]| {
            expected.len() == values.len()
                && expected.iter().zip(values).all(|(&param, value)| {
                    let given = self.argument_bytes(value);
                    // A literal and `_` fit any parameter.
                    given.is_none_or(|bytes| bytes == self.param_bytes(param))
                })
        };
        same(returns, given.0) && same(params, given.1)
    }

    /// Inlines the function, or jumps to it if the call is recursive.
    fn call_function(
        &mut self,
        form: &Form<'t, 'a>,
        callee: &'t Body<'t, 'a>,
        given: (&[Value<'a>], &[Value<'a>]),
    ) -> Selected {
        let name = callee.function.name.text;
        let recursive = self.layout.is_recursive(name);
        // The function is being selected already, so the call is recursive.
        if let Some(depth) = self
            .frames
            .iter()
            .position(|frame| frame.body.function.name.text == name)
        {
            return self.recursive_call(form, depth, given);
        }
        if self.frames.len() > MAX_CALL_DEPTH {
            let what = format!("calls nested more than {MAX_CALL_DEPTH} deep (calls are inlined)");
            return Err(unsupported(form, &what));
        }
        self.n_calls += 1;
        let line = self.line;
        let (returns, params) = callee.params.split_at(callee.function.returns.len());
        self.pass_arguments(form, params, given.1)?;
        // `alloca` memory is free when its function returns. A recursive function keeps the pointer itself.
        let stack = (!recursive && callgraph::uses_stack(callee)).then(|| {
            let stack = Arg::vreg(self.stack());
            self.compute(Op::machine(Opcode::Mov).src(&[stack]))
        });
        let mut frame = Frame::of(callee, &mut self.code, &mut self.label_blocks);
        if heap::is_library(name) {
            // A report names the line of the call, not one of the library.
            frame.line = Some(line);
        }
        if heap::is_free(name) {
            self.code.assertions.push(Assertion {
                line,
                message: heap::WRONG_FREE.to_owned(),
                remedy: None,
                file: String::new(),
                source_line: 0,
                function: "free".to_owned(),
            });
        }
        self.frames.push(frame);
        if recursive {
            self.begin_recursion();
        }
        self.receive_arguments(callee);
        returns.iter().for_each(|&result| self.init_param(result));
        self.select_steps();
        if heap::is_library(name) {
            // A routine has no `ret`, so its end has no label. These functions have one.
            self.label(self.frame().end());
        }
        self.guard = VGuard::ALWAYS;
        self.hand_back_results(callee);
        self.end_recursion();
        self.frames.pop();
        if let Some(before) = stack {
            let stack = self.stack();
            self.copy(stack, before, Type::B32);
        }
        self.line = line;
        self.return_results(form, returns, given.0)
    }

    pub(super) fn jump(&mut self, label: usize, guard: VGuard) {
        let mut op = Op::machine(Opcode::Bra).guard(guard);
        op.target = Some(label);
        self.emit(op);
    }

    /// Places the label after a guarded call.
    pub(super) fn end_skip(&mut self, skip_label: Option<usize>) {
        if let Some(label) = skip_label {
            self.label(label);
        }
    }

    /// Skips the code of a guarded instruction where its guard is false. Returns the label to place after it.
    pub(super) fn skip_if_guarded(&mut self) -> Option<usize> {
        let guard = std::mem::replace(&mut self.guard, VGuard::ALWAYS);
        if guard == VGuard::ALWAYS {
            return None;
        }
        Some(self.branch_if(guard.negated()))
    }
}

/// Returns the results and arguments of `call (r), f, (a, b)`.
fn argument_lists<'v, 'a>(operands: &'v [Value<'a>]) -> (&'v [Value<'a>], &'v [Value<'a>]) {
    let is_function = |value: &Value<'_>| matches!(value, Value::Function(_));
    lists_around(operands, operands.iter().position(is_function).unwrap_or(0))
}

/// Returns the lists before and after the callee.
fn lists_around<'v, 'a>(operands: &'v [Value<'a>], at: usize) -> (&'v [Value<'a>], &'v [Value<'a>]) {
    let list = |value: Option<&'v Value<'a>>| match value {
        Some(Value::List(values)) => values.as_slice(),
        _ => &[],
    };
    (list(operands[..at].first()), list(operands.get(at + 1)))
}

pub(super) fn unsupported(form: &Form<'_, '_>, what: &str) -> Diagnostic {
    Diagnostic::unsupported(form.op.instruction.span, what)
}
