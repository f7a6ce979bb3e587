//! Declarations of variables and registers.

use super::scope::{Family, Meaning};
use super::{Checker, RegId, SymbolId};
use crate::ast::{Linkage, Name, Registers, Space, Type, Variable};
use crate::diag::Diagnostic;
use std::collections::HashSet;

/// Maximum number of registers in a function. It bounds the memory that a short text can take.
const MAX_REGISTERS: u32 = 1 << 20;

/// Maximum bytes of one variable. No machine holds more in module data.
const MAX_VARIABLE_BYTES: u64 = 1 << 31;

impl<'t, 'a> Checker<'t, 'a> {
    /// Declares a variable and returns its symbol. Reports a second definition.
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
        // `_` names nothing, so it may be repeated.
        if !is_new && !repeatable && variable.name.text != "_" {
            self.redefined(variable.name, "variable");
        }
        symbol
    }

    /// Declares registers in the innermost scope.
    pub(super) fn registers(&mut self, registers: &Registers<'a>) {
        if let Some((name, _)) = registers.names.first() {
            self.vector_type(*name, registers.ty, registers.vector);
        }
        for &(name, count) in &registers.names {
            let first = RegId(self.body.registers.len() as u32);
            let n = count.unwrap_or(1) * registers.vector;
            if self.body.registers.len() as u32 + n > MAX_REGISTERS {
                // Reported once. Then no undefined register is reported, because it may be a dropped one.
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
            let width = registers.vector;
            let is_new = match (count, width) {
                (Some(count), _) => self.scopes.declare_family(name.text, Family { first, count, width }),
                (None, 1) => self.scopes.declare(name.text, Meaning::Register(first)),
                (None, _) => self.scopes.declare(name.text, Meaning::Vector(first, width)),
            };
            if !is_new {
                self.redefined(name, "register");
            }
        }
    }

    /// Reports a vector of predicates, or of more than 128 bits.
    fn vector_type(&mut self, name: Name<'a>, ty: Type, width: u32) {
        let finding = match ty {
            _ if width == 1 => return,
            Type::Pred => Diagnostic::malformed(name.span, format!("`{}` is a vector of predicates", name.text))
                .help("use one register for each predicate"),
            _ if width * ty.bits() > 128 => {
                let message = format!("vector `{}` is wider than 128 bits", name.text);
                Diagnostic::malformed(name.span, message).help("use `.v2`, or several registers")
            }
            _ => return,
        };
        self.findings.push(finding);
    }

    /// Resolves the names in the initial value of a function's variable, and reports a texture or surface.
    pub(super) fn function_variable(&mut self, variable: &Variable<'a>, symbol: SymbolId) {
        if variable.ty.is_reference() || variable.space == Space::Tex {
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
        self.vector_type(name, param.ty, param.vector);
        let first = self.body.registers.len() as u32;
        let registers = first..first + param.vector;
        self.body.registers.extend(registers.clone().map(|_| param.ty));
        let meaning = match param.vector {
            1 => Meaning::Register(RegId(first)),
            width => Meaning::Vector(RegId(first), width),
        };
        if name.text != "_" && !self.scopes.declare(name.text, meaning) {
            self.redefined(name, "register");
        }
        self.body.param_registers.insert(symbol, registers.map(RegId).collect());
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
        // The symbol keeps its number, so uses before the definition stay valid.
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
