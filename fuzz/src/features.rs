//! Features of a run: the counters of components by order of magnitude, and the kinds of errors.
//!
//! A feature is a hash. The runner keeps an input that reaches a feature for the first time, as libFuzzer does with code. Features need no
//! instrumented build.

use std::cell::RefCell;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

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
