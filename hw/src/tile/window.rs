//! Runs one window of a tile: the exchange with other tiles, then the cycles of the window.

use std::sync::atomic::Ordering;

use super::Tile;
use crate::bits::ones;
use crate::time::Cycle;

impl Tile {
    /// Runs the cycles from `from` up to `end`, which is not included.
    pub fn run(&mut self, from: Cycle, end: Cycle) {
        let (due, tile) = self.due_entry();
        // The entry is raised before the mailbox is drained, so a later message lowers it again.
        due.raise(*tile);
        self.shared.drain_mail();
        self.wake_window_waiters(from);
        self.begin_trace_window(from, end);
        // After the mailbox, so the wake-ups of other tiles are on the wheel.
        self.warm_likely(from, end);
        self.run_cycles(from, end);
        self.flush_sampler(end);
        // Last, because the ticks have added wake-ups.
        self.note_due(end);
    }

    /// Begins a trace window that starts before cycle `now`.
    pub(crate) fn begin_passed_trace_window(&mut self, now: Cycle) {
        if self.next_trace_window() < now {
            // A window of no cycles: it begins the trace window and ticks nothing.
            self.run(now, now);
        }
    }

    fn run_cycles(&mut self, from: Cycle, end: Cycle) {
        let mut now = from;
        loop {
            now = if self.skips_idle {
                // Without the mailbox: a message that another tile sends in this window is visible after it.
                self.next_local(now).max(now)
            } else {
                now
            };
            if now >= end {
                return;
            }
            self.run_cycle(now);
            now += 1;
        }
    }

    /// Prefetches the components that are due in the window or were due in the last one.
    fn warm_likely(&mut self, from: Cycle, end: Cycle) {
        let likely = self.shared.wheel.between(from, end) | std::mem::take(&mut self.woken);
        for index in ones(likely) {
            self.components[index].warm();
        }
    }

    /// Wakes the components that wait for this window to begin.
    fn wake_window_waiters(&self, from: Cycle) {
        let waiting = self.shared.window_waiters.load(Ordering::Relaxed);
        if waiting != 0 {
            self.shared.window_waiters.store(0, Ordering::Relaxed);
            self.shared.wheel.add(from, waiting);
        }
    }

    /// Begins the trace window if it begins before cycle `end`.
    fn begin_trace_window(&mut self, from: Cycle, end: Cycle) {
        if self.next_trace_window() < end
            && let Some(trace) = &mut self.trace
        {
            // From the begin of this clock window, so samples may be earlier than the trace window.
            self.watched = trace.begin(from, &self.components);
        }
    }

    /// Flushes the sampler, and drops it when the trace window is over.
    pub(super) fn flush_sampler(&mut self, end: Cycle) {
        if let Some(trace) = &mut self.trace
            && trace.flush(end)
        {
            self.trace = None;
            self.watched = 0;
        }
    }
}
