//! The table of a sweep: a row for each point, a column for each axis and metric.
//!
//! A column is one of [`crate::report::saved`].

use std::fmt::Write;

use super::{Axis, Outcome, Point, Record};
use crate::report::metrics::Value;
use crate::report::saved::value;

/// The results of a sweep.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// The axes.
    pub axes: Vec<Axis>,
    /// Names of the metrics, `cycles` first.
    pub columns: Vec<String>,
    /// The points, in the order of the sweep.
    pub rows: Vec<Row>,
}

/// One point with its results.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The settings.
    pub point: Point,
    /// A value for each column. Empty without a result.
    pub values: Vec<Value>,
    /// Whether there is a result.
    pub status: Status,
}

/// The state of a point.
#[derive(Clone, PartialEq, Debug)]
pub enum Status {
    /// Every launch ended, and every buffer is as expected.
    Done,
    /// Every launch ended. These buffers differ from their `expect`.
    Wrong(String),
    /// The point has no result, for this reason.
    Failed(String),
    /// The point is not computed.
    Missing,
}

impl Status {
    /// The word in the table, and the reason.
    pub(super) fn words(&self) -> (&'static str, &str) {
        match self {
            Status::Done => ("done", ""),
            Status::Wrong(reason) => ("wrong", reason),
            Status::Failed(reason) => ("failed", reason),
            Status::Missing => ("missing", ""),
        }
    }
}

impl Row {
    /// The row of a point with its record.
    pub fn new(point: Point, record: Option<&Record>, columns: &[String]) -> Row {
        let (values, status) = match record.map(|record| &record.outcome) {
            None => (Vec::new(), Status::Missing),
            Some(Outcome::Failed { reason, .. }) => (Vec::new(), Status::Failed(reason.clone())),
            Some(Outcome::Done { report, wrong }) => {
                let values = columns.iter().map(|column| value(report, column)).collect();
                let status = match wrong.is_empty() {
                    true => Status::Done,
                    false => Status::Wrong(wrong.join("; ")),
                };
                (values, status)
            }
        };
        Row { point, values, status }
    }
}

impl Table {
    /// The table as aligned text. The reasons of points without a result follow it.
    pub fn text(&self) -> String {
        // A column that says `done` in every row says nothing.
        let is_whole = self.rows.iter().all(|row| row.status == Status::Done);
        let mut lines = vec![self.head(!is_whole)];
        for row in &self.rows {
            let values = self.columns.iter().enumerate().map(|(n, _)| {
                let value = row.values.get(n);
                value.map_or_else(|| "-".to_owned(), ToString::to_string)
            });
            let settings = row.point.iter().map(|(_, value)| value.clone());
            let status = (!is_whole).then(|| row.status.words().0.to_owned());
            lines.push(settings.chain(values).chain(status).collect());
        }
        let mut out = aligned(&lines);
        for row in &self.rows {
            let (word, reason) = row.status.words();
            if !reason.is_empty() {
                let _ = write!(out, "\n{word} {}: {}\n", shown(&row.point), reason.trim_end());
            }
        }
        out
    }

    fn head(&self, has_status: bool) -> Vec<String> {
        let axes = self.axes.iter().map(|axis| axis.name.clone());
        let status = has_status.then(|| "state".to_owned());
        axes.chain(self.columns.iter().cloned()).chain(status).collect()
    }

    /// The table as CSV. The last columns are `state` and `reason`.
    ///
    /// # Panics
    /// Never: memory takes every record.
    pub fn csv(&self) -> String {
        let mut writer = ::csv::Writer::from_writer(Vec::new());
        let mut head = self.head(true);
        head.push("reason".to_owned());
        writer.write_record(&head).expect("memory takes every record");
        for row in &self.rows {
            let settings = row.point.iter().map(|(_, value)| value.clone());
            let values = self.columns.iter().enumerate().map(|(n, _)| {
                let number = row.values.get(n).and_then(|value| value.number());
                // An empty field, so that a reader of the CSV file finds no word among numbers.
                number.map_or_else(String::new, |number| number.to_string())
            });
            let (word, reason) = row.status.words();
            let last = [word.to_owned(), reason.to_owned()];
            let fields: Vec<String> = settings.chain(values).chain(last).collect();
            writer.write_record(&fields).expect("memory takes every record");
        }
        let bytes = writer.into_inner().expect("memory takes every record");
        String::from_utf8(bytes).expect("every field is text")
    }
}

/// A point as text: `block=64 gpu=tiny`.
pub fn shown(point: &Point) -> String {
    let settings: Vec<_> = point.iter().map(|(name, value)| format!("{name}={value}")).collect();
    settings.join(" ")
}

/// Aligns the fields of all lines. A column of numbers is aligned to the right.
fn aligned(lines: &[Vec<String>]) -> String {
    let n = lines.first().map_or(0, Vec::len);
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    // A dash stands for a number that does not exist.
    let is_number = |text: &str| text == "-" || text.parse::<f64>().is_ok();
    // The first line is the head.
    let is_right = |column: usize| lines.iter().skip(1).all(|line| is_number(&line[column]));
    let form: Vec<_> = (0..n).map(|column| (width(column), is_right(column))).collect();
    let mut out = String::new();
    for line in lines {
        let fields = line
            .iter()
            .zip(&form)
            .map(|(field, &(width, is_right))| match is_right {
                true => format!("{field:>width$}"),
                false => format!("{field:<width$}"),
            });
        let line = fields.collect::<Vec<_>>().join("  ");
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::report::saved::CYCLES;
    use crate::sweep::points;

    /// A table over these axes with these cycles.
    pub fn table(axes: &[&str], cycles: &[f64]) -> Table {
        let axes: Vec<Axis> = axes.iter().map(|axis| axis.parse().unwrap()).collect();
        let rows = points(&axes).unwrap().into_iter().zip(cycles);
        let rows = rows.map(|(point, &cycles)| Row {
            point,
            values: vec![Value::Number(cycles)],
            status: Status::Done,
        });
        Table {
            rows: rows.collect(),
            axes,
            columns: vec![CYCLES.to_owned()],
        }
    }

    #[test]
    fn numbers_are_aligned_to_the_right_and_names_to_the_left() {
        let text = table(&["gpu=tiny,h100-sxm5", "block=8,16"], &[900.0, 1000.0, 50.0, 2.5]).text();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "gpu        block  cycles",
                "tiny           8     900",
                "tiny          16    1000",
                "h100-sxm5      8      50",
                "h100-sxm5     16  2.5000",
            ]
        );
    }

    #[test]
    fn point_without_a_result_has_its_reason_below_the_table_and_in_csv() {
        let mut table = table(&["block=8,16"], &[5.0, 6.0]);
        table.rows[1].values.clear();
        table.rows[1].status = Status::Failed("a trap, in \"k\"".to_owned());
        let text = table.text();
        assert!(text.contains("   16       -  failed\n"), "{text}");
        assert!(text.ends_with("\nfailed block=16: a trap, in \"k\"\n"), "{text}");
        assert_eq!(
            table.csv(),
            "block,cycles,state,reason\n8,5,done,\n16,,failed,\"a trap, in \"\"k\"\"\"\n"
        );
    }
}
