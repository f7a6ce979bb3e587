//! The tiles that one thread runs, and when each of them is due.
//!
//! A tile is asked after it ran and when its bell rings, not in between: one that sleeps costs nothing in a window.
//!
//! Tiles run in turn from first to last and from last to first: those that ran last in one window run first in the next, while the
//! processor's caches still hold them. Always in the same order, a machine larger than a cache would never be found in it.

use super::MAX_QUANTUM;
use super::sides::{SIDES, Side};
use super::window::{Stand, Turn, Window};
use crate::tile::Tile;
use crate::tile::bell::Bells;
use crate::time::Cycle;

/// Some of the tiles of a machine.
pub struct Share<'a> {
    tiles: Vec<&'a mut Tile>,
    sides: Vec<Side>,
    /// How far each gets ahead of the leaves, if it is a hub.
    reaches: Vec<u64>,
    /// By the number of its bell, where in `tiles` a tile is.
    places: Vec<usize>,
    /// When each is due at the latest news; its bell rings if it is due earlier.
    due: Vec<Cycle>,
    /// For each side the tiles on it that are due some time, by their places.
    awake: [Vec<u64>; SIDES],
    /// Up to where each leaf has run that a leash held ([`crate::tile`]); [`Cycle::NEVER`] of all others. And which those are.
    held: Vec<Cycle>,
    behind: Vec<usize>,
    bells: &'a Bells,
    /// The bells of these tiles.
    mine: Vec<u64>,
    /// The first cycle of the first window to watch that has not begun.
    window: Cycle,
    /// Whether each side runs from last to first next.
    backwards: [bool; SIDES],
}

/// What a thread has to say after a window.
pub struct Done {
    /// When the first of its tiles is due, as far as is known while others run.
    pub next_due: Cycle,
    /// Up to here all its leaves have run, [`Cycle::NEVER`] if a leash held none.
    pub behind: Cycle,
}

impl<'a> Share<'a> {
    /// Deals the tiles of each side out to so many threads, in turn; sides by the tiles' numbers.
    pub fn deal(
        tiles: &'a mut [Tile],
        sides: &[Side],
        bells: &'a Bells,
        (threads, quantum): (usize, u64),
        now: Cycle,
    ) -> Vec<Share<'a>> {
        let words = tiles.len().div_ceil(64);
        let empty = |_| Share {
            tiles: Vec::new(),
            sides: Vec::new(),
            reaches: Vec::new(),
            places: vec![usize::MAX; tiles.len()],
            due: Vec::new(),
            awake: std::array::from_fn(|_| vec![0; words]),
            held: Vec::new(),
            behind: Vec::with_capacity(tiles.len()),
            bells,
            mine: vec![0; words],
            window: Cycle::NEVER,
            backwards: [false; SIDES],
        };
        let mut shares: Vec<Share> = (0..threads).map(empty).collect();
        let mut turns = [0; SIDES];
        for tile in tiles.iter_mut() {
            let side = sides[tile.number()];
            let turn = &mut turns[side as usize];
            shares[*turn % threads].add(tile, side, quantum, now);
            *turn += 1;
        }
        shares
    }

    fn add(&mut self, tile: &'a mut Tile, side: Side, quantum: u64, now: Cycle) {
        // Whoever holds the tiles may have changed their order since their bells were hung.
        let number = tile.number();
        let place = self.tiles.len();
        self.places[number] = place;
        self.mine[number / 64] |= 1 << (number % 64);
        self.due.push(Cycle::NEVER);
        set_due(&mut self.due, &mut self.awake[side as usize], place, tile.next_due(now));
        self.window = self.window.min(tile.next_window());
        self.reaches
            .push(tile.remote_latency().unwrap_or(MAX_QUANTUM).min(quantum));
        self.held.push(Cycle::NEVER);
        self.tiles.push(tile);
        self.sides.push(side);
    }

    /// Runs tiles through a window, or asks only when the first is due, messages of the last window included.
    pub fn work(&mut self, window: &Window) -> Done {
        self.answer_bells(&window.stand);
        if window.end > Cycle::ZERO {
            self.run(window);
        }
        let behind = self.behind.iter().map(|&place| self.held[place]);
        Done {
            behind: behind.min().unwrap_or(Cycle::NEVER),
            next_due: self.earliest(),
        }
    }

    /// Runs those whose turn it is and that have anything to do.
    fn run(&mut self, window: &Window) {
        let begins = self.window < self.end(window, window.turn.sides()[0], MAX_QUANTUM);
        if begins {
            self.wake_watched(window);
        }
        let behind = self.behind.len();
        for &side in window.turn.sides() {
            self.run_side(side, window, begins);
        }
        if window.turn == Turn::Leaves {
            self.let_go(behind, window);
        }
        if begins {
            let windows = self.tiles.iter().map(|tile| tile.next_window());
            self.window = windows.min().unwrap_or(Cycle::NEVER);
        }
    }

    fn run_side(&mut self, side: Side, window: &Window, begins: bool) {
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
                self.run_tile(n * 64 + place as usize, side, window, begins);
            }
        }
        // Those that catch up are few, and most of the others run next.
        if side != Side::Leaf || window.end > window.stand.leaves {
            self.backwards[side as usize] = !backwards;
        }
    }

    /// Runs a tile if it has anything to do.
    #[inline]
    fn run_tile(&mut self, place: usize, side: Side, window: &Window, begins: bool) {
        let end = self.end(window, side, self.reaches[place]);
        let from = self.time(place, &window.stand);
        let tile = &mut self.tiles[place];
        if self.due[place] < end || begins && tile.next_window() < end {
            let reached = tile.run(from, end, window.desks);
            set_due(
                &mut self.due,
                &mut self.awake[side as usize],
                place,
                tile.next_due(reached),
            );
            let all = end.max(window.stand.of(side, self.reaches[place]));
            self.hold(place, reached, all);
        }
    }

    /// Notes up to where a tile has run, if most of its side have come to `all` and it has not.
    #[inline]
    fn hold(&mut self, place: usize, at: Cycle, all: Cycle) {
        self.held[place] = Cycle::NEVER;
        if at < all {
            self.held[place] = at;
            self.behind.push(place);
        }
    }

    /// Until when a tile of this reach runs whose turn it is.
    #[inline]
    fn end(&self, window: &Window, side: Side, reach: u64) -> Cycle {
        match side {
            Side::Leaf => window.end,
            Side::Hub | Side::Desk => window.stand.after_hubs(window.turn).of(side, reach),
        }
    }

    /// Up to where a tile has run.
    #[inline]
    fn time(&self, place: usize, stand: &Stand) -> Cycle {
        let at = stand.of(self.sides[place], self.reaches[place]);
        at.min(self.held[place]).max(stand.floor)
    }

    /// Leaves that a leash held before the window, the first `before` of those behind, and that had nothing to do in it are at its end.
    fn let_go(&mut self, before: usize, window: &Window) {
        for n in 0..before {
            let place = self.behind[n];
            let has_run = self.held[place] == Cycle::NEVER || self.behind[before..].contains(&place);
            if !has_run {
                self.hold(place, self.held[place].max(window.end), window.stand.leaves);
            }
        }
        self.behind.drain(..before);
    }

    /// Has the tiles asked of which a window to watch begins before the end of theirs, due or not.
    #[cold]
    fn wake_watched(&mut self, window: &Window) {
        for (place, tile) in self.tiles.iter().enumerate() {
            let side = self.sides[place];
            if window.turn.sides().contains(&side) && tile.next_window() < self.end(window, side, self.reaches[place]) {
                self.awake[side as usize][place / 64] |= 1 << (place % 64);
            }
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

    fn answer_bells(&mut self, stand: &Stand) {
        let mine = std::mem::take(&mut self.mine);
        self.bells.answer(&mine, |number| {
            let place = self.places[number];
            let at = self.tiles[place].next_due(self.time(place, stand));
            let side = self.sides[place] as usize;
            set_due(&mut self.due, &mut self.awake[side], place, at);
        });
        self.mine = mine;
    }
}

/// Notes when a tile is due, and whether it is at all.
#[inline]
fn set_due(due: &mut [Cycle], awake: &mut [u64], place: usize, at: Cycle) {
    due[place] = at;
    let (word, bit) = (&mut awake[place / 64], 1 << (place % 64));
    *word = if at == Cycle::NEVER { *word & !bit } else { *word | bit };
}
