//! A queue that delays each message of an SM by a fixed number of cycles, in order.
//!
//! GigaThread uses it for the part of `gigathread.link_latency` that exceeds the longest link between tiles: 0 cycles in most presets.

use std::collections::VecDeque;

use warpwave_hw::link::OutPort;
use warpwave_hw::time::Cycle;

/// Messages to or from SMs, oldest first.
#[derive(Clone, Debug)]
pub(super) struct DelayQueue<T> {
    /// Cycles from in to out.
    latency: u64,
    /// Cycle in which each message is due, number of its SM, and the message.
    messages: VecDeque<(Cycle, usize, T)>,
}

impl<T> DelayQueue<T> {
    /// An empty queue.
    pub(super) fn new(latency: u64) -> Self {
        DelayQueue {
            latency,
            messages: VecDeque::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Number of messages of an SM.
    pub(super) fn n_of(&self, sm: usize) -> usize {
        self.messages.iter().filter(|(_, of, _)| *of == sm).count()
    }

    /// Adds a message of an SM.
    pub(super) fn push(&mut self, now: Cycle, sm: usize, message: T) {
        self.messages.push_back((now + self.latency, sm, message));
    }

    /// Takes the oldest message if it is due.
    pub(super) fn pop_due(&mut self, now: Cycle) -> Option<(usize, T)> {
        // All messages have one latency, so the queue is sorted by due cycle.
        let (_, sm, message) = self.messages.pop_front_if(|(due, ..)| *due <= now)?;
        Some((sm, message))
    }

    /// Sends the due messages to their SMs, until the link of the oldest is full.
    pub(super) fn send_due(&mut self, now: Cycle, ports: &mut [OutPort<T>]) {
        // In order over all SMs: a full link also blocks later messages to other SMs.
        while let Some(&(due, sm, _)) = self.messages.front()
            && due <= now
            && ports[sm].has_room(now)
            && let Some((.., message)) = self.messages.pop_front()
        {
            ports[sm].send(now, message);
        }
    }

    /// The cycle in which the oldest message is due.
    pub(super) fn next_due(&self) -> Option<Cycle> {
        self.messages.front().map(|(due, ..)| *due)
    }
}
