//! The layout of a dump, for any viewer: groups of rows, and the format of each row.
//!
//! 1. The transaction that the user has chosen: an open group for each of its requests.
//! 2. The first SM, open, with a summary: curves, the top stall, issued instructions, the state of memory, and the warps of the first
//!    sub-core. Then its closed groups: schedulers, other warps, dispatch and collectors, pipes, LSU and coalescer, shared-memory banks,
//!    L1, CTAs, links.
//! 3. Curves of the memory system: crossbar, L2 and HBM.
//! 4. Closed groups of the front end, the crossbar, the L2 and the HBM.
//! 5. The other SMs, closed. They come last, since a viewer with a limit of rows shows only some SMs of a large GPU.

use crate::derived::is_warp_state;
use crate::signal::{Kind, Scope, Signal};

/// The format of a row's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Names from a [`NameTable`](super::names::NameTable).
    Named,
    /// Binary digits.
    Binary,
    /// Hex digits, for an address or a mask.
    Hex,
    /// A decimal number, for a count.
    Decimal,
    /// A curve over time.
    Curve,
}

/// A row with one signal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignalRow {
    /// The index of the signal.
    pub signal: usize,
    /// The text beside the row.
    pub label: String,
    /// The format of the values.
    pub format: Format,
}

/// A row, or a group of items.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Item {
    /// A row.
    Row(SignalRow),
    /// A group.
    Group {
        /// The title.
        label: String,
        /// True if the viewer opens the group at first.
        is_open: bool,
        /// The items inside.
        items: Vec<Item>,
    },
}

/// All items from top to bottom.
pub struct Layout(pub Vec<Item>);

/// The title of the group of pipes.
const PIPES: &str = "pipes";

/// Scopes of a sub-core that are no pipes.
const NOT_PIPES: [&str; 3] = ["scheduler", "dispatch", "link"];

/// The closed groups of an SM: title and scopes.
const SM_GROUPS: [(&str, &[&str]); 7] = [
    ("dispatch and collectors", &["dispatch"]),
    (PIPES, &[]),
    ("LSU and coalescer", &["lsu"]),
    ("shared-memory banks", &["shared"]),
    ("L1", &["l1"]),
    ("CTAs", &["cta"]),
    ("links", &["link"]),
];

/// The scope of the crossbar's, the L2's and the HBM's curves.
const MEMORY: &str = "memory";

/// The scope of the chosen transaction. Each scope inside is one of its requests.
pub const TRANSACTION: &str = "transaction";

/// The groups of the memory system: title and scope.
const MEMORY_GROUPS: [(&str, &str); 3] = [("crossbar", "xbar"), ("L2", "l2_slice"), ("HBM", "channel")];

/// Signals in the summary of an SM: scope, name and label.
const SUMMARY: [(&str, &str, &str); 6] = [
    ("lsu", "response_age", "request latency"),
    ("lsu", "pending", "requests pending"),
    ("shared", "banks", "shared banks"),
    ("l1", "tag", "L1 tag"),
    ("l1", "mshr_sectors", "L1 sectors missing"),
    ("tma", "pieces_in_flight", "bulk pieces pending"),
];

/// Names of integer signals that are shown as curves.
const CURVES: [&str; 8] = [
    "n_stalled",
    "response_age",
    "pending",
    "passes",
    "mshr_sectors",
    "pieces_in_flight",
    "fetch_sectors",
    "queue",
];

impl Layout {
    /// Lays out the signals. Each has one row. `empty_slots` are states of warp slots that never held a warp.
    pub fn new(signals: &[Signal], empty_slots: &[usize]) -> Layout {
        let tree = Scope::tree_without_aliases(signals);
        let mut builder = LayoutBuilder {
            signals,
            empty_slots,
            sm_is_open: true,
        };
        let items = tree.scopes.iter().flat_map(|top| builder.top(top)).collect();
        Layout(items)
    }

    /// The number of rows in all groups.
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

/// Builds the items of a layout.
struct LayoutBuilder<'a> {
    signals: &'a [Signal],
    empty_slots: &'a [usize],
    /// True before the first SM: of the SMs, only its group is open.
    sm_is_open: bool,
}

impl LayoutBuilder<'_> {
    /// The items of the outermost scope, which has no group of its own.
    fn top(&mut self, top: &Scope) -> Vec<Item> {
        let mut items: Vec<Item> = top.signals.iter().map(|&n| self.row(n)).collect();
        let memory = top.scopes.iter().find(|scope| scope.name == MEMORY);
        let transaction = top.scopes.iter().find(|scope| scope.name == TRANSACTION);
        items.extend(transaction.and_then(|scope| self.transaction(scope)));
        // GPCs are flattened: an SM's group has its whole path as title.
        let (sms, others): (Vec<_>, Vec<_>) = top.scopes.iter().partition(|scope| has_sm(scope));
        let mut sms: Vec<Item> = sms.into_iter().flat_map(|scope| self.sms(scope, &scope.name)).collect();
        let first_sm = sms.iter().position(|item| matches!(item, Item::Group { .. }));
        let other_sms = sms.split_off(first_sm.map_or(sms.len(), |at| at + 1));
        items.extend(sms);
        items.extend(memory.and_then(|scope| group(MEMORY, true, self.contents(scope))));
        // Scopes without a title of their own, such as the front end.
        for scope in others
            .iter()
            .filter(|scope| scope.name != MEMORY && scope.name != TRANSACTION)
            .filter(|scope| !MEMORY_GROUPS.iter().any(|(_, name)| is_called(&scope.name, name)))
        {
            items.extend(self.scope_group(scope, &scope.name));
        }
        for (title, name) in MEMORY_GROUPS {
            let parts = others.iter().filter(|scope| is_called(&scope.name, name));
            let parts = parts.filter_map(|scope| self.scope_group(scope, &scope.name)).collect();
            items.extend(group(title, false, parts));
        }
        items.extend(other_sms);
        items
    }

    /// The group of a transaction, with an open group for each of its requests.
    fn transaction(&self, scope: &Scope) -> Option<Item> {
        let request = |scope: &Scope| group(&scope.name, true, scope.signals.iter().map(|&n| self.row(n)).collect());
        group(TRANSACTION, true, scope.scopes.iter().filter_map(request).collect())
    }

    /// The items of a scope with SMs inside.
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

    /// The group of an SM: the summary, then a closed group for each part.
    fn sm(&mut self, sm: &Scope, path: &str) -> Option<Item> {
        let is_open = std::mem::replace(&mut self.sm_is_open, false);
        let subcores: Vec<&Scope> = sm
            .scopes
            .iter()
            .filter(|scope| scope.name.starts_with("subcore["))
            .collect();
        let mut items: Vec<Item> = sm.signals.iter().map(|&n| self.row(n)).collect();
        items.extend(self.instructions(&subcores));
        items.extend(self.summary(sm));
        let (first, others) = self.warps(&subcores);
        items.extend(first);
        items.extend(self.schedulers(&subcores));
        items.extend(others);
        for (title, names) in SM_GROUPS {
            let is_part = |scope: &&Scope| names.iter().any(|name| is_called(&scope.name, name));
            let mut inside = Vec::new();
            for (n, subcore) in subcores.iter().enumerate() {
                // Pipes have many names. Every scope of a sub-core that is not in `NOT_PIPES` is one.
                let is_pipe = |scope: &&Scope| !NOT_PIPES.iter().any(|name| is_called(&scope.name, name));
                let is_here = |scope: &&Scope| if title == PIPES { is_pipe(scope) } else { is_part(scope) };
                let parts = subcore.scopes.iter().filter(is_here);
                inside
                    .extend(parts.filter_map(|scope| self.scope_group(scope, &format!("sub-core {n} {}", scope.name))));
            }
            for scope in sm.scopes.iter().filter(is_part) {
                inside.extend(self.contents(scope));
            }
            items.extend(group(title, false, inside));
        }
        // A scope that no group lists gets a group of its own, so no signal is lost.
        let is_known = |scope: &Scope| {
            let mut names = SM_GROUPS.iter().flat_map(|(_, names)| names.iter());
            scope.name.starts_with("subcore[") || names.any(|name| is_called(&scope.name, name))
        };
        let others = sm.scopes.iter().filter(|scope| !is_known(scope));
        items.extend(others.filter_map(|scope| self.scope_group(scope, &scope.name)));
        group(path, is_open, items)
    }

    /// The instructions that each scheduler issues, as text.
    fn instructions(&self, subcores: &[&Scope]) -> Vec<Item> {
        let mut items = Vec::new();
        for (n, scheduler) in schedulers(subcores) {
            let texts = scheduler.signals.iter().filter(|&&signal| self.is_text(signal));
            items.extend(texts.map(|&signal| self.labelled(signal, format!("issue {n}"))));
        }
        items
    }

    /// The rows of [`SUMMARY`].
    fn summary(&self, sm: &Scope) -> Vec<Item> {
        let find = |&(scope, name, label): &(&str, &str, &str)| {
            let scope = sm.scopes.iter().find(|inner| inner.name == scope)?;
            let signal = scope
                .signals
                .iter()
                .find(|&&signal| self.signals[signal].name == name)?;
            Some(self.labelled(*signal, label.into()))
        };
        SUMMARY.iter().filter_map(find).collect()
    }

    /// The other signals of the schedulers.
    fn schedulers(&self, subcores: &[&Scope]) -> Option<Item> {
        let mut items = Vec::new();
        for (n, scheduler) in schedulers(subcores) {
            let others = scheduler.signals.iter().filter(|&&signal| !self.is_text(signal));
            let others = others.map(|&signal| self.row(signal)).collect();
            items.extend(group(&format!("scheduler {n}"), false, others));
        }
        group("schedulers", false, items)
    }

    /// Two groups: the states of the warps in the first sub-core, and all other signals of warps.
    fn warps(&self, subcores: &[&Scope]) -> (Option<Item>, Option<Item>) {
        let (mut first, mut items, mut more) = (None, Vec::new(), Vec::new());
        for (n, scheduler) in schedulers(subcores) {
            // Slots that never held a warp go into a closed group.
            let (mut states, mut empty) = (Vec::new(), Vec::new());
            for warp in &scheduler.scopes {
                // No dot between the numbers: GTKWave would cut the label there.
                let label = warp.name.replace("warp[", &format!("warp {n}-")).replace(']', "");
                let is_state = |&&signal: &&usize| is_warp_state(&self.signals[signal]);
                let (state, others): (Vec<usize>, Vec<usize>) = warp.signals.iter().partition(is_state);
                for signal in state {
                    let is_empty = self.empty_slots.contains(&signal);
                    let rows = if is_empty { &mut empty } else { &mut states };
                    rows.push(self.labelled(signal, label.clone()));
                }
                let others = others.into_iter().map(|signal| self.row(signal)).collect();
                more.extend(group(&label, false, others));
            }
            states.extend(group("empty warp slots", false, empty));
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

    fn is_in_summary(&self, signal: usize) -> bool {
        let signal = &self.signals[signal];
        let is_in = |scope: &str| signal.scope.last().is_some_and(|last| last == scope);
        let is_below_sm = signal
            .scope
            .iter()
            .rev()
            .nth(1)
            .is_some_and(|scope| scope.starts_with("sm["));
        let known = SUMMARY
            .iter()
            .any(|&(scope, name, _)| is_in(scope) && signal.name == name);
        is_below_sm && known
    }

    /// The group of a scope and its inner scopes, without the signals of the summary.
    fn scope_group(&self, scope: &Scope, label: &str) -> Option<Item> {
        group(label, false, self.contents(scope))
    }

    /// The items of a scope, without the signals of the summary.
    fn contents(&self, scope: &Scope) -> Vec<Item> {
        let signals = scope.signals.iter().filter(|&&signal| !self.is_in_summary(signal));
        let mut items: Vec<Item> = signals.map(|&n| self.row(n)).collect();
        items.extend(
            scope
                .scopes
                .iter()
                .filter_map(|inner| self.scope_group(inner, &inner.name)),
        );
        items
    }

    fn labelled(&self, signal: usize, label: String) -> Item {
        Item::Row(SignalRow {
            label,
            ..self.signal_row(signal)
        })
    }

    fn row(&self, signal: usize) -> Item {
        Item::Row(self.signal_row(signal))
    }

    fn signal_row(&self, n: usize) -> SignalRow {
        let signal = &self.signals[n];
        SignalRow {
            signal: n,
            label: signal.name.clone(),
            format: format_of(signal),
        }
    }
}

/// The schedulers of sub-cores, each with its number.
fn schedulers<'a>(subcores: &'a [&'a Scope]) -> impl Iterator<Item = (usize, &'a Scope)> {
    let scheduler = |(n, subcore): (usize, &&'a Scope)| {
        let found = subcore.scopes.iter().find(|scope| scope.name == "scheduler");
        found.map(|scheduler| (n, scheduler))
    };
    subcores.iter().enumerate().filter_map(scheduler)
}

/// True if a scope has this name, with or without an index.
fn is_called(scope: &str, name: &str) -> bool {
    scope == name || scope.strip_prefix(name).is_some_and(|rest| rest.starts_with('['))
}

fn is_sm(scope: &Scope) -> bool {
    scope.name.starts_with("sm[")
}

fn has_sm(scope: &Scope) -> bool {
    is_sm(scope) || scope.scopes.iter().any(has_sm)
}

/// A group. `None` if it has no items.
fn group(label: &str, is_open: bool, items: Vec<Item>) -> Option<Item> {
    (!items.is_empty()).then(|| Item::Group {
        label: label.into(),
        is_open,
        items,
    })
}

/// The format of a signal, by its kind and name.
fn format_of(signal: &Signal) -> Format {
    // `lanes` alone is a mask. In a longer name it is a number of lanes.
    let is_address_or_mask = signal.name == "lanes"
        || ["pc", "addr", "mask", "line", "payload", "active", "pending"]
            .iter()
            .any(|word| signal.name.contains(word));
    match signal.kind {
        // Viewers draw a signal of one bit as a level, without a name.
        kind if kind.states().is_some() && kind.width() == 1 => Format::Binary,
        Kind::State(_) | Kind::Code => Format::Named,
        Kind::Real => Format::Curve,
        _ if CURVES.contains(&signal.name.as_str()) => Format::Curve,
        Kind::Bit => Format::Binary,
        kind if is_address_or_mask || kind.width() > 32 => Format::Hex,
        _ => Format::Decimal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mask_of_lanes_is_hex_and_number_of_lanes_is_decimal() {
        let format = |name: &str, width: u32| format_of(&Signal::new(name, Kind::Vector(width)));
        assert_eq!(format("sm.branch.lanes", 32), Format::Hex);
        assert_eq!(format("sm.scheduler.issue_active", 32), Format::Hex);
        assert_eq!(format("sm.scheduler.issue_lanes", 6), Format::Decimal);
    }
}
