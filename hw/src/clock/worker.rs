//! The tiles of one host thread.
//!
//! A worker has a fixed range of the tiles of each role. It runs the due tiles of one window from first to last, and of the next window
//! from last to first. So each window begins with the tiles that are in the host's caches.

use bitvec::slice::BitSlice;

use super::role::Role;
use crate::tile::Tile;
use crate::tile::due::DueTable;
use crate::time::Cycle;

/// The cycles that the tiles of a role run next: from `from` up to `end`, which is not included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Window {
    pub role: Role,
    pub from: Cycle,
    pub end: Cycle,
}

/// The tiles of one host thread.
pub(super) struct Worker<'a> {
    interconnect: Vec<&'a mut Tile>,
    leaves: Vec<&'a mut Tile>,
    due: &'a DueTable,
    /// The first cycle of the first trace window that has not begun.
    trace_window: Cycle,
    /// True if the next window runs from the last tile to the first.
    backwards: bool,
}

impl<'a> Worker<'a> {
    /// Splits the tiles of each role into equal ranges, one per thread. `interconnect` has one bit per tile.
    pub(super) fn split(
        tiles: &'a mut [Tile],
        interconnect: &BitSlice,
        due: &'a DueTable,
        threads: usize,
    ) -> Vec<Worker<'a>> {
        let totals = [interconnect.count_ones(), interconnect.count_zeros()];
        let worker = |_| Worker {
            interconnect: Vec::new(),
            leaves: Vec::new(),
            due,
            trace_window: Cycle::NEVER,
            backwards: false,
        };
        let mut workers: Vec<_> = (0..threads).map(worker).collect();
        let mut counts = [0; 2];
        for tile in tiles {
            let role = match interconnect[tile.number()] {
                true => Role::Interconnect,
                false => Role::Leaf,
            };
            // Rounded down, so each worker gets a range of tiles in order.
            let worker = &mut workers[counts[role as usize] * threads / totals[role as usize]];
            counts[role as usize] += 1;
            worker.trace_window = worker.trace_window.min(tile.next_trace_window());
            worker.of_role(role).push(tile);
        }
        workers
    }

    /// The tiles of a role.
    fn of_role(&mut self, role: Role) -> &mut Vec<&'a mut Tile> {
        match role {
            Role::Interconnect => &mut self.interconnect,
            Role::Leaf => &mut self.leaves,
        }
    }

    /// All its tiles.
    pub(super) fn tiles(&mut self) -> impl Iterator<Item = &mut Tile> {
        self.interconnect
            .iter_mut()
            .chain(&mut self.leaves)
            .map(|tile| &mut **tile)
    }

    /// Runs the tiles of the window's role that are due in it.
    pub(super) fn run(&mut self, window: Window) {
        let traces = self.trace_window < window.end;
        let (due, backwards) = (self.due, self.backwards);
        let tiles = self.of_role(window.role);
        for n in 0..tiles.len() {
            let n = if backwards { tiles.len() - 1 - n } else { n };
            let tile = &mut tiles[n];
            // During the window a message can lower the entry of a tile, but only to a cycle after the window.
            if due.get(tile.number()) < window.end || traces && tile.next_trace_window() < window.end {
                tile.run(window.from, window.end);
            }
        }
        // The roles run in turn. So with one change per pair of windows each role changes its direction every time.
        if window.role == Role::Leaf {
            self.backwards = !backwards;
        }
        if traces {
            let windows = self.tiles().map(|tile| tile.next_trace_window());
            self.trace_window = windows.min().unwrap_or(Cycle::NEVER);
        }
    }
}
