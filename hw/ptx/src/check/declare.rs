//! Declarations of variables and registers.

use super::scope::Meaning;
use super::{Checker, RegId, SymbolId};
use crate::ast::{Linkage, Registers, Space, Type, Variable};
use crate::diag::Diagnostic;
use std::collections::HashSet;

/// Maximum number of registers in a function. It bounds the memory that a short text can take.
const MAX_REGISTERS: u32 = 1 << 20;

/// Maximum bytes of one variable. No machine holds more in module data.
const MAX_VARIABLE_BYTES: u64 = 1 << 31;

impl<'t, 'a> Checker<'t, 'a> {
    pub(super) fn variable(&mut self, variable: &'t Variable<'a>) -> SymbolId {
        self.initial_value(variable);
        if let Some(symbol) = self.declared_before(variable) {
            return symbol;
        }
        let symbol = SymbolId(self.checked.symbols.len() as u32);
        self.checked.symbols.push(variable);
        if variable.bytes() > MAX_VARIABLE_BYTES {
            self.report(
                variable.name.span,
                format!("`{}` is larger than 2 GiB", variable.name.text),
            );
        }
        let is_new = self.scopes.declare(variable.name.text, Meaning::Symbol(symbol));
        // A symbol declared `.extern` or `.common` may be declared again.
        let repeatable = matches!(variable.linkage, Linkage::Extern | Linkage::Common | Linkage::Weak);
        if !is_new && !repeatable && variable.name.text != "_" {
            self.redefined(variable.name, "variable");
        }
        symbol
    }

    pub(super) fn registers(&mut self, registers: &Registers<'a>) {
        for &(name, count) in &registers.names {
            let first = RegId(self.body.registers.len() as u32);
            let n = count.unwrap_or(1) * registers.vector;
            if self.body.registers.len() as u32 + n > MAX_REGISTERS {
                if !std::mem::replace(&mut self.body.has_dropped_registers, true) {
                    self.report(
                        name.span,
                        format!("more than {MAX_REGISTERS} registers in one function"),
                    );
                }
                continue;
            }
            self.body
                .registers
                .extend(std::iter::repeat_n(registers.ty, n as usize));
            if registers.vector != 1 {
                self.findings.push(
                    Diagnostic::unsupported(name.span, "vector registers").help("use scalar registers and `{ }` lists"),
                );
            }
            let is_new = match count {
                Some(count) => self.scopes.declare_family(name.text, first, count),
                None => self.scopes.declare(name.text, Meaning::Register(first)),
            };
            if !is_new {
                self.redefined(name, "register");
            }
        }
    }

    /// Resolves the names in the initial value of a function's variable, and reports a texture or surface.
    pub(super) fn function_variable(&mut self, variable: &Variable<'a>, symbol: SymbolId) {
        if variable.ty == Type::Handle || variable.space == Space::Tex {
            let message = format!("`{}` is a texture or surface inside a function", variable.name.text);
            let finding = Diagnostic::malformed(variable.name.span, message);
            self.findings.push(finding.help("declare it at module scope"));
        }
        let mut names = HashSet::new();
        variable.init.iter().for_each(|init| init.names(&mut names));
        for name in names {
            if let Some(Meaning::Symbol(named)) = self.scopes.get(name) {
                self.checked.init_names.insert((symbol, name), named);
            }
        }
    }

    /// Declares the register of a parameter or result, and returns the symbol of the parameter.
    pub(super) fn register_param(&mut self, param: &'t Variable<'a>) -> SymbolId {
        let symbol = SymbolId(self.checked.symbols.len() as u32);
        self.checked.symbols.push(param);
        let name = param.name;
        if self.body.function.is_entry {
            let finding = Diagnostic::malformed(name.span, "a kernel takes no parameters in registers");
            self.findings.push(finding.help("use `.param`"));
        }
        if param.vector > 1 {
            let finding = Diagnostic::unsupported(name.span, "a vector as a parameter in registers");
            self.findings.push(finding.help("use one parameter for each element"));
        }
        let register = RegId(self.body.registers.len() as u32);
        self.body.registers.push(param.ty);
        if name.text != "_" && !self.scopes.declare(name.text, Meaning::Register(register)) {
            self.redefined(name, "register");
        }
        self.body.param_registers.insert(symbol, vec![register]);
        symbol
    }

    /// Returns the symbol of an earlier declaration of the same variable. A definition replaces an `.extern` declaration.
    fn declared_before(&mut self, variable: &'t Variable<'a>) -> Option<SymbolId> {
        let Some(Meaning::Symbol(symbol)) = self.scopes.in_innermost(variable.name.text) else {
            return None;
        };
        let before = &mut self.checked.symbols[symbol.0 as usize];
        let is_extern = |variable: &Variable<'_>| variable.linkage == Linkage::Extern;
        if before.space != variable.space || !(is_extern(before) || is_extern(variable)) {
            return None;
        }
        if is_extern(before) {
            *before = variable;
        }
        Some(symbol)
    }

    /// Reports an initial value on a variable that cannot have one (PTX ISA, initializers).
    fn initial_value(&mut self, variable: &Variable<'a>) {
        if variable.init.is_none() {
            return;
        }
        let fault = match (variable.space, variable.linkage) {
            (_, Linkage::Extern) => "an `.extern` variable cannot have an initial value",
            (Space::Global | Space::Const, _) => return,
            _ => "only `.global` and `.const` variables have initial values",
        };
        self.report(variable.name.span, fault.to_owned());
    }
}
