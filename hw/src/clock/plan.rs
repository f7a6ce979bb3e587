//! What the leading thread decides, tells the others, and where all meet.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crossbeam::utils::CachePadded;

use super::Stop;
use super::meeting::Meeting;
use super::ring::Ring;
use super::share::{Done, Share};
use super::sides::Side;
use super::window::{Posted, Reaches, Stand, TURNS, Turn, Window};
use crate::tile::Promise;
use crate::time::Cycle;

/// The thread that leads.
const LEADER: usize = 0;

/// The leader's view of time.
pub struct Plan<'a> {
    stand: Stand,
    reaches: Reaches,
    has_hubs: bool,
    /// Those of the desks.
    promises: &'a [Promise],
    ring: &'a Ring<'a>,
    orders: &'a Orders<'a>,
    /// Tiles that ran when it was last whose turn; of leaves that catch up apart.
    ran: [u64; TURNS + 1],
}

/// What all threads share.
pub struct Orders<'a> {
    window: Posted,
    done: AtomicBool,
    /// For each thread its tiles, which it runs, or the leader where there is too little to do for two.
    shares: Vec<CachePadded<Mutex<Share<'a>>>>,
    /// What each said after its last window.
    said: Vec<CachePadded<Said>>,
    meeting: Meeting,
}

/// [`Done`], for others to read.
struct Said {
    next_due: AtomicU64,
    behind: AtomicU64,
    ran: AtomicU64,
}

impl<'a> Plan<'a> {
    /// All tiles stand at `now`.
    pub fn new(
        ring: &'a Ring<'a>,
        orders: &'a Orders<'a>,
        now: Cycle,
        reaches: Reaches,
        promises: &'a [Promise],
    ) -> Self {
        Plan {
            stand: Stand::at(now, now),
            reaches,
            has_hubs: ring.has_hubs(),
            promises,
            ring,
            orders,
            ran: [0; TURNS + 1],
        }
    }

    /// Up to here all tiles have run.
    pub fn now(&self) -> Cycle {
        if !self.has_hubs {
            return self.stand.behind;
        }
        let hubs = self.stand.of(Side::Hub, self.reaches.hubs);
        let desks = self
            .reaches
            .desks
            .map_or(hubs, |reach| self.stand.of(Side::Desk, reach));
        self.stand.behind.min(hubs).min(desks)
    }

    /// Beyond here none has run.
    fn latest(&self) -> Cycle {
        let of = |side| self.stand.of(side, self.reaches.longest);
        self.stand.leaves.max(of(Side::Hub)).max(of(Side::Desk))
    }

    /// Does what is asked for while the others follow, and sends them home. `None` if one of them panicked.
    pub fn lead<T>(&mut self, what: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let orders = self.orders;
        let _attendance = orders.meeting.attend();
        let result = what(self)?;
        orders.done.store(true, Ordering::Release);
        orders.meeting.meet().then_some(result)
    }

    /// Plans the windows and runs its own share, until `limit` at most; all tiles have come to the same cycle then.
    pub fn run(&mut self, limit: Cycle, stop: &mut impl FnMut(Cycle) -> bool) -> Option<Stop> {
        self.stand = Stand::at(self.now(), limit);
        let mut turn = Turn::Hubs;
        let reason = loop {
            let next = self.next_due()?;
            if next == Cycle::NEVER {
                // The side that was ahead may have said its last word to the caller, who has not been told of that time yet.
                self.meet_in_time()?;
                break if stop(self.now()) { Stop::Asked } else { Stop::Quiet };
            }
            self.jump(next.min(self.stand.limit));
            if self.now() >= self.stand.limit {
                break Stop::Limit;
            }
            turn = self.after(turn);
            self.take_turn(turn)?;
            if stop(self.now()) {
                break Stop::Asked;
            }
        };
        self.meet_in_time()?;
        Some(reason)
    }

    /// Runs, or waits, until a cycle.
    pub fn run_to(&mut self, at: Cycle) -> Option<Stop> {
        let reason = self.run(at, &mut |_| false)?;
        self.stand = Stand::at(at, at);
        self.ring.begin_windows(at);
        Some(reason)
    }

    /// Whose turn it is next. Leaves that stayed behind wait for desks alone, and are to have caught up when the hubs run.
    fn after(&self, turn: Turn) -> Turn {
        match turn {
            Turn::Leaves if self.stand.behind < self.stand.leaves => Turn::Desks,
            Turn::Leaves => Turn::Hubs,
            Turn::Hubs | Turn::Desks => Turn::Leaves,
        }
    }

    /// Lets tiles run as far as the others allow.
    fn take_turn(&mut self, turn: Turn) -> Option<()> {
        let end = self.end_of_leaves();
        assert!(end <= Cycle::LAST, "cycle {end} is beyond the last, {}", Cycle::LAST);
        match turn {
            Turn::Leaves if end > self.stand.behind => {
                self.round(turn, end)?;
                self.stand = self.stand.after_leaves(end, self.orders.behind());
            }
            Turn::Hubs | Turn::Desks if self.has_hubs => {
                self.round(turn, end)?;
                self.stand = self.stand.after_hubs(turn);
            }
            _ => {}
        }
        Some(())
    }

    /// How far the hubs, or without hubs the tiles themselves, let the leaves run.
    fn end_of_leaves(&self) -> Cycle {
        let (stand, reaches) = (&self.stand, &self.reaches);
        let beyond = |side, reach| stand.of(side, reach) + reach;
        // What was promised before the desks ran once may be of before the caller sent something.
        let is_promised = stand.have_desks_run() && self.promises.iter().all(Promise::holds);
        let desks = reaches.desks.filter(|_| !is_promised);
        let hubs = beyond(if self.has_hubs { Side::Hub } else { Side::Leaf }, reaches.hubs);
        let end = desks.map_or(hubs, |reach| hubs.min(beyond(Side::Desk, reach)));
        end.min(stand.limit)
    }

    /// Lets all that are behind come to where the first are.
    fn meet_in_time(&mut self) -> Option<()> {
        let limit = self.stand.limit;
        // A limit in the past is no way back.
        self.stand.limit = self.latest().min(limit).max(self.now());
        let mut turn = Turn::Leaves;
        while self.now() < self.stand.limit {
            turn = self.after(turn);
            self.take_turn(turn)?;
        }
        self.stand = Stand::at(self.stand.limit, limit);
        Some(())
    }

    /// Goes on to a cycle before which, as was asked, nobody has anything to do: so nobody sends what could be due before.
    fn jump(&mut self, to: Cycle) {
        if to > self.latest() {
            self.stand = Stand::at(to, self.stand.limit);
        }
    }

    /// When anything is due next; asks only if the last window did not say that it is at once.
    fn next_due(&mut self) -> Option<Cycle> {
        if self.orders.earliest() > self.latest() {
            self.round(Turn::Leaves, Cycle::ZERO)?;
        }
        Some(self.orders.earliest())
    }

    /// Lets every thread do its part of a window; `None` if one panicked.
    fn round(&mut self, turn: Turn, end: Cycle) -> Option<()> {
        let (orders, stand) = (self.orders, self.stand);
        let desks = self.reaches.desks.filter(|_| turn == Turn::Leaves);
        let desks = desks.map_or(Cycle::NEVER, |reach| stand.of(Side::Desk, reach));
        orders.window.post(&Window {
            turn,
            stand,
            desks,
            end,
        });
        // One tile cannot be shared: nobody else is woken for it. Mostly as many run as when it was last whose turn.
        let catches_up = turn == Turn::Leaves && end <= stand.leaves;
        let ran = &mut self.ran[if catches_up { TURNS } else { turn as usize }];
        let is_alone = end == Cycle::ZERO || *ran <= 1;
        let all_well = if is_alone {
            (0..orders.shares.len()).for_each(|thread| orders.work(thread, true));
            true
        } else {
            orders.meeting.meet() && {
                orders.work(LEADER, false);
                orders.meeting.meet()
            }
        };
        if end > Cycle::ZERO {
            *ran = orders.ran();
        }
        all_well.then_some(())
    }
}

impl Said {
    /// Nothing is due, as far as is known before anybody was asked.
    fn nothing() -> Self {
        Said {
            next_due: AtomicU64::new(Cycle::NEVER.0),
            behind: AtomicU64::new(Cycle::NEVER.0),
            ran: AtomicU64::new(0),
        }
    }
}

impl<'a> Orders<'a> {
    /// For so many threads as there are shares.
    pub fn new(shares: Vec<Share<'a>>) -> Self {
        Orders {
            window: Posted::default(),
            done: AtomicBool::new(false),
            said: shares.iter().map(|_| CachePadded::new(Said::nothing())).collect(),
            meeting: Meeting::new(shares.len()),
            shares: shares.into_iter().map(Mutex::new).map(CachePadded::new).collect(),
        }
    }

    /// A worker's life: each round, run its tiles.
    pub fn follow(&self, worker: usize) {
        let _attendance = self.meeting.attend();
        while self.meeting.meet() && !self.done.load(Ordering::Acquire) {
            self.work(worker, false);
            self.meeting.meet();
        }
    }

    /// Runs a thread's tiles through the window, or only asks when they are due next. In a window that may miss what others are just
    /// sending; who only asks is there to ask again.
    fn work(&self, thread: usize, is_alone: bool) {
        let mut share = self.shares[thread].lock().unwrap_or_else(PoisonError::into_inner);
        let Done { next_due, behind, ran } = share.work(&self.window.read(), is_alone);
        let said = &self.said[thread];
        said.next_due.store(next_due.0, Ordering::Release);
        said.behind.store(behind.0, Ordering::Release);
        said.ran.store(ran, Ordering::Release);
    }

    fn earliest(&self) -> Cycle {
        self.first(|said| &said.next_due)
    }

    fn behind(&self) -> Cycle {
        self.first(|said| &said.behind)
    }

    /// The first of the cycles that the threads have said.
    fn first(&self, cycle: impl Fn(&Said) -> &AtomicU64) -> Cycle {
        let cycles = self.said.iter().map(|said| cycle(said).load(Ordering::Acquire));
        Cycle(cycles.min().unwrap_or(u64::MAX))
    }

    /// Tiles that ran.
    fn ran(&self) -> u64 {
        self.said.iter().map(|said| said.ran.load(Ordering::Acquire)).sum()
    }
}
