//! The signals of a run: what the components declare on a first visit, and the tree of scopes that they form.

use warpwave_hw::component::Component;
use warpwave_hw::probe::{CODE_WIDTH, Probe};

/// What a signal's values are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// One bit.
    Bit,
    /// A number of so many bits, 1 to 64.
    Vector(u32),
    /// A number of so many bits, kept in storage.
    Stored(u32),
    /// One of these states.
    State(&'static [&'static str]),
    /// The number of an instruction, of [`CODE_WIDTH`] bits; the run's list of instructions has its text.
    Code,
    /// A real number, as the bits of an `f64`; 0 where it has no value yet.
    Real,
}

impl Kind {
    /// Bits, 1 to 64.
    pub fn width(self) -> u32 {
        match self {
            Kind::Bit => 1,
            Kind::Vector(width) | Kind::Stored(width) => width,
            Kind::State(names) => state_width(names),
            Kind::Code => CODE_WIDTH,
            Kind::Real => 64,
        }
    }

    /// The names of its values, if it is a state.
    pub fn states(self) -> Option<&'static [&'static str]> {
        match self {
            Kind::State(names) => Some(names),
            _ => None,
        }
    }

    /// The digit that stands for no value: `x`, never written, for storage; `z`, not driven, for everything else.
    pub fn no_value(self) -> u8 {
        match self {
            Kind::Stored(_) => b'x',
            _ => b'z',
        }
    }
}

/// One signal, as a component declares it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signal {
    /// The scopes that it lies in, from the outermost: `gpu`, `gpc[0]`, `sm[3]`.
    pub scope: Vec<String>,
    /// Its own name.
    pub name: String,
    /// What its values are.
    pub kind: Kind,
    /// The scope in which it appears a second time, as an alias: the other end of a link.
    pub also_in: Option<Vec<String>>,
}

impl Signal {
    /// The signal of this dotted path.
    pub fn new(path: &str, kind: Kind) -> Signal {
        let mut scope: Vec<String> = path.split('.').map(String::from).collect();
        let name = scope.pop().unwrap_or_default();
        Signal {
            scope,
            name,
            kind,
            also_in: None,
        }
    }

    /// The dotted path.
    pub fn path(&self) -> String {
        let mut path = self.scope.join(".");
        path.push('.');
        path + &self.name
    }

    /// The name as a waveform declares it: with its range if it has several bits.
    pub fn declared(&self) -> String {
        match (self.kind, self.kind.width()) {
            (Kind::Real, _) | (_, 1) => self.name.clone(),
            (_, width) => format!("{}[{}:0]", self.name, width - 1),
        }
    }

    /// All names from the outermost scope to the signal's own.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.scope.iter().map(String::as_str).chain([self.name.as_str()])
    }
}

/// All signals of a component, in the order in which it gives their values.
///
/// # Panics
/// If the component declares a name that no waveform can hold, a width outside 1 to 64, or leaves a part that it did not enter.
pub fn declare(component: &dyn Component) -> Vec<Signal> {
    let scope: Vec<String> = component.path().as_str().split('.').map(String::from).collect();
    let mut declaration = Declaration {
        depth: scope.len(),
        scope,
        signals: Vec::new(),
    };
    component.probe(&mut declaration);
    assert_eq!(
        declaration.scope.len(),
        declaration.depth,
        "{}: a part is entered and never left",
        component.path()
    );
    declaration.signals
}

struct Declaration {
    scope: Vec<String>,
    depth: usize,
    signals: Vec<Signal>,
}

impl Declaration {
    fn add(&mut self, name: &str, kind: Kind) {
        let width = kind.width();
        let scope = self.scope.clone();
        let fits =
            |name: &str| !name.is_empty() && name.bytes().all(|c| c.is_ascii_graphic() && c != b'.' && c != b'/');
        assert!(
            fits(name) && scope.iter().all(|name| fits(name)) && (1..=64).contains(&width),
            "{}.{name}: a signal needs plain names and 1 to 64 bits, not {width}",
            scope.join(".")
        );
        self.signals.push(Signal {
            scope,
            name: name.into(),
            kind,
            also_in: None,
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
        self.scope.push(format!("{name}[{index}]"));
    }
    fn leave(&mut self) {
        assert!(
            self.scope.len() > self.depth,
            "{}: left too often",
            self.scope.join(".")
        );
        self.scope.pop();
    }
}

/// Bits that tell so many states apart.
pub fn state_width(names: &[&str]) -> u32 {
    (usize::BITS - names.len().saturating_sub(1).leading_zeros()).max(1)
}

/// A scope with its signals (their places in the list it was made from) and the scopes inside it.
#[derive(Debug, Default)]
pub struct Scope {
    /// Its name; empty at the top, which is no scope of its own.
    pub name: String,
    /// Signals directly in it.
    pub signals: Vec<usize>,
    /// Scopes directly in it: as first seen, but numbered ones of one name together and by number.
    pub scopes: Vec<Scope>,
}

impl Scope {
    /// The tree of these signals.
    ///
    /// # Panics
    /// If two signals have one path.
    pub fn tree(signals: &[Signal]) -> Scope {
        Self::tree_of(signals, |signal| signal.also_in.as_ref())
    }

    /// As [`Scope::tree`], with every signal in its first scope alone.
    pub fn tree_of_first(signals: &[Signal]) -> Scope {
        Self::tree_of(signals, |_| None)
    }

    fn tree_of(signals: &[Signal], also_in: impl Fn(&Signal) -> Option<&Vec<String>>) -> Scope {
        let mut top = Scope::default();
        for (n, signal) in signals.iter().enumerate() {
            for scopes in [Some(&signal.scope), also_in(signal)].into_iter().flatten() {
                let scope = scopes.iter().fold(&mut top, |scope, name| scope.inner(name));
                assert!(
                    scope.signals.iter().all(|&other| signals[other].name != signal.name),
                    "{}.{}: two signals of this name",
                    scopes.join("."),
                    signal.name
                );
                scope.signals.push(n);
            }
        }
        top
    }

    fn inner(&mut self, name: &str) -> &mut Scope {
        // Components come in order, so the scope is mostly the last one.
        let found = self.scopes.iter().rposition(|scope| scope.name == name);
        let place = found.unwrap_or_else(|| {
            let place = self.place_for(name);
            let scope = Scope {
                name: name.into(),
                ..Scope::default()
            };
            self.scopes.insert(place, scope);
            place
        });
        &mut self.scopes[place]
    }

    fn place_for(&self, name: &str) -> usize {
        let (base, index) = split(name);
        let before = |scope: &Scope| {
            let (other, number) = split(&scope.name);
            other == base && number <= index
        };
        let same = |scope: &Scope| split(&scope.name).0 == base;
        match self.scopes.iter().rposition(before) {
            Some(place) => place + 1,
            None => self.scopes.iter().position(same).unwrap_or(self.scopes.len()),
        }
    }
}

/// `sm[12]` in two: `sm` and 12.
fn split(name: &str) -> (&str, Option<u64>) {
    let parts = name.strip_suffix(']').and_then(|name| name.rsplit_once('['));
    match parts {
        Some((base, index)) => (base, index.parse().ok()),
        None => (name, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signal(path: &str) -> Signal {
        Signal::new(path, Kind::Bit)
    }

    #[test]
    fn numbered_scopes_come_by_number_others_as_seen() {
        let signals = [
            "g.sm[10].a",
            "g.xbar.a",
            "g.sm[2].a",
            "g.sm[10].b",
            "g.l2.a",
            "g.sm[11].a",
            "g.own",
        ]
        .map(signal);
        let top = Scope::tree(&signals);
        let gpu = &top.scopes[0];
        let names: Vec<_> = gpu.scopes.iter().map(|scope| scope.name.as_str()).collect();
        assert_eq!(names, ["sm[2]", "sm[10]", "sm[11]", "xbar", "l2"]);
        assert_eq!((&gpu.signals[..], &gpu.scopes[1].signals[..]), (&[6][..], &[0, 3][..]));
    }

    #[test]
    #[should_panic(expected = "g.a: two signals of this name")]
    fn one_path_twice_panics() {
        Scope::tree(&["g.a", "g.a"].map(signal));
    }

    #[test]
    fn states_need_the_bits_of_their_highest_number() {
        let widths = [1, 2, 3, 4, 5, 8, 9].map(|n| state_width(&vec!["s"; n]));
        assert_eq!(widths, [1, 1, 2, 2, 3, 3, 4]);
    }
}
