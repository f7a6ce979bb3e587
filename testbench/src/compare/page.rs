//! A comparison as an HTML page: the sentence, the metrics and the lines, without scripts and without network access.

use maud::{Markup, PreEscaped, html};

use super::{Comparison, LineRow};
use crate::report::html::stall_text;

/// The style sheet of the run's page, which this page shares.
const STYLE: &str = include_str!("../report/html/style.css");

/// Width of the longest bar, in per cent of its cell.
const BAR: f64 = 100.0;

/// Returns the HTML text of the page.
pub fn page(comparison: &Comparison) -> String {
    let markup = html! {
        (PreEscaped("<!doctype html>"))
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (comparison.a) " against " (comparison.b) }
                style { (PreEscaped(STYLE)) }
            }
            body { main {
                h1 { "A against B" }
                table {
                    tr { th { "A" } td { (comparison.a) } }
                    tr { th { "B" } td { (comparison.b) } }
                }
                p class="verdict" { (with_code(&comparison.sentence)) }
                (lines(comparison))
                (metrics(comparison))
            } }
        }
    };
    markup.into_string()
}

/// A text with code between backticks.
fn with_code(text: &str) -> Markup {
    html! {
        @for (n, part) in text.split('`').enumerate() {
            @if n % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

fn metrics(comparison: &Comparison) -> Markup {
    html! {
        h2 { "Metrics" }
        p class="how" {
            "The largest relative difference comes first. " (comparison.equal_metrics) " metrics are equal and left out."
        }
        div class="scroll" {
            table {
                tr { th class="n" { "A" } th class="n" { "B" } th class="n" { "Change" } th { "Unit" } th { "Metric" } }
                @for row in &comparison.metrics {
                    tr {
                        td class="n" { (row.a) }
                        td class="n" { (row.b) }
                        td class="n" { (row.change()) }
                        td { (row.unit) }
                        td { (row.name) }
                    }
                }
            }
        }
    }
}

fn lines(comparison: &Comparison) -> Markup {
    let most = comparison
        .lines
        .iter()
        .map(|row| row.gain().unsigned_abs())
        .max()
        .unwrap_or(0);
    html! {
        @if !comparison.lines.is_empty() {
            h2 { "Lines of PTX" }
            p class="how" {
                "Warp-cycles of a line: the waits before its issues, and the issues. The largest difference comes first. "
                "A line of one side alone has a dash."
            }
            div class="scroll" {
                table class="code" {
                    tr {
                        th class="n" { "Line" } th class="n" { "Issues A" } th class="n" { "B" } th class="n" { "Warp-cycles A" }
                        th class="n" { "B" } th class="n" { "Change" } th {} th { "Longest wait A" } th { "B" } th {}
                    }
                    @for row in &comparison.lines { (line(row, most)) }
                }
            }
        }
    }
}

fn line(row: &LineRow, most: u64) -> Markup {
    let gain = row.gain();
    let width = gain.unsigned_abs() as f64 * BAR / most.max(1) as f64;
    // The bar has the colour of the slower side's longest wait.
    let wait = row.stall[usize::from(gain > 0)];
    let colour = if wait.is_empty() {
        "#666666"
    } else {
        stall_text::of(wait).colour
    };
    html! {
        tr {
            td class="n" { (row.place()) }
            td class="n" { (row.issues[0]) }
            td class="n" { (row.issues[1]) }
            td class="n" { (row.warp_cycles[0]) }
            td class="n" { (row.warp_cycles[1]) }
            td class="n" { (format!("{gain:+}")) }
            td style="min-width:6rem" { span class="bar" { i style={ "width:" (format!("{width:.0}")) "%;background:" (colour) } {} } }
            td { (row.stall[0]) }
            td { (row.stall[1]) }
            td class="text" { (row.text) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::metrics::Value;

    #[test]
    fn page_escapes_texts_and_loads_nothing() {
        let line = LineRow {
            files: [None, None],
            a: Some(3),
            b: None,
            text: "setp.lt <a>;".to_owned(),
            issues: [1, 0],
            warp_cycles: [9, 0],
            stall: ["wait", ""],
        };
        let metric = super::super::MetricRow {
            name: "dram__bytes_read.sum".to_owned(),
            unit: "byte",
            a: Value::Number(1.0),
            b: Value::Number(3.0),
            difference: 0.5,
        };
        let comparison = Comparison {
            a: "a & b".to_owned(),
            b: "c".to_owned(),
            sentence: "B takes 2 times, at line 3 (`ld <a>;`).".to_owned(),
            cycles: [1.0, 2.0],
            equal_metrics: 7,
            metrics: vec![metric],
            lines: vec![line],
        };
        let page = page(&comparison);
        assert!(
            page.contains("a &amp; b") && page.contains("setp.lt &lt;a&gt;;"),
            "{page}"
        );
        assert!(
            page.contains("3.00 x") && page.contains("7 metrics are equal"),
            "{page}"
        );
        assert!(page.contains("at line 3 (<code>ld &lt;a&gt;;</code>)."), "{page}");
        assert!(!page.contains("<script") && !page.contains("http"), "{page}");
    }
}
