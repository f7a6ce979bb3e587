//! The tiles that one thread runs, and when the first of them is due.
//!
//! A tile is asked after it ran and when its bell rings, not in between: one that sleeps costs nothing in a window.
//!
//! Tiles run in turn from first to last and from last to first: those that ran last in one window run first in the next, while the
//! processor's caches still hold them. Always in the same order, a machine larger than a cache would never be found in it.
//! Tiles change threads where two threads meet (module `ring`).

use std::hint::spin_loop;

use super::MAX_QUANTUM;
use super::marks::Marks;
use super::ring::{Ring, Seat};
use super::sides::{SIDES, Side};
use super::stretch::Stretch;
use super::window::{Stand, Turn, Window};
use crate::tile::bell::Bells;
use crate::time::Cycle;

/// Looks at what a neighbour has open before a thread that has nothing left to run leaves it alone: some microseconds.
const LOOKS: u32 = 512;

/// Some of the tiles of a machine.
pub struct Share<'a> {
    ring: &'a Ring<'a>,
    thread: usize,
    threads: usize,
    /// The tiles of each side.
    stretches: [Stretch; SIDES],
    /// How far each tile of the machine gets ahead of the leaves, if it is a hub.
    reaches: &'a [u64],
    bells: &'a Bells,
    /// The bells of these tiles.
    mine: Vec<u64>,
    /// The first cycle of the first window to watch that has not begun.
    window: Cycle,
    /// Turns so far, counted alike by all threads.
    step: u64,
    /// Whether each side runs from last to first next.
    backwards: [bool; SIDES],
    /// Whether another thread runs at the same time.
    has_company: bool,
    /// Tiles that ran in this turn.
    ran: u64,
}

/// What a thread has to say after a window.
pub struct Done {
    /// When the first of its tiles is due, as far as is known while others run.
    pub next_due: Cycle,
    /// Up to here all its leaves have run, [`Cycle::NEVER`] if a leash held none.
    pub behind: Cycle,
    /// Tiles that it has run.
    pub ran: u64,
}

/// How far a thread came in a stretch.
#[derive(Default)]
struct Walk {
    /// The last tile that it ran.
    last: Option<usize>,
    /// The tile that another thread has run, or runs.
    met: Option<usize>,
}

impl<'a> Share<'a> {
    /// Deals the tiles of each side out to so many threads, in equal stretches. All stand at `now`.
    pub fn deal(
        ring: &'a Ring<'a>,
        reaches: &'a [u64],
        bells: &'a Bells,
        threads: usize,
        now: Cycle,
    ) -> Vec<Share<'a>> {
        for number in 0..ring.len() {
            ring.set_due(number, ring.seat(number).tile.next_due(now));
        }
        let stretches = Side::ALL.map(|side| ring.stretches(side));
        let share = |thread| {
            let mut share = Share {
                ring,
                thread,
                threads,
                stretches: std::array::from_fn(|side| stretches[side][thread]),
                reaches,
                bells,
                mine: vec![0; ring.len().div_ceil(64)],
                window: Cycle::NEVER,
                step: 0,
                // Neighbours meet each other.
                backwards: [thread % 2 == 1; SIDES],
                has_company: false,
                ran: 0,
            };
            share.own();
            share.window = share.next_window();
            share
        };
        (0..threads).map(share).collect()
    }

    /// Notes whose bells to answer, when its stretches have changed.
    fn own(&mut self) {
        self.mine.fill(0);
        for number in 0..self.ring.len() {
            let stretch = self.stretches[self.ring.side(number) as usize];
            self.mine[number / 64] |= u64::from(stretch.contains(number, self.ring.len())) << (number % 64);
        }
    }

    fn is_mine(&self, number: usize) -> bool {
        self.mine[number / 64] >> (number % 64) & 1 == 1
    }

    /// Runs tiles through a window, or asks only when the first is due, messages of the last window included. If it `is_alone`, no
    /// other share of the machine is at work.
    pub fn work(&mut self, window: &Window, is_alone: bool) -> Done {
        self.has_company = !is_alone && self.threads > 1;
        self.ran = 0;
        self.answer_bells(&window.stand);
        if window.end > Cycle::ZERO {
            self.run(window);
        }
        let ring = self.ring;
        let due = Side::ALL.map(|side| self.first(ring.awake(side), side, |number| ring.due(number)));
        Done {
            next_due: due.into_iter().min().unwrap_or(Cycle::NEVER),
            behind: self.first(ring.leashed(), Side::Leaf, |number| ring.held(number)),
            ran: self.ran,
        }
    }

    /// Runs those whose turn it is and that have anything to do.
    fn run(&mut self, window: &Window) {
        let begins = self.window < self.end(window, window.turn.sides()[0], MAX_QUANTUM);
        if begins {
            self.wake_watched(window);
        }
        self.step += 1;
        if self.has_company {
            self.offer(window.turn.sides(), begins);
        }
        for &side in window.turn.sides() {
            self.run_side(side, window, begins);
        }
        if window.turn == Turn::Leaves {
            self.let_go(window);
        }
        if begins {
            self.window = self.next_window();
        }
    }

    /// Opens what is to be run to the neighbours; nothing if a window begins, which runs tiles that are not due.
    fn offer(&self, sides: &[Side], begins: bool) {
        for &side in sides {
            let stretch = self.stretches[side as usize];
            let open = if begins { Stretch { len: 0, ..stretch } } else { stretch };
            self.ring.offer((self.thread, side), self.step, open);
        }
    }

    fn run_side(&mut self, side: Side, window: &Window, begins: bool) {
        let (stretch, backwards) = (self.stretches[side as usize], self.backwards[side as usize]);
        let walk = self.run_stretch(stretch, (self.thread, side), window, begins);
        if self.has_company {
            // Who has claimed a tile may not have said so yet, and one that has run may be due again.
            let taken = [walk.met, self.ring.taken((self.thread, side))].into_iter().flatten();
            let left = taken
                .map(|number| stretch.before(number, self.ring.len(), backwards))
                .min_by_key(|left| left.len);
            match left {
                Some(left) => self.set_stretch(side, left),
                None => self.help(side, window),
            }
        }
        // Those that catch up are few, and most of the others run next.
        if side != Side::Leaf || window.end > window.stand.leaves {
            self.backwards[side as usize] = !backwards;
        }
    }

    /// Runs the tiles that the neighbour who comes to meet this thread has not come to.
    fn help(&mut self, side: Side, window: &Window) {
        let backwards = self.backwards[side as usize];
        let step = if backwards { self.threads - 1 } else { 1 };
        let neighbor = (self.thread + step) % self.threads;
        // In a ring of an odd number two neighbours run the same way.
        if neighbor % 2 == self.thread % 2 {
            return;
        }
        let Some(open) = self.look((neighbor, side)) else {
            return;
        };
        if let Some(last) = self.run_stretch(open, (neighbor, side), window, false).last {
            let stretch = self.stretches[side as usize].up_to(last, self.ring.len(), backwards);
            self.set_stretch(side, stretch);
        }
    }

    /// What a neighbour has open, once it says so.
    fn look(&self, whose: (usize, Side)) -> Option<Stretch> {
        for _ in 0..LOOKS {
            if let Some(open) = self.ring.offered(whose, self.step) {
                return Some(open);
            }
            spin_loop();
        }
        None
    }

    fn set_stretch(&mut self, side: Side, stretch: Stretch) {
        self.stretches[side as usize] = stretch;
        self.own();
        if self.ring.is_watched() {
            self.window = self.next_window();
        }
    }

    /// Runs the tiles of a stretch of a thread, this or another, in order up to the first that is not free any more.
    fn run_stretch(&mut self, stretch: Stretch, whose: (usize, Side), window: &Window, begins: bool) -> Walk {
        let (ring, (owner, side)) = (self.ring, whose);
        let backwards = self.backwards[side as usize];
        let mut walk = Walk::default();
        for mut range in stretch.ranges(ring.len(), backwards) {
            while let Some(number) = ring.awake(side).next(&mut range, backwards) {
                let end = self.end(window, side, self.reaches[number]);
                let runs = ring.due(number) < end || begins && ring.seat(number).tile.next_window() < end;
                if !runs {
                    continue;
                }
                let seat = if owner == self.thread {
                    ring.claim(number, self.step)
                } else {
                    ring.claim_of(whose, number, self.step)
                };
                let Some(mut seat) = seat else {
                    walk.met = Some(number);
                    return walk;
                };
                self.run_tile(number, &mut seat, window, end);
                self.ran += 1;
                walk.last = Some(number);
            }
        }
        walk
    }

    #[inline]
    fn run_tile(&mut self, number: usize, seat: &mut Seat, window: &Window, end: Cycle) {
        let side = self.ring.side(number);
        let from = self.time(number, &window.stand);
        let reached = seat.tile.run(from, end, window.desks);
        self.ring.set_due(number, seat.tile.next_due(reached));
        self.hold(number, reached, end.max(window.stand.of(side, self.reaches[number])));
    }

    /// Notes up to where a tile has run, if most of its side have come to `all` and it has not.
    #[inline]
    fn hold(&self, number: usize, at: Cycle, all: Cycle) {
        self.ring.set_held(number, if at < all { at } else { Cycle::NEVER });
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
    fn time(&self, number: usize, stand: &Stand) -> Cycle {
        let at = stand.of(self.ring.side(number), self.reaches[number]);
        at.min(self.ring.held(number)).max(stand.floor)
    }

    /// Leaves that a leash held before the window and that had nothing to do in it are at its end.
    fn let_go(&self, window: &Window) {
        for mut range in self.stretches[Side::Leaf as usize].ranges(self.ring.len(), false) {
            while let Some(number) = self.ring.leashed().next(&mut range, false) {
                if !self.ring.has_run(number, self.step) {
                    let at = self.ring.held(number).max(window.end);
                    self.hold(number, at, window.stand.leaves);
                }
            }
        }
    }

    /// Has the tiles asked of which a window to watch begins before the end of theirs, due or not.
    #[cold]
    fn wake_watched(&self, window: &Window) {
        for number in (0..self.ring.len()).filter(|&number| self.is_mine(number)) {
            let side = self.ring.side(number);
            let end = self.end(window, side, self.reaches[number]);
            if window.turn.sides().contains(&side) && self.ring.seat(number).tile.next_window() < end {
                self.ring.awake(side).set(number, true);
            }
        }
    }

    /// The first cycle of the first window to watch of one of these tiles that has not begun.
    fn next_window(&self) -> Cycle {
        let mine = (0..self.ring.len()).filter(|&number| self.is_mine(number));
        let windows = mine.map(|number| self.ring.seat(number).tile.next_window());
        windows.min().unwrap_or(Cycle::NEVER)
    }

    /// The first of the cycles of this thread's marked tiles of a side.
    fn first(&self, marks: &Marks, side: Side, cycle: impl Fn(usize) -> Cycle) -> Cycle {
        let mut first = Cycle::NEVER;
        for mut range in self.stretches[side as usize].ranges(self.ring.len(), false) {
            while let Some(number) = marks.next(&mut range, false) {
                first = first.min(cycle(number));
            }
        }
        first
    }

    fn answer_bells(&self, stand: &Stand) {
        self.bells.answer(&self.mine, |number| {
            let at = self.ring.seat(number).tile.next_due(self.time(number, stand));
            self.ring.set_due(number, at);
        });
    }
}
