//! DRAM scheduling policies: which waiting request's command a channel sends next. Preset key `hbm.scheduler`.
//!
//! | Preset word | Policy | Column command | Row command |
//! |---|---|---|---|
//! | `first-ready-first-come` | [`FirstReady`] | the oldest request whose row is open | the oldest whose bank has no open row in use |
//! | `first-come-first-served` | [`FirstCome`] | the oldest request | the oldest request |
//!
//! A policy gives sets of candidates. The channel sends the command of the oldest candidate whose bank is ready.

mod first_come;
mod first_ready;

use super::queue::Queue;
use crate::config::{DramScheduler, Hbm};
use first_come::FirstCome;
use first_ready::FirstReady;

/// Chooses the candidates for the next commands. Sets are masks: bit n for the n-th oldest request of the queue.
pub(super) trait Schedule {
    /// Looks at the queue at an edge, and chooses between reads and writes. The other calls are about the same edge.
    fn look(&mut self, queue: &Queue, edge: u64);

    /// True if writes go at this edge, false if reads do.
    fn is_writing(&self) -> bool;

    /// The requests that may get a column command. Their rows are open.
    fn columns(&self, queue: &Queue) -> u64;

    /// The requests that may get a row command: an activate, or the precharge of the row in its way. Their rows are not open.
    fn rows(&self, queue: &Queue) -> u64;

    /// First edge from which `look` chooses differently, though neither queue nor rows change; `u64::MAX` for never.
    fn changes_at(&self, queue: &Queue) -> u64;
}

/// The policy of one channel.
pub(super) enum Scheduler {
    FirstReady(FirstReady),
    FirstCome(FirstCome),
}

impl Scheduler {
    /// The policy that the preset names.
    pub(super) fn new(hbm: &Hbm) -> Self {
        match hbm.scheduler {
            DramScheduler::FirstReadyFirstCome => Scheduler::FirstReady(FirstReady::new(hbm)),
            DramScheduler::FirstComeFirstServed => Scheduler::FirstCome(FirstCome::default()),
        }
    }
}

impl Schedule for Scheduler {
    #[inline]
    fn look(&mut self, queue: &Queue, edge: u64) {
        match self {
            Scheduler::FirstReady(policy) => policy.look(queue, edge),
            Scheduler::FirstCome(policy) => policy.look(queue, edge),
        }
    }

    #[inline]
    fn is_writing(&self) -> bool {
        match self {
            Scheduler::FirstReady(policy) => policy.is_writing(),
            Scheduler::FirstCome(policy) => policy.is_writing(),
        }
    }

    #[inline]
    fn columns(&self, queue: &Queue) -> u64 {
        match self {
            Scheduler::FirstReady(policy) => policy.columns(queue),
            Scheduler::FirstCome(policy) => policy.columns(queue),
        }
    }

    #[inline]
    fn rows(&self, queue: &Queue) -> u64 {
        match self {
            Scheduler::FirstReady(policy) => policy.rows(queue),
            Scheduler::FirstCome(policy) => policy.rows(queue),
        }
    }

    #[inline]
    fn changes_at(&self, queue: &Queue) -> u64 {
        match self {
            Scheduler::FirstReady(policy) => policy.changes_at(queue),
            Scheduler::FirstCome(policy) => policy.changes_at(queue),
        }
    }
}

#[cfg(test)]
mod tests;
