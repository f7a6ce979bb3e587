//! Arguments and results of calls: `.param` variables, registers and literals.
//!
//! Every parameter of a function has words (`param`). The call copies its arguments to these words. At the start of the function,
//! the words are copied to the registers declared as parameters. At its end, result registers are copied to the result's words.

use super::call::unsupported;
use super::integer::parts;
use super::{Form, Selected, Selector, VLoc};
use crate::ast::Type;
use crate::check::{Body, RegId, SymbolId, Value};
use crate::diag::Diagnostic;
use crate::lower::code::{Arg, Op, VGuard, VReg};
use crate::lower::layout::VarLoc;
use warpwave_isa::inst::Cmp;
use warpwave_isa::opcode::Opcode;

impl<'t, 'a> Selector<'_, 't, 'a> {
    /// Copies the arguments of a call to the words of the function's parameters.
    pub(super) fn pass_arguments(&mut self, form: &Form<'t, 'a>, params: &[SymbolId], given: &[Value<'a>]) -> Selected {
        if params.len() != given.len() {
            return Err(form.malformed("the number of arguments differs from the function's parameters"));
        }
        for (&param, value) in params.iter().zip(given) {
            self.check_size(form, value, param)?;
            let words = self.argument_words(form, value, param)?;
            self.write_words(param, &words);
        }
        Ok(())
    }

    /// Returns the words of an argument. A predicate is 1 or 0.
    fn argument_words(
        &mut self,
        form: &Form<'t, 'a>,
        value: &Value<'a>,
        param: SymbolId,
    ) -> Result<Vec<Arg>, Diagnostic> {
        if let Value::Symbol(argument, _) = value {
            return Ok(self.param_words(*argument));
        }
        let ty = self.checked.symbols[param.0 as usize].ty;
        let mut words = Vec::new();
        for part in parts(value) {
            if ty == Type::Pred {
                let pred = self.src_pred(form, part)?;
                words.push(self.pred_word(pred));
                continue;
            }
            let source = self.arg(form, part, ty)?;
            words.extend((0..ty.bits().div_ceil(32) as u8).map(|n| source.part(n)));
        }
        Ok(words)
    }

    /// Copies the words of parameters to the registers that the function declares for them.
    pub(super) fn receive_arguments(&mut self, callee: &Body<'_, '_>) {
        // Results come first in `params`.
        for param in &callee.params[callee.function.returns.len()..] {
            if let Some(registers) = callee.param_registers.get(param) {
                let words = self.param_words(*param);
                self.write_registers(registers, &words);
            }
        }
    }

    /// Copies the registers that a function declares for its results to the words of the results.
    pub(super) fn hand_back_results(&mut self, callee: &Body<'_, '_>) {
        for result in &callee.params[..callee.function.returns.len()] {
            let Some(registers) = callee.param_registers.get(result) else {
                continue;
            };
            let mut words = Vec::new();
            for &register in registers {
                match self.frame().locations[register.0 as usize] {
                    VLoc::VPred(pred) => words.push(self.pred_word(VGuard::pred(pred))),
                    VLoc::VReg(first) => {
                        let count = self.register_type(register).bits().div_ceil(32) as u8;
                        words.extend((0..count).map(|n| Arg::vreg(first.offset(n))));
                    }
                }
            }
            self.write_words(*result, &words);
        }
    }

    /// Copies the results of a function to the targets of the call.
    pub(super) fn return_results(
        &mut self,
        form: &Form<'t, 'a>,
        returns: &[SymbolId],
        targets: &[Value<'a>],
    ) -> Selected {
        self.check_results(form, returns, targets)?;
        for (&result, target) in returns.iter().zip(targets) {
            let words = self.param_words(result);
            self.write_result(form, target, &words)?;
        }
        Ok(())
    }

    /// Checks that a call takes all results of its function, or none.
    pub(super) fn check_results(&self, form: &Form<'t, 'a>, returns: &[SymbolId], targets: &[Value<'a>]) -> Selected {
        if !targets.is_empty() && targets.len() != returns.len() {
            return Err(form.malformed("the number of results differs from the function's results"));
        }
        let mut pairs = returns.iter().zip(targets);
        pairs.try_for_each(|(&result, target)| self.check_size(form, target, result))
    }

    /// Checks that an argument or target has the size of the parameter. A variable must be a `.param` variable of the caller.
    fn check_size(&self, form: &Form<'t, 'a>, given: &Value<'a>, param: SymbolId) -> Selected {
        if let Value::Symbol(symbol, _) = given
            && self.layout.location(*symbol) != Some(VarLoc::Call)
        {
            let name = self.checked.symbols[symbol.0 as usize].name.text;
            let message = format!("`{name}` is not a `.param` variable of this function: a call cannot take it");
            return Err(form.malformed(&message));
        }
        let expected = self.param_bytes(param);
        let Some(found) = self.argument_bytes(given).filter(|&found| found != expected) else {
            return Ok(());
        };
        let name = match given {
            Value::Symbol(symbol, _) => format!("`{}`", self.checked.symbols[symbol.0 as usize].name.text),
            _ => "a register of this call".to_owned(),
        };
        Err(form.malformed(&format!(
            "{name} has {found} bytes, but the function declares {expected}"
        )))
    }

    /// Returns the size of an argument or target; `None` for a literal and for `_`.
    pub(super) fn argument_bytes(&self, given: &Value<'a>) -> Option<u32> {
        match given {
            Value::Symbol(symbol, _) => Some(self.param_bytes(*symbol)),
            Value::Register(register) => Some(self.register_type(*register).bytes()),
            Value::Vector(parts) => parts.iter().map(|part| self.argument_bytes(part)).sum(),
            _ => None,
        }
    }

    /// Writes words to the target of a call's result.
    pub(super) fn write_result(&mut self, form: &Form<'t, 'a>, target: &Value<'a>, words: &[Arg]) -> Selected {
        match target {
            Value::Symbol(symbol, _) => self.write_words(*symbol, words),
            Value::Register(register) => self.write_registers(&[*register], words),
            Value::Sink => {}
            Value::Vector(parts) => {
                let registers: Vec<RegId> = parts
                    .iter()
                    .filter_map(|part| match part {
                        Value::Register(register) => Some(*register),
                        _ => None,
                    })
                    .collect();
                self.write_registers(&registers, words);
            }
            _ => return Err(unsupported(form, "a result that is neither a variable nor a register")),
        }
        Ok(())
    }

    /// Copies words to the words of a call parameter.
    fn write_words(&mut self, to: SymbolId, words: &[Arg]) {
        let first = self.param_vregs(to);
        // Without a guard: a branch skips a guarded call.
        for (n, &word) in (0..self.param_bytes(to).div_ceil(4)).zip(words) {
            self.emit(Op::machine(Opcode::Mov).dst(VReg(first.0 + n)).src(&[word]));
        }
    }

    /// Copies words to PTX registers, one after the other.
    fn write_registers(&mut self, registers: &[RegId], words: &[Arg]) {
        let mut words = words.iter();
        for &register in registers {
            match self.frame().locations[register.0 as usize] {
                VLoc::VPred(pred) => {
                    let word = words.next().copied().unwrap_or(Arg::ZERO);
                    let is_set = Op::machine(Opcode::Isetp).src(&[word, Arg::ZERO]).pdst(pred);
                    self.emit(is_set.mods(|mods| mods.cmp = Cmp::Ne));
                }
                VLoc::VReg(first) => {
                    let count = self.register_type(register).bits().div_ceil(32) as u8;
                    for (n, &word) in (0..count).zip(words.by_ref()) {
                        self.emit(Op::machine(Opcode::Mov).dst(first.offset(n)).src(&[word]));
                    }
                }
            }
        }
    }

    /// Returns the words of a call parameter.
    fn param_words(&mut self, symbol: SymbolId) -> Vec<Arg> {
        let first = self.param_vregs(symbol);
        let words = self.param_bytes(symbol).div_ceil(4);
        (0..words).map(|n| Arg::vreg(VReg(first.0 + n))).collect()
    }

    /// Returns a word that is 1 where a predicate is true, and 0 elsewhere.
    fn pred_word(&mut self, pred: VGuard) -> Arg {
        let word = Op::machine(Opcode::Sel).src(&[Arg::imm(1), Arg::ZERO]).psrc(pred);
        self.compute(word)
    }
}
