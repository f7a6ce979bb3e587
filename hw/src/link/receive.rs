//! The receiving end: looking at messages, taking them, and giving their places back.

use std::sync::atomic::Ordering;

use super::InPort;
use super::carrier::{FIRST, NOTE, NUMBER, Place, WAITED_FOR, next};
use super::monitor::Monitor;
use crate::time::Cycle;

impl<T> InPort<T> {
    /// The place of the oldest message.
    #[inline]
    pub(super) fn place(&self) -> &Place<T> {
        &self.places[self.place as usize]
    }

    /// The oldest message that has come.
    #[inline]
    fn pop(&mut self) -> Option<T> {
        self.carrier.pop(&self.places, self.place)
    }

    /// The oldest visible message, left where it is.
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

    /// The message that comes next, visible or not, where it is known. Only to ask for what it will need ([`crate::prefetch`]): how soon
    /// it is known is another for each run.
    #[inline]
    pub fn coming_message(&mut self) -> Option<&T> {
        if self.head.is_none() && !self.is_empty() {
            self.fetch_head();
        }
        self.head.as_ref()
    }

    /// The message that was looked at last and is still here.
    #[inline]
    pub fn seen(&self) -> Option<&T> {
        self.head.as_ref()
    }

    /// Not inlined: who peeks at many links finds most of them empty.
    #[inline(never)]
    fn fetch_head(&mut self) {
        self.head = self.pop();
    }

    /// Whether a message is visible.
    #[inline]
    pub fn is_ready(&self, now: Cycle) -> bool {
        self.place().is_ready(now)
    }

    /// Whether the sender is of another tile.
    pub fn is_remote(&self) -> bool {
        self.is_remote
    }

    /// Takes the oldest visible message; its place is free again after the credit latency.
    #[inline]
    pub fn recv(&mut self, now: Cycle) -> Option<T> {
        self.is_ready(now).then(|| self.take(now))
    }

    /// Takes the oldest message, which the caller has seen to be visible.
    ///
    /// # Panics
    /// If there is none.
    pub fn take(&mut self, now: Cycle) -> T {
        debug_assert!(
            self.is_ready(now),
            "{}, cycle {now}: taken before it is visible",
            self.config.path
        );
        let message = match self.head.take() {
            Some(message) => message,
            None => self.pop().expect("a taken place's message is here"),
        };
        if self.monitor.is_some() {
            return self.take_watched(now, message);
        }
        self.free_place(now);
        message
    }

    /// Shows the message, whose place it frees.
    #[cold]
    #[inline(never)]
    fn take_watched(&mut self, now: Cycle, message: T) -> T {
        if let Some(monitor) = &mut self.monitor {
            monitor.taken(now, &message);
        }
        self.free_place(now);
        message
    }

    /// The message that was in the place is taken.
    #[inline(always)]
    pub(super) fn free_place(&mut self, now: Cycle) {
        let places = &*self.places;
        let free = now + u64::from(self.credit_latency);
        places[self.place as usize].free(free);
        self.place = next(self.place, places);
        if self.is_remote {
            return;
        }
        let note = &places[NOTE].word;
        let word = note.load(Ordering::Relaxed);
        if word != 0 {
            if !places[self.place as usize].is_taken() {
                self.tile.note_empty(self.receiver, (word & NUMBER) as u32);
            }
            if word & WAITED_FOR != 0 {
                note.store(word & NUMBER, Ordering::Relaxed);
                self.tile.wheel.add(free, 1 << self.sender);
            }
        }
    }

    /// Whether nothing is under way or waiting, visible or not. Between tiles this depends on what the other side has run:
    /// use it for quiescence and reports, never for a decision inside a tick.
    pub fn is_empty(&self) -> bool {
        !self.place().is_taken()
    }

    /// Drops everything under way, as a reset does; all places are free at once.
    pub fn clear(&mut self) {
        while !self.is_empty() {
            drop(self.head.take().or_else(|| self.pop()));
            self.place().free(Cycle::ZERO);
            // Both ends keep counting places from where the other does.
            self.place = next(self.place, &self.places);
        }
        let places = &self.places[FIRST as usize..];
        places.iter().for_each(|place| place.free(Cycle::ZERO));
        let number = self.places[NOTE].word.load(Ordering::Relaxed) & NUMBER;
        self.places[NOTE].word.store(number, Ordering::Release);
        if number != 0 {
            self.tile.note_empty(self.receiver, number as u32);
        }
    }

    /// Shows every message taken to `monitor`.
    pub fn watch(&mut self, monitor: Box<dyn Monitor<T>>) {
        self.monitor = Some(Box::new(monitor));
    }
}
