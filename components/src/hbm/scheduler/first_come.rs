//! First come, first served: only the oldest request gets commands. Preset word `first-come-first-served`.
//!
//! No row is opened early for a younger request. Reads and writes keep their order of arrival.

use super::Schedule;
use crate::hbm::queue::Queue;

/// Mask of the oldest request.
const OLDEST: u64 = 1;

/// The policy.
#[derive(Default)]
pub struct FirstCome {
    writing: bool,
}

impl Schedule for FirstCome {
    fn update(&mut self, queue: &Queue, _edge: u64) {
        self.writing = queue.oldest().is_some_and(|oldest| oldest.write);
    }

    fn is_writing(&self) -> bool {
        self.writing
    }

    fn column_candidates(&self, queue: &Queue) -> u64 {
        // The oldest request is always ready: no older one of its line can hold it.
        queue.ready(self.writing) & queue.hits() & OLDEST
    }

    fn row_candidates(&self, queue: &Queue) -> u64 {
        queue.ready(self.writing) & !queue.hits() & OLDEST
    }

    fn next_change(&self, _queue: &Queue) -> u64 {
        u64::MAX
    }
}
