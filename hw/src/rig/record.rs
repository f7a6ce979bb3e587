//! What a component did, showed and counted in one life, and how two lives differ.

use std::sync::{Arc, Mutex};

use super::Event;
use crate::component::Component;
use crate::probe::{Probe, Sampler};
use crate::stats::{Latency, Report};
use crate::time::Cycle;

/// What a component shows at one time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Look {
    /// Names with the parts that they lie in, and values.
    signals: Vec<(String, Option<u64>)>,
    parts: Vec<String>,
    /// A value that its signal is too narrow for.
    too_large: Option<String>,
    is_quiescent: bool,
}

impl Look {
    pub(super) fn at(component: &dyn Component) -> Look {
        let mut look = Look {
            is_quiescent: component.is_quiescent(),
            ..Look::default()
        };
        component.probe(&mut look);
        look
    }

    fn value(&mut self, name: &str, value: Option<u64>) {
        let parts = self.parts.concat();
        self.signals.push((format!("{parts}{name}"), value));
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        self.signals.iter().map(|(name, _)| name)
    }
}

impl Probe for Look {
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

/// What a waveform would have of the first component of a tile: how it looked after its last tick.
#[derive(Clone, Default)]
pub(super) struct Sampled(Arc<Mutex<Look>>);

impl Sampled {
    pub(super) fn last(&self) -> Look {
        self.0.lock().expect("no sampler panics").clone()
    }

    fn set(&self, component: &dyn Component) {
        *self.0.lock().expect("no sampler panics") = Look::at(component);
    }
}

impl Sampler for Sampled {
    fn begin(&mut self, _: Cycle, components: &[Box<dyn Component>]) {
        self.set(components[0].as_ref());
    }
    fn sample(&mut self, _: Cycle, _: usize, component: &dyn Component) {
        self.set(component);
    }
    fn flush(&mut self, _: Cycle) {}
}

/// A component's counters and latencies as text.
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

/// A component's counters.
#[derive(Default)]
struct Totals(Vec<(&'static str, u64)>);

impl Report for Totals {
    fn count(&mut self, name: &'static str, value: u64) {
        self.0.push((name, value));
    }
    fn latency(&mut self, _: &'static str, _: &Latency) {}
}

/// One life of a component.
pub(super) struct Life {
    pub(super) events: Vec<Event>,
    first: Look,
    /// What it showed after each cycle.
    looks: Vec<Look>,
    /// The cycles after which nothing was under way around it and all traffic was sent.
    at_rest: Vec<bool>,
    counts: Vec<String>,
    /// Its counters after the last cycle.
    totals: Totals,
    waits: Vec<String>,
    /// What was first wrong with a look.
    finding: Option<String>,
}

impl Life {
    pub(super) fn new(first: Look) -> Life {
        Life {
            events: Vec::new(),
            first,
            looks: Vec::new(),
            at_rest: Vec::new(),
            counts: Vec::new(),
            totals: Totals::default(),
            waits: Vec::new(),
            finding: None,
        }
    }

    pub(super) fn look(&mut self, now: Cycle, component: &dyn Component, sampled: &Look, is_at_rest: bool) {
        assert_eq!(now.0, self.looks.len() as u64, "a look after every cycle");
        let look = Look::at(component);
        let fallen = self.fallen_counter(now, component);
        self.finding = self
            .finding
            .take()
            .or_else(|| self.looks_wrong(now, &look, sampled))
            .or(fallen);
        self.looks.push(look);
        self.at_rest.push(is_at_rest);
    }

    /// The same signals as at first, wide enough, each as it was after the component's last tick.
    fn looks_wrong(&self, now: Cycle, look: &Look, sampled: &Look) -> Option<String> {
        if !look.names().eq(self.first.names()) {
            return Some(format!("after cycle {now} it shows other signals than at first"));
        }
        if let Some(value) = &look.too_large {
            return Some(format!("after cycle {now} {value}"));
        }
        let mut both = look.signals.iter().zip(&sampled.signals);
        let ((name, value), (_, sampled)) = both.find(|(own, its)| own != its)?;
        Some(format!(
            "in cycle {now}, without a tick of it: {name} is {value:?}, sampled {sampled:?}"
        ))
    }

    /// A counter that is less than after the cycle before.
    fn fallen_counter(&mut self, now: Cycle, component: &dyn Component) -> Option<String> {
        let mut totals = Totals::default();
        component.stats(&mut totals);
        let before = std::mem::replace(&mut self.totals, totals);
        let mut both = before.0.iter().zip(&self.totals.0);
        let ((name, before), (_, after)) = both.find(|((_, before), (_, after))| after < before)?;
        Some(format!("in cycle {now} counter {name} falls from {before} to {after}"))
    }

    pub(super) fn end(mut self, mut events: Vec<Event>, component: &dyn Component) -> Life {
        // In a cycle, feeders and drains write in the order of ticks.
        events.sort();
        self.events = events;
        let mut counts = Counts::default();
        component.stats(&mut counts);
        self.counts = counts.0;
        component.waits(&mut |wait| self.waits.push(wait));
        self
    }

    /// All signals change in ticks alone; at the end all is answered, and a quiescent component has nothing to say.
    pub(super) fn is_sound(&self) -> Result<(), String> {
        if let Some(finding) = &self.finding {
            return Err(finding.clone());
        }
        let is_quiescent = self.looks.last().unwrap_or(&self.first).is_quiescent;
        if !self.at_rest.last().is_some_and(|rest| *rest) || !is_quiescent {
            let waits = self.waits.join("; ");
            return Err(format!("not at rest after {} cycles: {waits}", self.looks.len()));
        }
        let said = (0..self.looks.len()).find(|&n| self.at_rest[n] && self.looks[n].is_quiescent);
        let said = said.expect("it is so at the end");
        match self.events.iter().find(|event| event.at.0 > said as u64) {
            Some(event) => Err(format!("quiescent and alone after cycle {said}, then {event:?}")),
            None => Ok(()),
        }
    }

    /// Says where the other life, lived in this `way`, differs from this one.
    pub(super) fn same_as(&self, other: &Life, way: &str) -> Result<(), String> {
        let n = self.events.len().max(other.events.len());
        for n in 0..n {
            let (own, its) = (self.events.get(n), other.events.get(n));
            if own != its {
                return Err(format!("{way}: event {n} is {its:?}, plainly {own:?}"));
            }
        }
        self.first.same_as(&other.first, "at first", way)?;
        for (now, (own, its)) in self.looks.iter().zip(&other.looks).enumerate() {
            own.same_as(its, &format!("after cycle {now}"), way)?;
        }
        match self.counts.iter().zip(&other.counts).find(|(own, its)| own != its) {
            Some((own, its)) => Err(format!("{way}: counts {its}, plainly {own}")),
            None => Ok(()),
        }
    }
}

impl Look {
    fn same_as(&self, other: &Look, when: &str, way: &str) -> Result<(), String> {
        if self.is_quiescent != other.is_quiescent {
            return Err(format!("{way}: {when} quiescent is {}", other.is_quiescent));
        }
        let differs = self.signals.iter().zip(&other.signals).find(|(own, its)| own != its);
        match differs {
            Some(((name, own), (_, its))) => Err(format!("{way}: {when} {name} is {its:?}, plainly {own:?}")),
            None => Ok(()),
        }
    }
}
