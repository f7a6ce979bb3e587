//! Scopes: names and their meanings, from the innermost scope outwards.

use std::collections::HashMap;

use super::{LabelId, RegId, SymbolId};

/// Meaning of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A register.
    Register(RegId),
    /// A vector register: its first element, and the number of elements.
    Vector(RegId, u32),
    /// A variable or parameter.
    Symbol(SymbolId),
    /// A position in the code.
    Label(LabelId),
    /// A call prototype.
    Prototype,
    /// A table of branch targets: its index in the function.
    Targets(u32),
}

/// Maximum number of digits of a register number. A declaration has at most 2^20 registers.
const MAX_DIGITS: usize = 7;

/// A family of registers: a common name, followed by the number of each member.
#[derive(Clone, Copy)]
pub(super) struct Family {
    /// First register of member 0.
    pub first: RegId,
    pub count: u32,
    /// Elements of each member; 1 for scalar registers.
    pub width: u32,
}

impl Family {
    fn member(self, index: u32) -> Meaning {
        let first = RegId(self.first.0 + index * self.width);
        match self.width {
            1 => Meaning::Register(first),
            width => Meaning::Vector(first, width),
        }
    }
}

/// Names declared in one `{ }`.
#[derive(Default)]
struct Scope<'a> {
    names: HashMap<&'a str, Meaning>,
    /// Each family such as `%r<8>`. A family needs no entry for each member.
    families: HashMap<&'a str, Family>,
    /// The least number after each prefix of a declared name: 3 for `%r`, after `%r3` and `%r12`.
    least_numbers: HashMap<&'a str, u32>,
}

impl<'a> Scope<'a> {
    /// Looks up a name in this scope, as a name or as a member of a family.
    fn get(&self, name: &str) -> Option<Meaning> {
        if let Some(&meaning) = self.names.get(name) {
            return Some(meaning);
        }
        // Two families can have the name, such as `%x<20>` and `%x1<4>`. The shorter one counts, as in the vendor's assembler.
        members(name).find_map(|(family, index)| self.family_member(family, index))
    }

    fn family_member(&self, family: &str, index: u32) -> Option<Meaning> {
        let &family = self.families.get(family)?;
        (index < family.count).then(|| family.member(index))
    }

    /// Adds a name that is not a member of a family.
    fn add(&mut self, name: &'a str, meaning: Meaning) {
        self.names.insert(name, meaning);
        for (family, index) in members(name) {
            let least = self.least_numbers.entry(family).or_insert(index);
            *least = index.min(*least);
        }
    }
}

/// Returns the families that can contain a name, the shortest first, with the name's number in each.
fn members(name: &str) -> impl Iterator<Item = (&str, u32)> {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit);
    let split = name.len() - digits.take(MAX_DIGITS).count();
    // A family's name may itself end in a digit: `%x1<4>` declares `%x10` to `%x13`.
    (split..name.len()).filter_map(move |at| {
        let (family, index) = name.split_at(at);
        // `%r<8>` declares `%r1`, but not `%r01`.
        let canonical = index == "0" || !index.starts_with('0');
        Some((family, index.parse().ok().filter(|_| canonical)?))
    })
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
        let is_new = scope.get(name).is_none();
        if is_new {
            scope.add(name, meaning);
        }
        is_new
    }

    /// Declares `name0` to `name(count-1)`. Returns false if the scope already declares the family, or the name of a member.
    #[must_use]
    pub fn declare_family(&mut self, name: &'a str, family: Family) -> bool {
        let Some(scope) = self.stack.last_mut() else {
            return true;
        };
        let is_free = scope.least_numbers.get(name).is_none_or(|&least| least >= family.count);
        scope.families.insert(name, family).is_none() && is_free
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

    /// Eight scalar registers from register 0.
    const EIGHT: Family = Family {
        first: RegId(0),
        count: 8,
        width: 1,
    };

    #[test]
    fn inner_declaration_hides_outer_register_until_scope_closes() {
        let mut scopes = Scopes::default();
        scopes.open();
        assert!(scopes.declare_family("%r", EIGHT));
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
        assert!(scopes.declare_family("%r", EIGHT));
        assert_eq!(scopes.get("%r8"), None);
        assert_eq!(scopes.get("%r01"), None);
    }

    #[test]
    fn second_declaration_in_one_scope_is_refused() {
        let mut scopes = Scopes::default();
        scopes.open();
        assert!(scopes.declare_family("%r", EIGHT));
        assert!(!scopes.declare("%r3", Meaning::Register(RegId(9))));
        // The other order: ptxas 11.8 refuses it too.
        assert!(scopes.declare("%s9", Meaning::Register(RegId(10))));
        assert!(scopes.declare("%s12", Meaning::Register(RegId(11))));
        let family = |count| Family { count, ..EIGHT };
        assert!(scopes.declare_family("%s1", family(2)));
        assert!(!scopes.declare_family("%s", family(10)));
    }

    /// `%r1<3>` declares `%r10` to `%r12`, and so does `%r<20>`. ptxas 11.8 takes both declarations, and `%r11` is that of `%r<20>`.
    #[test]
    fn name_of_two_families_belongs_to_the_shorter() {
        let mut scopes = Scopes::default();
        scopes.open();
        let first = RegId(20);
        assert!(scopes.declare_family(
            "%r1",
            Family {
                first,
                count: 3,
                width: 1
            }
        ));
        assert_eq!(scopes.get("%r11"), Some(Meaning::Register(RegId(21))));
        assert!(scopes.declare_family("%r", Family { count: 20, ..EIGHT }));
        assert_eq!(scopes.get("%r11"), Some(Meaning::Register(RegId(11))));
    }

    #[test]
    fn members_of_a_vector_family_take_their_width_each() {
        let mut scopes = Scopes::default();
        scopes.open();
        assert!(scopes.declare_family("%v", Family { width: 4, ..EIGHT }));
        assert_eq!(scopes.get("%v7"), Some(Meaning::Vector(RegId(28), 4)));
        assert_eq!(scopes.get("%v8"), None);
    }
}
