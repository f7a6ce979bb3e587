//! Joins what the tiles' recorders hand over: changes by cycle, and within a cycle by signal.
//!
//! Signals are numbered by tile and component, and a cycle is merged when all tiles have run it; what some have run beyond waits.
//! So the order of changes depends on nothing but the run.

use warpwave_hw::time::Cycle;

use crate::recorder::{Batch, Change, ChangeBuffer};

/// What one tile hands over, and how far it is merged.
pub struct TileStream {
    buffer: ChangeBuffer,
    batch: Batch,
    base: usize,
    next: usize,
    /// Whether its values at the window's start are known.
    begun: bool,
}

impl TileStream {
    /// A tile with its batches in `buffer`. Its first signal has number `base`.
    pub fn new(buffer: ChangeBuffer, base: usize) -> Self {
        TileStream {
            buffer,
            batch: Batch::default(),
            base,
            next: 0,
            begun: false,
        }
    }

    /// Takes the batch in the buffer and puts it behind the rest.
    fn refill(&mut self) {
        if self.next == self.batch.cycles.len() {
            self.batch.clear();
        } else {
            self.batch.drop_first(self.next);
        }
        self.next = 0;
        let mut buffer = self.buffer.open();
        if self.batch.cycles.is_empty() {
            std::mem::swap(&mut *buffer, &mut self.batch);
        } else {
            self.batch.append(&mut buffer);
        }
    }

    /// The next cycle that has changes.
    fn cycle(&self) -> Option<Cycle> {
        self.batch.cycles.get(self.next).map(|&(cycle, _)| cycle)
    }

    /// The changes of the next cycle.
    fn take(&mut self) -> &[Change] {
        let start = match self.next {
            0 => 0,
            next => self.batch.cycles[next - 1].1,
        };
        let end = self.batch.cycles[self.next].1;
        self.next += 1;
        &self.batch.changes[start..end]
    }
}

/// All tiles' changes in order.
#[derive(Default)]
pub struct Merge {
    streams: Vec<TileStream>,
}

impl Merge {
    /// Another tile.
    pub fn add(&mut self, stream: TileStream) {
        self.streams.push(stream);
    }

    /// Whether there is no tile.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Takes what the tiles have left. Values at the window's start go to `first`; whether all tiles' are known.
    pub fn refill(&mut self, first: &mut [Option<u64>]) -> bool {
        for stream in &mut self.streams {
            stream.refill();
            if let Some(values) = stream.batch.first.take() {
                first[stream.base..][..values.len()].copy_from_slice(&values);
                stream.begun = true;
            }
        }
        !self.streams.is_empty() && self.streams.iter().all(|stream| stream.begun)
    }

    /// The next cycle in which anything changes.
    pub fn next(&self) -> Cycle {
        let cycles = self.streams.iter().filter_map(TileStream::cycle);
        cycles.min().unwrap_or(Cycle::NEVER)
    }

    /// The last cycle in which anything changes, of those taken in.
    pub fn last(&self) -> Option<Cycle> {
        let cycles = self.streams.iter().filter_map(|stream| stream.batch.cycles.last());
        cycles.map(|&(cycle, _)| cycle).max()
    }

    /// Adds that cycle's changes to `step`.
    pub fn take(&mut self, cycle: Cycle, step: &mut Vec<Change>) {
        for stream in &mut self.streams {
            if stream.cycle() == Some(cycle) {
                step.extend_from_slice(stream.take());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tile hands over one signal's changes: cycles and values.
    fn leave(buffer: &ChangeBuffer, signal: u32, changes: &[(u64, u64)]) {
        let mut batch = Batch {
            first: Some(vec![Some(0)]),
            ..Batch::default()
        };
        for &(at, value) in changes {
            batch.changes.push((signal, Some(value)));
            batch.cycles.push((Cycle(at), batch.changes.len()));
        }
        buffer.open().append(&mut batch);
    }

    fn taken(merge: &mut Merge) -> (Cycle, Vec<Change>) {
        let (now, mut step) = (merge.next(), Vec::new());
        merge.take(now, &mut step);
        (now, step)
    }

    #[test]
    fn changes_of_a_tile_that_is_ahead_wait_for_the_other_and_stay_in_order() {
        let buffers = [ChangeBuffer::default(), ChangeBuffer::default()];
        let mut merge = Merge::default();
        for (n, buffer) in buffers.iter().enumerate() {
            merge.add(TileStream::new(buffer.clone(), n));
        }
        let mut first = [None; 2];
        leave(&buffers[0], 0, &[(5, 1), (30, 2)]);
        assert!(!merge.refill(&mut first), "the other tile has not begun");
        leave(&buffers[1], 1, &[(7, 3)]);
        assert!(merge.refill(&mut first));
        assert_eq!(first, [Some(0); 2]);
        assert_eq!(taken(&mut merge), (Cycle(5), vec![(0, Some(1))]));
        assert_eq!(taken(&mut merge), (Cycle(7), vec![(1, Some(3))]));
        // What is left of the first stands before what comes next.
        leave(&buffers[0], 0, &[(31, 4)]);
        leave(&buffers[1], 1, &[(30, 5)]);
        merge.refill(&mut first);
        assert_eq!(taken(&mut merge), (Cycle(30), vec![(0, Some(2)), (1, Some(5))]));
        assert_eq!(taken(&mut merge), (Cycle(31), vec![(0, Some(4))]));
        assert_eq!(merge.next(), Cycle::NEVER);
    }
}
