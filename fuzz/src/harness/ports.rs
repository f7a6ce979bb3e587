//! The world's ends of its links.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::time::Cycle;

use crate::draw::Pace;

/// Sends messages in order, none before its cycle, at most one per cycle.
pub struct Source<T> {
    port: OutPort<T>,
    sideband: fn(&T) -> u16,
    waiting: VecDeque<(u64, T)>,
}

impl<T: Send> Source<T> {
    /// A source without messages.
    pub fn new(port: OutPort<T>) -> Self {
        Source::with_sideband(port, |_| 0)
    }

    /// A source that sends a sideband with each message.
    pub fn with_sideband(port: OutPort<T>, sideband: fn(&T) -> u16) -> Self {
        Source {
            port,
            sideband,
            waiting: VecDeque::new(),
        }
    }

    /// Queues a message, to be sent from cycle `at` on.
    pub fn push(&mut self, at: u64, message: T) {
        self.waiting.push_back((at, message));
    }

    /// Sends the oldest message, if it is due and the link has room. Calls `sent` with it.
    pub fn tick_with(&mut self, now: Cycle, sent: impl FnOnce(&T)) {
        if self.port.has_room(now)
            && let Some((_, message)) = self.waiting.pop_front_if(|(at, _)| *at <= now.0)
        {
            sent(&message);
            self.port.send_sideband(now, (self.sideband)(&message), message);
        }
    }

    /// Sends the oldest message, if it is due and the link has room.
    pub fn tick(&mut self, now: Cycle) {
        self.tick_with(now, |_| ());
    }

    /// True if no message waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Forgets all messages.
    pub fn clear(&mut self) {
        self.waiting.clear();
    }
}

/// Sends messages in order of their cycles, at most one per cycle. Unlike a [`Source`], it is given them in any order.
pub struct Late<T> {
    port: OutPort<T>,
    waiting: Vec<(u64, T)>,
}

impl<T: Send> Late<T> {
    /// A sender without messages.
    pub fn new(port: OutPort<T>) -> Self {
        let waiting = Vec::new();
        Late { port, waiting }
    }

    /// Adds a message, to be sent from cycle `at` on.
    pub fn push(&mut self, at: u64, message: T) {
        self.waiting.push((at, message));
    }

    /// Sends the first due message, if the link has room. Calls `sent` with it.
    pub fn tick(&mut self, now: Cycle, sent: impl FnOnce(&T)) {
        // Messages are added in any order. The earliest due one goes first.
        let first = (0..self.waiting.len()).min_by_key(|n| self.waiting[*n].0);
        if let Some(n) = first.filter(|n| self.waiting[*n].0 <= now.0)
            && self.port.has_room(now)
        {
            let (_, message) = self.waiting.remove(n);
            sent(&message);
            self.port.send(now, message);
        }
    }

    /// True if no message waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Forgets all messages.
    pub fn clear(&mut self) {
        self.waiting.clear();
    }
}

/// Takes messages at a pace, and hashes the cycles in which it took them.
pub struct Sink<T> {
    port: InPort<T>,
    pace: Pace,
    digest: DefaultHasher,
}

impl<T> Sink<T> {
    /// A sink that has taken nothing.
    pub fn new(port: InPort<T>, pace: Pace) -> Self {
        Sink {
            port,
            pace,
            digest: DefaultHasher::new(),
        }
    }

    /// Takes a message, if one is visible and the pace allows it.
    pub fn take(&mut self, now: Cycle) -> Option<T> {
        // Nothing is taken in a cycle without a turn, so the link fills and pushes back.
        let message = self.pace.acts(now).then(|| self.port.recv(now)).flatten()?;
        now.hash(&mut self.digest);
        Some(message)
    }

    /// True if a message is visible. A world that waits for its pace must stay busy.
    pub fn is_ready(&self, now: Cycle) -> bool {
        self.port.is_ready(now)
    }

    /// A hash of the cycles so far.
    pub fn digest(&self) -> u64 {
        self.digest.finish()
    }

    /// Drops all messages, and forgets what was taken.
    pub fn clear(&mut self) {
        self.port.clear();
        self.digest = DefaultHasher::new();
    }
}

/// One hash of several.
pub fn combine(digests: impl IntoIterator<Item = u64>) -> u64 {
    let mut all = DefaultHasher::new();
    digests.into_iter().for_each(|digest| digest.hash(&mut all));
    all.finish()
}
