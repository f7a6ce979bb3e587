//! Counters, latencies, and the visitor that collects them.

use hdrhistogram::Histogram;

/// Longest latency recorded as it is, in cycles; longer ones are recorded as this.
pub const LONGEST: u64 = 1 << 20;

/// A distribution of latencies in cycles, exact below 2,048 and to 3 digits above. Recording never allocates.
#[derive(Clone, Debug)]
pub struct Latency(Histogram<u32>);

impl Latency {
    /// Nothing recorded.
    pub fn new() -> Self {
        Latency(Histogram::new_with_bounds(1, LONGEST, 3).expect("fixed bounds are valid"))
    }

    /// Records one latency in cycles.
    #[inline]
    pub fn record(&mut self, cycles: u64) {
        self.0.saturating_record(cycles.min(LONGEST));
    }

    /// Records the same latency so many times.
    pub fn record_n(&mut self, cycles: u64, n: u64) {
        self.0
            .saturating_record_n(cycles.min(LONGEST), u32::try_from(n).unwrap_or(u32::MAX));
    }

    /// Adds everything that `other` recorded.
    pub fn add(&mut self, other: &Latency) {
        self.0.add(&other.0).expect("all latencies have the same bounds");
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// The recorded values.
    pub fn histogram(&self) -> &Histogram<u32> {
        &self.0
    }
}

impl Default for Latency {
    fn default() -> Self {
        Self::new()
    }
}

/// Receives a component's statistics.
pub trait Report {
    /// So many events, named with their unit.
    fn count(&mut self, name: &'static str, value: u64);
    /// A distribution of latencies of one path.
    fn latency(&mut self, name: &'static str, value: &Latency);
}
