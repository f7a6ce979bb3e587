//! The call graph: calls by name and by address.
//!
//! A function's [`address`] is a number chosen here, because code has no address yet. A call through a register can reach every
//! function whose address the module takes.

use super::graph::order::in_cycles;
use crate::check::{Body, Checked, Op, Step, SymbolId, Value};
use crate::diag::{Diagnostic, Span};
use std::collections::HashSet;

/// Distance between the addresses of two functions.
const ADDRESS_STEP: u64 = 16;

/// Returns the finding for a used function or variable that no text defines.
///
/// Its span is the declaration, so all uses give one finding.
pub(crate) fn undefined(name: &str, declaration: Span) -> Diagnostic {
    Diagnostic::unsupported(declaration, format!("`{name}` is declared, but no PTX defines it"))
        .help("link the PTX that defines it: in a scenario, `ptx` takes a list of files")
}

/// Returns the address of a function with a body; never zero.
pub(crate) fn address(checked: &Checked<'_, '_>, name: &str) -> Option<u64> {
    // Plus one, because a null pointer is no function.
    Some((checked.number(name)? as u64 + 1) * ADDRESS_STEP)
}

/// True if the module calls a function `name` that it does not define.
pub(crate) fn calls_external(checked: &Checked<'_, '_>, name: &str) -> bool {
    let is_it = |value: &Value<'_>| matches!(value, Value::Function(called) if *called == name);
    let mut ops = checked.bodies.iter().flat_map(ops);
    address(checked, name).is_none() && ops.any(|op| op.operands.iter().any(is_it))
}

/// Returns the functions whose address the module takes, in text order, as indices of bodies.
fn address_taken(checked: &Checked<'_, '_>) -> Vec<usize> {
    let mut names = HashSet::new();
    for variable in &checked.symbols {
        variable.init.iter().for_each(|init| init.names(&mut names));
    }
    for op in checked.bodies.iter().flat_map(ops) {
        // A call by name takes no address, and a call through a register has it from elsewhere.
        if op.instruction.opcode.text != "call" {
            op.operands
                .iter()
                .for_each(|value| functions_in_operand(value, &mut names));
        }
    }
    let numbers: HashSet<usize> = names.iter().filter_map(|name| checked.number(name)).collect();
    let bodies = checked.bodies.iter().enumerate();
    bodies
        .filter(|(n, body)| !body.function.is_entry && numbers.contains(n))
        .map(|(n, _)| n)
        .collect()
}

/// The calls of a module. A function is its index in [`Checked::bodies`].
#[derive(Default)]
pub(crate) struct CallGraph {
    /// Functions whose address is taken, in text order.
    pub address_taken: Vec<usize>,
    /// Callees of each function, in text order of the calls. An index after the last function is a call through a register.
    callees: Vec<Vec<usize>>,
    recursive: Vec<bool>,
}

impl CallGraph {
    pub fn of(checked: &Checked<'_, '_>) -> Self {
        let address_taken = address_taken(checked);
        let callees: Vec<Vec<usize>> = checked.bodies.iter().map(|body| callees(checked, body)).collect();
        // One extra node is the call through a register: it calls every function whose address is taken.
        let with_register = [callees.as_slice(), std::slice::from_ref(&address_taken)].concat();
        CallGraph {
            recursive: in_cycles(&with_register),
            address_taken,
            callees,
        }
    }

    /// True if a function can call itself, directly or through others.
    pub fn is_recursive(&self, function: usize) -> bool {
        self.recursive[function]
    }

    /// Returns a function and everything that it calls, directly or through others, nearest first.
    pub fn closure(&self, function: usize) -> Vec<usize> {
        let through_register = self.callees.len();
        let mut visited = vec![false; self.callees.len() + 1];
        let mut found = Vec::new();
        let mut add = |n: usize, found: &mut Vec<usize>| {
            if std::mem::replace(&mut visited[n], true) {
                return false;
            }
            if n != through_register {
                found.push(n);
            }
            true
        };
        add(function, &mut found);
        let mut next = 0;
        while let Some(&n) = found.get(next) {
            next += 1;
            for &callee in &self.callees[n] {
                if add(callee, &mut found) && callee == through_register {
                    self.address_taken.iter().for_each(|&n| _ = add(n, &mut found));
                }
            }
        }
        found
    }
}

/// Returns the callees of a function, each once.
fn callees(checked: &Checked<'_, '_>, body: &Body<'_, '_>) -> Vec<usize> {
    let mut visited = HashSet::new();
    let calls = ops(body).filter(|op| op.instruction.opcode.text == "call");
    let callees = calls.filter_map(|op| {
        let name = op.operands.iter().find_map(|value| match value {
            Value::Function(name) => Some(*name),
            _ => None,
        });
        // A call without a name is a call through a register: the extra node.
        name.map_or(Some(checked.bodies.len()), |name| checked.number(name))
    });
    callees.filter(|&callee| visited.insert(callee)).collect()
}

/// True if a function takes a generic address in one of these state spaces.
pub(super) fn takes_addresses(body: &Body<'_, '_>, spaces: &[&str]) -> bool {
    let is_of_space = |op: &Op<'_, '_>| {
        let words: Vec<&str> = op.instruction.qualifiers.iter().map(|name| name.text).collect();
        !words.contains(&".to") && spaces.iter().any(|space| words.contains(space))
    };
    ops(body).any(|op| op.instruction.opcode.text == "cvta" && is_of_space(op))
}

/// True if a function allocates stack memory with `alloca`, or saves or restores the stack.
pub(super) fn uses_stack(body: &Body<'_, '_>) -> bool {
    let opcodes = ["alloca", "stacksave", "stackrestore"];
    ops(body).any(|op| opcodes.contains(&op.instruction.opcode.text))
}

fn ops<'b, 't, 'a>(body: &'b Body<'t, 'a>) -> impl Iterator<Item = &'b Op<'t, 'a>> {
    body.code.iter().filter_map(|step| match step {
        Step::Op(op) => Some(op),
        Step::Label(_) | Step::Param(_) | Step::KeepLoop => None,
    })
}

/// Returns a kernel and all functions that it calls, directly or through others, nearest first.
pub(super) fn functions<'c, 't, 'a>(
    checked: &'c Checked<'t, 'a>,
    graph: &CallGraph,
    kernel: &Body<'t, 'a>,
) -> Vec<&'c Body<'t, 'a>> {
    let numbers = graph.closure(kernel.number).into_iter();
    numbers.map(|n| &checked.bodies[n]).collect()
}

/// Returns the variables that a kernel can reach, through its functions and through addresses in other variables.
pub(super) fn reachable_data(checked: &Checked<'_, '_>, graph: &CallGraph, kernel: &Body<'_, '_>) -> HashSet<SymbolId> {
    let symbols = &checked.symbols[..checked.n_module_symbols];
    let mut found = HashSet::new();
    let mut worklist = Vec::new();
    for op in functions(checked, graph, kernel).into_iter().flat_map(ops) {
        op.operands.iter().for_each(|value| variables_in(value, &mut worklist));
    }
    // A kernel can follow an address that a variable holds.
    while let Some(symbol) = worklist.pop() {
        if !found.insert(symbol) {
            continue;
        }
        let mut names = HashSet::new();
        let init = checked.symbols[symbol.0 as usize].init.as_ref();
        init.into_iter().for_each(|init| init.names(&mut names));
        // A name in a function's initial value may mean a variable of that function.
        names.retain(|name| match checked.init_names.get(&(symbol, *name)) {
            Some(&inner) => {
                worklist.push(inner);
                false
            }
            None => true,
        });
        let named = (0..)
            .zip(symbols)
            .filter(|(_, variable)| names.contains(variable.name.text));
        worklist.extend(named.map(|(n, _)| SymbolId(n)));
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

fn functions_in_operand<'a>(value: &Value<'a>, names: &mut HashSet<&'a str>) {
    match value {
        Value::Function(name) => _ = names.insert(name),
        Value::Address(inner, _) | Value::Not(inner) => functions_in_operand(inner, names),
        Value::Vector(parts) | Value::List(parts) => parts.iter().for_each(|part| functions_in_operand(part, names)),
        _ => {}
    }
}
