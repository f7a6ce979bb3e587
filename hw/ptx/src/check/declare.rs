//! Declarations of variables: initial values, and repeated declarations.

use super::scope::Meaning;
use super::{Checker, SymbolId};
use crate::ast::{Linkage, Space, Variable};

impl<'t, 'a> Checker<'t, 'a> {
    /// The variable that an earlier declaration of the same name means. An `.extern` declaration gives way to the definition.
    pub(super) fn declared_before(&mut self, variable: &'t Variable<'a>) -> Option<SymbolId> {
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

    /// Refuses an initial value of a variable that cannot have one (PTX ISA, initializers).
    pub(super) fn initial_value(&mut self, variable: &Variable<'a>) {
        if variable.init.is_none() {
            return;
        }
        let fault = match (variable.space, variable.linkage) {
            (_, Linkage::Extern) => "an initial value of a variable that is defined elsewhere",
            (Space::Global | Space::Const, _) => return,
            _ => "only `.global` and `.const` variables have initial values",
        };
        self.find(variable.name.span, fault.to_owned());
    }
}
