//! The signals that components declare, and the tree of their scopes.

use std::sync::Arc;

use warpwave_hw::component::Component;
use warpwave_hw::probe::{CODE_WIDTH, Probe};

/// The type of a signal's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// One bit.
    Bit,
    /// An unsigned number of this width, 1 to 64 bits.
    Vector(u32),
    /// An unsigned number of this width that is kept in storage, such as a register or a cache tag.
    Stored(u32),
    /// A state. The value is an index into these names.
    State(&'static [&'static str]),
    /// The number of an instruction in [`RunInfo::code`](crate::file::RunInfo::code), of [`CODE_WIDTH`] bits.
    Code,
    /// A real number, as the bits of an `f64`. A missing value is written as 0.
    Real,
}

impl Kind {
    /// The width in bits, 1 to 64.
    pub fn width(self) -> u32 {
        match self {
            Kind::Bit => 1,
            Kind::Vector(width) | Kind::Stored(width) => width,
            Kind::State(names) => state_width(names),
            Kind::Code => CODE_WIDTH,
            Kind::Real => 64,
        }
    }

    /// The names of the states. `None` for any other kind.
    pub fn states(self) -> Option<&'static [&'static str]> {
        match self {
            Kind::State(names) => Some(names),
            _ => None,
        }
    }

    /// The VCD digit of a missing value: `x` (never written) for storage, `z` (not driven) for any other kind.
    pub fn undefined_digit(self) -> u8 {
        match self {
            Kind::Stored(_) => b'x',
            _ => b'z',
        }
    }
}

/// One signal of a component.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signal {
    /// The names of its scopes from the outermost one: `gpu`, `gpc[0]`, `sm[3]`. Signals of one scope share them.
    pub scope: Arc<[String]>,
    /// The name inside its scope.
    pub name: String,
    /// The type of its values.
    pub kind: Kind,
    /// A second scope that shows the signal as an alias. The sender's scope, for a signal of a link.
    pub alias_scope: Option<Arc<[String]>>,
}

impl Signal {
    /// Creates a signal from a dotted path, without an alias.
    pub fn new(path: &str, kind: Kind) -> Signal {
        let mut scope: Vec<String> = path.split('.').map(String::from).collect();
        let name = scope.pop().unwrap_or_default();
        Signal {
            scope: scope.into(),
            name,
            kind,
            alias_scope: None,
        }
    }

    /// The dotted path: all scopes and the name.
    pub fn path(&self) -> String {
        let mut path = self.scope.join(".");
        path.push('.');
        path + &self.name
    }

    /// The name in a VCD declaration: a vector has its bit range, as in `pc[31:0]`.
    pub fn declared_name(&self) -> String {
        match (self.kind, self.kind.width()) {
            (Kind::Real, _) | (_, 1) => self.name.clone(),
            (_, width) => format!("{}[{}:0]", self.name, width - 1),
        }
    }

    /// All names of the path, from the outermost scope to the signal.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.scope.iter().map(String::as_str).chain([self.name.as_str()])
    }
}

/// Returns the signals of a component, in the order of its values.
///
/// # Panics
/// If a name is empty or has a space, `.` or `/`. If a width is not 1 to 64. If `enter` and `leave` do not pair.
pub fn declare(component: &dyn Component) -> Vec<Signal> {
    let names = component.path().as_str().split('.').map(String::from);
    let mut declaration = Declaration {
        scopes: vec![names.collect()],
        signals: Vec::new(),
    };
    component.probe(&mut declaration);
    assert_eq!(
        declaration.scopes.len(),
        1,
        "{}: `enter` without `leave`",
        component.path()
    );
    declaration.signals
}

/// Collects the signals of one component.
struct Declaration {
    /// The scope of the component, then the scopes that `enter` has entered.
    scopes: Vec<Arc<[String]>>,
    signals: Vec<Signal>,
}

impl Declaration {
    /// The innermost scope.
    fn scope(&self) -> &Arc<[String]> {
        self.scopes.last().expect("`leave` does not leave the component")
    }

    fn add(&mut self, name: &str, kind: Kind) {
        let width = kind.width();
        let scope = self.scope().clone();
        let fits =
            |name: &str| !name.is_empty() && name.bytes().all(|c| c.is_ascii_graphic() && c != b'.' && c != b'/');
        assert!(
            fits(name) && scope.iter().all(|name| fits(name)) && (1..=64).contains(&width),
            "{}.{name}: a signal needs printable names without `.` and `/`, and 1 to 64 bits, not {width}",
            scope.join(".")
        );
        self.signals.push(Signal {
            scope,
            name: name.into(),
            kind,
            alias_scope: None,
        });
    }
}

impl Probe for Declaration {
    fn bit(&mut self, name: &'static str, _: Option<bool>) {
        self.add(name, Kind::Bit);
    }
    fn vector(&mut self, name: &'static str, width: u32, _: Option<u64>) {
        self.add(name, Kind::Vector(width));
    }
    fn stored(&mut self, name: &'static str, width: u32, _: Option<u64>) {
        self.add(name, Kind::Stored(width));
    }
    fn code(&mut self, name: &'static str, _: Option<u64>) {
        self.add(name, Kind::Code);
    }
    fn state(&mut self, name: &'static str, names: &'static [&'static str], _: Option<usize>) {
        self.add(name, Kind::State(names));
    }
    fn enter(&mut self, name: &'static str, index: usize) {
        let inner = [format!("{name}[{index}]")];
        self.scopes.push(self.scope().iter().cloned().chain(inner).collect());
    }
    fn leave(&mut self) {
        assert!(
            self.scopes.len() > 1,
            "{}: `leave` without `enter`",
            self.scope().join(".")
        );
        self.scopes.pop();
    }
}

/// The width of a state signal with these names, in bits.
pub fn state_width(names: &[&str]) -> u32 {
    (usize::BITS - names.len().saturating_sub(1).leading_zeros()).max(1)
}

/// A scope: its signals, as indices into the list of signals, and its inner scopes.
#[derive(Debug, Default)]
pub struct Scope {
    /// The name. Empty for the root of the tree, which is not a scope of the dump.
    pub name: String,
    /// Signals directly in the scope.
    pub signals: Vec<usize>,
    /// Scopes directly in the scope, in the order of their first signals. Scopes of one name stand together, by number.
    pub scopes: Vec<Scope>,
}

impl Scope {
    /// Builds the tree of these signals and their aliases.
    ///
    /// # Panics
    /// If two signals have the same path.
    pub fn tree(signals: &[Signal]) -> Scope {
        Self::build(signals, |signal| signal.alias_scope.as_deref())
    }

    /// Builds the tree without aliases, so that each signal appears once.
    pub fn tree_without_aliases(signals: &[Signal]) -> Scope {
        Self::build(signals, |_| None)
    }

    fn build(signals: &[Signal], alias_scope: impl Fn(&Signal) -> Option<&[String]>) -> Scope {
        let mut top = Scope::default();
        for (n, signal) in signals.iter().enumerate() {
            // An alias is the same index in a second scope.
            for scopes in [Some(&signal.scope[..]), alias_scope(signal)].into_iter().flatten() {
                let scope = scopes.iter().fold(&mut top, |scope, name| scope.child(name));
                scope.signals.push(n);
            }
        }
        if let Some(path) = top.repeated_path(signals) {
            panic!("{path}: two signals of this name");
        }
        top
    }

    /// The path, from this scope on, of a name that two signals have.
    fn repeated_path(&self, signals: &[Signal]) -> Option<String> {
        let mut names: Vec<&str> = self.signals.iter().map(|&n| signals[n].name.as_str()).collect();
        names.sort_unstable();
        let repeated = names.windows(2).find(|pair| pair[0] == pair[1]);
        let inner = |scope: &Scope| Some(format!("{}.{}", scope.name, scope.repeated_path(signals)?));
        repeated
            .map(|pair| pair[0].into())
            .or_else(|| self.scopes.iter().find_map(inner))
    }

    /// The inner scope of this name, which is added if it is missing.
    fn child(&mut self, name: &str) -> &mut Scope {
        // Signals come component by component, so the scope is most often the last one.
        let found = self.scopes.iter().rposition(|scope| scope.name == name);
        let index = found.unwrap_or_else(|| {
            let index = self.insert_index(name);
            let scope = Scope {
                name: name.into(),
                ..Scope::default()
            };
            self.scopes.insert(index, scope);
            index
        });
        &mut self.scopes[index]
    }

    /// The index for a new scope: after the scopes of the same name with lower numbers.
    fn insert_index(&self, name: &str) -> usize {
        let (base, index) = split_index(name);
        let before = |scope: &Scope| {
            let (other, number) = split_index(&scope.name);
            other == base && number <= index
        };
        let same = |scope: &Scope| split_index(&scope.name).0 == base;
        match self.scopes.iter().rposition(before) {
            // Components of one kind may come apart in the list. A viewer shows them together.
            Some(last) => last + 1,
            None => self.scopes.iter().position(same).unwrap_or(self.scopes.len()),
        }
    }
}

/// Splits `sm[12]` into `sm` and 12.
fn split_index(name: &str) -> (&str, Option<u64>) {
    let parts = name.strip_suffix(']').and_then(|name| name.rsplit_once('['));
    match parts {
        Some((base, index)) => (base, index.parse().ok()),
        None => (name, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bit(path: &str) -> Signal {
        Signal::new(path, Kind::Bit)
    }

    #[test]
    fn numbered_scopes_are_sorted_by_number_and_others_keep_their_order() {
        let signals = [
            "g.sm[10].a",
            "g.xbar.a",
            "g.sm[2].a",
            "g.sm[10].b",
            "g.l2.a",
            "g.sm[11].a",
            "g.own",
        ]
        .map(bit);
        let top = Scope::tree(&signals);
        let gpu = &top.scopes[0];
        let names: Vec<_> = gpu.scopes.iter().map(|scope| scope.name.as_str()).collect();
        assert_eq!(names, ["sm[2]", "sm[10]", "sm[11]", "xbar", "l2"]);
        assert_eq!((&gpu.signals[..], &gpu.scopes[1].signals[..]), (&[6][..], &[0, 3][..]));
    }

    #[test]
    #[should_panic(expected = "g.a: two signals of this name")]
    fn two_signals_with_one_path_panic() {
        Scope::tree(&["g.a", "g.a"].map(bit));
    }

    #[test]
    fn width_of_a_state_holds_its_highest_index() {
        let widths = [1, 2, 3, 4, 5, 8, 9].map(|n| state_width(&vec!["s"; n]));
        assert_eq!(widths, [1, 1, 2, 2, 3, 3, 4]);
    }
}
