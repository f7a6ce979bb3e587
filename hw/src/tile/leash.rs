//! Leashes: how far a tile may run ahead of a hub that only answers.
//!
//! A hub with a short way to the tiles would keep all windows short. But while it promises to send to each tile only in reply to what
//! that tile sends to it ([`Promise`]), a tile is held by its own messages alone: each may be answered as soon as it has come and the
//! reply has gone back ([`crate::link::reply`]). So a tile of which the hub hears nothing runs as far as the other hubs let it.
//!
//! No result depends on it: a leash only ends a window early, and a promise only makes the next one longer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::{Shared, Slot};
use crate::time::Cycle;

/// The leash of one tile; loose where it is in no dialogue.
pub(crate) struct Leash {
    /// Cycles from sending a reply to being visible here, 0 where none come.
    latency: AtomicU32,
    /// The first cycle that a reply could come in, [`Cycle::NEVER`] where all that was sent has been dealt with.
    end: AtomicU64,
    /// The first cycle in which a reply to the message sent last could come.
    last: AtomicU64,
    /// Up to here the tile has run.
    reached: AtomicU64,
}

impl Leash {
    /// Of a tile that has sent nothing.
    pub(super) const fn new() -> Self {
        Leash {
            latency: AtomicU32::new(0),
            end: AtomicU64::new(u64::MAX),
            last: AtomicU64::new(0),
            reached: AtomicU64::new(0),
        }
    }

    /// Replies come from now on, so many cycles after they were sent; whether there was no leash before.
    pub(crate) fn tie(&self, latency: u32) -> bool {
        self.latency.swap(latency, Ordering::Relaxed) == 0
    }

    /// A message that may be answered was sent, visible to the hub in this cycle.
    pub(crate) fn asked(&self, visible: Cycle) {
        let reply = visible.0 + u64::from(self.latency.load(Ordering::Relaxed));
        self.end.fetch_min(reply, Ordering::Relaxed);
        self.last.store(reply, Ordering::Relaxed);
    }

    /// A window begins, and the hub has run up to cycle `hub`: it has dealt with what came before, and said what it had to say.
    pub(super) fn begin(&self, hub: Cycle) {
        let said = hub.0.saturating_add(self.latency.load(Ordering::Relaxed).into());
        let is_over = self.last.load(Ordering::Relaxed) < said;
        let end = if is_over { u64::MAX } else { self.end().0.max(said) };
        self.end.store(end, Ordering::Relaxed);
    }

    /// The first cycle that the tile may not run.
    #[inline]
    pub(super) fn end(&self) -> Cycle {
        Cycle(self.end.load(Ordering::Relaxed))
    }

    /// The cycle from `now` on in which a reply may come, so that a tile that sleeps is asked.
    #[inline]
    pub(super) fn next_reply(&self, now: Cycle) -> Cycle {
        if self.last.load(Ordering::Relaxed) >= now.0 {
            self.end().max(now)
        } else {
            Cycle::NEVER
        }
    }

    /// The tile has run up to a cycle.
    pub(super) fn set_reached(&self, at: Cycle) {
        self.reached.store(at.0, Ordering::Relaxed);
    }

    /// Up to where the tile has run.
    pub(crate) fn reached(&self) -> Cycle {
        Cycle(self.reached.load(Ordering::Relaxed))
    }

    /// Nothing was sent.
    pub(super) fn loosen(&self) {
        self.end.store(u64::MAX, Ordering::Relaxed);
        self.last.store(0, Ordering::Relaxed);
        self.reached.store(0, Ordering::Relaxed);
    }
}

/// What a tile says of its links to others.
pub(super) struct Manners {
    /// Links to or from other tiles, and those of them that are one side of a dialogue in which it answers.
    links: AtomicU32,
    answering: AtomicU32,
    /// Latencies of the longest.
    longest: AtomicU32,
    promises: AtomicBool,
}

impl Manners {
    /// Of a tile without links.
    pub(super) const fn new() -> Self {
        Manners {
            links: AtomicU32::new(0),
            answering: AtomicU32::new(0),
            longest: AtomicU32::new(0),
            promises: AtomicBool::new(false),
        }
    }

    /// One link more.
    pub(super) fn note_link(&self, latency: u32) {
        self.links.fetch_add(1, Ordering::Relaxed);
        self.longest.fetch_max(latency, Ordering::Relaxed);
    }
}

impl Shared {
    /// Two of the tile's links are one side of a dialogue in which it answers.
    pub(crate) fn note_answering(&self) {
        self.manners.answering.fetch_add(2, Ordering::Relaxed);
    }

    /// What the tile promises, if all its links to other tiles are of dialogues in which it answers, and equally long: it is never
    /// further behind those that run ahead of it than a wheel reaches.
    pub(super) fn promise(self: &Arc<Self>) -> Option<Promise> {
        let Manners {
            links,
            answering,
            longest,
            ..
        } = &self.manners;
        let [links, answering, longest] = [links, answering, longest].map(|n| n.load(Ordering::Relaxed));
        let answers_all = links == answering && longest == self.remote_latency.load(Ordering::Relaxed);
        answers_all.then(|| Promise(Arc::clone(self)))
    }
}

/// A hub's promise to send to each tile only in reply to what that tile sends to it.
#[derive(Clone)]
pub struct Promise(Arc<Shared>);

impl Promise {
    /// Of the tile in which the slot is.
    pub fn of(slot: &Slot) -> Self {
        Promise(Arc::clone(&slot.shared))
    }

    /// What it promises from now on, until it says otherwise. It may say so in any tick; messages that are already visible to it it has
    /// dealt with.
    pub fn set(&self, holds: bool) {
        self.0.manners.promises.store(holds, Ordering::Relaxed);
    }

    /// Whether it holds.
    pub fn holds(&self) -> bool {
        self.0.manners.promises.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leash() -> Leash {
        let leash = Leash::new();
        assert!(leash.tie(20));
        leash
    }

    #[test]
    fn tile_that_asks_may_run_until_the_answer_to_its_first_question_could_come() {
        let leash = leash();
        leash.begin(Cycle(20));
        assert_eq!(leash.end(), Cycle::NEVER);
        leash.asked(Cycle(31));
        leash.asked(Cycle(40));
        assert_eq!(leash.end(), Cycle(51));
    }

    #[test]
    fn question_that_the_hub_has_dealt_with_holds_nobody() {
        let leash = leash();
        leash.asked(Cycle(31));
        leash.begin(Cycle(31));
        assert_eq!(
            leash.end(),
            Cycle(51),
            "visible in the first cycle that the hub has not run"
        );
        leash.begin(Cycle(32));
        assert_eq!(leash.end(), Cycle::NEVER);
    }

    #[test]
    fn second_question_is_not_forgotten_for_the_first() {
        let leash = leash();
        leash.asked(Cycle(31));
        leash.asked(Cycle(40));
        leash.begin(Cycle(35));
        assert_eq!(
            leash.end(),
            Cycle(55),
            "the second may be visible from 35 on, for all it knows"
        );
        leash.begin(Cycle(41));
        assert_eq!(leash.end(), Cycle::NEVER);
    }

    #[test]
    fn tile_that_sleeps_is_asked_when_a_reply_may_come() {
        let leash = leash();
        assert_eq!(leash.next_reply(Cycle(0)), Cycle::NEVER);
        leash.asked(Cycle(31));
        leash.asked(Cycle(40));
        assert_eq!(
            [0, 55, 60, 61].map(|now| leash.next_reply(Cycle(now))),
            [51, 55, 60, u64::MAX].map(Cycle)
        );
    }
}
