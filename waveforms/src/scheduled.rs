//! Signals with changes that are known before the run, such as the stages of one memory request that an earlier run has found.

use std::ops::Range;

use warpwave_hw::time::Cycle;

use crate::recorder::Change;
use crate::signal::Signal;

/// A signal with all its changes. It has no value before the first one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduledSignal {
    /// The signal.
    pub signal: Signal,
    /// The cycle and the new value of each change, in order of time.
    pub changes: Vec<(Cycle, Option<u64>)>,
}

/// The changes of all scheduled signals.
#[derive(Default)]
pub struct Schedule {
    /// By cycle and signal.
    changes: Vec<(Cycle, Change)>,
    /// Index of the next change.
    next: usize,
}

impl Schedule {
    /// Appends the signals to `signals`, and puts their changes in order.
    pub fn new(scheduled: Vec<ScheduledSignal>, signals: &mut Vec<Signal>) -> Schedule {
        let mut changes = Vec::new();
        for one in scheduled {
            let index = signals.len() as u32;
            changes.extend(one.changes.iter().map(|&(at, value)| (at, (index, value))));
            signals.push(one.signal);
        }
        // By cycle, then by signal, as a sink requires.
        changes.sort_by_key(|&(at, (signal, _))| (at, signal));
        Schedule { changes, next: 0 }
    }

    /// From the first change to the last one. `None` without a change.
    pub fn range(&self) -> Option<Range<Cycle>> {
        Some(self.changes.first()?.0..self.changes.last()?.0)
    }

    /// Stores the values that hold at the start of the window, before its first cycle.
    pub fn begin(&mut self, start: Cycle, values: &mut [Option<u64>]) {
        while self.next() < start {
            let (_, (signal, value)) = self.changes[self.next];
            values[signal as usize] = value;
            self.next += 1;
        }
    }

    /// The next cycle with a change.
    pub fn next(&self) -> Cycle {
        self.changes.get(self.next).map_or(Cycle::NEVER, |&(at, _)| at)
    }

    /// Appends the changes of this cycle to `changes`.
    pub fn take(&mut self, now: Cycle, changes: &mut Vec<Change>) {
        while self.next() <= now {
            changes.push(self.changes[self.next].1);
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::Kind;

    #[test]
    fn changes_before_the_window_set_the_initial_value_and_later_ones_come_in_their_cycles() {
        let one = |name: &str, changes: &[(u64, Option<u64>)]| ScheduledSignal {
            signal: Signal::new(name, Kind::Vector(8)),
            changes: changes.iter().map(|&(at, value)| (Cycle(at), value)).collect(),
        };
        let mut signals = vec![Signal::new("gpu.other", Kind::Bit)];
        let scheduled = vec![
            one("gpu.a", &[(5, Some(1)), (9, Some(2)), (20, None)]),
            one("gpu.b", &[(9, Some(3)), (12, None)]),
        ];
        let mut schedule = Schedule::new(scheduled, &mut signals);
        assert_eq!(schedule.range(), Some(Cycle(5)..Cycle(20)));
        let mut values = vec![None; signals.len()];
        schedule.begin(Cycle(9), &mut values);
        assert_eq!(values, [None, Some(1), None]);
        let mut steps = Vec::new();
        while schedule.next() != Cycle::NEVER {
            let (now, mut changes) = (schedule.next(), Vec::new());
            schedule.take(now, &mut changes);
            steps.push((now.0, changes));
        }
        assert_eq!(
            steps,
            [
                (9, vec![(1, Some(2)), (2, Some(3))]),
                (12, vec![(2, None)]),
                (20, vec![(1, None)])
            ]
        );
    }
}
