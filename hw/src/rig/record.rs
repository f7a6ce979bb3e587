//! Records what a component sent, showed and counted in a run, and compares two runs.

use std::sync::{Arc, Mutex};

use bitvec::vec::BitVec;

use super::Event;
use crate::component::Component;
use crate::invariant::Invariants;
use crate::probe::Probe;
use crate::stats::{Latency, Report};
use crate::tile::Sampler;
use crate::time::Cycle;

/// The signals of a component at one time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Snapshot {
    /// Names, with the parts around them, and values.
    signals: Vec<(String, Option<u64>)>,
    /// The parts entered and not left.
    parts: Vec<String>,
    /// A finding: a value that does not fit the width of its signal.
    too_large: Option<String>,
    is_quiescent: bool,
}

impl Snapshot {
    pub(super) fn of(component: &dyn Component) -> Snapshot {
        let mut snapshot = Snapshot {
            is_quiescent: component.is_quiescent(),
            ..Snapshot::default()
        };
        component.probe(&mut snapshot);
        snapshot
    }

    fn value(&mut self, name: &str, value: Option<u64>) {
        let parts = self.parts.concat();
        self.signals.push((format!("{parts}{name}"), value));
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        self.signals.iter().map(|(name, _)| name)
    }
}

impl Probe for Snapshot {
    fn bit(&mut self, name: &'static str, value: Option<bool>) {
        self.value(name, value.map(u64::from));
    }
    fn vector(&mut self, name: &'static str, width: u32, value: Option<u64>) {
        if let Some(value) = value.filter(|value| width < u64::BITS && value >> width != 0) {
            self.too_large = Some(format!("{name} of {width} bits is {value}"));
        }
        self.value(name, value);
    }
    fn state(&mut self, name: &'static str, _: &'static [&'static str], value: Option<usize>) {
        self.value(name, value.map(|state| state as u64));
    }
    fn enter(&mut self, name: &'static str, index: usize) {
        self.parts.push(format!("{name}[{index}]."));
    }
    fn leave(&mut self) {
        self.parts.pop();
    }
}

/// The signals of the first component of a tile after its last tick, as a waveform would record them.
#[derive(Clone, Default)]
pub(super) struct LastSample(Arc<Mutex<Snapshot>>);

impl LastSample {
    pub(super) fn get(&self) -> Snapshot {
        self.0.lock().expect("no sampler panics").clone()
    }

    fn set(&self, component: &dyn Component) {
        *self.0.lock().expect("no sampler panics") = Snapshot::of(component);
    }
}

impl Sampler for LastSample {
    fn begin(&mut self, _: Cycle, components: &[Box<dyn Component>]) {
        self.set(components[0].as_ref());
    }
    fn sample(&mut self, _: Cycle, _: usize, component: &dyn Component) {
        self.set(component);
    }
    fn flush(&mut self, _: Cycle) {}
}

/// The counters and latencies of a component, as text.
#[derive(Default)]
struct Counts(Vec<String>);

impl Report for Counts {
    fn count(&mut self, name: &'static str, value: u64) {
        self.0.push(format!("{name} {value}"));
    }
    fn latency(&mut self, name: &'static str, value: &Latency) {
        let histogram = value.histogram();
        let values: Vec<_> = histogram
            .iter_recorded()
            .map(|step| (step.value_iterated_to(), step.count_at_value()))
            .collect();
        self.0.push(format!("{name} {values:?}"));
    }
}

/// The counters of a component.
#[derive(Default)]
struct Totals(Vec<(&'static str, u64)>);

impl Report for Totals {
    fn count(&mut self, name: &'static str, value: u64) {
        self.0.push((name, value));
    }
    fn latency(&mut self, _: &'static str, _: &Latency) {}
}

/// The record of one run of a component.
pub(super) struct RunRecord {
    pub(super) events: Vec<Event>,
    initial: Snapshot,
    /// The signals after each cycle.
    snapshots: Vec<Snapshot>,
    /// For each cycle, whether no message was in flight and all traffic was sent.
    at_rest: BitVec,
    counts: Vec<String>,
    /// The counters after the last cycle.
    totals: Totals,
    waits: Vec<String>,
    /// The first violation found in a snapshot.
    finding: Option<String>,
}

impl RunRecord {
    pub(super) fn new(initial: Snapshot) -> RunRecord {
        RunRecord {
            events: Vec::new(),
            initial,
            snapshots: Vec::new(),
            at_rest: BitVec::new(),
            counts: Vec::new(),
            totals: Totals::default(),
            waits: Vec::new(),
            finding: None,
        }
    }

    /// Adds a snapshot after cycle `now`, and checks it.
    pub(super) fn add(&mut self, now: Cycle, component: &dyn Component, sampled: &Snapshot, is_at_rest: bool) {
        assert_eq!(now.0, self.snapshots.len() as u64, "one snapshot per cycle");
        let snapshot = Snapshot::of(component);
        // Outside of the chain, because it also keeps the counters for the next cycle.
        let fallen = self.fallen_counter(now, component);
        self.finding = self
            .finding
            .take()
            .or_else(|| self.signal_fault(now, &snapshot, sampled))
            .or_else(|| broken_invariant(now, component))
            .or(fallen);
        self.snapshots.push(snapshot);
        self.at_rest.push(is_at_rest);
    }

    /// A violation in a snapshot: other signals, a value that is too large, or a change without a tick.
    fn signal_fault(&self, now: Cycle, snapshot: &Snapshot, sampled: &Snapshot) -> Option<String> {
        // A waveform declares its signals once, from the initial state.
        if !snapshot.names().eq(self.initial.names()) {
            return Some(format!(
                "after cycle {now} it shows other signals than after construction"
            ));
        }
        if let Some(value) = &snapshot.too_large {
            return Some(format!("after cycle {now} {value}"));
        }
        // A waveform has the sample of the last tick. A difference is a change without a tick.
        let mut both = snapshot.signals.iter().zip(&sampled.signals);
        let ((name, value), (_, sampled)) = both.find(|(now, then)| now != then)?;
        Some(format!(
            "in cycle {now} {name} changes without a tick: it is {value:?}, and was {sampled:?} after the last tick"
        ))
    }

    /// A violation: a counter that is less than in the previous cycle.
    fn fallen_counter(&mut self, now: Cycle, component: &dyn Component) -> Option<String> {
        let mut totals = Totals::default();
        component.stats(&mut totals);
        let before = std::mem::replace(&mut self.totals, totals);
        let mut both = before.0.iter().zip(&self.totals.0);
        let ((name, before), (_, after)) = both.find(|((_, before), (_, after))| after < before)?;
        Some(format!("in cycle {now} counter {name} falls from {before} to {after}"))
    }

    /// Adds the events and the statistics at the end of the run.
    pub(super) fn finish(mut self, mut events: Vec<Event>, component: &dyn Component) -> RunRecord {
        // Within a cycle the events are in the order of ticks, which differs between runs.
        events.sort();
        self.events = events;
        let mut counts = Counts::default();
        component.stats(&mut counts);
        self.counts = counts.0;
        component.waits(&mut |wait| self.waits.push(wait));
        self
    }

    /// Checks the rules of the contract that concern one run.
    pub(super) fn is_sound(&self) -> Result<(), String> {
        if let Some(finding) = &self.finding {
            return Err(finding.clone());
        }
        let is_quiescent = self.snapshots.last().unwrap_or(&self.initial).is_quiescent;
        if !self.at_rest.last().is_some_and(|rest| *rest) || !is_quiescent {
            let waits = self.waits.join("; ");
            return Err(format!("not at rest after {} cycles: {waits}", self.snapshots.len()));
        }
        // From the first such cycle on, a message would come from nothing.
        let rest = (0..self.snapshots.len()).find(|&n| self.at_rest[n] && self.snapshots[n].is_quiescent);
        let rest = rest.expect("the run ends at rest");
        match self.events.iter().find(|event| event.at.0 > rest as u64) {
            Some(event) => Err(format!("at rest and quiescent after cycle {rest}, but then {event:?}")),
            None => Ok(()),
        }
    }

    /// Compares a run in another way, described by `way`, with this one. Returns the first difference.
    pub(super) fn same_as(&self, other: &RunRecord, way: &str) -> Result<(), String> {
        let n = self.events.len().max(other.events.len());
        for n in 0..n {
            let (own, its) = (self.events.get(n), other.events.get(n));
            if own != its {
                return Err(format!("{way}: event {n} is {its:?}, not {own:?}"));
            }
        }
        self.initial.same_as(&other.initial, "at the start", way)?;
        for (now, (own, its)) in self.snapshots.iter().zip(&other.snapshots).enumerate() {
            own.same_as(its, &format!("after cycle {now}"), way)?;
        }
        match self.counts.iter().zip(&other.counts).find(|(own, its)| own != its) {
            Some((own, its)) => Err(format!("{way}: counts {its}, not {own}")),
            None => Ok(()),
        }
    }
}

/// A violation: a broken invariant of the component.
fn broken_invariant(now: Cycle, component: &dyn Component) -> Option<String> {
    let broken = Invariants::broken(|check| component.invariants(check));
    let first = broken.into_iter().next()?;
    Some(format!("after cycle {now} an invariant is broken: {first}"))
}

impl Snapshot {
    fn same_as(&self, other: &Snapshot, when: &str, way: &str) -> Result<(), String> {
        if self.is_quiescent != other.is_quiescent {
            return Err(format!("{way}: {when} is_quiescent is {}", other.is_quiescent));
        }
        let differs = self.signals.iter().zip(&other.signals).find(|(own, its)| own != its);
        match differs {
            Some(((name, own), (_, its))) => Err(format!("{way}: {when} {name} is {its:?}, not {own:?}")),
            None => Ok(()),
        }
    }
}
