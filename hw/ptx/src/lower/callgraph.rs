//! Who calls whom, through names and through addresses.
//!
//! A function's address is a number of the module's own, [`address`]: code has no other at this point. A call through a register may
//! reach every function whose address the module takes.

use crate::ast::Init;
use crate::check::{Body, Checked, Op, Step, SymbolId, Value};
use std::collections::{HashMap, HashSet};

/// Bytes between the addresses of functions.
const APART: u64 = 16;

/// The address of a function with a body; never zero.
pub(crate) fn address(checked: &Checked<'_, '_>, name: &str) -> Option<u64> {
    let index = checked.bodies.iter().position(|body| body.function.name.text == name)?;
    Some((index as u64 + 1) * APART)
}

/// Whether the module calls a function of this name that it does not have.
pub(crate) fn calls(checked: &Checked<'_, '_>, name: &str) -> bool {
    let is_it = |value: &Value<'_>| matches!(value, Value::Function(called) if *called == name);
    let mut ops = checked.bodies.iter().flat_map(ops);
    address(checked, name).is_none() && ops.any(|op| op.operands.iter().any(is_it))
}

/// The functions whose address the module takes, in text order: their places among those with a body.
pub(crate) fn taken(checked: &Checked<'_, '_>) -> Vec<usize> {
    let mut names = HashSet::new();
    for variable in &checked.symbols {
        variable.init.iter().for_each(|init| in_data(init, &mut names));
    }
    for op in checked.bodies.iter().flat_map(ops) {
        if op.instruction.opcode.text != "call" {
            op.operands.iter().for_each(|value| in_operand(value, &mut names));
        }
    }
    let bodies = checked.bodies.iter().enumerate();
    bodies
        .filter(|(_, body)| !body.function.is_entry && names.contains(body.function.name.text))
        .map(|(n, _)| n)
        .collect()
}

/// The calls of a module.
pub(crate) struct CallGraph<'c, 't, 'a> {
    checked: &'c Checked<'t, 'a>,
    /// Functions whose address the module takes, in text order.
    pub taken: Vec<&'c Body<'t, 'a>>,
    /// For each function with a body the functions that it calls, or may call, as indices.
    callees: Vec<Vec<usize>>,
}

impl<'c, 't, 'a> CallGraph<'c, 't, 'a> {
    /// Of a module whose [`taken`] functions are known.
    pub fn of(checked: &'c Checked<'t, 'a>, taken: &[usize]) -> Self {
        let named = checked.bodies.iter().enumerate();
        // Of two functions with one name the first counts.
        let numbers: HashMap<&str, usize> = named.rev().map(|(n, body)| (body.function.name.text, n)).collect();
        let callees = |body| callees(body, &numbers, taken);
        CallGraph {
            checked,
            taken: taken.iter().map(|&n| &checked.bodies[n]).collect(),
            callees: checked.bodies.iter().map(callees).collect(),
        }
    }

    /// A function and those that it calls, by itself or through others.
    pub fn closure(&self, body: &Body<'t, 'a>) -> Vec<&'c Body<'t, 'a>> {
        let mut found = self.reached([self.index(body)]);
        let bodies = &self.checked.bodies;
        found.drain(..).map(|n| &bodies[n]).collect()
    }

    /// Whether a function may come to call itself.
    pub fn is_recursive(&self, body: &Body<'t, 'a>) -> bool {
        let index = self.index(body);
        self.reached(self.callees[index].iter().copied()).contains(&index)
    }

    fn index(&self, body: &Body<'t, 'a>) -> usize {
        let bodies = self.checked.bodies.iter();
        let found = bodies.into_iter().position(|other| std::ptr::eq(other, body));
        found.expect("the function is one of this module")
    }

    /// The functions reached from `first` through calls, `first` included, nearest first.
    fn reached(&self, first: impl IntoIterator<Item = usize>) -> Vec<usize> {
        let mut is_found = vec![false; self.callees.len()];
        let mut found: Vec<usize> = Vec::new();
        let mut add = |n: usize, found: &mut Vec<usize>| {
            if !std::mem::replace(&mut is_found[n], true) {
                found.push(n);
            }
        };
        first.into_iter().for_each(|n| add(n, &mut found));
        let mut next = 0;
        while let Some(&n) = found.get(next) {
            next += 1;
            self.callees[n].iter().for_each(|&callee| add(callee, &mut found));
        }
        found
    }
}

/// Functions that a function calls, or may call through a register, in text order of the calls.
fn callees(body: &Body<'_, '_>, numbers: &HashMap<&str, usize>, taken: &[usize]) -> Vec<usize> {
    let mut found = Vec::new();
    for op in ops(body).filter(|op| op.instruction.opcode.text == "call") {
        let name = op.operands.iter().find_map(|value| match value {
            Value::Function(name) => Some(*name),
            _ => None,
        });
        match name {
            Some(name) => found.extend(numbers.get(name)),
            None => found.extend(taken),
        }
    }
    found
}

/// Whether a function makes generic addresses of parameters or constants.
pub(super) fn takes_constant_addresses(body: &Body<'_, '_>) -> bool {
    let is_constant = |op: &Op<'_, '_>| {
        let words: Vec<&str> = op.instruction.qualifiers.iter().map(|name| name.text).collect();
        !words.contains(&".to")
            && [".const", ".param", ".param::entry"]
                .iter()
                .any(|word| words.contains(word))
    };
    ops(body).any(|op| op.instruction.opcode.text == "cvta" && is_constant(op))
}

/// Whether a function takes memory from the stack by itself.
pub(super) fn uses_stack(body: &Body<'_, '_>) -> bool {
    let opcodes = ["alloca", "stacksave", "stackrestore"];
    ops(body).any(|op| opcodes.contains(&op.instruction.opcode.text))
}

fn ops<'b, 't, 'a>(body: &'b Body<'t, 'a>) -> impl Iterator<Item = &'b Op<'t, 'a>> {
    body.code.iter().filter_map(|step| match step {
        Step::Op(op) => Some(op),
        Step::Label(_) | Step::Param(_) => None,
    })
}

/// Variables of the module that a kernel can reach: through its functions, and through the addresses in other variables.
pub(super) fn reachable_data(graph: &CallGraph<'_, '_, '_>, kernel: &Body<'_, '_>) -> HashSet<SymbolId> {
    let symbols = &graph.checked.symbols[..graph.checked.n_module_symbols];
    let mut found = HashSet::new();
    let mut open = Vec::new();
    for op in graph.closure(kernel).into_iter().flat_map(ops) {
        op.operands.iter().for_each(|value| variables_in(value, &mut open));
    }
    while let Some(symbol) = open.pop() {
        if !found.insert(symbol) {
            continue;
        }
        let mut names = HashSet::new();
        let variable = symbols.get(symbol.0 as usize);
        let init = variable.and_then(|variable| variable.init.as_ref());
        init.into_iter().for_each(|init| in_data(init, &mut names));
        let named = (0..)
            .zip(symbols)
            .filter(|(_, variable)| names.contains(variable.name.text));
        open.extend(named.map(|(n, _)| SymbolId(n)));
    }
    found
}

fn variables_in(value: &Value<'_>, found: &mut Vec<SymbolId>) {
    match value {
        Value::Symbol(symbol, _) => found.push(*symbol),
        Value::Address(inner, _) | Value::Not(inner) | Value::Minus(inner) | Value::Part(inner, _) => {
            variables_in(inner, found);
        }
        Value::Pair(first, second) => [first, second].into_iter().for_each(|part| variables_in(part, found)),
        Value::Handle(parts) | Value::Vector(parts) | Value::List(parts) => {
            parts.iter().for_each(|part| variables_in(part, found));
        }
        _ => {}
    }
}

fn in_data<'a>(init: &Init<'a>, names: &mut HashSet<&'a str>) {
    match init {
        Init::Symbol(name, ..) => _ = names.insert(name.text),
        Init::Byte(inner, ..) => in_data(inner, names),
        Init::List(items, _) => items.iter().for_each(|item| in_data(item, names)),
        Init::Int(..) | Init::Float(..) => {}
    }
}

fn in_operand<'a>(value: &Value<'a>, names: &mut HashSet<&'a str>) {
    match value {
        Value::Function(name) => _ = names.insert(name),
        Value::Address(inner, _) | Value::Not(inner) => in_operand(inner, names),
        Value::Vector(parts) | Value::List(parts) => parts.iter().for_each(|part| in_operand(part, names)),
        _ => {}
    }
}
