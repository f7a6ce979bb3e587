//! Latency distributions, and the visitor that collects counters and latencies.

use hdrhistogram::Histogram;

use crate::time::Cycle;

/// The longest latency, in cycles: ten minutes of a GPU. Longer ones are recorded with this value.
pub const LONGEST: u64 = 1 << 40;

/// A distribution of latencies in cycles, exact below 2,048 and to 3 digits above.
///
/// [`Latency::histogram`] gives the records as a [`Histogram`]. Latencies below 2,048 are counted in an array first, which costs
/// a few host instructions per record. Memory is allocated at the first record.
#[derive(Clone, Debug, Default)]
pub struct Latency(Option<Box<Recorded>>);

#[derive(Clone, Debug)]
struct Recorded {
    /// Number of records of each short latency.
    short: [u32; SHORT],
    long: Option<Histogram<u32>>,
}

/// Size of the array of short latencies, in cycles. Latencies from here on go to the histogram.
const SHORT: usize = 1 << 11;

fn histogram() -> Histogram<u32> {
    let mut histogram = Histogram::new_with_bounds(1, SHORT as u64 - 1, 3).expect("fixed bounds are valid");
    // Starts small, and grows with the longest record.
    histogram.auto(true);
    histogram
}

impl Latency {
    /// Creates a distribution without records.
    pub fn new() -> Self {
        Latency(None)
    }

    /// Records one latency in cycles.
    #[inline]
    pub fn record(&mut self, cycles: u64) {
        self.record_n(cycles, 1);
    }

    /// Records one latency `n` times.
    #[inline]
    pub fn record_n(&mut self, cycles: u64, n: u64) {
        // Counts have 32 bits and saturate.
        let n = u32::try_from(n).unwrap_or(u32::MAX);
        let recorded = self.recorded();
        match recorded.short.get_mut(cycles as usize) {
            Some(count) => *count = count.saturating_add(n),
            None => recorded.record_long(cycles, n),
        }
    }

    /// Adds all records of `other`.
    pub fn add(&mut self, other: &Latency) {
        let Some(other) = &other.0 else { return };
        let own = self.recorded();
        for (count, n) in own.short.iter_mut().zip(&other.short) {
            *count = count.saturating_add(*n);
        }
        if let Some(long) = &other.long {
            let all = own.long.get_or_insert_with(histogram);
            // Both grow on demand, so the sum fits.
            all.add(long).expect("there is room for all that another has room for");
        }
    }

    /// Removes the records of `earlier`, a previous state or a part of this distribution.
    ///
    /// # Panics
    /// If `earlier` has records that this distribution does not have.
    pub fn subtract(&mut self, earlier: &Latency) {
        let Some(earlier) = &earlier.0 else { return };
        let own = self.recorded();
        for (count, n) in own.short.iter_mut().zip(&earlier.short) {
            *count = count
                .checked_sub(*n)
                .expect("a later state has all records of an earlier one");
        }
        if let Some(long) = &earlier.long {
            let all = own.long.as_mut().expect("long records are never removed");
            all.subtract(long)
                .expect("a later state has all records of an earlier one");
        }
    }

    /// Removes all records.
    pub fn clear(&mut self) {
        self.0 = None;
    }

    /// All records as one histogram.
    pub fn histogram(&self) -> Histogram<u32> {
        let Some(recorded) = &self.0 else { return histogram() };
        let mut all = recorded.long.clone().unwrap_or_else(histogram);
        for (cycles, &n) in recorded.short.iter().enumerate().filter(|&(_, &n)| n > 0) {
            all.record_n(cycles as u64, n).expect("a short latency has room");
        }
        all
    }

    #[inline]
    fn recorded(&mut self) -> &mut Recorded {
        self.0.get_or_insert_with(|| {
            Box::new(Recorded {
                short: [0; SHORT],
                long: None,
            })
        })
    }
}

impl Recorded {
    #[cold]
    fn record_long(&mut self, cycles: u64, n: u32) {
        let long = self.long.get_or_insert_with(histogram);
        long.record_n(cycles.min(LONGEST), n)
            .expect("there is room for all up to the longest");
    }
}

/// `N` counters for each index, such as the program counter of an instruction. Memory is allocated for the highest index so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Indexed<const N: usize>(Vec<[u64; N]>);

impl<const N: usize> Indexed<N> {
    /// The counters of `index`.
    #[inline]
    pub fn at(&mut self, index: u32) -> &mut [u64; N] {
        let index = index as usize;
        if index >= self.0.len() {
            self.grow(index);
        }
        &mut self.0[index]
    }

    /// Reports all counters. `names` has the name of each.
    pub fn report(&self, report: &mut dyn Report, names: [&'static str; N]) {
        if !self.0.is_empty() {
            // Flattened, because the visitor cannot be generic over `N`.
            report.indexed(&names, self.0.as_flattened());
        }
    }

    #[cold]
    fn grow(&mut self, index: usize) {
        self.0.resize((index + 1).next_multiple_of(GROWTH), [0; N]);
    }
}

/// Indices added at once when counters by index grow.
const GROWTH: usize = 64;

/// Receives a component's statistics.
pub trait Report {
    /// Reports a counter. The name contains the unit.
    fn count(&mut self, name: &'static str, value: u64);
    /// Reports the latencies of one path.
    fn latency(&mut self, name: &'static str, value: &Latency);
    /// Reports counters by index: those of `names` for index 0, then for index 1, and so on.
    fn indexed(&mut self, _names: &[&'static str], _counts: &[u64]) {}
    /// The first cycle that the report leaves out.
    ///
    /// A component counts a stall when it ends. So it adds the part of each open stall before this cycle. `None`: only stalls that have
    /// ended count.
    fn until(&self) -> Option<Cycle> {
        None
    }
}

/// Declares a structure of counters, each a `u64`, that [reports](Report) every counter under the name of its field.
///
/// ```
/// warpwave_hw::counters! {
///     /// Counters of a cache.
///     pub struct Stats {
///         pub hits: u64,
///         /// Cycles in which a request waited.
///         pub stall_cycles: u64,
///     }
/// }
/// let stats = Stats { hits: 3, ..Stats::default() };
/// assert_eq!(stats.stall_cycles, 0);
/// ```
#[macro_export]
macro_rules! counters {
    ($(#[$doc:meta])* pub struct $name:ident { $($(#[$field_doc:meta])* pub $field:ident: u64,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        #[allow(missing_docs, reason = "the unit is in the name")]
        pub struct $name {
            $($(#[$field_doc])* pub $field: u64,)+
        }

        impl $name {
            /// Gives every counter, under the name of its field.
            pub fn report(&self, report: &mut dyn $crate::stats::Report) {
                $(report.count(stringify!($field), self.$field);)+
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Collects counters by index.
    #[derive(Default)]
    struct Table(Vec<&'static str>, Vec<u64>);

    impl Report for Table {
        fn count(&mut self, _: &'static str, _: u64) {}
        fn latency(&mut self, _: &'static str, _: &Latency) {}
        fn indexed(&mut self, names: &[&'static str], counts: &[u64]) {
            self.0.extend(names);
            self.1.extend(counts);
        }
    }

    #[test]
    fn counters_by_index_grow_with_the_highest_index() {
        let (mut table, mut counters) = (Table::default(), Indexed::<2>::default());
        counters.report(&mut table, ["requests", "sectors"]);
        assert!(table.0.is_empty(), "nothing was counted");
        counters.at(100)[1] += 32;
        counters.at(1)[0] += 1;
        counters.at(100)[1] += 4;
        counters.report(&mut table, ["requests", "sectors"]);
        assert_eq!(table.0, ["requests", "sectors"]);
        let counted: Vec<_> = table.1.iter().enumerate().filter(|(_, n)| **n > 0).collect();
        assert_eq!(counted, [(2, &1), (201, &36)]);
    }

    #[test]
    fn difference_of_two_states_has_the_records_between_them() {
        let mut latency = Latency::new();
        latency.record_n(7, 3);
        latency.record(5000);
        let earlier = latency.clone();
        latency.record(7);
        latency.record(40);
        latency.record(90_000);
        latency.subtract(&earlier);
        let histogram = latency.histogram();
        assert_eq!((histogram.len(), histogram.min()), (3, 7));
        assert_eq!([7, 40, 5000].map(|cycles| histogram.count_at(cycles)), [1, 1, 0]);
        // Three digits above 2,047.
        assert!(histogram.max().abs_diff(90_000) < 90, "{}", histogram.max());
        latency.subtract(&Latency::new());
        assert_eq!(latency.histogram().len(), 3);
    }

    #[test]
    #[should_panic(expected = "a later state has all records of an earlier one")]
    fn short_record_that_is_not_there_cannot_be_removed() {
        let (mut latency, mut other) = (Latency::new(), Latency::new());
        latency.record(7);
        other.record_n(7, 2);
        latency.subtract(&other);
    }

    #[test]
    fn latencies_are_exact_below_2048_and_cut_off_at_the_longest() {
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

    #[test]
    fn sum_of_two_distributions_matches_one_histogram() {
        let (mut parts, mut expected) = ([Latency::new(), Latency::new()], histogram());
        let mut random = 1u64;
        for n in 0..2000 {
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let cycles = random >> (44 + random % 20);
            parts[n % 2].record_n(cycles, n as u64 % 3 + 1);
            expected.record_n(cycles, n as u32 % 3 + 1).expect("it grows");
        }
        let [mut all, other] = parts;
        all.add(&other);
        assert_eq!(all.histogram(), expected);
        assert_eq!(
            all.histogram().value_at_quantile(0.99),
            expected.value_at_quantile(0.99)
        );
    }
}
