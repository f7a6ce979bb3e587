//! Runs one window of a tile: the exchange with other tiles, then the cycles of the window.

use std::sync::atomic::Ordering;

use super::Tile;
use crate::bits::ones;
use crate::time::Cycle;

impl Tile {
    /// Runs the cycles from `from` up to `end`, which is not included.
    pub fn run(&mut self, from: Cycle, end: Cycle) {
        let (due, tile) = self.due_entry();
        // Raised before the mailbox is emptied. A later message lowers the entry again.
        due.raise(*tile);
        self.shared.take_mail();
        self.wake_for_quantum(from);
        self.begin_trace_window(from, end);
        self.warm_likely(from, end);
        self.run_cycles(from, end);
        self.flush_sampler(end);
        self.note_due(end);
    }

    /// Begins a trace window that a jump to cycle `now` has passed.
    pub(crate) fn begin_passed_trace_window(&mut self, now: Cycle) {
        if self.next_trace_window() < now {
            self.run(now, now);
        }
    }

    fn run_cycles(&mut self, from: Cycle, end: Cycle) {
        let mut now = from;
        loop {
            now = if self.skip { self.next_known(now).max(now) } else { now };
            if now >= end {
                return;
            }
            self.run_cycle(now);
            now += 1;
        }
    }

    /// Warms the components that are due in the window or ran in the last one.
    fn warm_likely(&mut self, from: Cycle, end: Cycle) {
        let likely = self.shared.wheel.between(from, end) | std::mem::take(&mut self.ran);
        for index in ones(likely) {
            self.components[index].warm();
        }
    }

    /// Wakes the components that wait for the next quantum.
    fn wake_for_quantum(&self, from: Cycle) {
        let waiting = self.shared.next_quantum.load(Ordering::Relaxed);
        if waiting != 0 {
            self.shared.next_quantum.store(0, Ordering::Relaxed);
            self.shared.wheel.add(from, waiting);
        }
    }

    /// Begins the trace window if it begins before cycle `end`.
    fn begin_trace_window(&mut self, from: Cycle, end: Cycle) {
        if self.next_trace_window() < end
            && let Some(watch) = &mut self.watch
        {
            self.watched = watch.begin(from, &self.components);
        }
    }

    /// Flushes the sampler, and drops it when the trace window is over.
    pub(super) fn flush_sampler(&mut self, end: Cycle) {
        if let Some(watch) = &mut self.watch
            && watch.flush(end)
        {
            self.watch = None;
            self.watched = 0;
        }
    }
}
