//! Links as handshakes, worked out of what is sent and taken at their ends.
//!
//! | signal of a link | is, after a cycle |
//! |---|---|
//! | `valid` | 1 if a message was sent in it |
//! | `ready` | 1 if the sender has room for one in the next |
//! | `occupancy` | messages sent and not taken |
//! | `payload` | what the last message sent in it is, in one number |
//!
//! A link lies in the scope of its receiver, and as an alias in that of its sender, below `to`.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, VecDeque};

use warpwave_hw::clock::Clock;
use warpwave_hw::link::wires::{End, LinkEvent, LinkEventLog, Wires};
use warpwave_hw::time::Cycle;

use crate::recorder::Change;
use crate::select::Selection;
use crate::signal::{Kind, Signal};

/// Signals of a link.
const SIGNALS: [(&str, Kind); 4] = [
    ("valid", Kind::Bit),
    ("ready", Kind::Bit),
    ("occupancy", Kind::Vector(8)),
    ("payload", Kind::Vector(48)),
];

/// A link that is watched at both ends.
#[derive(Default)]
struct Link {
    /// Place of its first signal.
    place: u32,
    depth: u64,
    credit_latency: u64,
    /// Messages sent and not taken; and places that are not free for the sender.
    occupancy: u64,
    in_use: u64,
    sent: Option<u64>,
    shown: [Option<u64>; 4],
}

impl Link {
    fn values(&self) -> [Option<u64>; 4] {
        [
            Some(u64::from(self.sent.is_some())),
            Some(u64::from(self.in_use < self.depth)),
            Some(self.occupancy),
            self.sent,
        ]
    }
}

/// A place of a link is free, or what it showed for one cycle is over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Free,
    Over,
}

/// All links that are watched.
#[derive(Default)]
pub struct Links {
    links: Vec<Link>,
    log: LinkEventLog,
    /// What happened and is not merged, by cycle and link.
    events: VecDeque<LinkEvent>,
    drained: Vec<LinkEvent>,
    due: BinaryHeap<Reverse<(Cycle, u32, Due)>>,
    touched: BTreeSet<u32>,
}

impl Links {
    /// Watches the links that are selected; their signals are added.
    pub fn attach(selection: &Selection, clock: &mut Clock, signals: &mut Vec<Signal>) -> Links {
        let mut finder = Finder {
            selection,
            signals,
            links: Links::default(),
            numbers: HashMap::new(),
            component: String::new(),
            ends: Some(HashMap::new()),
            wanted: HashMap::new(),
        };
        // Once to count the ends: what the host holds one of is no link of the machine's.
        for component in clock.tiles_mut().iter_mut().flat_map(|tile| tile.components_mut()) {
            component.ports(&mut finder);
        }
        finder.ends.get_or_insert_default().retain(|_, ends| *ends == 2);
        finder.wanted = finder.ends.take().unwrap_or_default();
        for component in clock.tiles_mut().iter_mut().flat_map(|tile| tile.components_mut()) {
            finder.component = component.path().to_string();
            component.ports(&mut finder);
        }
        finder.links
    }

    /// Takes in what happened before the end of the quantum.
    pub fn refill(&mut self) {
        self.log.drain_into(&mut self.drained);
        self.events.extend(self.drained.drain(..));
        // Ends in different tiles leave their events in any order; those of one end stay as they came.
        self.events
            .make_contiguous()
            .sort_by_key(|event| (event.at, event.link));
    }

    /// Nothing is shown before cycle `now`: only follows what is under way.
    pub fn follow(&mut self, now: Cycle) {
        let mut unseen = Vec::new();
        while self.next() < now {
            self.take(self.next(), &mut unseen);
            unseen.clear();
        }
    }

    /// The first values: what is under way.
    pub fn begin(&mut self, start: Cycle, values: &mut [Option<u64>]) {
        self.follow(start);
        for link in &mut self.links {
            link.shown = link.values();
            values[link.place as usize..][..4].copy_from_slice(&link.shown);
        }
    }

    /// The next cycle in which a link may change.
    pub fn next(&self) -> Cycle {
        let event = self.events.front().map_or(Cycle::NEVER, |event| event.at);
        let due = self.due.peek().map_or(Cycle::NEVER, |Reverse((at, ..))| *at);
        event.min(due)
    }

    /// Adds what changes in this cycle.
    pub fn take(&mut self, now: Cycle, step: &mut Vec<Change>) {
        while let Some(&Reverse((at, number, what))) = self.due.peek()
            && at <= now
        {
            self.due.pop();
            let link = &mut self.links[number as usize];
            match what {
                Due::Free => link.in_use = link.in_use.saturating_sub(1),
                Due::Over => link.sent = None,
            }
            self.touched.insert(number);
        }
        while let Some(&event) = self.events.front()
            && event.at <= now
        {
            self.events.pop_front();
            self.happen(now, event);
        }
        for number in std::mem::take(&mut self.touched) {
            let link = &mut self.links[number as usize];
            let values = link.values();
            for (n, (new, old)) in values.into_iter().zip(link.shown).enumerate() {
                step.extend((new != old).then_some((link.place + n as u32, new)));
            }
            link.shown = values;
        }
    }

    fn happen(&mut self, now: Cycle, event: LinkEvent) {
        let link = &mut self.links[event.link as usize];
        match event.sent {
            Some(payload) => {
                link.sent = Some(payload);
                link.occupancy += 1;
                link.in_use += 1;
                self.due.push(Reverse((now + 1, event.link, Due::Over)));
            }
            None => {
                link.occupancy = link.occupancy.saturating_sub(1);
                // Free for the sender in cycle taken + credit latency: ready in the one before.
                match link.credit_latency {
                    0 | 1 => link.in_use = link.in_use.saturating_sub(1),
                    latency => self.due.push(Reverse((now + (latency - 1), event.link, Due::Free))),
                }
            }
        }
        self.touched.insert(event.link);
    }
}

/// Finds the links that are selected, and numbers them.
struct Finder<'a> {
    selection: &'a Selection,
    signals: &'a mut Vec<Signal>,
    links: Links,
    numbers: HashMap<String, u32>,
    /// The component whose ends are offered.
    component: String,
    /// While they are counted: the ends of each selected link.
    ends: Option<HashMap<String, u32>>,
    /// Links with both ends.
    wanted: HashMap<String, u32>,
}

impl Finder<'_> {
    /// The scope below the sender in which the link appears too.
    fn alias(&self, link: &str) -> Vec<String> {
        let own: Vec<&str> = self.component.split('.').collect();
        let names: Vec<&str> = link.split('.').collect();
        let common = own.iter().zip(&names).take_while(|(a, b)| a == b).count();
        let below = std::iter::once("to").chain(names[common..].iter().copied());
        own.iter().copied().chain(below).map(String::from).collect()
    }

    fn number(&mut self, end: &End<'_>) -> u32 {
        let path = end.link.path.as_str();
        if let Some(&number) = self.numbers.get(path) {
            return number;
        }
        let number = self.links.links.len() as u32;
        self.numbers.insert(path.into(), number);
        self.links.links.push(Link {
            place: self.signals.len() as u32,
            depth: end.link.depth.into(),
            ..Link::default()
        });
        for (name, kind) in SIGNALS {
            self.signals.push(Signal::new(&format!("{path}.{name}"), kind));
        }
        number
    }
}

impl Wires for Finder<'_> {
    fn end(&mut self, end: &End<'_>) -> Option<(LinkEventLog, u32)> {
        let path = end.link.path.as_str();
        let is_taken = |(name, _): &(&str, Kind)| self.selection.takes(path.split('.').chain([*name]));
        if !self.selection.may_begin(path) || !SIGNALS.iter().any(is_taken) {
            return None;
        }
        if let Some(ends) = &mut self.ends {
            *ends.entry(path.into()).or_default() += 1;
            return None;
        }
        if !self.wanted.contains_key(path) {
            return None;
        }
        let number = self.number(end);
        let place = self.links.links[number as usize].place as usize;
        if end.is_sender {
            let alias = self.alias(path);
            for signal in &mut self.signals[place..place + SIGNALS.len()] {
                signal.also_in = Some(alias.clone());
            }
        } else {
            self.links.links[number as usize].credit_latency = end.credit_latency;
        }
        Some((self.links.log.clone(), number))
    }
}
