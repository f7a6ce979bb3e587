//! The interface of a clocked block: tick, reset, signals and statistics.

use std::any::Any;

use crate::invariant::Invariants;
use crate::link::wires::LinkObserver;
use crate::path::Path;
use crate::probe::Probe;
use crate::stats::Report;
use crate::time::Cycle;
use crate::warm::Warm;

/// When a component needs its next tick.
///
/// The next tick comes in the named cycle, or when a message becomes visible. An earlier tick is allowed, and must change nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activity {
    /// In the next cycle. Also if a visible message stays in its link: a message wakes its receiver only once.
    /// If a link is full, [`OutPort::await_room`](crate::link::OutPort::await_room) gives the activity.
    Busy,
    /// In the given cycle, or when a message becomes visible, if that is earlier. A past cycle means the next one.
    Until(Cycle),
    /// When a message becomes visible.
    Idle,
}

impl Activity {
    /// Busy if `busy`, else idle.
    pub fn busy_if(busy: bool) -> Self {
        if busy { Activity::Busy } else { Activity::Idle }
    }

    /// The earlier of two next ticks.
    pub fn or(self, other: Activity) -> Activity {
        match (self, other) {
            (Activity::Busy, _) | (_, Activity::Busy) => Activity::Busy,
            (Activity::Until(a), Activity::Until(b)) => Activity::Until(a.min(b)),
            (Activity::Until(at), _) | (_, Activity::Until(at)) => Activity::Until(at),
            _ => Activity::Idle,
        }
    }
}

/// A clocked block of the machine. Components interact only through links. The builder of a machine can find one by its type ([`Any`]).
pub trait Component: Warm + Any + Send {
    /// The instance name.
    fn path(&self) -> &Path;

    /// Runs one cycle: takes messages, computes, sends messages.
    fn tick(&mut self, now: Cycle) -> Activity;

    /// Returns to the state after construction, with empty statistics. The receiver of a link empties it.
    fn reset(&mut self);

    /// True if no work is in flight inside.
    fn is_quiescent(&self) -> bool;

    /// Shows all signals, with name and value: always the same signals, in the same order.
    ///
    /// A value lasts until a tick changes it. A pulse of one cycle needs no extra wake-up to end: a watched component is also ticked in
    /// the cycle after each tick.
    fn probe(&self, probe: &mut dyn Probe);

    /// Reports all counters and latencies.
    fn stats(&self, report: &mut dyn Report);

    /// Offers the ends of its links to an observer.
    fn ports(&mut self, _observer: &mut dyn LinkObserver) {}

    /// Creates the state that some of its invariants need, such as a second account of its messages. A run that checks invariants calls it
    /// once, before the first cycle.
    fn arm_invariants(&mut self) {}

    /// Checks the invariants of its state, between two ticks.
    fn invariants(&self, _check: &mut Invariants) {}

    /// Describes what it waits for, in sentences for the report of a deadlock.
    fn waits(&self, _say: &mut dyn FnMut(String)) {}
}

/// Panics if an invariant of a component is broken before cycle `now`.
pub fn assert_invariants_of(component: &dyn Component, now: Cycle) {
    Invariants::assert_unbroken(now, || component.path().clone(), |check| component.invariants(check));
}
