//! The due table of a machine: for each tile the earliest cycle in which it may have something to do.
//!
//! A tile lowers its own entry after it has run; a link lowers the receiver's entry when it sends a message to another tile. So a tile
//! that sleeps costs one comparison per window.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::time::Cycle;

/// One entry per tile, shared by all tiles and the clock.
#[derive(Clone, Debug)]
pub struct DueTable(Arc<[AtomicU64]>);

impl DueTable {
    /// A table of `tiles` tiles without anything to do.
    pub fn new(tiles: usize) -> Self {
        DueTable((0..tiles).map(|_| AtomicU64::new(u64::MAX)).collect())
    }

    /// When a tile is due.
    #[inline]
    pub fn get(&self, tile: usize) -> Cycle {
        Cycle(self.0[tile].load(Ordering::Acquire))
    }

    /// A tile is due in cycle `at` or before. What the caller wrote before is seen by the thread that runs the tile.
    #[inline]
    pub fn lower(&self, tile: usize, at: Cycle) {
        let entry = &self.0[tile];
        // Most entries are low enough, and a plain load does not take the line from other threads.
        if entry.load(Ordering::Relaxed) > at.0 {
            entry.fetch_min(at.0, Ordering::AcqRel);
        }
    }

    /// The tile is about to run: its entry is raised, and lowered again by what it finds and by what others send meanwhile.
    #[inline]
    pub fn raise(&self, tile: usize) {
        self.0[tile].swap(u64::MAX, Ordering::AcqRel);
    }

    /// The earliest entry.
    pub fn earliest(&self) -> Cycle {
        let entries = self.0.iter().map(|entry| entry.load(Ordering::Acquire));
        Cycle(entries.min().unwrap_or(u64::MAX))
    }
}
