//! Liveness across calls: registers and call-parameter words that are live across a step of a function.
//!
//! A store that covers a whole parameter word kills its old value; a partial store does not. All results of a function are live
//! at its return.

use super::param::{self, Access};
use crate::ast::Space;
use crate::check::{Body, Checked, Op, RegId, Step, SymbolId, Value, reads_first};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Registers and words that are live across a step.
pub(super) struct Live {
    pub registers: Vec<RegId>,
    /// Call parameters, each with the index of a live word.
    pub param_words: Vec<(SymbolId, u32)>,
}

/// Variables live across each call of a function body.
pub(super) struct CallLiveness {
    /// Live variables in ascending order, by the step of the call.
    live: HashMap<usize, Vec<usize>>,
    n_registers: usize,
    params: Vec<(SymbolId, Range<usize>)>,
}

impl CallLiveness {
    pub fn of(checked: &Checked<'_, '_>, body: &Body<'_, '_>) -> Self {
        let flow = BodyFlow::of(checked, body);
        CallLiveness {
            live: flow.solve(),
            n_registers: body.registers.len(),
            params: flow.params,
        }
    }

    /// Returns the registers and words live after a call, without its results.
    pub fn after(&self, step: usize) -> Live {
        let live = self.live.get(&step).map_or(&[][..], Vec::as_slice);
        let (registers, words) = live.split_at(live.partition_point(|&variable| variable < self.n_registers));
        let word = |&variable: &usize| {
            let at = self.params.partition_point(|(_, range)| range.end <= variable);
            let (symbol, range) = &self.params[at];
            (*symbol, (variable - range.start) as u32)
        };
        Live {
            registers: registers.iter().map(|&register| RegId(register as u32)).collect(),
            param_words: words.iter().map(word).collect(),
        }
    }
}

/// Effects of a step on variables, in order: true for a read, false for a write.
#[derive(Default)]
struct Effects(Vec<(usize, bool)>);

impl Effects {
    fn set(&mut self, variable: usize, is_read: bool) {
        self.0.push((variable, is_read));
    }

    fn fill(&mut self, variables: Range<usize>, is_read: bool) {
        self.0.extend(variables.map(|variable| (variable, is_read)));
    }
}

/// A function body with numbered variables: registers first, then words of parameters.
struct BodyFlow<'b, 't, 'a> {
    body: &'b Body<'t, 'a>,
    params: Vec<(SymbolId, Range<usize>)>,
    word_ranges: HashMap<SymbolId, Range<usize>>,
    n_variables: usize,
    /// Step of each label.
    labels: Vec<usize>,
}

impl<'b, 't, 'a> BodyFlow<'b, 't, 'a> {
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
        BodyFlow {
            body,
            word_ranges: params.iter().cloned().collect(),
            params,
            n_variables,
            labels,
        }
    }

    /// Returns the variables live after each call.
    fn solve(&self) -> HashMap<usize, Vec<usize>> {
        // The cost grows with the live ranges, not with variables times steps.
        let n = self.body.code.len();
        let before = self.predecessors();
        let calls: Vec<bool> = self.body.code.iter().map(is_call).collect();
        let mut live: HashMap<usize, Vec<usize>> = HashMap::new();
        // Each mark holds a variable number, so the next variable need not clear the marks.
        const NONE: usize = usize::MAX;
        let [mut defined, mut live_in, mut live_after] = [(); 3].map(|()| vec![NONE; n + 1]);
        for (variable, (mut worklist, writes)) in self.reads_and_writes().into_iter().enumerate() {
            writes.into_iter().for_each(|step| defined[step] = variable);
            worklist.iter().for_each(|&step| live_in[step] = variable);
            while let Some(step) = worklist.pop() {
                for &from in &before[step] {
                    if std::mem::replace(&mut live_after[from], variable) == variable {
                        continue;
                    }
                    if calls[from] {
                        live.entry(from).or_default().push(variable);
                    }
                    if defined[from] != variable && std::mem::replace(&mut live_in[from], variable) != variable {
                        worklist.push(from);
                    }
                }
            }
        }
        for (&step, variables) in &mut live {
            if let Step::Op(op) = &self.body.code[step] {
                let mut results = Effects::default();
                self.results_of(op, &mut results);
                // The call writes its results itself, so no value of them is live across it.
                let results: HashSet<usize> = results.0.into_iter().map(|(variable, _)| variable).collect();
                variables.retain(|variable| !results.contains(variable));
            }
        }
        live
    }

    /// Returns the steps that read and that overwrite each variable. The last step is the end of the body.
    fn reads_and_writes(&self) -> Vec<(Vec<usize>, Vec<usize>)> {
        let mut steps = vec![(Vec::new(), Vec::new()); self.n_variables];
        for (at, step) in self.body.code.iter().enumerate() {
            let Step::Op(op) = step else { continue };
            let mut effects = Effects::default();
            self.before(op, &mut effects);
            // The effects are in backward order, so the last one decides.
            let mut decided = HashSet::new();
            for (variable, is_read) in effects.0.into_iter().rev() {
                if decided.insert(variable) {
                    let (reads, writes) = &mut steps[variable];
                    if is_read { reads.push(at) } else { writes.push(at) }
                }
            }
        }
        for &result in &self.body.params[..self.body.function.returns.len()] {
            let registers = self.body.param_registers.get(&result).into_iter().flatten();
            registers
                .map(|register| register.0 as usize)
                .chain(self.words(result))
                .for_each(|variable| steps[variable].0.push(self.body.code.len()));
        }
        steps
    }

    fn predecessors(&self) -> Vec<Vec<usize>> {
        let mut before = vec![Vec::new(); self.body.code.len() + 1];
        for at in 0..self.body.code.len() {
            self.successors(at).into_iter().for_each(|next| before[next].push(at));
        }
        before
    }

    /// Returns the steps that can run after step `at`. The number of steps means the end of the body.
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
        // A guarded jump falls through in the lanes where its guard is false.
        if op.guard.is_some() {
            next.push(at + 1);
        }
        next
    }

    /// Appends the effects of an operation, backward in time.
    fn before(&self, op: &Op<'_, '_>, live: &mut Effects) {
        let opcode = op.instruction.opcode.text;
        // A matrix product on accumulators reads them too.
        let writes = !reads_first(op.instruction) && opcode != "wgmma";
        let (results, sources) = op.operands.split_at(usize::from(writes && !op.operands.is_empty()));
        // A guarded write keeps the old value in other lanes.
        if op.guard.is_none() {
            results.iter().for_each(|value| self.mark(value, live, false));
            self.params_written(op, live);
        }
        // An address in the result position is read.
        let is_address = |value: &&Value<'_>| matches!(value, Value::Address(..) | Value::Handle(_));
        let addresses = results.iter().filter(is_address);
        let calls = opcode == "call" && matches!(op.operands.first(), Some(Value::List(_)));
        let sources = if calls { &sources[1..] } else { sources };
        match param::access(op) {
            Some((access, stores)) => {
                if !stores {
                    live.fill(self.covered(&access, true), true);
                }
                let values = op.operands.iter().filter(|value| !matches!(value, Value::Address(..)));
                values.filter(|_| stores).for_each(|value| self.mark(value, live, true));
            }
            None => addresses.chain(sources).for_each(|value| self.mark(value, live, true)),
        }
        for sum in &op.sums {
            live.set(sum.result.0 as usize, false);
            live.set(sum.base.0 as usize, true);
        }
        if let Some((reg, _)) = op.guard {
            live.set(reg.0 as usize, true);
        }
    }

    /// Kills the words that a store or a call's results cover.
    fn params_written(&self, op: &Op<'_, '_>, live: &mut Effects) {
        match param::access(op) {
            Some((access, true)) => live.fill(self.covered(&access, false), false),
            _ if op.instruction.opcode.text == "call" => self.results_of(op, live),
            _ => {}
        }
    }

    /// Kills the results of a call.
    fn results_of(&self, op: &Op<'_, '_>, live: &mut Effects) {
        let Some(Value::List(results)) = op.operands.first() else {
            return;
        };
        for value in results {
            match value {
                Value::Symbol(symbol, _) => live.fill(self.words(*symbol), false),
                value => self.mark(value, live, false),
            }
        }
    }

    /// Returns the words of a parameter; empty for other variables.
    fn words(&self, symbol: SymbolId) -> Range<usize> {
        self.word_ranges.get(&symbol).cloned().unwrap_or(0..0)
    }

    /// Returns the words that an access touches, or only whole covered words if `in_part` is false.
    fn covered(&self, access: &Access, in_part: bool) -> Range<usize> {
        let words = self.words(access.symbol);
        let end = access.first.saturating_add(access.bytes);
        let [first, end] = match in_part {
            true => [access.first / 4, end.div_ceil(4)],
            false => [access.first.div_ceil(4), end / 4],
        };
        let word = |n: u32| (words.start + n as usize).min(words.end);
        word(first)..word(end.max(first))
    }

    /// Adds an effect for each register of an operand, and for each word of a parameter that is read.
    fn mark(&self, value: &Value<'_>, live: &mut Effects, is_read: bool) {
        match value {
            Value::Register(reg) => live.set(reg.0 as usize, is_read),
            Value::Symbol(symbol, _) if is_read => live.fill(self.words(*symbol), true),
            Value::Address(inner, _) if is_read => self.mark(inner, live, true),
            Value::Not(inner) | Value::Minus(inner) | Value::Part(inner, _) => self.mark(inner, live, is_read),
            Value::Pair(first, second) => {
                self.mark(first, live, is_read);
                self.mark(second, live, is_read);
            }
            Value::Handle(parts) if is_read => parts.iter().for_each(|part| self.mark(part, live, true)),
            Value::Vector(parts) | Value::List(parts) => {
                parts.iter().for_each(|part| self.mark(part, live, is_read));
            }
            _ => {}
        }
    }
}

fn is_call(step: &Step<'_, '_>) -> bool {
    matches!(step, Step::Op(op) if op.instruction.opcode.text == "call")
}
