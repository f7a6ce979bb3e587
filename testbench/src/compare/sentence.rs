//! The sentence on what changed most: the cycles, then the state of warps and the line that changed with them.

use serde_json::Value as Json;

use super::{LineRow, MetricRow};
use crate::report::saved::value;
use crate::report::stalls::STATES;

/// Says in one sentence what changed most.
pub(super) fn sentence(a: &Json, b: &Json, cycles: [f64; 2], metrics: &[MetricRow], lines: &[LineRow]) -> String {
    let [from, to] = cycles;
    let same = format!("Both take {from} cycles");
    if metrics.is_empty() && from == to {
        return format!("{same}, and every metric is equal.");
    }
    let head = match from == to || from == 0.0 {
        true if from == to => same,
        true => format!("B takes {to} cycles, and A none"),
        false => format!(
            "B takes {:.2} times the cycles of A ({to} instead of {from})",
            to / from
        ),
    };
    // `signum` of 0.0 is 1, so equal cycles need the factor.
    let sign = (to - from).signum() * f64::from(u8::from(from != to));
    let state = state(a, b, sign).unwrap_or_default();
    let line = line(lines, sign).unwrap_or_default();
    format!("{head}{state}{line}.")
}

/// The state with the largest change of warp-cycles in the direction of the cycles. `sign` is 0 for any direction.
fn state(a: &Json, b: &Json, sign: f64) -> Option<String> {
    let moved = STATES.iter().filter_map(|(state, _)| {
        let name = format!("smsp__warps_issue_stalled_{state}.sum");
        let (a, b) = (value(a, &name).number()?, value(b, &name).number()?);
        // A state that changed against the cycles explains nothing.
        Some((*state, a, b)).filter(|_| a != b && (b - a) * sign >= 0.0)
    });
    let (state, a, b) = moved.max_by(|x, y| (x.2 - x.1).abs().total_cmp(&(y.2 - y.1).abs()))?;
    let what = match state {
        "selected" => "warps issue".to_owned(),
        _ => format!("warps spend in {state}"),
    };
    let unit = if state == "selected" {
        "instructions"
    } else {
        "warp-cycles"
    };
    Some(format!(": {what} {b} {unit} instead of {a}"))
}

/// The line with the largest change of warp-cycles in the direction of the cycles.
fn line(lines: &[LineRow], sign: f64) -> Option<String> {
    // The rows are sorted, the largest difference first.
    let row = lines
        .iter()
        .find(|row| row.gain() as f64 * sign >= 0.0 && row.gain() != 0)?;
    let place = match row.names() {
        [Some(a), Some(b)] if a == b => a,
        [Some(a), Some(b)] => format!("{a} of A, {b} of B"),
        [Some(a), None] => format!("{a} of A"),
        [None, b] => format!("{} of B", b.unwrap_or_default()),
    };
    Some(format!(", most of all at line {place} (`{}`)", row.text))
}

#[cfg(test)]
mod tests {
    use super::super::metric_rows::rows;
    use super::*;

    fn report(barrier: u64, wait: u64) -> Json {
        let metrics = serde_json::json!({
            "smsp__warps_issue_stalled_barrier.sum": barrier,
            "smsp__warps_issue_stalled_wait.sum": wait,
        });
        serde_json::json!({ "totals": { "metrics": metrics } })
    }

    fn says(a: &Json, b: &Json, cycles: [f64; 2], lines: &[LineRow]) -> String {
        sentence(a, b, cycles, &rows(a, b).0, lines)
    }

    fn line(number: usize, text: &str, warp_cycles: [u64; 2]) -> LineRow {
        LineRow {
            files: [None, None],
            a: Some(number),
            b: Some(number),
            text: text.to_owned(),
            issues: [1, 1],
            warp_cycles,
            stall: ["", ""],
        }
    }

    #[test]
    fn sentence_names_the_state_and_the_line_that_moved_with_the_cycles() {
        let lines = [line(7, "bar.sync 0;", [0, 900]), line(4, "ld;", [800, 100])];
        let slower = says(&report(100, 800), &report(1000, 100), [500.0, 750.0], &lines);
        let wanted = "B takes 1.50 times the cycles of A (750 instead of 500): warps spend in barrier 1000 warp-cycles instead of 100, \
                      most of all at line 7 (`bar.sync 0;`).";
        assert_eq!(slower, wanted);
        let faster = says(&report(100, 800), &report(1000, 100), [500.0, 400.0], &lines);
        assert!(
            faster.contains("in wait 100 warp-cycles instead of 800, most of all at line 4"),
            "{faster}"
        );
    }

    #[test]
    fn line_of_one_side_is_named_with_its_side() {
        let mut line = line(7, "bar.sync 0;", [0, 900]);
        line.a = None;
        let says = says(&report(1, 1), &report(9, 1), [5.0, 6.0], &[line]);
        assert!(
            says.ends_with(", most of all at line 7 of B (`bar.sync 0;`)."),
            "{says}"
        );
    }

    #[test]
    fn equal_runs_are_said_to_be_equal() {
        let report = report(1, 2);
        assert_eq!(
            says(&report, &report, [5.0, 5.0], &[]),
            "Both take 5 cycles, and every metric is equal."
        );
    }

    #[test]
    fn runs_of_equal_length_name_the_largest_difference() {
        let says = says(&report(1, 20), &report(2, 2), [5.0, 5.0], &[]);
        assert_eq!(
            says,
            "Both take 5 cycles: warps spend in wait 2 warp-cycles instead of 20."
        );
    }
}
