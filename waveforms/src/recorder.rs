//! Records what the watched components of one tile show, on the tile's own thread, and keeps only what changed.
//!
//! A quantum's changes are handed over together, through a buffer under a lock; the lock is taken once a quantum.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bitvec::vec::BitVec;
use warpwave_hw::component::Component;
use warpwave_hw::probe::{CODE_WIDTH, Probe, Sampler};
use warpwave_hw::time::Cycle;

use crate::signal::state_width;

/// A signal, by its place among all recorded ones, and its new value.
pub type Change = (u32, Option<u64>);

/// What a tile hands over.
#[derive(Default, Debug)]
pub struct Batch {
    /// Every signal's value when the window began, once.
    pub first: Option<Vec<Option<u64>>>,
    /// Cycles with changes, rising, each with the place in `changes` behind its last one.
    pub cycles: Vec<(Cycle, usize)>,
    /// The changes, in a cycle by signal.
    pub changes: Vec<Change>,
}

impl Batch {
    /// Drops the first `n` cycles that have changes.
    pub fn drop_first(&mut self, n: usize) {
        let Some(&(_, behind)) = n.checked_sub(1).and_then(|last| self.cycles.get(last)) else {
            return;
        };
        self.changes.drain(..behind);
        self.cycles.drain(..n);
        self.cycles.iter_mut().for_each(|(_, end)| *end -= behind);
    }

    /// Takes what `other` has behind its own.
    pub fn append(&mut self, other: &mut Batch) {
        let behind = self.changes.len();
        self.first = self.first.take().or(other.first.take());
        self.changes.append(&mut other.changes);
        self.cycles
            .extend(other.cycles.drain(..).map(|(cycle, end)| (cycle, end + behind)));
    }

    /// Forgets everything, and keeps the memory.
    pub fn clear(&mut self) {
        self.first = None;
        self.cycles.clear();
        self.changes.clear();
    }
}

/// The buffer between a tile's recorder and the merge: one batch under a lock.
#[derive(Clone, Default, Debug)]
pub struct ChangeBuffer(Arc<Mutex<Batch>>);

impl ChangeBuffer {
    /// Locks the batch. A poisoned lock is sound: no code panics while it holds the lock.
    pub fn open(&self) -> MutexGuard<'_, Batch> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a signal that is not selected.
const LEFT_OUT: u32 = u32::MAX;

/// One tile's recorder.
pub struct Recorder {
    /// For each component of the tile, where its signals start in `places`.
    starts: Vec<usize>,
    /// For each signal of each component, its place in `values`, or `LEFT_OUT`.
    places: Vec<u32>,
    values: Vec<Option<u64>>,
    /// The place of this tile's first signal among those of all tiles.
    base: u32,
    window: Range<Cycle>,
    /// Whether the window has begun: before, values are followed and no changes kept.
    is_open: bool,
    batch: Batch,
    buffer: ChangeBuffer,
}

impl Recorder {
    /// A recorder for a tile whose signals start at place `base`. `selected` says for each component of the tile which of its
    /// signals are recorded.
    pub fn new(base: u32, selected: &[BitVec], window: Range<Cycle>, buffer: ChangeBuffer) -> Recorder {
        let (mut starts, mut places, mut n_signals) = (vec![0], Vec::new(), 0);
        for signals in selected {
            for selected in signals.iter().by_vals() {
                places.push(if selected { n_signals } else { LEFT_OUT });
                n_signals += u32::from(selected);
            }
            starts.push(places.len());
        }
        Recorder {
            starts,
            places,
            values: vec![None; n_signals as usize],
            base,
            window,
            is_open: false,
            batch: Batch::default(),
            buffer,
        }
    }

    fn visit(&mut self, now: Cycle, index: usize, component: &dyn Component) {
        let mut visit = Visit {
            places: self.places[self.starts[index]..self.starts[index + 1]].iter(),
            values: &mut self.values,
            changes: &mut self.batch.changes,
            base: self.base,
            now,
            component,
        };
        component.probe(&mut visit);
        assert!(
            visit.places.next().is_none(),
            "cycle {now}: {} gives fewer signals than it declared",
            component.path()
        );
    }

    /// The values so far are those at the window's start.
    fn open_window(&mut self) {
        self.batch.first = Some(self.values.clone());
        self.is_open = true;
    }

    /// Keeps what was pushed since `before` as changes of cycle `now`.
    fn keep(&mut self, now: Cycle, before: usize) {
        let end = self.batch.changes.len();
        match self.batch.cycles.last_mut() {
            _ if before == end => {}
            Some((cycle, last)) if *cycle == now => *last = end,
            _ => self.batch.cycles.push((now, end)),
        }
    }
}

impl Sampler for Recorder {
    fn begin(&mut self, now: Cycle, components: &[Box<dyn Component>]) {
        for (index, component) in components.iter().enumerate() {
            if self.starts[index] < self.starts[index + 1] {
                self.visit(now, index, component.as_ref());
            }
        }
        self.batch.changes.clear();
        if now >= self.window.start {
            self.open_window();
        }
    }

    fn sample(&mut self, now: Cycle, index: usize, component: &dyn Component) {
        if now >= self.window.end {
            return;
        }
        if !self.is_open && now >= self.window.start {
            self.open_window();
        }
        let before = self.batch.changes.len();
        self.visit(now, index, component);
        if self.is_open {
            self.keep(now, before);
        } else {
            self.batch.changes.clear();
        }
    }

    fn flush(&mut self, _end: Cycle) {
        if !self.is_open {
            self.open_window();
        }
        let mut start = 0;
        for &(_, end) in &self.batch.cycles {
            let changes = &mut self.batch.changes[start..end];
            if !changes.is_sorted_by_key(|change| change.0) {
                changes.sort_unstable_by_key(|change| change.0);
            }
            start = end;
        }
        self.buffer.open().append(&mut self.batch);
    }
}

/// One visit to a component.
struct Visit<'a> {
    places: std::slice::Iter<'a, u32>,
    values: &'a mut [Option<u64>],
    changes: &'a mut Vec<Change>,
    base: u32,
    now: Cycle,
    component: &'a dyn Component,
}

impl Visit<'_> {
    #[inline]
    fn value(&mut self, name: &str, width: u32, value: Option<u64>) {
        let Some(&place) = self.places.next() else {
            panic!(
                "cycle {}: {} gives more signals than it declared: {name}",
                self.now,
                self.component.path()
            )
        };
        if place == LEFT_OUT || self.values[place as usize] == value {
            return;
        }
        assert!(
            value.is_none_or(|value| width >= 64 || value >> width == 0),
            "cycle {}: {}: {name} of {width} bits is {value:x?}",
            self.now,
            self.component.path()
        );
        self.values[place as usize] = value;
        self.changes.push((self.base + place, value));
    }
}

impl Probe for Visit<'_> {
    fn bit(&mut self, name: &'static str, value: Option<bool>) {
        self.value(name, 1, value.map(u64::from));
    }
    fn vector(&mut self, name: &'static str, width: u32, value: Option<u64>) {
        self.value(name, width, value);
    }
    fn code(&mut self, name: &'static str, value: Option<u64>) {
        self.value(name, CODE_WIDTH, value);
    }
    fn state(&mut self, name: &'static str, names: &'static [&'static str], value: Option<usize>) {
        self.value(name, state_width(names), value.map(|state| state as u64));
    }
    fn enter(&mut self, _: &'static str, _: usize) {}
    fn leave(&mut self) {}
}
