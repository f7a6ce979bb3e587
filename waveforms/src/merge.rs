//! Merges the changes of all tiles: by cycle, and within a cycle by signal.
//!
//! A cycle is merged once all tiles have run it; later changes wait. Signals are numbered by tile and component. So the order of the
//! changes does not depend on threads or quanta.

use warpwave_hw::time::Cycle;

use crate::recorder::{Batch, Change, ChangeBuffer};

/// The changes of one tile that are not merged yet.
pub struct TileStream {
    buffer: ChangeBuffer,
    batch: Batch,
    /// Index of the tile's first signal.
    base: usize,
    /// Index in the batch of the next cycle to merge.
    next: usize,
    /// True once the initial values have arrived.
    begun: bool,
}

impl TileStream {
    /// Creates the stream of a tile that records into `buffer`. Its first signal has index `base`.
    pub fn new(buffer: ChangeBuffer, base: usize) -> Self {
        TileStream {
            buffer,
            batch: Batch::default(),
            base,
            next: 0,
            begun: false,
        }
    }

    /// Appends the batch in the buffer to the changes that are left.
    fn refill(&mut self) {
        if self.next == self.batch.cycles.len() {
            self.batch.clear();
        } else {
            self.batch.drop_first(self.next);
        }
        self.next = 0;
        self.batch.append(&mut self.buffer.lock());
    }

    /// The next cycle with changes.
    fn cycle(&self) -> Option<Cycle> {
        self.batch.cycles.get(self.next).map(|&(cycle, _)| cycle)
    }

    /// Removes and returns the changes of the next cycle.
    fn take(&mut self) -> &[Change] {
        // A cycle's changes begin where the previous cycle's end.
        let start = match self.next {
            0 => 0,
            next => self.batch.cycles[next - 1].1,
        };
        let end = self.batch.cycles[self.next].1;
        self.next += 1;
        &self.batch.changes[start..end]
    }
}

/// The streams of all tiles.
#[derive(Default)]
pub struct Merge {
    streams: Vec<TileStream>,
}

impl Merge {
    /// Adds the stream of a tile.
    pub fn add(&mut self, stream: TileStream) {
        self.streams.push(stream);
    }

    /// True if no tile is recorded.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Reads the buffers of all tiles, and stores initial values in `values`. Returns true if those of every tile have arrived.
    pub fn refill(&mut self, values: &mut [Option<u64>]) -> bool {
        for stream in &mut self.streams {
            stream.refill();
            // Once per tile: at the start of the trace window.
            if let Some(initial) = stream.batch.initial.take() {
                values[stream.base..][..initial.len()].copy_from_slice(&initial);
                stream.begun = true;
            }
        }
        !self.streams.is_empty() && self.streams.iter().all(|stream| stream.begun)
    }

    /// The next cycle with changes, of any tile.
    pub fn next(&self) -> Cycle {
        let cycles = self.streams.iter().filter_map(TileStream::cycle);
        cycles.min().unwrap_or(Cycle::NEVER)
    }

    /// The last cycle with changes that has been read from the buffers.
    pub fn last(&self) -> Option<Cycle> {
        let cycles = self.streams.iter().filter_map(|stream| stream.batch.cycles.last());
        cycles.map(|&(cycle, _)| cycle).max()
    }

    /// Moves the changes of `cycle` to the end of `changes`.
    pub fn take(&mut self, cycle: Cycle, changes: &mut Vec<Change>) {
        for stream in &mut self.streams {
            // The streams are in the order of their signals, so the changes of a cycle come in rising order.
            if stream.cycle() == Some(cycle) {
                changes.extend_from_slice(stream.take());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts changes of one signal into a buffer, as pairs of cycle and value.
    fn put(buffer: &ChangeBuffer, signal: u32, changes: &[(u64, u64)]) {
        let mut batch = Batch {
            initial: Some(vec![Some(0)]),
            ..Batch::default()
        };
        for &(at, value) in changes {
            batch.changes.push((signal, Some(value)));
            batch.cycles.push((Cycle(at), batch.changes.len()));
        }
        buffer.lock().append(&mut batch);
    }

    fn next_changes(merge: &mut Merge) -> (Cycle, Vec<Change>) {
        let (now, mut changes) = (merge.next(), Vec::new());
        merge.take(now, &mut changes);
        (now, changes)
    }

    #[test]
    fn changes_of_a_tile_that_is_ahead_wait_for_the_other_tile() {
        let buffers = [ChangeBuffer::default(), ChangeBuffer::default()];
        let mut merge = Merge::default();
        for (n, buffer) in buffers.iter().enumerate() {
            merge.add(TileStream::new(buffer.clone(), n));
        }
        let mut values = [None; 2];
        put(&buffers[0], 0, &[(5, 1), (30, 2)]);
        assert!(!merge.refill(&mut values), "the other tile has not begun");
        put(&buffers[1], 1, &[(7, 3)]);
        assert!(merge.refill(&mut values));
        assert_eq!(values, [Some(0); 2]);
        assert_eq!(next_changes(&mut merge), (Cycle(5), vec![(0, Some(1))]));
        assert_eq!(next_changes(&mut merge), (Cycle(7), vec![(1, Some(3))]));
        // Cycle 30 of the first tile is still there, and comes before its new changes.
        put(&buffers[0], 0, &[(31, 4)]);
        put(&buffers[1], 1, &[(30, 5)]);
        merge.refill(&mut values);
        assert_eq!(next_changes(&mut merge), (Cycle(30), vec![(0, Some(2)), (1, Some(5))]));
        assert_eq!(next_changes(&mut merge), (Cycle(31), vec![(0, Some(4))]));
        assert_eq!(merge.next(), Cycle::NEVER);
    }
}
