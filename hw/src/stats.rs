//! Counters, latencies, and the visitor that collects them.

use std::sync::LazyLock;

use hdrhistogram::Histogram;

/// Longest latency recorded as it is, in cycles; longer ones are recorded as this.
pub const LONGEST: u64 = 1 << 20;

/// A distribution of latencies in cycles, exact below 2,048 and to 3 digits above.
///
/// A machine has hundreds, and most see short latencies or none: each takes memory when the first is recorded, and more when
/// one is longer than all before. So recording allocates a dozen times at most.
#[derive(Clone, Debug, Default)]
pub struct Latency(Option<Box<Histogram<u32>>>);

/// Latencies up to here have room from the first one on.
const SHORT: u64 = (1 << 11) - 1;

/// What nothing was recorded in.
static EMPTY: LazyLock<Histogram<u32>> = LazyLock::new(histogram);

fn histogram() -> Histogram<u32> {
    let mut histogram = Histogram::new_with_bounds(1, SHORT, 3).expect("fixed bounds are valid");
    histogram.auto(true);
    histogram
}

impl Latency {
    /// Nothing recorded.
    pub fn new() -> Self {
        Latency(None)
    }

    /// Records one latency in cycles.
    #[inline]
    pub fn record(&mut self, cycles: u64) {
        self.record_n(cycles, 1);
    }

    /// Records the same latency so many times.
    pub fn record_n(&mut self, cycles: u64, n: u64) {
        self.mine()
            .record_n(cycles.min(LONGEST), u32::try_from(n).unwrap_or(u32::MAX))
            .expect("there is room for all up to the longest");
    }

    /// Adds everything that `other` recorded.
    pub fn add(&mut self, other: &Latency) {
        if let Some(other) = &other.0 {
            self.mine()
                .add(other.as_ref())
                .expect("there is room for all that another has room for");
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.0 = None;
    }

    /// The recorded values.
    pub fn histogram(&self) -> &Histogram<u32> {
        self.0.as_deref().unwrap_or(&EMPTY)
    }

    fn mine(&mut self) -> &mut Histogram<u32> {
        self.0.get_or_insert_with(|| Box::new(histogram()))
    }
}

/// Receives a component's statistics.
pub trait Report {
    /// So many events, named with their unit.
    fn count(&mut self, name: &'static str, value: u64);
    /// A distribution of latencies of one path.
    fn latency(&mut self, name: &'static str, value: &Latency);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_exact_below_2048_and_the_longest_counts_as_the_longest() {
        let mut short = Latency::new();
        assert!(short.histogram().is_empty());
        short.record_n(2047, 3);
        short.record(1);
        let mut all = Latency::new();
        all.add(&short);
        all.record(LONGEST + 5);
        let histogram = all.histogram();
        assert_eq!((histogram.len(), histogram.min()), (5, 1));
        assert_eq!(histogram.count_at(2047), 3);
        assert_eq!(histogram.count_at(2046), 0);
        assert!(histogram.equivalent(histogram.max(), LONGEST));
        short.add(&all);
        assert_eq!((short.histogram().len(), short.histogram().count_at(2047)), (9, 6));
        short.clear();
        assert!(short.histogram().is_empty());
    }
}
