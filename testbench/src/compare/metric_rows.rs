//! Metrics of two reports, sorted by their relative difference.

use serde::Serialize;
use serde_json::Value as Json;

use crate::report::metrics::{self, Value};
use crate::report::saved::value;

/// A metric that differs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MetricRow {
    /// The profiler's name.
    pub name: String,
    /// The unit.
    pub unit: &'static str,
    /// The value of A.
    pub a: Value,
    /// The value of B.
    pub b: Value,
    /// |a - b| over the greater of |a| and |b|: 0 to 1, and up to 2 for values of different signs. 1 if one side has no number.
    pub difference: f64,
}

impl MetricRow {
    /// The change from A to B: `+12.5 %`, or `3.20 x` from double on.
    pub fn change(&self) -> String {
        match (self.a.number(), self.b.number()) {
            (Some(a), Some(b)) => change(a, b),
            _ => String::new(),
        }
    }
}

/// The change between two numbers. Empty if the first is 0.
pub(super) fn change(a: f64, b: f64) -> String {
    match b / a {
        _ if a == 0.0 => String::new(),
        ratio if (2.0..).contains(&ratio) => format!("{ratio:.2} x"),
        ratio => format!("{:+.1} %", (ratio - 1.0) * 100.0),
    }
}

/// The metrics that differ, and the number of equal ones.
pub(super) fn rows(a: &Json, b: &Json) -> (Vec<MetricRow>, usize) {
    let all = metrics::all();
    let n = all.len();
    let row = |metric: &metrics::Metric| {
        let (a, b) = (value(a, &metric.name), value(b, &metric.name));
        (a != b).then(|| MetricRow {
            difference: difference(a, b),
            unit: metric.unit,
            name: metric.name.clone(),
            a,
            b,
        })
    };
    let mut rows: Vec<_> = all.iter().filter_map(row).collect();
    // Equal differences stay in the order of the report.
    rows.sort_by(|x, y| y.difference.total_cmp(&x.difference));
    let equal = n - rows.len();
    (rows, equal)
}

fn difference(a: Value, b: Value) -> f64 {
    match (a.number(), b.number()) {
        // The values differ, so the divisor is not 0.
        (Some(a), Some(b)) => (a - b).abs() / a.abs().max(b.abs()),
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(sectors: u64, bytes: u64) -> Json {
        let metrics = serde_json::json!({
            "smsp__inst_executed.sum": 10,
            "dram__bytes_read.sum": sectors,
            "dram__bytes_write.sum": bytes,
        });
        serde_json::json!({ "totals": { "cycles": 1, "metrics": metrics } })
    }

    #[test]
    fn largest_relative_difference_comes_first() {
        let (rows, equal) = rows(&report(1000, 4), &report(1100, 8));
        let found: Vec<_> = rows
            .iter()
            .map(|row| (row.name.as_str(), row.difference, row.change()))
            .collect();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], ("dram__bytes_write.sum", 0.5, "2.00 x".to_owned()));
        assert_eq!((found[1].0, found[1].2.as_str()), ("dram__bytes_read.sum", "+10.0 %"));
        assert_eq!(equal, metrics::all().len() - 2);
    }

    #[test]
    fn change_from_nothing_has_no_ratio() {
        let (rows, _) = rows(&report(0, 4), &report(7, 4));
        assert_eq!((rows[0].difference, rows[0].change().as_str()), (1.0, ""));
        assert_eq!(change(100.0, 50.0), "-50.0 %");
    }
}
