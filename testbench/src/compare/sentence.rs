//! The sentence on what changed most: the cycles or the time, then the largest part of the change.
//!
//! Cycles of two clocks cannot be compared, so two GPUs with different clocks are compared by time. The change has two parts: time without
//! a block, and time with blocks. If the larger part is with blocks, the state of warps and the line that changed with it are named.

use serde_json::Value as Json;

use super::{LineRow, MetricRow};
use crate::report::saved::value;
use crate::report::stalls::STATES;
use crate::report::units::digits;

/// Says in one sentence what changed most.
pub(super) fn sentence(a: &Json, b: &Json, cycles: [f64; 2], metrics: &[MetricRow], lines: &[LineRow]) -> String {
    let [from, to] = cycles;
    if metrics.is_empty() && from == to {
        return format!("Both take {from} cycles, and every metric is equal.");
    }
    let durations = durations([a, b]);
    let head = match durations {
        Some(durations) => by_time(durations, cycles),
        None => by_cycles(cycles),
    };
    // Nanoseconds of a cycle, or 1 if the clocks are equal.
    let scales = match durations {
        Some([a, b]) if from > 0.0 && to > 0.0 => [a / from, b / to],
        _ => [1.0, 1.0],
    };
    let part = part([a, b], cycles, scales, lines);
    format!("{head}{part}.")
}

fn by_cycles([from, to]: [f64; 2]) -> String {
    match from == 0.0 {
        _ if from == to => format!("Both take {from} cycles"),
        true => format!("B takes {to} cycles, and A none"),
        false => format!(
            "B takes {:.2} times the cycles of A ({to} instead of {from})",
            to / from
        ),
    }
}

fn by_time([from, to]: [f64; 2], [cycles_from, cycles_to]: [f64; 2]) -> String {
    let times = [to, from].map(time);
    format!(
        "B takes {:.2} times the time of A ({} instead of {}; {cycles_to} cycles instead of {cycles_from}, at another clock)",
        to / from,
        times[0],
        times[1]
    )
}

/// Nanoseconds of both runs. `None` if their clocks are equal.
fn durations(reports: [&Json; 2]) -> Option<[f64; 2]> {
    let numbers = |name: &str| {
        let [a, b] = reports.map(|report| value(report, name).number().filter(|number| *number > 0.0));
        Some([a?, b?])
    };
    let [a, b] = numbers("gpc__cycles_elapsed.avg.per_second")?;
    numbers("gpu__time_duration.sum").filter(|_| a != b)
}

/// A time with its unit, from nanoseconds.
fn time(nanoseconds: f64) -> String {
    let (scale, unit) = match nanoseconds {
        n if n < 1e3 => (1.0, "ns"),
        n if n < 1e6 => (1e3, "us"),
        n if n < 1e9 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {unit}", digits(nanoseconds / scale))
}

/// The largest part of the change. `scales` turn cycles of each side into a common unit.
fn part(reports: [&Json; 2], cycles: [f64; 2], scales: [f64; 2], lines: &[LineRow]) -> String {
    let change = |[a, b]: [f64; 2]| b * scales[1] - a * scales[0];
    let all = change(cycles);
    // `signum` of 0.0 is 1, so equal cycles need the factor.
    let sign = all.signum() * f64::from(u8::from(all != 0.0));
    let idle = reports.map(cycles_without_block);
    let (idle, says) = match idle {
        [Some(a), Some(b)] => (
            change([a, b]),
            format!("{b} cycles pass without a block instead of {a}"),
        ),
        _ => (0.0, String::new()),
    };
    if idle * sign > (all - idle) * sign {
        return format!(": {says}");
    }
    let (state, changes) = state(reports[0], reports[1], sign).unwrap_or_default();
    let line = line(lines, state, sign).unwrap_or_default();
    // A part that moved against the whole hides some of the change.
    let against = match -idle * sign > all.abs() / 2.0 {
        true => format!(", although {says}"),
        false => String::new(),
    };
    format!("{changes}{line}{against}")
}

/// Cycles of the counted launches before their first block and after their last one. `None` if a report does not have them.
fn cycles_without_block(report: &Json) -> Option<f64> {
    let launches = report["launches"].as_array()?.iter();
    let counted = launches.filter(|launch| launch["warm_up"] != true);
    counted
        .map(|launch| launch["diagnosis"]["phases"]["launch"].as_f64())
        .sum()
}

/// The state with the largest change of warp-cycles in the direction of the cycles. `sign` is 0 for any direction.
fn state(a: &Json, b: &Json, sign: f64) -> Option<(&'static str, String)> {
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
    Some((state, format!(": {what} {b} {unit} instead of {a}")))
}

/// The line with the largest change of warp-cycles in the direction of the cycles. It says if the line is about another state.
fn line(lines: &[LineRow], state: &str, sign: f64) -> Option<String> {
    // The rows are sorted, the largest difference first.
    let moved = || {
        let rows = lines.iter();
        rows.filter(|row| row.gain() as f64 * sign >= 0.0 && row.gain() != 0)
    };
    let waits = moved().find(|row| row.stall.contains(&state));
    let row = waits.or_else(|| moved().next())?;
    let place = match row.names() {
        [Some(a), Some(b)] if a == b => a,
        [Some(a), Some(b)] => format!("{a} of A, {b} of B"),
        [Some(a), None] => format!("{a} of A"),
        [None, b] => format!("{} of B", b.unwrap_or_default()),
    };
    Some(match waits {
        Some(_) => format!(", most of all at line {place} (`{}`)", row.text),
        None => format!("; line {place} (`{}`) changes most", row.text),
    })
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

    fn line(number: usize, text: &str, stall: &'static str, warp_cycles: [u64; 2]) -> LineRow {
        LineRow {
            files: [None, None],
            a: Some(number),
            b: Some(number),
            text: text.to_owned(),
            issues: [1, 1],
            warp_cycles,
            stall: [stall, stall],
        }
    }

    #[test]
    fn sentence_names_the_state_and_the_line_that_moved_with_the_cycles() {
        let lines = [
            line(7, "bar.sync 0;", "barrier", [0, 900]),
            line(4, "ld;", "wait", [800, 100]),
        ];
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
    fn line_with_another_state_is_named_apart() {
        let lines = [
            line(9, "st;", "mio_throttle", [0, 950]),
            line(7, "bar.sync 0;", "barrier", [0, 900]),
        ];
        let slower = |lines: &[LineRow]| says(&report(100, 800), &report(1000, 100), [500.0, 750.0], lines);
        let both = slower(&lines);
        assert!(both.ends_with(", most of all at line 7 (`bar.sync 0;`)."), "{both}");
        let one = slower(&lines[..1]);
        assert!(one.ends_with("; line 9 (`st;`) changes most."), "{one}");
    }

    #[test]
    fn line_of_one_side_is_named_with_its_side() {
        let mut line = line(7, "bar.sync 0;", "barrier", [0, 900]);
        line.a = None;
        let says = says(&report(1, 1), &report(9, 1), [5.0, 6.0], &[line]);
        assert!(
            says.ends_with(", most of all at line 7 of B (`bar.sync 0;`)."),
            "{says}"
        );
    }

    /// A report of one launch, with cycles that pass without a block, at a clock in MHz.
    fn timed(cycles: f64, idle: f64, mhz: f64, wait: u64) -> Json {
        let mut report = report(0, wait);
        report["totals"]["metrics"]["gpc__cycles_elapsed.avg.per_second"] = (mhz * 1e6).into();
        report["totals"]["metrics"]["gpu__time_duration.sum"] = (cycles * 1e3 / mhz).into();
        report["launches"] = serde_json::json!([
            { "warm_up": true, "diagnosis": { "phases": { "launch": 9999 } } },
            { "diagnosis": { "phases": { "launch": idle } } },
        ]);
        report
    }

    #[test]
    fn runs_at_two_clocks_are_compared_by_time() {
        // 4,000 cycles at 1 GHz are 4 us, and 5,000 at 2.5 GHz are 2 us.
        let (a, b) = (timed(4e3, 20.0, 1e3, 800), timed(5e3, 50.0, 2.5e3, 100));
        assert_eq!(
            says(&a, &b, [4e3, 5e3], &[]),
            "B takes 0.50 times the time of A (2 us instead of 4 us; 5000 cycles instead of 4000, at another clock): \
             warps spend in wait 100 warp-cycles instead of 800."
        );
    }

    #[test]
    fn launch_latency_is_blamed_if_it_is_the_largest_part() {
        let (a, b) = (timed(400.0, 20.0, 1e3, 1), timed(900.0, 420.0, 1e3, 9));
        assert_eq!(
            says(&a, &b, [400.0, 900.0], &[]),
            "B takes 2.25 times the cycles of A (900 instead of 400): 420 cycles pass without a block instead of 20."
        );
        // 700 cycles less with blocks, and 400 more without one.
        let (a, b) = (timed(900.0, 20.0, 1e3, 99), timed(600.0, 420.0, 1e3, 1));
        let says = says(&a, &b, [900.0, 600.0], &[]);
        let end =
            "warps spend in wait 1 warp-cycles instead of 99, although 420 cycles pass without a block instead of 20.";
        assert!(says.ends_with(end), "{says}");
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
