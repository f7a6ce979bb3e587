//! Features of a run: the counters of components by order of magnitude, and the kinds of errors.
//!
//! A feature is a hash. The runner keeps an input that reaches a feature for the first time, as libFuzzer does with code. Features need no
//! instrumented build.

use std::cell::RefCell;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use warpwave::oracle::Reached;
use warpwave_hw::stats::{Latency, Report};

thread_local! {
    static REACHED: RefCell<HashSet<u64>> = RefCell::default();
}

/// Notes a feature of this run.
pub fn note(feature: impl Hash) {
    let mut hasher = DefaultHasher::new();
    feature.hash(&mut hasher);
    REACHED.with_borrow_mut(|reached| _ = reached.insert(hasher.finish()));
}

/// Notes a count by its name and its order of magnitude.
pub fn note_count(name: &str, value: u64) {
    // 0 is a magnitude of its own: it has no logarithm.
    note((name, value.checked_ilog2()));
}

/// What an oracle tells of its run.
pub trait Reach {
    /// Notes it as features.
    fn note(&self);
}

/// The oracle of a component notes features itself.
impl Reach for () {
    fn note(&self) {}
}

impl Reach for Reached {
    fn note(&self) {
        for (name, count) in &self.0 {
            note_count(name, *count);
        }
    }
}

/// Notes what an oracle tells of its run. Bytes that decode to no input reach nothing.
pub fn note_reached(reached: Option<impl Reach>) {
    if let Some(reached) = reached {
        reached.note();
    }
}

/// Returns the features since the last call, and forgets them.
pub fn take() -> HashSet<u64> {
    REACHED.take()
}

/// Notes the counters and latencies of a component.
pub struct CounterFeatures;

impl Report for CounterFeatures {
    fn count(&mut self, name: &'static str, value: u64) {
        note_count(name, value);
    }
    fn latency(&mut self, name: &'static str, value: &Latency) {
        note_count(name, value.histogram().max());
    }
}
