//! What every clocked block is: it ticks, it can be reset, looked at and counted.

use std::any::Any;

use crate::link::wires::Wires;
use crate::path::Path;
use crate::probe::Probe;
use crate::stats::Report;
use crate::time::Cycle;
use crate::warm::Warm;

/// What a component says of itself after a tick.
///
/// A component that is not busy is not ticked again before the cycle that it names, or before a message reaches it.
/// Ticks that come all the same must change nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activity {
    /// Has work in the next cycle; also when it left a visible message where it was, or waits for room.
    Busy,
    /// Nothing to do before this cycle unless a message arrives.
    Until(Cycle),
    /// Nothing to do unless a message arrives.
    Idle,
}

impl Activity {
    /// Busy if `busy`, else idle.
    pub fn busy_if(busy: bool) -> Self {
        if busy { Activity::Busy } else { Activity::Idle }
    }

    /// The more active of the two.
    pub fn or(self, other: Activity) -> Activity {
        match (self, other) {
            (Activity::Busy, _) | (_, Activity::Busy) => Activity::Busy,
            (Activity::Until(a), Activity::Until(b)) => Activity::Until(a.min(b)),
            (Activity::Until(at), _) | (_, Activity::Until(at)) => Activity::Until(at),
            _ => Activity::Idle,
        }
    }
}

/// A clocked block of the machine. It meets other blocks only through links; who built it may look for it by its type ([`Any`]).
pub trait Component: Warm + Any + Send {
    /// Its instance name.
    fn path(&self) -> &Path;

    /// One cycle: takes what has arrived, works, sends.
    fn tick(&mut self, now: Cycle) -> Activity;

    /// Back to the state after construction; statistics too. Links are emptied by their receivers.
    fn reset(&mut self);

    /// Whether nothing is in flight inside.
    fn is_quiescent(&self) -> bool;

    /// Names its signals and gives their values: always the same signals, in the same order.
    ///
    /// A value lasts until a tick changes it. A value that lasts one cycle of the global clock needs no tick of its own: a watched
    /// component is also ticked in the cycle after each tick.
    fn probe(&self, probe: &mut dyn Probe);

    /// Gives its counters and latencies.
    fn stats(&self, report: &mut dyn Report);

    /// Offers the ends of its links to an observer of links.
    fn ports(&mut self, _wires: &mut dyn Wires) {}

    /// Says in sentences what it waits for, for the report of a deadlock.
    fn waits(&self, _say: &mut dyn FnMut(String)) {}
}
