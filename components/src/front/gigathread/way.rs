//! The part of the way to the SMs that is longer than a link between tiles can be.
//!
//! A message waits here for `gigathread.link_latency` less the latency of its link, 0 cycles in most presets.

use std::collections::VecDeque;

use warpwave_hw::time::Cycle;

/// Messages on their way to an SM, or from one.
#[derive(Clone, Debug)]
pub struct Way<T> {
    /// Cycles that a message waits.
    cycles: u64,
    /// When each message is due, its SM, and the message; in order.
    messages: VecDeque<(Cycle, usize, T)>,
}

impl<T> Way<T> {
    /// No message.
    pub fn new(cycles: u64) -> Self {
        Way {
            cycles,
            messages: VecDeque::new(),
        }
    }

    /// Adds a message.
    pub fn push(&mut self, now: Cycle, sm: usize, message: T) {
        self.messages.push_back((now + self.cycles, sm, message));
    }

    /// The SM of the oldest message, if that is due.
    pub fn due(&self, now: Cycle) -> Option<usize> {
        let (due, sm, _) = self.messages.front()?;
        (*due <= now).then_some(*sm)
    }

    /// Takes the oldest message.
    pub fn pop(&mut self) -> Option<T> {
        self.messages.pop_front().map(|(_, _, message)| message)
    }

    /// When the oldest message is due.
    pub fn next(&self) -> Option<Cycle> {
        self.messages.front().map(|(due, ..)| *due)
    }
}
