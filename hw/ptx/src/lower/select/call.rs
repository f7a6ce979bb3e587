//! Calls: the function's code takes the place of its call.
//!
//! Parameters and results live in words of their own, which `fold` and the register allocation make vanish. A function
//! that calls itself, or whose name is not in the call, is unsupported: the machine's programs have no stack.

use super::{Form, Frame, Selected, Selector};
use crate::check::{SymbolId, Value};
use crate::diag::Diagnostic;
use crate::lower::code::{Arg, Op, When, Word};
use crate::lower::layout::Place;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::Access;

/// Calls that one kernel may have, each with the code of its function.
const MAX_CALLS: usize = 1024;

impl<'t, 'a> Selector<'_, 't, 'a> {
    pub(super) fn call(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".uni"])?;
        let name = form.operands().iter().find_map(|value| match value {
            Value::Function(name) => Some(*name),
            _ => None,
        });
        let Some(name) = name else {
            return Err(unsupported(form, "calls through a pointer"));
        };
        let callee = self.checked.bodies.iter().find(|body| body.function.name.text == name);
        let Some(callee) = callee else {
            return Err(unsupported(
                form,
                &format!("calls of `{name}`, which is not in this module"),
            ));
        };
        if self.frames.iter().any(|frame| frame.body.function.name.text == name) {
            return Err(unsupported(form, "functions that call themselves"));
        }
        if self.n_calls == MAX_CALLS {
            return Err(unsupported(
                form,
                "more than 1024 calls, each with its function's code,",
            ));
        }
        self.n_calls += 1;
        let line = self.line;
        let behind = self.around_guard();
        let given = argument_lists(form.operands());
        let n_returns = callee.function.returns.len();
        let (returns, params) = callee.params.split_at(n_returns);
        self.hand_over(form, params, given.1)?;
        self.frames.push(Frame::of(callee, &mut self.code, &mut self.places));
        self.steps();
        self.frames.pop();
        self.guard = When::ALWAYS;
        self.line = line;
        self.hand_back(form, returns, given.0)?;
        if let Some(label) = behind {
            self.label(label);
        }
        Ok(())
    }

    /// A guarded call jumps over the function's code, to the label that is returned.
    pub(super) fn around_guard(&mut self) -> Option<usize> {
        let guard = std::mem::replace(&mut self.guard, When::ALWAYS);
        if guard == When::ALWAYS {
            return None;
        }
        Some(self.jump_where(guard.negated()))
    }

    fn hand_over(&mut self, form: &Form<'t, 'a>, params: &[SymbolId], given: &[Value<'a>]) -> Selected {
        if params.len() != given.len() {
            return Err(form.malformed("the call has not as many arguments as the function has parameters"));
        }
        for (&param, value) in params.iter().zip(given) {
            let Value::Symbol(argument, _) = value else {
                return Err(unsupported(form, "arguments in registers"));
            };
            self.copy_param(param, *argument);
        }
        Ok(())
    }

    fn hand_back(&mut self, form: &Form<'t, 'a>, returns: &[SymbolId], wanted: &[Value<'a>]) -> Selected {
        for (&result, value) in returns.iter().zip(wanted) {
            let Value::Symbol(target, _) = value else {
                return Err(unsupported(form, "results in registers"));
            };
            self.copy_param(*target, result);
        }
        Ok(())
    }

    fn copy_param(&mut self, to: SymbolId, from: SymbolId) {
        let words = self.param_bytes(to).min(self.param_bytes(from)).div_ceil(4);
        let (to, from) = (self.param_words(to), self.param_words(from));
        for n in 0..words {
            let move_one = Op::row(Opcode::Mov)
                .dst(Word(to.0 + n))
                .src(&[Arg::word(Word(from.0 + n))]);
            self.emit(move_one);
        }
    }

    fn param_bytes(&self, symbol: SymbolId) -> u32 {
        self.checked.symbols[symbol.0 as usize].bytes() as u32
    }

    /// The first of the words that hold a call's parameter.
    fn param_words(&mut self, symbol: SymbolId) -> Word {
        if let Some(&word) = self.call_words.get(&symbol) {
            return word;
        }
        let first = Word(self.code.groups.len() as u32);
        for _ in 0..self.param_bytes(symbol).div_ceil(4).max(1) {
            self.code.group(1);
        }
        self.home_words.push(first.0..self.code.groups.len() as u32);
        self.call_words.insert(symbol, first);
        first
    }

    /// The word of a call's parameter at a byte offset, if the address is one.
    pub(super) fn param_word(
        &mut self,
        form: &Form<'t, 'a>,
        address: &Value<'a>,
        bytes: u32,
    ) -> Result<Option<Word>, Diagnostic> {
        let Value::Address(base, offset) = address else {
            return Ok(None);
        };
        let Value::Symbol(symbol, _) = **base else {
            return Ok(None);
        };
        if self.layout.place(symbol) != Some(Place::Call) {
            return Ok(None);
        }
        let size = i64::from(self.param_bytes(symbol));
        if offset % 4 != 0 || *offset < 0 || offset + i64::from(bytes) > size {
            return Err(unsupported(
                form,
                "parts of words, or more than there is, of a call's parameter",
            ));
        }
        Ok(Some(Word(self.param_words(symbol).0 + (*offset / 4) as u32)))
    }

    /// `st.param`: into the words of a call's parameter.
    pub(super) fn store_param(&mut self, form: &Form<'t, 'a>, values: &[Value<'a>], access: Access) -> Selected {
        let Some(first) = self.param_word(form, &form.operands()[0], access.total())? else {
            return Err(form.unsupported());
        };
        let value = self.gather(form, values, access)?;
        let value = if access.bytes < 4 {
            self.extended(value, form.ty())
        } else {
            value
        };
        for n in 0..access.words() {
            let to = Word(first.0 + u32::from(n));
            self.emit(Op::row(Opcode::Mov).dst(to).src(&[value.part(n)]));
        }
        Ok(())
    }

    /// `ld.param` inside a function, or behind a call.
    pub(super) fn load_param(
        &mut self,
        form: &Form<'t, 'a>,
        targets: &[Value<'a>],
        access: Access,
        first: Word,
    ) -> Selected {
        let each = access.words() / access.count;
        for (n, target) in (0..).zip(targets).filter(|(_, target)| **target != Value::Sink) {
            let result = self.dst_of(form, target, form.ty())?;
            let from = Word(first.0 + n * u32::from(each));
            let value = self.extended(Arg::word(from), form.ty());
            match each {
                2 => self.move_words(result, from, 2),
                _ => self.widen(result, self.words_of(target), value, false, access.signed),
            }
        }
        Ok(())
    }
}

/// Results and arguments of `call (r), f, (a, b)`.
fn argument_lists<'v, 'a>(operands: &'v [Value<'a>]) -> (&'v [Value<'a>], &'v [Value<'a>]) {
    let list = |value: Option<&'v Value<'a>>| match value {
        Some(Value::List(values)) => values.as_slice(),
        _ => &[],
    };
    let at = operands
        .iter()
        .position(|value| matches!(value, Value::Function(_)))
        .unwrap_or(0);
    (list(operands[..at].first()), list(operands.get(at + 1)))
}

fn unsupported(form: &Form<'_, '_>, what: &str) -> Diagnostic {
    Diagnostic::unsupported(form.op.instruction.span, what)
}
