//! Errors of a family in three numbers, and the record that they are compared with.

use std::fmt::Write;

use super::{FAMILIES, Family, Row};

/// Errors of a family, in percent without sign.
#[derive(Clone, PartialEq, Debug)]
pub struct Summary {
    /// Rows with a figure of the model.
    pub rows: usize,
    /// Rows without one.
    pub failed: usize,
    /// The median error.
    pub median: f64,
    /// Nine rows in ten have at most this error.
    pub p90: f64,
    /// The largest error.
    pub worst: f64,
    /// The row with the largest error.
    pub worst_row: Option<Row>,
    /// The rows with a figure.
    measured: Vec<Row>,
    /// Wall seconds of the rows, summed.
    pub seconds: f64,
}

impl Summary {
    /// Sums up rows.
    pub fn of(rows: &[Row]) -> Self {
        let mut errors: Vec<_> = rows.iter().filter_map(|row| Some((row.error()?.abs(), row))).collect();
        errors.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        // Nearest rank: the least error that this share of the rows does not exceed.
        let at = |share: f64| {
            let rank = (share * errors.len() as f64).ceil() as usize;
            errors.get(rank.max(1) - 1).map_or(0.0, |(error, _)| *error)
        };
        Summary {
            rows: errors.len(),
            failed: rows.len() - errors.len(),
            median: at(0.5),
            p90: at(0.9),
            worst: at(1.0),
            worst_row: errors.last().map(|(_, row)| (*row).clone()),
            seconds: rows.iter().map(|row| row.seconds).sum(),
            measured: errors.iter().map(|(_, row)| (*row).clone()).collect(),
        }
    }

    /// Rows whose error is beyond their limit.
    pub fn beyond(&self, family: &Family) -> usize {
        self.measured.iter().filter(|row| family.is_deviation(row)).count()
    }

    /// True if median and p90 are within the limits of the family, and every row has a figure.
    pub fn meets(&self, family: &Family) -> bool {
        // A record has one decimal, so an error that is written as the limit meets it.
        let meets = |error: f64, limit: f64| error <= limit + 0.05;
        self.failed == 0 && meets(self.median, family.limits.median) && meets(self.p90, family.limits.p90)
    }

    /// The line of a record.
    fn line(&self, family: &Family) -> String {
        let Summary {
            rows,
            median,
            p90,
            worst,
            ..
        } = self;
        format!("{},{rows},{median:.1},{p90:.1},{worst:.1}", family.name)
    }
}

/// The record of these results, as CSV. Families that did not run keep their lines of `earlier`.
pub fn record(earlier: &str, results: &[(&Family, Summary)]) -> String {
    let mut text = "family,rows,median,p90,worst\n".to_owned();
    for family in &FAMILIES {
        let result = results.iter().find(|(ran, _)| ran.name == family.name);
        let line = result.map(|(_, summary)| summary.line(family));
        if let Some(line) = line.or_else(|| recorded(earlier, family.name).map(str::to_owned)) {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

/// The line of a family in a record.
fn recorded<'a>(record: &'a str, family: &str) -> Option<&'a str> {
    record.lines().find(|line| line.split(',').next() == Some(family))
}

/// Families whose errors differ from a record, each with both lines.
pub fn differences(record: &str, results: &[(&Family, Summary)]) -> Vec<String> {
    let differs = |(family, summary): &(&Family, Summary)| {
        let now = summary.line(family);
        let then = recorded(record, family.name).unwrap_or("not recorded");
        (then != now).then(|| format!("recorded {then}, now {now}"))
    };
    results.iter().filter_map(differs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::Point;

    fn row(silicon: f64, model: Result<f64, String>) -> Row {
        let point = Point {
            gpu: "tiny".to_owned(),
            series: "test".to_owned(),
            x: None,
            y: None,
            silicon,
            unit: "cycles".to_owned(),
            grade: 'A',
            source: "test".to_owned(),
            is_plateau: false,
        };
        Row {
            point,
            model,
            seconds: 0.5,
            is_stored: false,
        }
    }

    #[test]
    fn percentiles_take_the_nearest_rank_of_errors_without_sign() {
        // Errors of 1 to 10 percent, every second one negative.
        let signed = |n: i32| if n % 2 == 0 { -n } else { n };
        let rows: Vec<_> = (1..=10).map(|n| row(100.0, Ok(f64::from(100 + signed(n))))).collect();
        let summary = Summary::of(&rows);
        assert_eq!(
            (summary.rows, summary.median, summary.p90, summary.worst),
            (10, 5.0, 9.0, 10.0)
        );
        assert_eq!(summary.worst_row, Some(rows[9].clone()));
        // The limit of a row of `tensor` is 5 %.
        assert_eq!(summary.beyond(Family::find("tensor").unwrap()), 5);
    }

    #[test]
    fn row_without_a_figure_is_counted_and_keeps_the_family_from_its_aim() {
        let rows = [row(100.0, Ok(100.0)), row(100.0, Err("refused".to_owned()))];
        let summary = Summary::of(&rows);
        assert_eq!((summary.rows, summary.failed, summary.worst), (1, 1, 0.0));
        assert!(!summary.meets(Family::find("latency").unwrap()));
        assert!(Summary::of(&rows[..1]).meets(Family::find("latency").unwrap()));
    }

    #[test]
    fn record_differs_where_a_figure_moved() {
        let family = Family::find("latency").unwrap();
        let record = record("", &[(family, Summary::of(&[row(100.0, Ok(104.0))]))]);
        assert_eq!(record, "family,rows,median,p90,worst\nlatency,1,4.0,4.0,4.0\n");
        assert_eq!(
            differences(&record, &[(family, Summary::of(&[row(100.0, Ok(104.0))]))]),
            [""; 0]
        );
        assert_eq!(
            differences(&record, &[(family, Summary::of(&[row(100.0, Ok(104.2))]))]),
            ["recorded latency,1,4.0,4.0,4.0, now latency,1,4.2,4.2,4.2"]
        );
    }

    #[test]
    fn family_that_did_not_run_keeps_its_line() {
        let rate = Family::find("rate").unwrap();
        let earlier = "family,rows,median,p90,worst\nlatency,1,4.0,4.0,4.0\nrate,1,9.0,9.0,9.0\n";
        let now = record(earlier, &[(rate, Summary::of(&[row(100.0, Ok(101.0))]))]);
        assert_eq!(
            now,
            "family,rows,median,p90,worst\nlatency,1,4.0,4.0,4.0\nrate,1,1.0,1.0,1.0\n"
        );
    }
}
