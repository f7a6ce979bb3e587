//! The tiles that one thread runs, and when each of them is due.
//!
//! A tile is asked after it ran and when its bell rings, not in between: one that sleeps costs nothing in a quantum.
//!
//! Tiles run in turn from first to last and from last to first: those that ran last in one window run first in the next, while the
//! processor's caches still hold them. Always in the same order, a machine larger than a cache would never be found in it.

use super::sides::Side;
use crate::tile::Tile;
use crate::tile::bell::Bells;
use crate::time::Cycle;

/// Some of the tiles of a machine.
pub struct Share<'a> {
    tiles: Vec<&'a mut Tile>,
    sides: Vec<Side>,
    /// By the number of its bell, where in `tiles` a tile is.
    places: Vec<usize>,
    /// When each is due at the latest news; its bell rings if it is due earlier.
    due: Vec<Cycle>,
    /// For each side the tiles on it that are due some time, by their places.
    awake: [Vec<u64>; 2],
    bells: &'a Bells,
    /// The bells of these tiles.
    mine: Vec<u64>,
    /// The first cycle of the first window that has not begun.
    window: Cycle,
    /// Whether each side runs from last to first next.
    backwards: [bool; 2],
}

impl<'a> Share<'a> {
    /// Deals the tiles of each side out to so many threads, in turn; sides by the tiles' numbers.
    pub fn deal(tiles: &'a mut [Tile], sides: &[Side], bells: &'a Bells, threads: usize, now: Cycle) -> Vec<Share<'a>> {
        let words = tiles.len().div_ceil(64);
        let empty = |_| Share {
            tiles: Vec::new(),
            sides: Vec::new(),
            places: vec![usize::MAX; tiles.len()],
            due: Vec::new(),
            awake: [vec![0; words], vec![0; words]],
            bells,
            mine: vec![0; words],
            window: Cycle::NEVER,
            backwards: [false; 2],
        };
        let mut shares: Vec<Share> = (0..threads).map(empty).collect();
        let mut turns = [0; 2];
        for tile in tiles.iter_mut() {
            let side = sides[tile.number()];
            let turn = &mut turns[side as usize];
            shares[*turn % threads].add(tile, side, now);
            *turn += 1;
        }
        shares
    }

    fn add(&mut self, tile: &'a mut Tile, side: Side, now: Cycle) {
        // Whoever holds the tiles may have changed their order since their bells were hung.
        let number = tile.number();
        let place = self.tiles.len();
        self.places[number] = place;
        self.mine[number / 64] |= 1 << (number % 64);
        self.due.push(Cycle::NEVER);
        set_due(&mut self.due, &mut self.awake[side as usize], place, tile.next_due(now));
        self.window = self.window.min(tile.next_window());
        self.tiles.push(tile);
        self.sides.push(side);
    }

    /// When the first of them is due, messages of the window that is over included. `times` is where the sides stand.
    pub fn next_due(&mut self, times: [Cycle; 2]) -> Cycle {
        self.answer_bells(times);
        self.earliest()
    }

    /// Runs what has anything to do on a side before `end`, and says when the first is due next, as far as is known while
    /// others run.
    pub fn run(&mut self, side: Side, times: [Cycle; 2], end: Cycle) -> Cycle {
        self.answer_bells(times);
        let window_begins = self.window < end;
        if window_begins {
            self.wake_watched(end);
        }
        let backwards = self.backwards[side as usize];
        let words = self.mine.len();
        for n in 0..words {
            let n = if backwards { words - 1 - n } else { n };
            let mut places = self.awake[side as usize][n];
            while places != 0 {
                let place = if backwards {
                    places.ilog2()
                } else {
                    places.trailing_zeros()
                };
                places &= !(1 << place);
                let place = n * 64 + place as usize;
                let tile = &mut self.tiles[place];
                if self.due[place] < end || window_begins && tile.next_window() < end {
                    tile.run(times[side as usize], end);
                    set_due(&mut self.due, &mut self.awake[side as usize], place, tile.next_due(end));
                }
            }
        }
        self.backwards[side as usize] = !backwards;
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

    /// Has the tiles asked of which a window to watch begins before `end`, due or not.
    #[cold]
    fn wake_watched(&mut self, end: Cycle) {
        let watched = self
            .tiles
            .iter()
            .enumerate()
            .filter(|(_, tile)| tile.next_window() < end);
        for (place, _) in watched {
            self.awake[self.sides[place] as usize][place / 64] |= 1 << (place % 64);
        }
    }

    fn earliest(&self) -> Cycle {
        let mut earliest = Cycle::NEVER;
        for (n, word) in self.awake.iter().flat_map(|words| words.iter().enumerate()) {
            let mut places = *word;
            while places != 0 {
                earliest = earliest.min(self.due[n * 64 + places.trailing_zeros() as usize]);
                places &= places - 1;
            }
        }
        earliest
    }

    fn answer_bells(&mut self, times: [Cycle; 2]) {
        let (tiles, sides, due, awake) = (&self.tiles, &self.sides, &mut self.due, &mut self.awake);
        self.bells.answer(&self.mine, |number| {
            let place = self.places[number];
            let side = sides[place] as usize;
            set_due(due, &mut awake[side], place, tiles[place].next_due(times[side]));
        });
    }
}

/// Notes when a tile is due, and whether it is at all.
#[inline]
fn set_due(due: &mut [Cycle], awake: &mut [u64], place: usize, at: Cycle) {
    due[place] = at;
    let (word, bit) = (&mut awake[place / 64], 1 << (place % 64));
    *word = if at == Cycle::NEVER { *word & !bit } else { *word | bit };
}
