//! Records the signals of one tile, on the tile's own thread. Only changes are kept.
//!
//! At the end of each quantum the changes move to a buffer, which the merge reads. So the buffer's lock is taken once per quantum.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bitvec::vec::BitVec;
use warpwave_hw::component::Component;
use warpwave_hw::probe::{CODE_WIDTH, Probe};
use warpwave_hw::tile::Sampler;
use warpwave_hw::time::Cycle;

use crate::signal::state_width;

/// The index of a signal among all signals of the waveform, and its new value.
pub type Change = (u32, Option<u64>);

/// The changes of one tile, and their cycles.
#[derive(Default, Debug)]
pub struct Batch {
    /// The value of every signal at the start of the window. Only the first batch has it.
    pub initial: Option<Vec<Option<u64>>>,
    /// The cycles with changes, in order, each with the index in `changes` after its last one.
    pub cycles: Vec<(Cycle, usize)>,
    /// The changes, by cycle and then by signal.
    pub changes: Vec<Change>,
}

impl Batch {
    /// Drops the changes of the first `n` cycles in the batch.
    pub fn drop_first(&mut self, n: usize) {
        let Some(&(_, behind)) = n.checked_sub(1).and_then(|last| self.cycles.get(last)) else {
            return;
        };
        self.changes.drain(..behind);
        self.cycles.drain(..n);
        self.cycles.iter_mut().for_each(|(_, end)| *end -= behind);
    }

    /// Moves everything from `other` to the end of this batch.
    pub fn append(&mut self, other: &mut Batch) {
        let behind = self.changes.len();
        self.initial = self.initial.take().or(other.initial.take());
        self.changes.append(&mut other.changes);
        self.cycles
            .extend(other.cycles.drain(..).map(|(cycle, end)| (cycle, end + behind)));
    }

    /// Empties the batch. Its memory stays allocated.
    pub fn clear(&mut self) {
        self.initial = None;
        self.cycles.clear();
        self.changes.clear();
    }
}

/// The buffer between a tile's recorder and the merge: one batch under a lock.
#[derive(Clone, Default, Debug)]
pub struct ChangeBuffer(Arc<Mutex<Batch>>);

impl ChangeBuffer {
    /// Locks the batch. A poisoned lock is sound: no code panics while it holds the lock.
    pub fn lock(&self) -> MutexGuard<'_, Batch> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The index of a signal that is not recorded.
const NOT_SELECTED: u32 = u32::MAX;

/// The recorder of one tile.
pub struct Recorder {
    /// For each component of the tile, the start of its signals in `indices`.
    starts: Vec<usize>,
    /// For each signal of each component, its index in `values`, or `NOT_SELECTED`.
    indices: Vec<u32>,
    values: Vec<Option<u64>>,
    /// The index of the tile's first signal among all signals of the waveform.
    base: u32,
    window: Range<Cycle>,
    /// True once the window has begun. Before that, values are updated but changes are not kept.
    is_open: bool,
    batch: Batch,
    buffer: ChangeBuffer,
}

impl Recorder {
    /// Creates a recorder. `base` is the index of the tile's first signal among all signals of the waveform. `selected` has a mask of
    /// recorded signals for each component of the tile.
    pub fn new(base: u32, selected: &[BitVec], window: Range<Cycle>, buffer: ChangeBuffer) -> Recorder {
        let (mut starts, mut indices, mut n_signals) = (vec![0], Vec::new(), 0);
        for signals in selected {
            for selected in signals.iter().by_vals() {
                indices.push(if selected { n_signals } else { NOT_SELECTED });
                n_signals += u32::from(selected);
            }
            starts.push(indices.len());
        }
        Recorder {
            starts,
            indices,
            values: vec![None; n_signals as usize],
            base,
            window,
            is_open: false,
            batch: Batch::default(),
            buffer,
        }
    }

    /// Reads all signals of a component and appends the changes to the batch.
    fn visit(&mut self, now: Cycle, index: usize, component: &dyn Component) {
        let mut visit = Visit {
            indices: self.indices[self.starts[index]..self.starts[index + 1]].iter(),
            values: &mut self.values,
            changes: &mut self.batch.changes,
            base: self.base,
            now,
            component,
        };
        component.probe(&mut visit);
        assert!(
            visit.indices.next().is_none(),
            "cycle {now}: {} shows fewer signals than it declared",
            component.path()
        );
    }

    /// Begins the window. The current values are its initial values.
    fn open_window(&mut self) {
        self.batch.initial = Some(self.values.clone());
        self.is_open = true;
    }

    /// Assigns the changes from index `before` on to cycle `now`.
    fn assign_changes(&mut self, now: Cycle, before: usize) {
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
        // Initial values are no changes.
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
            self.assign_changes(now, before);
        } else {
            self.batch.changes.clear();
        }
    }

    fn flush(&mut self, _end: Cycle) {
        if !self.is_open {
            self.open_window();
        }
        // With another tick order, components show their signals in another order.
        let mut start = 0;
        for &(_, end) in &self.batch.cycles {
            let changes = &mut self.batch.changes[start..end];
            if !changes.is_sorted_by_key(|change| change.0) {
                changes.sort_unstable_by_key(|change| change.0);
            }
            start = end;
        }
        self.buffer.lock().append(&mut self.batch);
    }
}

/// Compares the values of one component with the last ones.
struct Visit<'a> {
    indices: std::slice::Iter<'a, u32>,
    values: &'a mut [Option<u64>],
    changes: &'a mut Vec<Change>,
    base: u32,
    now: Cycle,
    component: &'a dyn Component,
}

impl Visit<'_> {
    #[inline]
    fn value(&mut self, name: &str, width: u32, value: Option<u64>) {
        let Some(&index) = self.indices.next() else {
            panic!(
                "cycle {}: {} shows more signals than it declared: {name}",
                self.now,
                self.component.path()
            )
        };
        if index == NOT_SELECTED || self.values[index as usize] == value {
            return;
        }
        assert!(
            value.is_none_or(|value| width >= 64 || value >> width == 0),
            "cycle {}: {}: {name} of {width} bits is {value:x?}",
            self.now,
            self.component.path()
        );
        self.values[index as usize] = value;
        self.changes.push((self.base + index, value));
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
