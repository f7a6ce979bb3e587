//! A window of a tile: the cycles that it runs by itself, and what it exchanges with others before and after.

use std::sync::atomic::Ordering;

use super::Tile;
use crate::bits::ones;
use crate::time::Cycle;

impl Tile {
    /// Runs the cycles from `from` until before `end`.
    pub fn run(&mut self, from: Cycle, end: Cycle) {
        let (due, tile) = self.due_entry();
        // Raised before the mailbox is emptied: a message that comes later lowers the entry again.
        due.raise(*tile);
        self.shared.take_mail();
        self.wake_for_quantum(from);
        self.begin_watch(from, end);
        self.warm_likely(from, end);
        self.run_cycles(from, end);
        self.hand_on(end);
        self.note_due(end);
    }

    /// Begins a trace window that a jump to `now` has passed.
    pub(crate) fn begin_passed(&mut self, now: Cycle) {
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
            self.cycle(now);
            now += 1;
        }
    }

    /// Warms the components that are due in the window, and those that ran in the last one.
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

    /// Begins the trace window if these cycles reach into it.
    fn begin_watch(&mut self, from: Cycle, end: Cycle) {
        if self.next_trace_window() < end
            && let Some(watch) = &mut self.watch
        {
            self.watched = watch.begin(from, &self.components);
        }
    }

    /// Flushes the sampler, and drops it when the trace window is over.
    pub(super) fn hand_on(&mut self, end: Cycle) {
        if let Some(watch) = &mut self.watch
            && watch.hand_on(end)
        {
            self.watch = None;
            self.watched = 0;
        }
    }
}
