//! What the leading thread decides, tells the others, and where all meet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::Stop;
use super::meeting::Meeting;
use super::share::Share;
use super::sides::Side;
use crate::time::Cycle;

/// The leader's view of time: the first cycle that each side has not run.
pub struct Plan {
    times: [Cycle; 2],
    quantum: u64,
    has_hubs: bool,
    orders: Arc<Orders>,
}

/// What all threads share.
pub struct Orders {
    /// The side that runs, as a number, until when, and where the sides stand.
    side: AtomicUsize,
    end: AtomicU64,
    times: [AtomicU64; 2],
    done: AtomicBool,
    /// When each thread's tiles are due next.
    next_due: Vec<AtomicU64>,
    meeting: Meeting,
}

impl Plan {
    /// All tiles stand at `now`.
    pub fn new(threads: usize, now: Cycle, quantum: u64, has_hubs: bool) -> Self {
        Plan {
            times: [now; 2],
            quantum,
            has_hubs,
            orders: Arc::new(Orders {
                side: AtomicUsize::new(0),
                end: AtomicU64::new(0),
                times: [const { AtomicU64::new(0) }; 2],
                done: AtomicBool::new(false),
                next_due: (0..threads).map(|_| AtomicU64::new(u64::MAX)).collect(),
                meeting: Meeting::new(threads),
            }),
        }
    }

    /// For the threads that follow.
    pub fn orders(&self) -> Arc<Orders> {
        self.orders.clone()
    }

    /// Up to here all tiles have run.
    pub fn now(&self) -> Cycle {
        let [hubs, leaves] = self.times;
        hubs.min(leaves)
    }

    /// Plans the windows, runs its own share, and sends the workers home. `None` if one of them panicked.
    pub fn lead(&mut self, limit: Cycle, own: &mut Share, stop: &mut impl FnMut(Cycle) -> bool) -> Option<Stop> {
        let orders = self.orders();
        let _attendance = orders.meeting.attend();
        let mut turn = Side::Hub;
        let reason = loop {
            let next = self.next_due(own)?;
            if next == Cycle::NEVER {
                // The side that was ahead may have said its last word to the caller, who has not been told of that time yet.
                self.meet_in_time(limit, own)?;
                break if stop(self.now()) { Stop::Asked } else { Stop::Quiet };
            }
            self.jump(next.min(limit));
            if self.now() >= limit {
                break Stop::Limit;
            }
            turn = turn.other();
            self.run(turn, limit, own)?;
            if stop(self.now()) {
                break Stop::Asked;
            }
        };
        self.meet_in_time(limit, own)?;
        orders.done.store(true, Ordering::Release);
        orders.meeting.meet().then_some(reason)
    }

    /// Lets a side run as far as the other allows.
    fn run(&mut self, side: Side, limit: Cycle, own: &mut Share) -> Option<()> {
        if side == Side::Hub && !self.has_hubs {
            return Some(());
        }
        let end = (self.times[side.other() as usize] + self.quantum).min(limit);
        assert!(end <= Cycle::LAST, "cycle {end} is beyond the last, {}", Cycle::LAST);
        if end > self.times[side as usize] {
            self.round(side, end, own)?;
            self.times[side as usize] = end;
            if !self.has_hubs {
                self.times = [end; 2];
            }
        }
        Some(())
    }

    /// Lets the side that is behind come to where the other is.
    fn meet_in_time(&mut self, limit: Cycle, own: &mut Share) -> Option<()> {
        let [hubs, leaves] = self.times;
        let latest = hubs.max(leaves);
        let behind = if hubs < leaves { Side::Hub } else { Side::Leaf };
        self.run(behind, latest.min(limit), own)
    }

    /// Goes on to a cycle before which, as was asked, nobody has anything to do: so nobody sends what could be due before.
    fn jump(&mut self, to: Cycle) {
        let [hubs, leaves] = self.times;
        if to > hubs.max(leaves) {
            self.times = [to; 2];
        }
    }

    /// When anything is due next; asks only if the last window did not say that it is at once.
    fn next_due(&self, own: &mut Share) -> Option<Cycle> {
        let [hubs, leaves] = self.times;
        if self.orders.earliest() > hubs.max(leaves) {
            self.round(Side::Leaf, Cycle::ZERO, own)?;
        }
        Some(self.orders.earliest())
    }

    /// Lets every thread do its part of a window; `None` if one panicked.
    fn round(&self, side: Side, end: Cycle, own: &mut Share) -> Option<()> {
        let orders = &self.orders;
        orders.side.store(side as usize, Ordering::Release);
        orders.end.store(end.0, Ordering::Release);
        for (order, time) in orders.times.iter().zip(self.times) {
            order.store(time.0, Ordering::Release);
        }
        let all_well = orders.meeting.meet() && {
            orders.window(0, own);
            orders.meeting.meet()
        };
        all_well.then_some(())
    }
}

impl Orders {
    /// A worker's life: each round, either say when its tiles are due next (an empty window) or run them.
    pub fn follow(&self, worker: usize, mut share: Share) {
        let _attendance = self.meeting.attend();
        while self.meeting.meet() && !self.done.load(Ordering::Acquire) {
            self.window(worker, &mut share);
            self.meeting.meet();
        }
    }

    /// Runs the side's tiles through the window, and says when all are due next. In a full window that may miss what others are
    /// just sending; an empty one is there to ask again.
    fn window(&self, worker: usize, share: &mut Share) {
        let side = Side::ALL[self.side.load(Ordering::Acquire)];
        let end = Cycle(self.end.load(Ordering::Acquire));
        let times = [0, 1].map(|side| Cycle(self.times[side].load(Ordering::Acquire)));
        let next = if times[side as usize] < end {
            share.run(side, times, end)
        } else {
            share.next_due(times)
        };
        self.next_due[worker].store(next.0, Ordering::Release);
    }

    fn earliest(&self) -> Cycle {
        let next = self.next_due.iter().map(|next| next.load(Ordering::Acquire));
        Cycle(next.min().unwrap_or(u64::MAX))
    }
}
