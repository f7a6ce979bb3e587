//! Handshake signals of links, derived from the messages sent and taken at both ends.
//!
//! | signal | value after a cycle |
//! |---|---|
//! | `valid` | 1 if a message was sent in this cycle |
//! | `ready` | 1 if the sender has room for a message in the next cycle |
//! | `occupancy` | messages sent and not yet taken |
//! | `payload` | the number of the last message sent in this cycle ([`Payload`](warpwave_hw::link::wires::Payload)) |
//!
//! The signals are in the scope of the receiver. An alias is in the scope of the sender, below `to`.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;

use warpwave_hw::clock::Clock;
use warpwave_hw::link::wires::{LinkEnd, LinkEvent, LinkEventLog, LinkObserver};
use warpwave_hw::probe::count_width;
use warpwave_hw::time::Cycle;

use crate::recorder::Change;
use crate::select::Selection;
use crate::signal::{Kind, Signal};

/// Names of the signals of a link.
const SIGNALS: [&str; 4] = ["valid", "ready", "occupancy", "payload"];

/// Kinds of the signals of a link of this depth.
fn kinds(depth: u32) -> [Kind; 4] {
    let occupancy = count_width(depth.into());
    [Kind::Bit, Kind::Bit, Kind::Vector(occupancy), Kind::Vector(48)]
}

/// The state of one link.
#[derive(Default)]
struct Link {
    /// Index of its first signal.
    first_signal: u32,
    depth: u64,
    /// Cycles from taking a message until its slot is free for the sender.
    credit_latency: u64,
    /// Messages sent and not yet taken.
    occupancy: u64,
    /// Slots that the sender cannot use.
    used_slots: u64,
    /// The number of the message sent in this cycle.
    sent: Option<u64>,
    /// The values of its signals after the last change.
    values: [Option<u64>; 4],
}

impl Link {
    fn current_values(&self) -> [Option<u64>; 4] {
        [
            Some(u64::from(self.sent.is_some())),
            Some(u64::from(self.used_slots < self.depth)),
            Some(self.occupancy),
            self.sent,
        ]
    }
}

/// The links that are recorded.
#[derive(Default)]
pub struct LinkSignals {
    links: Vec<Link>,
    log: LinkEventLog,
    /// Events that are not applied yet, by cycle.
    events: VecDeque<LinkEvent>,
    drained: Vec<LinkEvent>,
    /// The cycles in which `valid` and `payload` of a link end, in order.
    valid_ends: VecDeque<(Cycle, u32)>,
    /// The cycles in which a slot of a link becomes free for the sender.
    free_slots: BinaryHeap<Reverse<(Cycle, u32)>>,
    /// Links that may change in this cycle.
    changed: Vec<u32>,
}

impl LinkSignals {
    /// Watches the selected links, and appends their signals to `signals`.
    pub fn attach(selection: &Selection, clock: &mut Clock, signals: &mut Vec<Signal>) -> LinkSignals {
        let mut finder = LinkFinder {
            selection,
            signals,
            links: LinkSignals::default(),
            numbers: HashMap::new(),
            component: String::new(),
            ends: Some(HashMap::new()),
            complete: HashMap::new(),
        };
        // The first pass counts the ends. The host holds one end of some links, which are not part of the machine.
        for component in clock.tiles_mut().iter_mut().flat_map(|tile| tile.components_mut()) {
            component.ports(&mut finder);
        }
        finder.ends.get_or_insert_default().retain(|_, ends| *ends == 2);
        finder.complete = finder.ends.take().unwrap_or_default();
        for component in clock.tiles_mut().iter_mut().flat_map(|tile| tile.components_mut()) {
            finder.component = component.path().to_string();
            component.ports(&mut finder);
        }
        finder.links
    }

    /// Reads the events of the last quantum.
    pub fn refill(&mut self) {
        self.log.drain_into(&mut self.drained);
        self.events.extend(self.drained.drain(..));
        // Tiles log their events in any order. The sort is stable, so the events of one end keep their order.
        self.events.make_contiguous().sort_by_key(|event| event.at);
    }

    /// Applies all events before cycle `now` and drops the changes. Messages in flight are then known when the window begins.
    pub fn skip_to(&mut self, now: Cycle) {
        let mut dropped = Vec::new();
        while self.next() < now {
            self.take(self.next(), &mut dropped);
            dropped.clear();
        }
    }

    /// Stores the values at the start of the window.
    pub fn begin(&mut self, start: Cycle, values: &mut [Option<u64>]) {
        self.skip_to(start);
        for link in &mut self.links {
            link.values = link.current_values();
            values[link.first_signal as usize..][..4].copy_from_slice(&link.values);
        }
    }

    /// The next cycle in which a link may change.
    pub fn next(&self) -> Cycle {
        let event = self.events.front().map_or(Cycle::NEVER, |event| event.at);
        let end = self.valid_ends.front().map_or(Cycle::NEVER, |&(at, _)| at);
        let free = self.free_slots.peek().map_or(Cycle::NEVER, |Reverse((at, _))| *at);
        event.min(end).min(free)
    }

    /// Applies the events of this cycle, and appends the changes of signals to `changes`.
    pub fn take(&mut self, now: Cycle, changes: &mut Vec<Change>) {
        while let Some((_, number)) = self.valid_ends.pop_front_if(|(at, _)| *at <= now) {
            self.links[number as usize].sent = None;
            self.changed.push(number);
        }
        while let Some(&Reverse((at, number))) = self.free_slots.peek()
            && at <= now
        {
            self.free_slots.pop();
            let link = &mut self.links[number as usize];
            link.used_slots = link.used_slots.saturating_sub(1);
            self.changed.push(number);
        }
        while let Some(&event) = self.events.front()
            && event.at <= now
        {
            self.events.pop_front();
            self.apply(now, event);
        }
        self.changed.sort_unstable();
        self.changed.dedup();
        // Links are numbered in the order of their signals, so the changes come in rising order.
        for number in self.changed.drain(..) {
            let link = &mut self.links[number as usize];
            let values = link.current_values();
            for (n, (new, old)) in values.into_iter().zip(link.values).enumerate() {
                changes.extend((new != old).then_some((link.first_signal + n as u32, new)));
            }
            link.values = values;
        }
    }

    fn apply(&mut self, now: Cycle, event: LinkEvent) {
        let link = &mut self.links[event.link as usize];
        match event.sent {
            Some(payload) => {
                link.sent = Some(payload);
                link.occupancy += 1;
                link.used_slots += 1;
                // Events are applied in the order of cycles, so the ends are in order too.
                self.valid_ends.push_back((now + 1, event.link));
            }
            None => {
                // A message sent before the link was watched may be taken later.
                link.occupancy = link.occupancy.saturating_sub(1);
                // The slot is free in cycle now + credit latency, and `ready` speaks of the next cycle.
                match link.credit_latency {
                    0 | 1 => link.used_slots = link.used_slots.saturating_sub(1),
                    latency => (self.free_slots).push(Reverse((now + (latency - 1), event.link))),
                }
            }
        }
        self.changed.push(event.link);
    }
}

/// Finds the selected links and numbers them.
struct LinkFinder<'a> {
    selection: &'a Selection,
    signals: &'a mut Vec<Signal>,
    links: LinkSignals,
    /// The number of each recorded link, by path.
    numbers: HashMap<String, u32>,
    /// The path of the component that offers its ends now.
    component: String,
    /// First pass only: the number of ends of each selected link.
    ends: Option<HashMap<String, u32>>,
    /// The selected links with both ends in components.
    complete: HashMap<String, u32>,
}

impl LinkFinder<'_> {
    /// The scope of the link's alias: below the sender, with the rest of the link's path.
    fn alias(&self, link: &str) -> Arc<[String]> {
        let own: Vec<&str> = self.component.split('.').collect();
        let names: Vec<&str> = link.split('.').collect();
        // The names that sender and link share are left out: they would stand twice in the path.
        let common = own.iter().zip(&names).take_while(|(a, b)| a == b).count();
        let below = std::iter::once("to").chain(names[common..].iter().copied());
        own.iter().copied().chain(below).map(String::from).collect()
    }

    /// The number of a link. A new link gets the next number and its signals.
    fn number(&mut self, end: &LinkEnd<'_>) -> u32 {
        let path = end.link.path.as_str();
        if let Some(&number) = self.numbers.get(path) {
            return number;
        }
        let number = self.links.links.len() as u32;
        self.numbers.insert(path.into(), number);
        self.links.links.push(Link {
            first_signal: self.signals.len() as u32,
            depth: end.link.depth.into(),
            ..Link::default()
        });
        let scope: Arc<[String]> = path.split('.').map(String::from).collect();
        for (name, kind) in SIGNALS.into_iter().zip(kinds(end.link.depth)) {
            self.signals.push(Signal {
                scope: scope.clone(),
                name: name.into(),
                kind,
                alias_scope: None,
            });
        }
        number
    }
}

impl LinkObserver for LinkFinder<'_> {
    fn end(&mut self, end: &LinkEnd<'_>) -> Option<(LinkEventLog, u32)> {
        let path = end.link.path.as_str();
        if let Some(ends) = &mut self.ends {
            let is_selected = |name: &&str| self.selection.selects(path.split('.').chain([*name]));
            if self.selection.prefix_may_select(path) && SIGNALS.iter().any(is_selected) {
                *ends.entry(path.into()).or_default() += 1;
            }
            return None;
        }
        if !self.complete.contains_key(path) {
            return None;
        }
        let number = self.number(end);
        let first = self.links.links[number as usize].first_signal as usize;
        if end.is_sender {
            let alias = self.alias(path);
            for signal in &mut self.signals[first..first + SIGNALS.len()] {
                signal.alias_scope = Some(alias.clone());
            }
        } else {
            self.links.links[number as usize].credit_latency = end.credit_latency;
        }
        Some((self.links.log.clone(), number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_is_ready_in_the_cycle_before_the_one_in_which_its_slot_is_free() {
        for (credit_latency, ready_at) in [(1, 12), (9, 20)] {
            let link = Link {
                depth: 1,
                credit_latency,
                ..Link::default()
            };
            let mut signals = LinkSignals {
                links: vec![link],
                ..LinkSignals::default()
            };
            let mut values = [None; 4];
            signals.begin(Cycle(0), &mut values);
            assert_eq!(values, [Some(0), Some(1), Some(0), None]);
            // Message 77 is sent in cycle 10 and taken in cycle 12. Its slot is free `credit_latency` cycles later.
            for (at, sent) in [(10, Some(77)), (12, None)] {
                let (at, link) = (Cycle(at), 0);
                signals.events.push_back(LinkEvent { at, link, sent });
            }
            for now in 0..30 {
                let mut changes = Vec::new();
                signals.take(Cycle(now), &mut changes);
                changes
                    .iter()
                    .for_each(|&(signal, value)| values[signal as usize] = value);
                let is_sent = now == 10;
                let expected = [
                    Some(u64::from(is_sent)),
                    Some(u64::from(now < 10 || now >= ready_at)),
                    Some(u64::from((10..12).contains(&now))),
                    is_sent.then_some(77),
                ];
                assert_eq!(values, expected, "cycle {now}, credits after {credit_latency}");
            }
        }
    }
}
