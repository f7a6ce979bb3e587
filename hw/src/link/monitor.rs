//! Looks at the messages of a link, on either end. With none attached a link pays one branch.

use std::sync::{Arc, Mutex};

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
