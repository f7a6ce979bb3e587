//! Results as text and as CSV.

use std::fmt::Write;

use super::{Family, Point, Row, Summary};

/// One line per family: wall seconds of its rows, errors, rows beyond the limit of a row, limits, and the row with the largest error.
pub fn table(results: &[(&Family, Summary)]) -> String {
    let mut text = format!(
        "{:<14} {:>4} {:>8} {:>9} {:>7} {:>8} {:>7}  {:<13} {}\n",
        "family", "rows", "seconds", "median %", "p90 %", "worst %", "beyond", "limit %", "row with the largest error"
    );
    for (family, summary) in results {
        let limits = format!("{} / {}", family.limits.median, family.limits.p90);
        let worst = summary.worst_row.as_ref();
        let _ = writeln!(
            text,
            "{:<14} {:>4} {:>8.1} {:>9.1} {:>7.1} {:>8.1} {:>7}  {:<13} {}",
            family.name,
            summary.rows,
            summary.seconds,
            summary.median,
            summary.p90,
            summary.worst,
            summary.beyond(family),
            format!("{limits} {}", if summary.meets(family) { "ok" } else { "-" }),
            worst.map_or_else(String::new, |row| format!("{}, {}", row.point.gpu, label(family, row)))
        );
        if summary.failed > 0 {
            let _ = writeln!(text, "{:<14} {} without a figure", "", summary.failed);
        }
    }
    text
}

/// One line per row: model beside silicon, the error, and the source with its grade.
pub fn rows(family: &Family, rows: &[Row]) -> String {
    let mut text = format!(
        "\n{}\n{:<14} {:<44} {:>12} {:>12} {:>9}  {}\n",
        family.title, "gpu", "what", "model", "silicon", "error %", "unit; grade, source"
    );
    for row in rows {
        let point = &row.point;
        let (model, error) = match (&row.model, row.error()) {
            (Ok(model), Some(error)) => (short(*model), format!("{error:+.1}")),
            _ => ("-".to_owned(), "-".to_owned()),
        };
        let _ = writeln!(
            text,
            "{:<14} {:<44} {model:>12} {:>12} {error:>9}  {}; {}, {}",
            point.gpu,
            label(family, row),
            short(point.silicon),
            point.unit,
            point.grade,
            point.source
        );
        if let Err(reason) = &row.model {
            let _ = writeln!(text, "{:<14} {}", "", reason.trim_end());
        }
    }
    text
}

/// All rows as CSV.
pub fn csv(results: &[(&Family, Vec<Row>)]) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let mut write = |fields: &[&str]| writer.write_record(fields).expect("memory takes every record");
    write(&[
        "family",
        "gpu",
        "series",
        "x",
        "y",
        "model",
        "silicon",
        "error_percent",
        "unit",
        "grade",
        "source",
    ]);
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for (family, rows) in results {
        for row in rows {
            let point = &row.point;
            write(&[
                family.name,
                &point.gpu,
                &point.series,
                &number(point.x),
                &number(point.y),
                &number(row.model.as_ref().ok().copied()),
                &point.silicon.to_string(),
                &number(row.error()),
                &point.unit,
                &point.grade.to_string(),
                &point.source,
            ]);
        }
    }
    let bytes = writer.into_inner().expect("memory takes every record");
    String::from_utf8(bytes).expect("the fields are text")
}

/// Measured figures in the columns of `validation/silicon`, with the family before them.
pub fn figures(points: &[(&Family, Vec<Point>)]) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let mut write = |fields: &[&str]| writer.write_record(fields).expect("memory takes every record");
    write(&[
        "family", "gpu", "series", "x", "y", "silicon", "unit", "grade", "source",
    ]);
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for (family, points) in points {
        for point in points {
            write(&[
                family.name,
                &point.gpu,
                &point.series,
                &number(point.x),
                &number(point.y),
                &point.silicon.to_string(),
                &point.unit,
                &point.grade.to_string(),
                &point.source,
            ]);
        }
    }
    let bytes = writer.into_inner().expect("memory takes every record");
    String::from_utf8(bytes).expect("the fields are text")
}

/// Series and parameters of a row.
pub(super) fn label(family: &Family, row: &Row) -> String {
    let mut text = row.point.series.clone();
    for (name, value) in [(family.x_label, row.point.x), (family.y_label, row.point.y)] {
        if let Some(value) = value {
            let _ = write!(text, ", {value} {name}");
        }
    }
    text
}

/// A figure with four significant digits.
pub(super) fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 100.0 => format!("{value:.1}"),
        v if v >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
