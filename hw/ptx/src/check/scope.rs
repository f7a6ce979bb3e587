//! Scopes: names and their meanings, from the innermost scope outwards.

use std::collections::HashMap;

use super::{LabelId, RegId, SymbolId};

/// Meaning of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A register.
    Register(RegId),
    /// A variable or parameter.
    Symbol(SymbolId),
    /// A position in the code.
    Label(LabelId),
    /// A call prototype.
    Prototype,
    /// A table of branch targets: its index in the function.
    Targets(u32),
}

/// Maximum number of digits of a register number.
const MAX_DIGITS: usize = 7;

/// Names declared in one `{ }`.
#[derive(Default)]
struct Scope<'a> {
    names: HashMap<&'a str, Meaning>,
    /// First register and count of each family such as `%r<8>`. A family needs no entry for each member.
    families: HashMap<&'a str, (u32, u32)>,
}

impl Scope<'_> {
    fn get(&self, name: &str) -> Option<Meaning> {
        if let Some(&meaning) = self.names.get(name) {
            return Some(meaning);
        }
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit);
        let digits = digits.take(MAX_DIGITS).count();
        let split = name.len() - digits;
        // A family's name may itself end in a digit: `%x1<4>` declares `%x10` to `%x13`.
        (split..name.len()).find_map(|at| self.family_member(&name[..at], &name[at..]))
    }

    fn family_member(&self, family: &str, index: &str) -> Option<Meaning> {
        let &(first, count) = self.families.get(family)?;
        let canonical = index == "0" || !index.starts_with('0');
        let index: u32 = index.parse().ok()?;
        (canonical && index < count).then_some(Meaning::Register(RegId(first + index)))
    }
}

/// Stack of open scopes.
#[derive(Default)]
pub(super) struct Scopes<'a> {
    stack: Vec<Scope<'a>>,
}

impl<'a> Scopes<'a> {
    pub fn open(&mut self) {
        self.stack.push(Scope::default());
    }

    pub fn close(&mut self) {
        self.stack.pop();
    }

    /// Declares a name in the innermost scope. Returns false if the scope has the name already.
    #[must_use]
    pub fn declare(&mut self, name: &'a str, meaning: Meaning) -> bool {
        let Some(scope) = self.stack.last_mut() else {
            return true;
        };
        scope.get(name).is_none() && scope.names.insert(name, meaning).is_none()
    }

    /// Declares `name0` to `name(count-1)` as the registers from `first`. Returns false if the family exists.
    #[must_use]
    pub fn declare_family(&mut self, name: &'a str, first: RegId, count: u32) -> bool {
        let Some(scope) = self.stack.last_mut() else {
            return true;
        };
        scope.families.insert(name, (first.0, count)).is_none()
    }

    /// Looks up a name in the innermost scope only.
    pub fn in_innermost(&self, name: &str) -> Option<Meaning> {
        self.stack.last().and_then(|scope| scope.get(name))
    }

    /// Looks up a name from the innermost scope outwards.
    pub fn get(&self, name: &str) -> Option<Meaning> {
        self.stack.iter().rev().find_map(|scope| scope.get(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_declaration_hides_outer_register_until_scope_closes() {
        let mut scopes = Scopes::default();
        scopes.open();
        assert!(scopes.declare_family("%r", RegId(0), 8));
        scopes.open();
        assert!(scopes.declare("%r1", Meaning::Register(RegId(8))));
        assert_eq!(scopes.get("%r1"), Some(Meaning::Register(RegId(8))));
        assert_eq!(scopes.get("%r2"), Some(Meaning::Register(RegId(2))));
        scopes.close();
        assert_eq!(scopes.get("%r1"), Some(Meaning::Register(RegId(1))));
    }

    #[test]
    fn register_beyond_its_family_is_undefined() {
        let mut scopes = Scopes::default();
        scopes.open();
        assert!(scopes.declare_family("%r", RegId(0), 8));
        assert_eq!(scopes.get("%r8"), None);
        assert_eq!(scopes.get("%r01"), None);
    }

    #[test]
    fn second_declaration_in_one_scope_is_refused() {
        let mut scopes = Scopes::default();
        scopes.open();
        assert!(scopes.declare_family("%r", RegId(0), 8));
        assert!(!scopes.declare("%r3", Meaning::Register(RegId(9))));
    }
}
