//! Registers and words of call parameters that live across a step of a function's body.
//!
//! A store that covers a whole word of a parameter ends the life of the old word. A store into a part of it does not.
//! All results of a function are live where it returns.

use super::param::{self, Access};
use crate::ast::Space;
use crate::check::{Body, Checked, Op, RegId, Step, SymbolId, Value};
use std::ops::Range;

/// Registers and words that live across a step.
pub(super) struct Live {
    pub registers: Vec<RegId>,
    /// Parameters of calls, each with the number of one of its words.
    pub param_words: Vec<(SymbolId, u32)>,
}

/// Live registers and words behind a step, without the results of the call at that step.
pub(super) fn behind(checked: &Checked<'_, '_>, body: &Body<'_, '_>, step: usize) -> Live {
    let flow = Flow::of(checked, body);
    let mut wanted = flow.solve().swap_remove((step + 1).min(body.code.len()));
    if let Step::Op(op) = &body.code[step]
        && op.instruction.opcode.text == "call"
    {
        flow.results_of(op, &mut wanted);
    }
    let registers = (0..body.registers.len() as u32).filter(|&reg| wanted[reg as usize]);
    let words = flow.params.iter().flat_map(|(symbol, places)| {
        let live = (0..).zip(places.clone()).filter(|&(_, place)| wanted[place]);
        live.map(|(n, _)| (*symbol, n)).collect::<Vec<_>>()
    });
    Live {
        registers: registers.map(RegId).collect(),
        param_words: words.collect(),
    }
}

/// A body and the numbers of its variables: registers first, then the words of parameters.
struct Flow<'b, 't, 'a> {
    body: &'b Body<'t, 'a>,
    params: Vec<(SymbolId, Range<usize>)>,
    n_variables: usize,
    /// The step of each label.
    labels: Vec<usize>,
}

impl<'b, 't, 'a> Flow<'b, 't, 'a> {
    fn of(checked: &Checked<'_, '_>, body: &'b Body<'t, 'a>) -> Self {
        let mut labels = vec![body.code.len(); body.n_labels as usize];
        for (at, step) in body.code.iter().enumerate() {
            if let Step::Label(label) = step {
                labels[label.0 as usize] = at;
            }
        }
        let mut n_variables = body.registers.len();
        let mut params = Vec::new();
        for &symbol in body.params.iter().chain(&body.symbols) {
            let variable = checked.symbols[symbol.0 as usize];
            if variable.space == Space::Param {
                let end = n_variables + variable.bytes().div_ceil(4) as usize;
                params.push((symbol, n_variables..end));
                n_variables = end;
            }
        }
        Flow {
            body,
            params,
            n_variables,
            labels,
        }
    }

    /// Live variables before each step; the last entry is the end of the body.
    fn solve(&self) -> Vec<Vec<bool>> {
        let n = self.body.code.len();
        let mut live = vec![vec![false; self.n_variables]; n + 1];
        for &result in &self.body.params[..self.body.function.returns.len()] {
            live[n][self.words(result)].fill(true);
        }
        let mut changed = true;
        while changed {
            changed = false;
            for at in (0..n).rev() {
                let mut now = vec![false; self.n_variables];
                for next in self.successors(at) {
                    now.iter_mut().zip(&live[next]).for_each(|(now, next)| *now |= next);
                }
                if let Step::Op(op) = &self.body.code[at] {
                    self.before(op, &mut now);
                }
                changed |= now != live[at];
                live[at] = now;
            }
        }
        live
    }

    fn successors(&self, at: usize) -> Vec<usize> {
        let Step::Op(op) = &self.body.code[at] else {
            return vec![at + 1];
        };
        let mut next: Vec<usize> = match (op.instruction.opcode.text, op.operands.as_slice()) {
            ("bra", [Value::Label(label)]) => vec![self.labels[label.0 as usize]],
            ("brx", [_, Value::Targets(table)]) => {
                let targets = &self.body.tables[*table as usize];
                targets.iter().map(|label| self.labels[label.0 as usize]).collect()
            }
            ("ret", _) => vec![self.body.code.len()],
            ("exit" | "trap", _) => Vec::new(),
            _ => return vec![at + 1],
        };
        if op.guard.is_some() {
            next.push(at + 1);
        }
        next
    }

    /// Turns the variables that live behind an operation into those before it.
    fn before(&self, op: &Op<'_, '_>, live: &mut [bool]) {
        // Operations that write nothing to their first operand, as far as it may be a register.
        const READERS: &str = "bar barrier brx call mbarrier nanosleep prefetch red st sust";
        let opcode = op.instruction.opcode.text;
        let writes = !READERS.split(' ').any(|reader| reader == opcode);
        let (results, sources) = op.operands.split_at(usize::from(writes && !op.operands.is_empty()));
        if op.guard.is_none() {
            results.iter().for_each(|value| self.mark(value, live, false));
            self.params_written(op, live);
        }
        // An address in the place of a result is read.
        let addresses = results.iter().filter(|value| matches!(value, Value::Address(..)));
        let calls = opcode == "call" && matches!(op.operands.first(), Some(Value::List(_)));
        let sources = if calls { &sources[1..] } else { sources };
        match param::access(op) {
            Some((access, stores)) => {
                if !stores {
                    live[self.covered(&access, true)].fill(true);
                }
                let values = op.operands.iter().filter(|value| !matches!(value, Value::Address(..)));
                values.filter(|_| stores).for_each(|value| self.mark(value, live, true));
            }
            None => addresses.chain(sources).for_each(|value| self.mark(value, live, true)),
        }
        for sum in &op.sums {
            live[sum.result.0 as usize] = false;
            live[sum.base.0 as usize] = true;
        }
        if let Some((reg, _)) = op.guard {
            live[reg.0 as usize] = true;
        }
    }

    /// Ends the lives of the words that a store or the results of a call cover.
    fn params_written(&self, op: &Op<'_, '_>, live: &mut [bool]) {
        match param::access(op) {
            Some((access, true)) => live[self.covered(&access, false)].fill(false),
            _ if op.instruction.opcode.text == "call" => self.results_of(op, live),
            _ => {}
        }
    }

    /// Ends the lives of the results of a call.
    fn results_of(&self, op: &Op<'_, '_>, live: &mut [bool]) {
        let Some(Value::List(results)) = op.operands.first() else {
            return;
        };
        for value in results {
            if let Value::Symbol(symbol, _) = value {
                live[self.words(*symbol)].fill(false);
            }
        }
    }

    /// The words of a parameter; none for any other variable.
    fn words(&self, symbol: SymbolId) -> Range<usize> {
        let found = self.params.iter().find(|(param, _)| *param == symbol);
        found.map_or(0..0, |(_, places)| places.clone())
    }

    /// Words that an access touches, or with `in_part` false only whole words.
    fn covered(&self, access: &Access, in_part: bool) -> Range<usize> {
        let words = self.words(access.symbol);
        let end = access.first.saturating_add(access.bytes);
        let [first, end] = match in_part {
            true => [access.first / 4, end.div_ceil(4)],
            false => [access.first.div_ceil(4), end / 4],
        };
        let place = |n: u32| (words.start + n as usize).min(words.end);
        place(first)..place(end.max(first))
    }

    fn mark(&self, value: &Value<'_>, live: &mut [bool], is_read: bool) {
        match value {
            Value::Register(reg) => live[reg.0 as usize] = is_read,
            Value::Symbol(symbol, _) if is_read => live[self.words(*symbol)].fill(true),
            Value::Address(inner, _) if is_read => self.mark(inner, live, true),
            Value::Not(inner) | Value::Minus(inner) | Value::Part(inner, _) => self.mark(inner, live, is_read),
            Value::Pair(first, second) => {
                self.mark(first, live, is_read);
                self.mark(second, live, is_read);
            }
            Value::Handle(parts) | Value::Vector(parts) | Value::List(parts) => {
                parts.iter().for_each(|part| self.mark(part, live, is_read));
            }
            _ => {}
        }
    }
}
