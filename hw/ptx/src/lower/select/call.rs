//! Calls: each call is replaced by the code of its function.
//!
//! Parameters and results are in registers (`param`). `copy_prop` and register allocation remove the copies. A call through a
//! register tests all functions with matching parameters and a taken address. A recursive call is in `recursion`.

use super::{Form, Frame, Selected, Selector};
use crate::ast::Type;
use crate::check::{Body, SymbolId, Value};
use crate::diag::Diagnostic;
use crate::lower::callgraph;
use crate::lower::code::{Arg, Op, VGuard, VReg};
use warpwave_isa::inst::Cmp;
use warpwave_isa::opcode::Opcode;

/// Maximum nesting of inlined calls. No compiler's output comes near, and each level uses host stack.
const MAX_CALL_DEPTH: usize = 128;

/// Maximum number of inlined calls in a kernel.
const MAX_CALLS: usize = 1024;

/// Minimum register count of a kernel with real calls in the vendor's assembler: by register, system and recursive calls.
pub(super) const CALL_REGISTERS: usize = 24;

impl<'t, 'a> Selector<'_, 't, 'a> {
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
            let unknown = || {
                Err(unsupported(
                    form,
                    &format!("a call of `{name}`, a function outside this module"),
                ))
            };
            self.code.min_registers = CALL_REGISTERS;
            let selected = self.system_call(form, name, argument_lists(form.operands()));
            self.end_skip(skip_label);
            return selected.unwrap_or_else(unknown);
        };
        self.call_function(form, callee, argument_lists(form.operands()))?;
        self.end_skip(skip_label);
        Ok(())
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
            let address = callgraph::address(self.checked, body.function.name.text).unwrap_or(0);
            let other = self.code.new_pred();
            let compare = Op::machine(Opcode::Isetp).src(&[pointer.part(0), Arg::imm(address)]);
            self.emit(compare.pdst(other).mods(|mods| mods.cmp = Cmp::Ne));
            let next = self.branch_if(VGuard::pred(other));
            self.call_function(form, body, given)?;
            self.jump(end, VGuard::ALWAYS);
            self.label(next);
        }
        // The register holds no function address.
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
                && expected.iter().zip(values).all(|(&param, value)| match value {
                    Value::Symbol(symbol, _) => self.param_bytes(*symbol) == self.param_bytes(param),
                    _ => true,
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
        if self.n_calls == MAX_CALLS {
            return Err(unsupported(
                form,
                "more than 1024 calls in one kernel (calls are inlined)",
            ));
        }
        self.n_calls += 1;
        let line = self.line;
        let (returns, params) = callee.params.split_at(callee.function.returns.len());
        self.pass_arguments(form, params, given.1)?;
        let stack = (!recursive && callgraph::uses_stack(callee)).then(|| {
            let stack = Arg::vreg(self.stack());
            self.compute(Op::machine(Opcode::Mov).src(&[stack]))
        });
        self.frames
            .push(Frame::of(callee, &mut self.code, &mut self.label_blocks));
        if recursive {
            self.begin_recursion();
        }
        returns.iter().for_each(|&result| self.init_param(result));
        self.select_steps();
        self.guard = VGuard::ALWAYS;
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

    pub(super) fn pass_arguments(&mut self, form: &Form<'t, 'a>, params: &[SymbolId], given: &[Value<'a>]) -> Selected {
        if params.len() != given.len() {
            return Err(form.malformed("the number of arguments differs from the function's parameters"));
        }
        for (&param, value) in params.iter().zip(given) {
            let Value::Symbol(argument, _) = value else {
                return Err(unsupported(form, "arguments in registers"));
            };
            self.check_size(form, *argument, param)?;
            self.copy_param(param, *argument);
        }
        Ok(())
    }

    fn return_results(&mut self, form: &Form<'t, 'a>, returns: &[SymbolId], targets: &[Value<'a>]) -> Selected {
        self.check_results(form, returns, targets)?;
        for (&result, value) in returns.iter().zip(targets) {
            let Value::Symbol(target, _) = value else {
                return Err(unsupported(form, "results in registers"));
            };
            self.copy_param(*target, result);
        }
        Ok(())
    }

    /// Checks that a call takes all results of its function, or none.
    pub(super) fn check_results(&self, form: &Form<'t, 'a>, returns: &[SymbolId], targets: &[Value<'a>]) -> Selected {
        if !targets.is_empty() && targets.len() != returns.len() {
            return Err(form.malformed("the number of results differs from the function's results"));
        }
        for (&result, value) in returns.iter().zip(targets) {
            if let Value::Symbol(target, _) = value {
                self.check_size(form, *target, result)?;
            }
        }
        Ok(())
    }

    /// Checks that a call's variable has the size of the function's parameter or result.
    fn check_size(&self, form: &Form<'t, 'a>, given: SymbolId, param: SymbolId) -> Selected {
        let [found, expected] = [given, param].map(|symbol| self.param_bytes(symbol));
        if found == expected {
            return Ok(());
        }
        let name = self.checked.symbols[given.0 as usize].name.text;
        Err(form.malformed(&format!(
            "`{name}` has {found} bytes, but the function declares {expected}"
        )))
    }

    /// Writes words to the variable of a call's result.
    pub(super) fn write_result(&mut self, form: &Form<'t, 'a>, destination: &Value<'a>, words: &[Arg]) -> Selected {
        let Value::Symbol(target, _) = destination else {
            return Err(unsupported(form, "results in registers"));
        };
        let first = self.param_vregs(*target);
        for (n, &word) in (0..).zip(words) {
            self.emit(Op::machine(Opcode::Mov).dst(VReg(first.0 + n)).src(&[word]));
        }
        Ok(())
    }

    fn copy_param(&mut self, to: SymbolId, from: SymbolId) {
        let words = self.param_bytes(to).min(self.param_bytes(from)).div_ceil(4);
        let (to, from) = (self.param_vregs(to), self.param_vregs(from));
        for n in 0..words {
            let move_one = Op::machine(Opcode::Mov)
                .dst(VReg(to.0 + n))
                .src(&[Arg::vreg(VReg(from.0 + n))]);
            self.emit(move_one);
        }
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

fn unsupported(form: &Form<'_, '_>, what: &str) -> Diagnostic {
    Diagnostic::unsupported(form.op.instruction.span, what)
}
