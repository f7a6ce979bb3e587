//! DRAM scheduling policies: choose the requests whose commands a channel sends next. Preset key `hbm.scheduler`.
//!
//! | Preset word | Policy | Column command | Row command |
//! |---|---|---|---|
//! | `first-ready-first-come` | [`FirstReady`] | the oldest request whose row is open | the oldest whose bank has no needed open row |
//! | `first-come-first-served` | [`FirstCome`] | the oldest request | the oldest request |
//!
//! A policy returns sets of candidates. The channel sends the command of the oldest candidate whose bank is ready.

mod first_come;
mod first_ready;

use super::queue::Queue;
use crate::config::{DramScheduler, Hbm};
use first_come::FirstCome;
use first_ready::FirstReady;

/// Chooses the candidates for the next commands. Sets are masks: bit n for the n-th oldest request of the queue.
pub(super) trait Schedule {
    /// Chooses between reads and writes for an edge. The other methods refer to the same edge.
    fn update(&mut self, queue: &Queue, edge: u64);

    /// True if writes are served at this edge, false if reads are.
    fn is_writing(&self) -> bool;

    /// The requests that may get a column command. Their rows are open.
    fn column_candidates(&self, queue: &Queue) -> u64;

    /// The requests that may get a row command: an activate, or the precharge of another row. Their rows are not open.
    fn row_candidates(&self, queue: &Queue) -> u64;

    /// First edge at which `update` chooses differently without a change of queue or rows. `u64::MAX` for never.
    fn next_change(&self, queue: &Queue) -> u64;
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

/// Calls a method of the policy. Static dispatch: the channel calls it at most edges.
macro_rules! policy {
    ($scheduler:expr, $method:ident($($arg:expr),*)) => {
        match $scheduler {
            Scheduler::FirstReady(policy) => policy.$method($($arg),*),
            Scheduler::FirstCome(policy) => policy.$method($($arg),*),
        }
    };
}

impl Schedule for Scheduler {
    #[inline]
    fn update(&mut self, queue: &Queue, edge: u64) {
        policy!(self, update(queue, edge))
    }

    #[inline]
    fn is_writing(&self) -> bool {
        policy!(self, is_writing())
    }

    #[inline]
    fn column_candidates(&self, queue: &Queue) -> u64 {
        policy!(self, column_candidates(queue))
    }

    #[inline]
    fn row_candidates(&self, queue: &Queue) -> u64 {
        policy!(self, row_candidates(queue))
    }

    #[inline]
    fn next_change(&self, queue: &Queue) -> u64 {
        policy!(self, next_change(queue))
    }
}

#[cfg(test)]
mod tests;
