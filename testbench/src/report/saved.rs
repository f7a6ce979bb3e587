//! Values in a saved JSON report, by column.
//!
//! A column is `cycles` or a metric's name, over all launches together. `launch[N].` before it selects one launch.

use serde_json::Value as Json;

use super::metrics::{self, Value};

/// The column with the core cycles.
pub const CYCLES: &str = "cycles";

/// The value of a column in a JSON report.
pub fn value(report: &Json, column: &str) -> Value {
    let (part, name) = match launch_of(column) {
        Some((launch, name)) => (&report["launches"][launch], name),
        None => (&report["totals"], column),
    };
    let found = match name {
        CYCLES => &part[CYCLES],
        _ => &part["metrics"][name],
    };
    match found.as_f64() {
        // A missing key is null, which counts as not reached.
        Some(number) => Value::Number(number),
        None if found == "not modelled" => Value::NotModelled,
        None => Value::NotReached,
    }
}

/// `launch[1].NAME` gives 1 and `NAME`.
pub fn launch_of(column: &str) -> Option<(usize, &str)> {
    let (index, name) = column.strip_prefix("launch[")?.split_once("].")?;
    Some((index.parse().ok()?, name))
}

/// True if this is the name of a column.
pub fn is_column(column: &str) -> bool {
    let name = launch_of(column).map_or(column, |(_, name)| name);
    name == CYCLES || metrics::find(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_is_read_from_the_totals_or_from_one_launch() {
        let report = serde_json::json!({
            "totals": { "cycles": 30, "metrics": { "dram__bytes_read.sum": 96, "a": "not modelled" } },
            "launches": [{ "cycles": 10, "metrics": {} }, { "cycles": 20, "metrics": { "dram__bytes_read.sum": 32 } }],
        });
        assert_eq!(value(&report, "cycles"), Value::Number(30.0));
        assert_eq!(value(&report, "launch[1].cycles"), Value::Number(20.0));
        assert_eq!(value(&report, "launch[1].dram__bytes_read.sum"), Value::Number(32.0));
        assert_eq!(value(&report, "a"), Value::NotModelled);
        assert_eq!(value(&report, "launch[7].cycles"), Value::NotReached);
        assert!(is_column("launch[0].cycles") && is_column("dram__bytes_read.sum") && !is_column("launch[0].b"));
    }
}
