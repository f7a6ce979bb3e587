//! How a run is laid out, whatever the viewer: groups by what a person looks for, rows with a way to show them.
//!
//! Of every SM first what tells most: its curves, its top stall, what is issued, what memory does, the states of some warps. Then,
//! closed, all the rest: schedulers, warps, dispatch and collectors, pipes, LSU and coalescer, shared-memory banks, L1, links.
//! Then front, crossbar, L2, HBM.

use crate::curves::is_warp_state;
use crate::signal::{Kind, Scope, Signal};

/// How a row shows its values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    /// Names from a list.
    Named,
    /// Digits.
    Binary,
    /// A place or a mask.
    Hex,
    /// A count.
    Decimal,
    /// A curve.
    Curve,
}

/// A row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The signal's place.
    pub signal: usize,
    /// What it is called here.
    pub label: String,
    /// How it is shown.
    pub look: Look,
}

/// What stands below each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Item {
    /// A row.
    Row(Row),
    /// A group.
    Group {
        /// Its title.
        label: String,
        /// Whether it is open at first.
        is_open: bool,
        /// What is in it.
        items: Vec<Item>,
    },
}

/// All rows, in groups.
pub struct Layout(pub Vec<Item>);

/// The group of the pipes: all scopes of a sub-core but these.
const PIPES: &str = "pipes";
const NO_PIPES: [&str; 3] = ["scheduler", "dispatch", "link"];

/// The groups of an SM: a title and the scopes in it.
const PARTS: [(&str, &[&str]); 7] = [
    ("dispatch and collectors", &["dispatch"]),
    (PIPES, &[]),
    ("LSU and coalescer", &["lsu"]),
    ("shared-memory banks", &["shared"]),
    ("L1", &["l1"]),
    ("CTAs", &["cta"]),
    ("links", &["link"]),
];

/// The groups of what lies below the SMs.
const BELOW: [(&str, &str); 3] = [("crossbar", "xbar"), ("L2", "l2_slice"), ("HBM", "channel")];

/// What is seen of an SM at first, and what it is called.
const AT_A_GLANCE: [(&str, &str, &str); 5] = [
    ("lsu", "answer_age", "request latency"),
    ("lsu", "pending", "requests pending"),
    ("shared", "banks", "shared banks"),
    ("l1", "tag", "L1 tag"),
    ("l1", "mshr_sectors", "L1 sectors missing"),
];

/// Signals of which a curve says more than digits.
const CURVES: [&str; 7] = [
    "n_stalled",
    "answer_age",
    "pending",
    "passes",
    "mshr_sectors",
    "fetch_sectors",
    "queue",
];

impl Layout {
    /// The layout of these signals; each is in it once.
    pub fn new(signals: &[Signal]) -> Layout {
        let tree = Scope::tree_of_first(signals);
        let mut maker = Maker {
            signals,
            sm_is_open: true,
        };
        let items = tree.scopes.iter().flat_map(|top| maker.top(top)).collect();
        Layout(items)
    }

    /// Rows in all.
    pub fn n_rows(&self) -> usize {
        fn rows(items: &[Item]) -> usize {
            let each = items.iter().map(|item| match item {
                Item::Row(_) => 1,
                Item::Group { items, .. } => rows(items),
            });
            each.sum()
        }
        rows(&self.0)
    }
}

struct Maker<'a> {
    signals: &'a [Signal],
    /// Whether the next SM is the first one.
    sm_is_open: bool,
}

impl Maker<'_> {
    /// The outermost scope is no group.
    fn top(&mut self, top: &Scope) -> Vec<Item> {
        let mut items: Vec<Item> = top.signals.iter().map(|&n| self.row(n)).collect();
        let (sms, others): (Vec<_>, Vec<_>) = top.scopes.iter().partition(|scope| has_sm(scope));
        for scope in sms {
            items.extend(self.sms(scope, &scope.name));
        }
        for scope in others
            .iter()
            .filter(|scope| !BELOW.iter().any(|(_, name)| is_called(&scope.name, name)))
        {
            items.extend(self.plain(scope, &scope.name));
        }
        for (title, name) in BELOW {
            let parts = others.iter().filter(|scope| is_called(&scope.name, name));
            let parts = parts.filter_map(|scope| self.plain(scope, &scope.name)).collect();
            items.extend(group(title, false, parts));
        }
        items
    }

    /// The SMs in a scope, and whatever else is in it.
    fn sms(&mut self, scope: &Scope, path: &str) -> Vec<Item> {
        if is_sm(scope) {
            return self.sm(scope, path).into_iter().collect();
        }
        let mut items: Vec<Item> = scope.signals.iter().map(|&n| self.row(n)).collect();
        for inner in &scope.scopes {
            items.extend(self.sms(inner, &format!("{path}.{}", inner.name)));
        }
        items
    }

    /// What tells most, in order; the warps of the first sub-core; then everything by part, closed.
    fn sm(&mut self, sm: &Scope, path: &str) -> Option<Item> {
        let is_open = std::mem::replace(&mut self.sm_is_open, false);
        let subcores: Vec<&Scope> = sm
            .scopes
            .iter()
            .filter(|scope| scope.name.starts_with("subcore["))
            .collect();
        let mut items: Vec<Item> = sm.signals.iter().map(|&n| self.row(n)).collect();
        items.extend(self.instructions(&subcores));
        items.extend(self.at_a_glance(sm));
        let (first, others) = self.warps(&subcores);
        items.extend(first);
        items.extend(self.schedulers(&subcores));
        items.extend(others);
        for (title, names) in PARTS {
            let is_part = |scope: &&Scope| names.iter().any(|name| is_called(&scope.name, name));
            let mut inside = Vec::new();
            for (n, subcore) in subcores.iter().enumerate() {
                let is_pipe = |scope: &&Scope| !NO_PIPES.iter().any(|name| is_called(&scope.name, name));
                let is_here = |scope: &&Scope| if title == PIPES { is_pipe(scope) } else { is_part(scope) };
                let parts = subcore.scopes.iter().filter(is_here);
                inside.extend(parts.filter_map(|scope| self.plain(scope, &format!("sub-core {n} {}", scope.name))));
            }
            for scope in sm.scopes.iter().filter(is_part) {
                inside.extend(self.contents(scope));
            }
            items.extend(group(title, false, inside));
        }
        let is_known = |scope: &Scope| {
            let mut names = PARTS.iter().flat_map(|(_, names)| names.iter());
            scope.name.starts_with("subcore[") || names.any(|name| is_called(&scope.name, name))
        };
        let others = sm.scopes.iter().filter(|scope| !is_known(scope));
        items.extend(others.filter_map(|scope| self.plain(scope, &scope.name)));
        group(path, is_open, items)
    }

    /// What each scheduler issues, as text.
    fn instructions(&self, subcores: &[&Scope]) -> Vec<Item> {
        let mut items = Vec::new();
        for (n, scheduler) in schedulers(subcores) {
            let texts = scheduler.signals.iter().filter(|&&signal| self.is_text(signal));
            items.extend(texts.map(|&signal| self.labelled(signal, format!("issue {n}"))));
        }
        items
    }

    fn at_a_glance(&self, sm: &Scope) -> Vec<Item> {
        let find = |&(scope, name, label): &(&str, &str, &str)| {
            let scope = sm.scopes.iter().find(|inner| inner.name == scope)?;
            let signal = scope
                .signals
                .iter()
                .find(|&&signal| self.signals[signal].name == name)?;
            Some(self.labelled(*signal, label.into()))
        };
        AT_A_GLANCE.iter().filter_map(find).collect()
    }

    fn schedulers(&self, subcores: &[&Scope]) -> Option<Item> {
        let mut items = Vec::new();
        for (n, scheduler) in schedulers(subcores) {
            let others = scheduler.signals.iter().filter(|&&signal| !self.is_text(signal));
            let others = others.map(|&signal| self.row(signal)).collect();
            items.extend(group(&format!("scheduler {n}"), false, others));
        }
        group("schedulers", false, items)
    }

    /// A row with the state of each warp, those of the first sub-core apart; then the rest of each warp.
    fn warps(&self, subcores: &[&Scope]) -> (Option<Item>, Option<Item>) {
        let (mut first, mut items, mut more) = (None, Vec::new(), Vec::new());
        for (n, scheduler) in schedulers(subcores) {
            let mut states = Vec::new();
            for warp in &scheduler.scopes {
                // GTKWave takes a dot for the end of a scope.
                let label = warp.name.replace("warp[", &format!("warp {n}-")).replace(']', "");
                let is_state = |&&signal: &&usize| is_warp_state(&self.signals[signal]);
                let (state, others): (Vec<usize>, Vec<usize>) = warp.signals.iter().partition(is_state);
                states.extend(state.into_iter().map(|signal| self.labelled(signal, label.clone())));
                let others = others.into_iter().map(|signal| self.row(signal)).collect();
                more.extend(group(&label, false, others));
            }
            let is_first = first.is_none();
            let group = group(&format!("warps of sub-core {n}"), is_first, states);
            if is_first {
                first = group;
            } else {
                items.extend(group);
            }
        }
        items.extend(group("warps in detail", false, more));
        (first, group("other warps", false, items))
    }

    fn is_text(&self, signal: usize) -> bool {
        self.signals[signal].kind == Kind::Code
    }

    fn is_at_a_glance(&self, signal: usize) -> bool {
        let signal = &self.signals[signal];
        let is_in = |scope: &str| signal.scope.last().is_some_and(|last| last == scope);
        let is_below_sm = signal
            .scope
            .iter()
            .rev()
            .nth(1)
            .is_some_and(|scope| scope.starts_with("sm["));
        let known = AT_A_GLANCE
            .iter()
            .any(|&(scope, name, _)| is_in(scope) && signal.name == name);
        is_below_sm && known
    }

    /// A scope as it is declared, less what is seen at a glance.
    fn plain(&self, scope: &Scope, label: &str) -> Option<Item> {
        group(label, false, self.contents(scope))
    }

    fn contents(&self, scope: &Scope) -> Vec<Item> {
        let signals = scope.signals.iter().filter(|&&signal| !self.is_at_a_glance(signal));
        let mut items: Vec<Item> = signals.map(|&n| self.row(n)).collect();
        items.extend(scope.scopes.iter().filter_map(|inner| self.plain(inner, &inner.name)));
        items
    }

    fn labelled(&self, signal: usize, label: String) -> Item {
        Item::Row(Row {
            label,
            ..self.a_row(signal)
        })
    }

    fn row(&self, signal: usize) -> Item {
        Item::Row(self.a_row(signal))
    }

    fn a_row(&self, n: usize) -> Row {
        let signal = &self.signals[n];
        Row {
            signal: n,
            label: signal.name.clone(),
            look: look(signal),
        }
    }
}

/// The schedulers of sub-cores, each with its number.
fn schedulers<'a>(subcores: &'a [&'a Scope]) -> impl Iterator<Item = (usize, &'a Scope)> {
    let of = |(n, subcore): (usize, &&'a Scope)| {
        let found = subcore.scopes.iter().find(|scope| scope.name == "scheduler");
        found.map(|scheduler| (n, scheduler))
    };
    subcores.iter().enumerate().filter_map(of)
}

/// Whether a scope's name is that, numbered or not.
fn is_called(scope: &str, name: &str) -> bool {
    scope == name || scope.strip_prefix(name).is_some_and(|rest| rest.starts_with('['))
}

fn is_sm(scope: &Scope) -> bool {
    scope.name.starts_with("sm[")
}

fn has_sm(scope: &Scope) -> bool {
    is_sm(scope) || scope.scopes.iter().any(has_sm)
}

/// A group, if anything is in it.
fn group(label: &str, is_open: bool, items: Vec<Item>) -> Option<Item> {
    (!items.is_empty()).then(|| Item::Group {
        label: label.into(),
        is_open,
        items,
    })
}

/// States by name, bits and lanes in binary, places in hex, what is left and narrow is a count.
fn look(signal: &Signal) -> Look {
    let is_place = ["pc", "addr", "mask", "line", "payload", "active", "lanes"]
        .iter()
        .any(|word| signal.name.contains(word));
    match signal.kind {
        // A viewer draws one wire as a level, whatever it means.
        kind if kind.states().is_some() && kind.width() == 1 => Look::Binary,
        Kind::State(_) | Kind::Code => Look::Named,
        Kind::Real => Look::Curve,
        _ if CURVES.contains(&signal.name.as_str()) => Look::Curve,
        Kind::Bit => Look::Binary,
        kind if is_place || kind.width() > 32 => Look::Hex,
        _ => Look::Decimal,
    }
}
