//! The tiles that one thread runs, and when each of them is due.
//!
//! A tile is asked after it ran and when its bell rings, not in between: one that sleeps costs a comparison in a quantum.

use crate::tile::Tile;
use crate::tile::bell::Bells;
use crate::time::Cycle;

/// Some of the tiles of a machine.
pub struct Share<'a> {
    tiles: Vec<&'a mut Tile>,
    /// By the number of its bell, where in `tiles` a tile is.
    places: Vec<usize>,
    /// When each is due at the latest news; its bell rings if it is due earlier.
    due: Vec<Cycle>,
    bells: &'a Bells,
    /// The bells of these tiles.
    mine: Vec<u64>,
    /// The first cycle of the first window that has not begun.
    window: Cycle,
}

impl<'a> Share<'a> {
    /// Deals the tiles out to so many threads, in turn.
    pub fn deal(tiles: &'a mut [Tile], bells: &'a Bells, threads: usize, now: Cycle) -> Vec<Share<'a>> {
        let words = tiles.len().div_ceil(64);
        let empty = |_| Share {
            tiles: Vec::new(),
            places: vec![usize::MAX; tiles.len()],
            due: Vec::new(),
            bells,
            mine: vec![0; words],
            window: Cycle::NEVER,
        };
        let mut shares: Vec<Share> = (0..threads).map(empty).collect();
        for (n, tile) in tiles.iter_mut().enumerate() {
            shares[n % threads].add(tile, now);
        }
        shares
    }

    fn add(&mut self, tile: &'a mut Tile, now: Cycle) {
        // Whoever holds the tiles may have changed their order since their bells were hung.
        let number = tile.number();
        self.places[number] = self.tiles.len();
        self.mine[number / 64] |= 1 << (number % 64);
        self.due.push(tile.next_due(now));
        self.window = self.window.min(tile.next_window());
        self.tiles.push(tile);
    }

    /// When the first of them is due, messages of the quantum that is over included.
    pub fn next_due(&mut self, now: Cycle) -> Cycle {
        self.answer_bells(now);
        self.earliest()
    }

    /// Runs what has anything to do before `end`, and says when the first is due next, as far as is known while others run.
    pub fn run(&mut self, from: Cycle, end: Cycle) -> Cycle {
        self.answer_bells(from);
        let window_begins = self.window < end;
        for (tile, due) in self.tiles.iter_mut().zip(&mut self.due) {
            if *due < end || window_begins && tile.next_window() < end {
                tile.run(from, end);
                *due = tile.next_due(end);
            }
        }
        if window_begins {
            self.window = self
                .tiles
                .iter()
                .map(|tile| tile.next_window())
                .min()
                .unwrap_or(Cycle::NEVER);
        }
        self.earliest()
    }

    fn earliest(&self) -> Cycle {
        self.due.iter().copied().min().unwrap_or(Cycle::NEVER)
    }

    fn answer_bells(&mut self, now: Cycle) {
        let (tiles, due) = (&self.tiles, &mut self.due);
        self.bells.answer(&self.mine, |number| {
            let n = self.places[number];
            due[n] = tiles[n].next_due(now);
        });
    }
}
