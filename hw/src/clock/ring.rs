//! The tiles of a machine in a ring, and the stretch of it that each thread runs.
//!
//! ```text
//!        ,---- thread 0 --->|<--- thread 1 ----,     they meet here in one window,
//!        '----------------->|<-----------------'     and here in the next
//! ```
//!
//! A thread runs the tiles of its stretch from one end to the other, and back in the next window; a neighbour comes to meet it. Who is
//! there first goes on in the other's stretch until they do meet, and there the stretches part from then on: tiles go to threads by load.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crossbeam::utils::CachePadded;

use super::MAX_QUANTUM;
use super::marks::Marks;
use super::sides::{SIDES, Side};
use super::stretch::Stretch;
use crate::tile::Tile;
use crate::time::Cycle;

/// What all threads see of the tiles, each by its number.
pub struct Ring<'a> {
    seats: Vec<Mutex<Seat<'a>>>,
    sides: &'a [Side],
    /// When each is due at the latest news; its bell rings if it is due earlier.
    due: Vec<AtomicU64>,
    /// Up to where each leaf has run that a leash held ([`crate::tile`]); [`Cycle::NEVER`] of all others.
    held: Vec<AtomicU64>,
    /// For each side the tiles on it that are due some time.
    awake: [Marks; SIDES],
    leashed: Marks,
    /// Whether any is to be watched.
    is_watched: bool,
    /// What each thread has open to its neighbours.
    offers: Vec<CachePadded<[Offer; SIDES]>>,
}

/// A tile, for one thread at a time.
pub struct Seat<'a> {
    /// The tile.
    pub tile: &'a mut Tile,
    /// The last step in which it was claimed.
    step: u64,
}

/// A thread's stretch of a side in a step.
#[derive(Default)]
struct Offer {
    first: AtomicU64,
    len: AtomicU64,
    /// The tile of it that a neighbour claimed last, [`u64::MAX`] if none did.
    taken: AtomicU64,
    step: AtomicU64,
}

impl<'a> Ring<'a> {
    /// All tiles, none of them due; `sides` by their numbers.
    pub fn new(tiles: &'a mut [Tile], sides: &'a [Side], threads: usize) -> Self {
        let n = tiles.len();
        // Whoever holds the tiles may have changed their order since they were numbered.
        let mut tiles: Vec<_> = tiles.iter_mut().collect();
        tiles.sort_by_key(|tile| tile.number());
        let never = || (0..n).map(|_| AtomicU64::new(u64::MAX)).collect();
        Ring {
            is_watched: tiles.iter().any(|tile| tile.next_window() != Cycle::NEVER),
            seats: tiles
                .into_iter()
                .map(|tile| Mutex::new(Seat { tile, step: 0 }))
                .collect(),
            sides,
            due: never(),
            held: never(),
            awake: std::array::from_fn(|_| Marks::new(n)),
            leashed: Marks::new(n),
            offers: (0..threads).map(|_| CachePadded::default()).collect(),
        }
    }

    /// Tiles in all.
    pub fn len(&self) -> usize {
        self.seats.len()
    }

    /// How far each tile gets ahead of the leaves, if it is a hub.
    pub fn reaches(&self, quantum: u64) -> Vec<u64> {
        let reach = |number| {
            self.seat(number)
                .tile
                .remote_latency()
                .unwrap_or(MAX_QUANTUM)
                .min(quantum)
        };
        (0..self.len()).map(reach).collect()
    }

    /// Whether any tile is a hub.
    pub fn has_hubs(&self) -> bool {
        self.sides.contains(&Side::Hub)
    }

    /// Whether no component of any tile has anything under way. It looks at tile `first` first, and leaves there one that has.
    pub fn is_still(&self, first: &mut usize) -> bool {
        let busy = (*first..self.len()).chain(0..*first).find(|&number| {
            let seat = self.seat(number);
            !seat.tile.components().iter().all(|component| component.is_quiescent())
        });
        *first = busy.unwrap_or(*first);
        busy.is_none()
    }

    /// Begins the windows to watch that lie before a cycle up to which all tiles have run.
    pub fn begin_windows(&self, now: Cycle) {
        for number in 0..self.len() {
            let mut seat = self.seat(number);
            if seat.tile.begin_passed(now) {
                self.set_due(number, seat.tile.next_due(now));
            }
        }
    }

    /// Whether any tile has a window to watch that had not begun at first.
    pub fn is_watched(&self) -> bool {
        self.is_watched
    }

    /// The side of a tile.
    pub fn side(&self, number: usize) -> Side {
        self.sides[number]
    }

    /// For each thread the stretch of a side's tiles that it begins with, equally many of them.
    pub fn stretches(&self, side: Side) -> Vec<Stretch> {
        let tiles: Vec<usize> = (0..self.len()).filter(|&number| self.sides[number] == side).collect();
        let threads = self.offers.len();
        let first = |thread: usize| tiles.get(thread * tiles.len() / threads).copied().unwrap_or(self.len());
        let end = |thread| if thread == threads { self.len() } else { first(thread) };
        let stretch = |thread| Stretch {
            first: first(thread),
            len: end(thread + 1) - first(thread),
        };
        (0..threads).map(stretch).collect()
    }

    /// A tile that nobody runs now.
    pub fn seat(&self, number: usize) -> MutexGuard<'_, Seat<'a>> {
        self.seats[number].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A tile to be run in a step, unless another thread had it in that step already.
    #[inline]
    pub fn claim(&self, number: usize, step: u64) -> Option<MutexGuard<'_, Seat<'a>>> {
        let mut seat = self.seats[number].try_lock().ok()?;
        let is_free = seat.step != step;
        seat.step = step;
        is_free.then_some(seat)
    }

    /// Whether a thread has claimed a tile in a step.
    pub fn has_run(&self, number: usize, step: u64) -> bool {
        self.seats[number].try_lock().map_or(true, |seat| seat.step == step)
    }

    /// When a tile is due.
    #[inline]
    pub fn due(&self, number: usize) -> Cycle {
        Cycle(self.due[number].load(Ordering::Acquire))
    }

    /// Notes when a tile is due, and whether it is at all.
    #[inline]
    pub fn set_due(&self, number: usize, at: Cycle) {
        self.due[number].store(at.0, Ordering::Release);
        self.awake(self.side(number)).set(number, at != Cycle::NEVER);
    }

    /// The tiles of a side that are due some time.
    #[inline]
    pub fn awake(&self, side: Side) -> &Marks {
        &self.awake[side as usize]
    }

    /// The leaves that a leash held.
    #[inline]
    pub fn leashed(&self) -> &Marks {
        &self.leashed
    }

    /// Up to where a leaf has run that a leash held.
    #[inline]
    pub fn held(&self, number: usize) -> Cycle {
        Cycle(self.held[number].load(Ordering::Relaxed))
    }

    /// Notes it; [`Cycle::NEVER`] if none held it.
    #[inline]
    pub fn set_held(&self, number: usize, at: Cycle) {
        self.held[number].store(at.0, Ordering::Relaxed);
        self.leashed.set(number, at != Cycle::NEVER);
    }

    /// Opens a thread's stretch of a side to its neighbours in a step: what was noted of its tiles before holds.
    pub fn offer(&self, (thread, side): (usize, Side), step: u64, stretch: Stretch) {
        let offer = &self.offers[thread][side as usize];
        offer.first.store(stretch.first as u64, Ordering::Relaxed);
        offer.len.store(stretch.len as u64, Ordering::Relaxed);
        offer.taken.store(u64::MAX, Ordering::Relaxed);
        offer.step.store(step, Ordering::Release);
    }

    /// Claims a tile of what another thread has open: that learns of it by [`Ring::taken`] before it sees when the tile is due next.
    pub fn claim_of(
        &self,
        (thread, side): (usize, Side),
        number: usize,
        step: u64,
    ) -> Option<MutexGuard<'_, Seat<'a>>> {
        let seat = self.claim(number, step)?;
        let taken = &self.offers[thread][side as usize].taken;
        taken.store(number as u64, Ordering::Release);
        Some(seat)
    }

    /// The tile that a neighbour claimed last of what a thread had open in this step.
    pub fn taken(&self, (thread, side): (usize, Side)) -> Option<usize> {
        match self.offers[thread][side as usize].taken.load(Ordering::Acquire) {
            u64::MAX => None,
            number => Some(number as usize),
        }
    }

    /// What a thread has open in a step, if it has said so.
    pub fn offered(&self, (thread, side): (usize, Side), step: u64) -> Option<Stretch> {
        let offer = &self.offers[thread][side as usize];
        (offer.step.load(Ordering::Acquire) == step).then(|| Stretch {
            first: offer.first.load(Ordering::Relaxed) as usize,
            len: offer.len.load(Ordering::Relaxed) as usize,
        })
    }
}
