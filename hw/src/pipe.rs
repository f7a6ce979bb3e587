//! A pipelined unit inside a component: what starts in cycle t leaves in t + latency, and a new one may start every `interval`.
//!
//! ```text
//!   start ---> [ stage | stage | ... | stage ] ---> take
//! ```
//!
//! # Promises
//! - Values leave in the order in which they started, never before their latency is over.
//! - A value that is not taken stays, and those behind it close up: a stalled pipe holds latency / interval values (rounded
//!   up), then nothing starts. Take before you start in a cycle, last stage first, and a full pipe keeps its rate.
//!
//! Ask for room, then start: starting without is a bug and panics.

use crate::queue::Queue;
use crate::time::Cycle;

/// A delay line with an issue interval, both in cycles.
///
/// ```
/// use warpwave_hw::{pipe::Pipe, time::Cycle};
/// let mut fma = Pipe::new(4, 2);
/// fma.start(Cycle(10), "a");
/// assert!(!fma.can_start(Cycle(11)) && fma.can_start(Cycle(12)));
/// assert_eq!(fma.take(Cycle(13)), None);
/// assert_eq!(fma.take(Cycle(14)), Some("a"));
/// ```
#[derive(Clone, Debug)]
pub struct Pipe<T> {
    latency: u64,
    interval: u64,
    next_start: Cycle,
    inside: Queue<(Cycle, T)>,
}

impl<T> Pipe<T> {
    /// An empty pipe.
    ///
    /// # Panics
    /// If latency or interval is 0.
    pub fn new(latency: u64, interval: u64) -> Self {
        assert!(
            latency > 0 && interval > 0,
            "a pipe needs a latency and an interval of at least 1, not {latency} and {interval}"
        );
        Pipe {
            latency,
            interval,
            next_start: Cycle::ZERO,
            inside: Queue::new(latency.div_ceil(interval) as usize),
        }
    }

    /// Whether a value may start in this cycle.
    #[inline]
    pub fn can_start(&self, now: Cycle) -> bool {
        self.next_start <= now && self.inside.has_room()
    }

    /// Starts a value; it may be taken `latency` cycles later.
    ///
    /// # Panics
    /// If nothing may start in this cycle: ask [`Pipe::can_start`] first.
    #[inline]
    pub fn start(&mut self, now: Cycle, value: T) {
        assert!(
            self.can_start(now),
            "cycle {now}: pipe started while it holds {} of {} values and is free from cycle {}",
            self.inside.len(),
            self.inside.depth(),
            self.next_start
        );
        self.next_start = now + self.interval;
        self.inside.push((now + self.latency, value));
    }

    /// The oldest value if its latency is over, left where it is.
    #[inline]
    pub fn peek(&self, now: Cycle) -> Option<&T> {
        match self.inside.front() {
            Some((ready_at, value)) if *ready_at <= now => Some(value),
            _ => None,
        }
    }

    /// Takes the oldest value if its latency is over.
    #[inline]
    pub fn take(&mut self, now: Cycle) -> Option<T> {
        let (_, value) = self.inside.pop_if(|(ready_at, _)| *ready_at <= now)?;
        Some(value)
    }

    /// The cycle in which the oldest value can be taken; `None` if the pipe is empty.
    #[inline]
    pub fn ready_at(&self) -> Option<Cycle> {
        self.inside.front().map(|(ready_at, _)| *ready_at)
    }

    /// The first cycle in which the interval allows another start.
    pub fn free_at(&self) -> Cycle {
        self.next_start
    }

    /// Values inside.
    pub fn len(&self) -> usize {
        self.inside.len()
    }

    /// Whether nothing is inside.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.inside.is_empty()
    }

    /// The values inside, oldest first, each with the cycle from which it can be taken.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &(Cycle, T)> {
        self.inside.iter()
    }

    /// Drops everything, as a reset does.
    pub fn clear(&mut self) {
        self.inside.clear();
        self.next_start = Cycle::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a value in every cycle that allows it, takes one when `taken` says so, and lists (cycle, value) of both.
    fn run(pipe: &mut Pipe<u64>, cycles: u64, taken: impl Fn(u64) -> bool) -> (Vec<u64>, Vec<(u64, u64)>) {
        let (mut started, mut left) = (Vec::new(), Vec::new());
        for now in 0..cycles {
            if taken(now) {
                left.extend(pipe.take(Cycle(now)).map(|value| (now, value)));
            }
            if pipe.can_start(Cycle(now)) {
                pipe.start(Cycle(now), now);
                started.push(now);
            }
        }
        (started, left)
    }

    #[test]
    fn full_rate_every_value_leaves_after_its_latency() {
        for (latency, interval) in [(1, 1), (4, 1), (4, 2), (5, 2), (3, 8), (18, 4)] {
            let (started, left) = run(&mut Pipe::new(latency, interval), 60, |_| true);
            let starts: Vec<u64> = (0..60).step_by(interval as usize).collect();
            assert_eq!(started, starts, "latency {latency}, interval {interval}");
            let leaves: Vec<_> = starts.iter().map(|&t| (t + latency, t)).filter(|l| l.0 < 60).collect();
            assert_eq!(left, leaves, "latency {latency}, interval {interval}");
        }
    }

    #[test]
    fn nothing_taken_pipe_fills_and_stops() {
        let mut pipe = Pipe::new(5, 2);
        let (started, _) = run(&mut pipe, 20, |_| false);
        assert_eq!(started, [0, 2, 4]);
        assert_eq!((pipe.ready_at(), pipe.free_at()), (Some(Cycle(5)), Cycle(6)));
    }

    #[test]
    fn stall_over_values_leave_in_order_one_a_cycle() {
        let (started, left) = run(&mut Pipe::new(2, 1), 14, |now| now >= 10);
        assert_eq!(started, [0, 1, 10, 11, 12, 13]);
        assert_eq!(left, [(10, 0), (11, 1), (12, 10), (13, 11)]);
    }

    #[test]
    fn cleared_pipe_is_as_new() {
        let mut pipe = Pipe::new(4, 4);
        pipe.start(Cycle(100), 1);
        pipe.clear();
        assert!(pipe.is_empty() && pipe.can_start(Cycle(0)));
    }

    #[test]
    #[should_panic(expected = "cycle 1: pipe started while it holds 1 of 2 values and is free from cycle 2")]
    fn interval_not_over_start_panics() {
        let mut pipe = Pipe::new(4, 2);
        pipe.start(Cycle(0), 0);
        pipe.start(Cycle(1), 1);
    }
}
