//! Monitors: observers of the messages at one end of a link. Without a monitor a message costs one branch.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use super::{InPort, LinkConfig, OutPort};
use crate::time::Cycle;

/// Observes every message at one end of a link.
pub trait Monitor<T>: Send {
    /// A message was sent in this cycle.
    fn sent(&mut self, _now: Cycle, _message: &T) {}
    /// A message was taken in this cycle.
    fn taken(&mut self, _now: Cycle, _message: &T) {}
    /// A reset has dropped the `n` messages in the link. The last of them would have been visible in cycle `until`.
    fn cleared(&mut self, _n: usize, _until: Cycle) {}
}

/// Two monitors of one end.
struct Joined<T>(Box<dyn Monitor<T>>, Box<dyn Monitor<T>>);

impl<T> Monitor<T> for Joined<T> {
    fn sent(&mut self, now: Cycle, message: &T) {
        self.0.sent(now, message);
        self.1.sent(now, message);
    }

    fn taken(&mut self, now: Cycle, message: &T) {
        self.0.taken(now, message);
        self.1.taken(now, message);
    }

    fn cleared(&mut self, n: usize, until: Cycle) {
        self.0.cleared(n, until);
        self.1.cleared(n, until);
    }
}

/// `new`, after the monitor that is there already.
pub(super) fn joined<T: 'static>(old: Option<Box<dyn Monitor<T>>>, new: Box<dyn Monitor<T>>) -> Box<dyn Monitor<T>> {
    match old {
        Some(old) => Box::new(Joined(old, new)),
        None => new,
    }
}

/// The messages that a [`MessageLog`] has recorded.
pub type Messages<T> = Arc<Mutex<Vec<(Cycle, T)>>>;

/// Records every message with its cycle, for tests.
pub struct MessageLog<T>(Messages<T>);

impl<T> MessageLog<T> {
    /// Creates a log and the list that it fills.
    pub fn new() -> (Self, Messages<T>) {
        let messages = Messages::default();
        (MessageLog(messages.clone()), messages)
    }
}

impl<T: Clone + Send> MessageLog<T> {
    fn record(&self, now: Cycle, message: &T) {
        self.0.lock().expect("no monitor panics").push((now, message.clone()));
    }
}

impl<T: Clone + Send> Monitor<T> for MessageLog<T> {
    fn sent(&mut self, now: Cycle, message: &T) {
        self.record(now, message);
    }
    fn taken(&mut self, now: Cycle, message: &T) {
        self.record(now, message);
    }
}

/// Messages sent and not yet taken, each with the cycle of its send.
type InFlight<T> = Arc<Mutex<VecDeque<(Cycle, T)>>>;

/// Checks that a link loses, duplicates, changes and reorders no message, keeps its latency, and never exceeds its depth.
///
/// A violation panics with the link's path, the cycle and the messages.
pub struct Checker<T> {
    link: LinkConfig,
    in_flight: InFlight<T>,
}

impl<T: Clone + PartialEq + Debug + Send + 'static> Checker<T> {
    /// Attaches a checker to both ends of an empty link.
    pub fn attach(link: &LinkConfig, output: &mut OutPort<T>, input: &mut InPort<T>) -> Checker<T> {
        let in_flight = InFlight::default();
        let end = || Checker {
            link: link.clone(),
            in_flight: in_flight.clone(),
        };
        // Both ends share the list: the sender appends, the receiver compares.
        output.watch(Box::new(end()));
        input.watch(Box::new(end()));
        end()
    }

    /// The number of messages sent and not yet taken.
    pub fn n_in_flight(&self) -> usize {
        self.in_flight.lock().expect("no monitor panics").len()
    }
}

impl<T: Clone + PartialEq + Debug + Send> Monitor<T> for Checker<T> {
    fn sent(&mut self, now: Cycle, message: &T) {
        let LinkConfig { path, depth, .. } = &self.link;
        let mut in_flight = self.in_flight.lock().expect("no monitor panics");
        assert!(
            in_flight.len() < *depth as usize,
            "cycle {now}: {path}: {message:?} sent, with {in_flight:?} in flight at depth {depth}"
        );
        in_flight.push_back((now, message.clone()));
    }

    fn taken(&mut self, now: Cycle, message: &T) {
        let LinkConfig { path, latency, .. } = &self.link;
        // `send_after` and stalls may make a message later than the latency, never earlier.
        let oldest = self.in_flight.lock().expect("no monitor panics").pop_front();
        assert!(
            oldest
                .as_ref()
                .is_some_and(|(sent_at, sent)| sent == message && now.since(*sent_at) >= u64::from(*latency)),
            "cycle {now}: {path}: {message:?} taken, but the oldest in flight is {oldest:?} and the latency is {latency}"
        );
    }

    fn cleared(&mut self, _: usize, _: Cycle) {
        self.in_flight.lock().expect("no monitor panics").clear();
    }
}
