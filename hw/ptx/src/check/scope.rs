//! Names and what they mean, from the innermost scope outwards.

use std::collections::HashMap;

use super::{LabelId, RegId, SymbolId};

/// What a name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A register.
    Register(RegId),
    /// A variable or parameter.
    Symbol(SymbolId),
    /// A place in the code.
    Label(LabelId),
    /// A call prototype.
    Prototype,
    /// A table of targets, by its number in the function.
    Targets(u32),
}

/// Digits of the largest number of a register.
const MOST_DIGITS: usize = 7;

/// The names of one `{ }`.
#[derive(Default)]
struct Scope<'a> {
    names: HashMap<&'a str, Meaning>,
    /// `%r<8>`: the first register and how many, without eight entries.
    families: HashMap<&'a str, (u32, u32)>,
}

impl Scope<'_> {
    fn get(&self, name: &str) -> Option<Meaning> {
        if let Some(&meaning) = self.names.get(name) {
            return Some(meaning);
        }
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit);
        let digits = digits.take(MOST_DIGITS).count();
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

/// The scopes open at a place in the text.
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

    /// Declares a name in the innermost scope; false if that scope has it already.
    #[must_use]
    pub fn declare(&mut self, name: &'a str, meaning: Meaning) -> bool {
        let Some(scope) = self.stack.last_mut() else {
            return true;
        };
        scope.get(name).is_none() && scope.names.insert(name, meaning).is_none()
    }

    /// Declares `name0` to `name(count-1)` as the registers from `first` on; false if the family exists.
    #[must_use]
    pub fn declare_family(&mut self, name: &'a str, first: RegId, count: u32) -> bool {
        let Some(scope) = self.stack.last_mut() else {
            return true;
        };
        scope.families.insert(name, (first.0, count)).is_none()
    }

    /// The meaning of a name in the innermost scope alone.
    pub fn in_innermost(&self, name: &str) -> Option<Meaning> {
        self.stack.last().and_then(|scope| scope.get(name))
    }

    /// The innermost meaning of a name.
    pub fn get(&self, name: &str) -> Option<Meaning> {
        self.stack.iter().rev().find_map(|scope| scope.get(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_scope_declares_same_register_hides_outer_until_closed() {
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
    fn family_of_eight_ninth_member_is_undefined() {
        let mut scopes = Scopes::default();
        scopes.open();
        assert!(scopes.declare_family("%r", RegId(0), 8));
        assert_eq!(scopes.get("%r8"), None);
        assert_eq!(scopes.get("%r01"), None);
    }

    #[test]
    fn same_scope_declares_name_twice_is_refused() {
        let mut scopes = Scopes::default();
        scopes.open();
        assert!(scopes.declare_family("%r", RegId(0), 8));
        assert!(!scopes.declare("%r3", Meaning::Register(RegId(9))));
    }
}
