//! Records the signals of one tile, on the host thread that runs the tile: the initial values, then the changes.
//!
//! A clock window is a range of cycles that the tile runs without a pause. At its end the changes move to a buffer, which module `merge`
//! reads. So a tile takes the lock once per clock window. The trace window is the range of cycles that the user records.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bitvec::vec::BitVec;
use warpwave_hw::component::Component;
use warpwave_hw::probe::{CODE_WIDTH, Probe};
use warpwave_hw::tile::Sampler;
use warpwave_hw::time::Cycle;

use crate::signal::state_width;

/// The index of a signal among all signals of the waveform, and its new value. `None`: the signal has no value (x or z).
pub type Change = (u32, Option<u64>);

/// The changes of one tile, and their cycles.
#[derive(Default, Debug)]
pub struct Batch {
    /// The value of each recorded signal at the start of the trace window. Only the first batch has initial values.
    pub initial: Option<Vec<Option<u64>>>,
    /// Each cycle with changes, in order, with the end of its range in `changes`.
    pub cycles: Vec<(Cycle, usize)>,
    /// The changes, by cycle. Those of a cycle are sorted by signal once they are in the buffer.
    pub changes: Vec<Change>,
}

impl Batch {
    /// Drops the changes of the first `n` cycles in the batch. Does nothing if the batch has fewer.
    pub fn drop_first(&mut self, n: usize) {
        let Some(&(_, dropped)) = n.checked_sub(1).and_then(|last| self.cycles.get(last)) else {
            return;
        };
        self.changes.drain(..dropped);
        self.cycles.drain(..n);
        self.cycles.iter_mut().for_each(|(_, end)| *end -= dropped);
    }

    /// Moves everything from `other` to the end of this batch.
    pub fn append(&mut self, other: &mut Batch) {
        if self.cycles.is_empty() && self.initial.is_none() {
            // Most often: then nothing is copied.
            std::mem::swap(self, other);
            return;
        }
        let offset = self.changes.len();
        self.initial = self.initial.take().or(other.initial.take());
        self.changes.append(&mut other.changes);
        self.cycles
            .extend(other.cycles.drain(..).map(|(cycle, end)| (cycle, end + offset)));
    }

    /// Empties the batch. Its memory stays allocated.
    pub fn clear(&mut self) {
        self.initial = None;
        self.cycles.clear();
        self.changes.clear();
    }
}

/// The buffer between a tile's recorder and module `merge`: one batch under a lock.
#[derive(Clone, Default, Debug)]
pub struct ChangeBuffer(Arc<Mutex<Batch>>);

impl ChangeBuffer {
    /// Locks the batch.
    pub fn lock(&self) -> MutexGuard<'_, Batch> {
        // No code panics under this lock, so it is never poisoned.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks a signal in `indices` that is not recorded.
const NOT_SELECTED: u32 = u32::MAX;

/// The recorder of one tile.
pub struct Recorder {
    /// For each component of the tile, the start of its signals in `indices`. A last entry holds the length of `indices`.
    starts: Vec<usize>,
    /// For each signal of each component, its index in `values`, or `NOT_SELECTED`.
    indices: Vec<u32>,
    /// The latest value of each recorded signal.
    values: Vec<Option<u64>>,
    /// The index of the tile's first signal among all signals of the waveform.
    base: u32,
    /// The trace window: the cycles to record.
    window: Range<Cycle>,
    /// True once the trace window has begun. Before that, values are updated but changes are not kept.
    has_begun: bool,
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
            has_begun: false,
            batch: Batch::default(),
            buffer,
        }
    }

    /// Reads all signals of a component and appends the changes to the batch.
    fn probe_component(&mut self, now: Cycle, index: usize, component: &dyn Component) {
        let mut detector = ChangeDetector {
            indices: self.indices[self.starts[index]..self.starts[index + 1]].iter(),
            values: &mut self.values,
            changes: &mut self.batch.changes,
            base: self.base,
            now,
            component,
        };
        component.probe(&mut detector);
        assert!(
            detector.indices.next().is_none(),
            "cycle {now}: {} shows fewer signals than it declared",
            component.path()
        );
    }

    /// Begins the trace window. The current values are its initial values.
    fn begin_window(&mut self) {
        self.batch.initial = Some(self.values.clone());
        self.has_begun = true;
    }

    /// Assigns the batch's changes from index `start` onward to cycle `now`.
    fn assign_changes(&mut self, now: Cycle, start: usize) {
        let end = self.batch.changes.len();
        match self.batch.cycles.last_mut() {
            _ if start == end => {}
            // An earlier component also changed in this cycle, so the cycle's range grows.
            Some((cycle, last)) if *cycle == now => *last = end,
            _ => self.batch.cycles.push((now, end)),
        }
    }
}

impl Sampler for Recorder {
    fn begin(&mut self, now: Cycle, components: &[Box<dyn Component>]) {
        for (index, component) in components.iter().enumerate() {
            if self.starts[index] < self.starts[index + 1] {
                self.probe_component(now, index, component.as_ref());
            }
        }
        // The first probe has set `values`. These are initial values, not changes.
        self.batch.changes.clear();
        // A clock window may begin before the trace window. Until then only `values` are kept up to date.
        if now >= self.window.start {
            self.begin_window();
        }
    }

    fn sample(&mut self, now: Cycle, index: usize, component: &dyn Component) {
        if now >= self.window.end {
            return;
        }
        if !self.has_begun && now >= self.window.start {
            self.begin_window();
        }
        let start = self.batch.changes.len();
        self.probe_component(now, index, component);
        if self.has_begun {
            self.assign_changes(now, start);
        } else {
            self.batch.changes.clear();
        }
    }

    fn flush(&mut self, _end: Cycle) {
        // A clock window before the trace window is not flushed. So without `has_begun`, no watched component has ticked in the trace
        // window so far, and the values are those of its start.
        if !self.has_begun {
            self.begin_window();
        }
        // Components append changes in tick order. The merge needs each cycle sorted by signal.
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

/// A probe that compares the signals of one component with their previous values, and appends each change.
struct ChangeDetector<'a> {
    indices: std::slice::Iter<'a, u32>,
    values: &'a mut [Option<u64>],
    changes: &'a mut Vec<Change>,
    base: u32,
    now: Cycle,
    component: &'a dyn Component,
}

impl ChangeDetector<'_> {
    #[inline]
    fn value(&mut self, name: &str, width: u32, value: Option<u64>) {
        match self.indices.next() {
            // A signal without a change ends here: most do.
            Some(&index) if index == NOT_SELECTED || self.values[index as usize] == value => {}
            index => self.change(index.copied(), name, width, value),
        }
    }

    /// Appends a change. It is a function of its own, so that [`Self::value`] stays short. A run with a VCD of all SMs then takes some 6 % less
    /// time.
    #[inline(never)]
    fn change(&mut self, index: Option<u32>, name: &str, width: u32, value: Option<u64>) {
        let Some(index) = index else {
            panic!(
                "cycle {}: {} shows more signals than it declared: {name}",
                self.now,
                self.component.path()
            )
        };
        assert!(
            value.is_none_or(|value| width >= 64 || value >> width == 0),
            "cycle {}: {}: {name} has {width} bits, but its value is {value:x?}",
            self.now,
            self.component.path()
        );
        self.values[index as usize] = value;
        self.changes.push((self.base + index, value));
    }
}

impl Probe for ChangeDetector<'_> {
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

#[cfg(test)]
mod tests {
    use warpwave_hw::component::Activity;
    use warpwave_hw::path::Path;
    use warpwave_hw::stats::Report;

    use super::*;

    /// Shows the last cycle in which it ticked.
    struct Counter(Path, u64);

    impl warpwave_hw::warm::Warm for Counter {}

    impl Component for Counter {
        fn path(&self) -> &Path {
            &self.0
        }
        fn tick(&mut self, now: Cycle) -> Activity {
            self.1 = now.0;
            Activity::Busy
        }
        fn reset(&mut self) {}
        fn is_quiescent(&self) -> bool {
            true
        }
        fn probe(&self, probe: &mut dyn Probe) {
            probe.vector("count", 16, Some(self.1));
        }
        fn stats(&self, _: &mut dyn Report) {}
    }

    #[test]
    fn changes_are_those_of_the_cycles_of_the_window() {
        let buffer = ChangeBuffer::default();
        let selected = [BitVec::repeat(true, 1)];
        let mut recorder = Recorder::new(40, &selected, Cycle(5)..Cycle(8), buffer.clone());
        let mut components: Vec<Box<dyn Component>> = vec![Box::new(Counter(Path::root("counter"), 0))];
        recorder.begin(Cycle(1), &components);
        for now in (1..12).map(Cycle) {
            components[0].tick(now);
            recorder.sample(now, 0, components[0].as_ref());
        }
        recorder.flush(Cycle(12));
        let batch = std::mem::take(&mut *buffer.lock());
        assert_eq!(batch.initial, Some(vec![Some(4)]));
        assert_eq!(batch.cycles, [(Cycle(5), 1), (Cycle(6), 2), (Cycle(7), 3)]);
        assert_eq!(batch.changes, [(40, Some(5)), (40, Some(6)), (40, Some(7))]);
    }
}
