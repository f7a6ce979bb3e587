//! Looks at the messages of a link, on either end. With none attached a link pays one branch.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use super::{InPort, LinkConfig, OutPort};
use crate::time::Cycle;

/// Sees every message of the end that it is attached to.
pub trait Monitor<T>: Send {
    /// A message was sent in this cycle.
    fn sent(&mut self, _now: Cycle, _message: &T) {}
    /// A message was taken in this cycle.
    fn taken(&mut self, _now: Cycle, _message: &T) {}
}

/// What a [`Tap`] has written down.
pub type Record<T> = Arc<Mutex<Vec<(Cycle, T)>>>;

/// Writes down every message with its cycle, for tests.
pub struct Tap<T>(Record<T>);

impl<T> Tap<T> {
    /// A tap and the record that it fills.
    pub fn new() -> (Self, Record<T>) {
        let record = Record::default();
        (Tap(record.clone()), record)
    }
}

impl<T: Clone + Send> Tap<T> {
    fn note(&self, now: Cycle, message: &T) {
        self.0.lock().expect("no monitor panics").push((now, message.clone()));
    }
}

impl<T: Clone + Send> Monitor<T> for Tap<T> {
    fn sent(&mut self, now: Cycle, message: &T) {
        self.note(now, message);
    }
    fn taken(&mut self, now: Cycle, message: &T) {
        self.note(now, message);
    }
}

/// Messages sent and not yet taken, each with the cycle of its sending.
type InFlight<T> = Arc<Mutex<VecDeque<(Cycle, T)>>>;

/// Checks that a link loses, doubles, changes, reorders and hurries nothing, and never holds more than its depth.
///
/// A breach panics with the link's path, the cycle and the messages.
pub struct Checker<T> {
    link: LinkConfig,
    in_flight: InFlight<T>,
}

impl<T: Clone + PartialEq + Debug + Send + 'static> Checker<T> {
    /// Checks the link between these two ends from now on; it must be empty. It takes the place of other monitors.
    pub fn attach(link: &LinkConfig, output: &mut OutPort<T>, input: &mut InPort<T>) -> Checker<T> {
        let in_flight = InFlight::default();
        let end = || Checker {
            link: link.clone(),
            in_flight: in_flight.clone(),
        };
        output.watch(Box::new(end()));
        input.watch(Box::new(end()));
        end()
    }

    /// Messages sent and not yet taken: 0 when the link has come to rest.
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
            "cycle {now}: {path}: {message:?} sent, with {in_flight:?} under way at depth {depth}"
        );
        in_flight.push_back((now, message.clone()));
    }

    fn taken(&mut self, now: Cycle, message: &T) {
        let LinkConfig { path, latency, .. } = &self.link;
        let oldest = self.in_flight.lock().expect("no monitor panics").pop_front();
        assert!(
            oldest
                .as_ref()
                .is_some_and(|(sent_at, sent)| sent == message && now.since(*sent_at) >= u64::from(*latency)),
            "cycle {now}: {path}: {message:?} taken, but the oldest under way is {oldest:?} and the latency {latency}"
        );
    }
}
