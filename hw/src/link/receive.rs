//! The receiving end: peeks at messages, takes them, and frees their slots.

use super::InPort;
use super::fault::{CheckedReceiver, LinkCheck};
use super::monitor::{Monitor, joined};
use super::payload::Payload;
use super::stamp::{FIRST_SLOT, HEADER, LINK_NUMBER, Stamp, WAITED_FOR, next_slot};
use crate::time::Cycle;
use crate::warm::{Warm, prefetch};

impl<T> InPort<T> {
    /// The stamp of the oldest message's slot.
    #[inline]
    pub(super) fn stamp(&self) -> &Stamp {
        &self.stamps[self.slot as usize]
    }

    /// The oldest visible message. It stays in the link.
    #[inline]
    pub fn peek(&mut self, now: Cycle) -> Option<&T> {
        if !self.is_ready(now) {
            return None;
        }
        if self.head.is_none() {
            self.fetch_head();
        }
        self.head.as_ref()
    }

    /// The message of the last `peek`, if it is still in the link.
    #[inline]
    pub fn peeked(&self) -> Option<&T> {
        self.head.as_ref()
    }

    // Not inlined: a component that peeks at many links finds most of them empty.
    #[inline(never)]
    fn fetch_head(&mut self) {
        // The stamp says that the slot is full, so the channel has its message.
        self.head = self.channel.try_recv().ok();
    }

    /// True if a message is visible.
    #[inline]
    pub fn is_ready(&self, now: Cycle) -> bool {
        self.stamp().is_ready(now)
    }

    /// Takes the oldest visible message. Its slot is free again after the credit latency.
    #[inline]
    pub fn recv(&mut self, now: Cycle) -> Option<T> {
        self.is_ready(now).then(|| self.take(now))
    }

    /// Takes the oldest message. The caller has checked that it is visible.
    ///
    /// # Panics
    /// If the link is empty.
    pub fn take(&mut self, now: Cycle) -> T {
        debug_assert!(
            self.is_ready(now),
            "{}, cycle {now}: taken before it is visible",
            self.config.path
        );
        let message = match self.head.take() {
            Some(message) => message,
            None => self
                .channel
                .try_recv()
                .expect("a full slot's message is in the channel"),
        };
        if self.monitor.is_some() {
            return self.take_watched(now, message);
        }
        self.free_slot(now);
        message
    }

    /// Shows the message to the monitor and frees its slot.
    #[cold]
    #[inline(never)]
    fn take_watched(&mut self, now: Cycle, message: T) -> T {
        if let Some(monitor) = &mut self.monitor {
            monitor.taken(now, &message);
        }
        self.free_slot(now);
        message
    }

    /// Frees the slot of the oldest message.
    #[inline(always)]
    fn free_slot(&mut self, now: Cycle) {
        let free = now + u64::from(self.credit_latency);
        self.stamp().free(free);
        self.slot = next_slot(self.slot, &self.stamps);
        // A sender in another tile checks again in its next window (`await_room`).
        if self.is_remote {
            return;
        }
        let header = &self.stamps[HEADER];
        let word = header.header();
        // Zero for most links: no number, and no sender that waits.
        if word != 0 {
            // Slots are used in turn: if the next one is empty, the link is.
            if !self.stamp().is_full() {
                self.tile.note_empty(self.receiver, (word & LINK_NUMBER) as u32);
            }
            if word & WAITED_FOR != 0 {
                header.set_header(word & LINK_NUMBER);
                self.tile.wheel.add(free, 1 << self.sender);
            }
        }
    }

    /// True if no message is in the link, visible or not.
    ///
    /// Between tiles the result depends on how far the other tile has run. Use it for quiescence and reports, never inside a tick.
    pub fn is_empty(&self) -> bool {
        !self.stamp().is_full()
    }

    /// Drops all messages, as a reset does. All slots are free at once.
    pub fn clear(&mut self) {
        let (mut n, mut until) = (0, Cycle::ZERO);
        while !self.is_empty() {
            (n, until) = (n + 1, self.stamp().visible_from());
            drop(self.head.take().or_else(|| self.channel.try_recv().ok()));
            self.stamp().free(Cycle::ZERO);
            // Both ends count slots alike, so the receiver goes on from the sender's next slot.
            self.slot = next_slot(self.slot, &self.stamps);
        }
        let slots = &self.stamps[FIRST_SLOT as usize..];
        slots.iter().for_each(|stamp| stamp.free(Cycle::ZERO));
        // Drops the request of a waiting sender: a reset wakes every component.
        let number = self.stamps[HEADER].header() & LINK_NUMBER;
        self.stamps[HEADER].set_header(number);
        if number != 0 {
            self.tile.note_empty(self.receiver, number as u32);
        }
        if let Some(monitor) = &mut self.monitor {
            monitor.cleared(n, until);
        }
    }

    /// Attaches a monitor, which sees every message taken from now on. Other monitors stay.
    pub fn watch(&mut self, monitor: Box<dyn Monitor<T>>)
    where
        T: 'static,
    {
        let old = self.monitor.take().map(|monitor| *monitor);
        self.monitor = Some(Box::new(joined(old, monitor)));
    }

    /// Attaches the check of a [fault](super::fault), which sees every message taken from now on.
    pub fn check(&mut self, check: LinkCheck)
    where
        T: Payload,
    {
        self.watch(Box::new(CheckedReceiver(check)));
    }
}

impl<T> Warm for InPort<T> {
    #[inline]
    fn warm(&self) {
        prefetch(self.stamp());
        prefetch(&self.stamps[HEADER]);
    }
}
