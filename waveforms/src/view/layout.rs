//! How a run is laid out, whatever the viewer: groups by what a person looks for, rows with a way to show them.
//!
//! Of every SM: its curves and its top stall, then schedulers, warps, dispatch and collectors, pipes, LSU and coalescer,
//! shared-memory banks, L1, links. Then front, crossbar, L2, HBM. The first SM is open as far as a screen reaches.

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

/// The groups of an SM: a title, the scopes in it (as they begin), and whether it is open.
const PARTS: [(&str, &[&str], bool); 7] = [
    ("dispatch and collectors", &["dispatch"], false),
    (
        "pipes",
        &["int", "fp32", "half", "fp64", "sfu", "tensor", "branch"],
        false,
    ),
    ("LSU and coalescer", &["lsu"], true),
    ("shared-memory banks", &["shared"], true),
    ("L1", &["l1"], true),
    ("CTAs", &["cta"], false),
    ("links", &["link"], false),
];

/// Signals of which a curve says more than digits.
const CURVES: [&str; 7] = [
    "ipc",
    "occupancy",
    "n_stalled",
    "answer_age",
    "pending",
    "passes",
    "issue_lanes",
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
        let mut items: Vec<Item> = top.signals.iter().map(|&n| self.row(n, "")).collect();
        let (sms, others): (Vec<_>, Vec<_>) = top.scopes.iter().partition(|scope| has_sm(scope));
        for scope in sms {
            items.extend(self.sms(scope, &scope.name));
        }
        for scope in others {
            items.extend(self.plain(scope, &scope.name, false));
        }
        items
    }

    /// The SMs in a scope, and whatever else is in it.
    fn sms(&mut self, scope: &Scope, path: &str) -> Vec<Item> {
        if is_sm(scope) {
            return self.sm(scope, path).into_iter().collect();
        }
        let mut items: Vec<Item> = scope.signals.iter().map(|&n| self.row(n, "")).collect();
        for inner in &scope.scopes {
            items.extend(self.sms(inner, &format!("{path}.{}", inner.name)));
        }
        items
    }

    fn sm(&mut self, sm: &Scope, path: &str) -> Option<Item> {
        let is_open = std::mem::replace(&mut self.sm_is_open, false);
        let mut items: Vec<Item> = sm.signals.iter().map(|&n| self.row(n, "")).collect();
        let subcores: Vec<&Scope> = sm
            .scopes
            .iter()
            .filter(|scope| scope.name.starts_with("subcore["))
            .collect();
        items.extend(self.schedulers(&subcores));
        items.extend(self.warps(&subcores));
        for (title, begins, open) in PARTS {
            let is_part = |scope: &&Scope| begins.iter().any(|begin| is_called(&scope.name, begin));
            let mut inside = Vec::new();
            for (n, subcore) in subcores.iter().enumerate() {
                for scope in subcore.scopes.iter().filter(is_part) {
                    inside.extend(self.plain(scope, &format!("subcore {n} {}", scope.name), open));
                }
            }
            let own: Vec<&Scope> = sm.scopes.iter().filter(is_part).collect();
            match own[..] {
                [only] if inside.is_empty() => inside = self.contents(only, open),
                _ => inside.extend(own.iter().flat_map(|scope| self.plain(scope, &scope.name, open))),
            }
            items.extend(group(title, open, inside));
        }
        let known = |scope: &Scope| {
            let begins = PARTS.iter().flat_map(|(_, begins, _)| begins.iter());
            scope.name.starts_with("subcore[") || begins.into_iter().any(|begin| is_called(&scope.name, begin))
        };
        for scope in sm.scopes.iter().filter(|scope| !known(scope)) {
            items.extend(self.plain(scope, &scope.name, false));
        }
        group(path, is_open, items)
    }

    /// What each scheduler issues: the text first.
    fn schedulers(&self, subcores: &[&Scope]) -> Option<Item> {
        let mut items = Vec::new();
        let mut more = Vec::new();
        for (n, subcore) in subcores.iter().enumerate() {
            for scheduler in subcore.scopes.iter().filter(|scope| scope.name == "scheduler") {
                let label = format!("{n} ");
                let (texts, others): (Vec<_>, Vec<_>) = (scheduler.signals.iter())
                    .partition(|&&signal| matches!(self.signals[signal].name.as_str(), "issue_inst" | "issue_lanes"));
                items.extend(texts.into_iter().map(|&signal| self.row(signal, &label)));
                let others: Vec<Item> = others.into_iter().map(|&signal| self.row(signal, "")).collect();
                more.extend(group(&format!("scheduler {n}"), false, others));
            }
        }
        items.extend(more);
        group("schedulers", true, items)
    }

    /// A row with the state of each warp, then the rest of each in a group of its own.
    fn warps(&self, subcores: &[&Scope]) -> Option<Item> {
        let (mut states, mut details) = (Vec::new(), Vec::new());
        for (n, subcore) in subcores.iter().enumerate() {
            let schedulers = subcore.scopes.iter().filter(|scope| scope.name == "scheduler");
            for warp in schedulers.flat_map(|scheduler| &scheduler.scopes) {
                let label = format!("{n} {}", warp.name);
                let (state, others): (Vec<_>, Vec<_>) =
                    (warp.signals.iter()).partition(|&&s| is_warp_state(&self.signals[s]));
                states.extend(state.into_iter().map(|&signal| {
                    Item::Row(Row {
                        label: label.clone(),
                        ..self.a_row(signal, "")
                    })
                }));
                let others: Vec<Item> = others.into_iter().map(|&signal| self.row(signal, "")).collect();
                details.extend(group(&label, false, others));
            }
        }
        states.extend(group("warps in detail", false, details));
        group("warps", true, states)
    }

    /// A scope as it is declared.
    fn plain(&self, scope: &Scope, label: &str, is_open: bool) -> Option<Item> {
        group(label, is_open, self.contents(scope, false))
    }

    fn contents(&self, scope: &Scope, is_open: bool) -> Vec<Item> {
        let mut items: Vec<Item> = scope.signals.iter().map(|&n| self.row(n, "")).collect();
        items.extend(
            scope
                .scopes
                .iter()
                .filter_map(|inner| self.plain(inner, &inner.name, is_open)),
        );
        items
    }

    fn row(&self, signal: usize, before: &str) -> Item {
        Item::Row(self.a_row(signal, before))
    }

    fn a_row(&self, n: usize, before: &str) -> Row {
        let signal = &self.signals[n];
        Row {
            signal: n,
            label: format!("{before}{}", signal.name),
            look: look(signal),
        }
    }
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
        Kind::State(_) | Kind::Code => Look::Named,
        Kind::Real => Look::Curve,
        _ if CURVES.contains(&signal.name.as_str()) => Look::Curve,
        Kind::Bit => Look::Binary,
        kind if is_place || kind.width() > 32 => Look::Hex,
        _ => Look::Decimal,
    }
}
