//! The due table of a machine: for each tile, the earliest cycle in which a component may be due.
//!
//! A tile lowers its own entry after it has run. A link to another tile lowers the receiver's entry with each message. So an idle tile
//! costs one comparison per window.

use std::sync::Arc;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::time::Cycle;

/// One entry per tile, shared by all tiles and the clock.
#[derive(Clone, Debug)]
pub(crate) struct DueTable(Arc<[AtomicU64]>);

impl DueTable {
    /// Creates a table for `tiles` tiles. No tile is due.
    pub(crate) fn new(tiles: usize) -> Self {
        DueTable((0..tiles).map(|_| AtomicU64::new(u64::MAX)).collect())
    }

    /// The entry of a tile.
    #[inline]
    pub(crate) fn get(&self, tile: usize) -> Cycle {
        Cycle(self.0[tile].load(Ordering::Acquire))
    }

    /// Lowers the entry of a tile to cycle `at`. The thread that runs the tile sees all earlier writes of the caller.
    #[inline]
    pub(crate) fn lower(&self, tile: usize, at: Cycle) {
        let entry = &self.0[tile];
        // Most entries are low enough. A plain load does not take the host cache line from other threads.
        if entry.load(Ordering::Relaxed) > at.0 {
            entry.fetch_min(at.0, Ordering::AcqRel);
        }
    }

    /// Raises the entry of a tile that is about to run. The tile lowers it after the window, and messages lower it at any time.
    #[inline]
    pub(crate) fn raise(&self, tile: usize) {
        // A swap, not a store: it acquires the writes of the threads that lowered the entry.
        self.0[tile].swap(u64::MAX, Ordering::AcqRel);
    }

    /// The earliest entry.
    pub(crate) fn earliest(&self) -> Cycle {
        let entries = self.0.iter().map(|entry| entry.load(Ordering::Acquire));
        Cycle(entries.min().unwrap_or(u64::MAX))
    }
}
