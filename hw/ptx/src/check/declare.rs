//! What a declaration of a variable may say: an initial value, or a name that another declaration has.

use super::scope::Meaning;
use super::{Checker, SymbolId};
use crate::ast::{Linkage, Space, Variable};

impl<'t, 'a> Checker<'t, 'a> {
    /// A variable of the module that is declared `.extern` and also defined is one variable: the definition.
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

    /// PTX gives initial values to `.global` and `.const` variables of this module alone.
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
