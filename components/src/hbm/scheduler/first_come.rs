//! First come, first served: the oldest request alone, row command and bursts, before the next. Preset word `first-come-first-served`.
//!
//! Rows of other banks are not opened ahead, and reads and writes keep their order of arrival.

use super::Schedule;
use crate::hbm::queue::Queue;

/// The oldest request, at the lowest bit.
const OLDEST: u64 = 1;

/// The policy.
#[derive(Default)]
pub struct FirstCome {
    writing: bool,
}

impl Schedule for FirstCome {
    fn look(&mut self, queue: &Queue, _edge: u64) {
        self.writing = queue.oldest().is_some_and(|oldest| oldest.write);
    }

    fn is_writing(&self) -> bool {
        self.writing
    }

    fn columns(&self, queue: &Queue) -> u64 {
        queue.ready(self.writing) & queue.hits() & OLDEST
    }

    fn rows(&self, queue: &Queue) -> u64 {
        queue.ready(self.writing) & !queue.hits() & OLDEST
    }

    fn changes_at(&self, _queue: &Queue) -> u64 {
        u64::MAX
    }
}
