//! A sweep as an HTML page: the verdict, a plot for each column, the table, and the points without a result.
//!
//! The page has no scripts and needs no network access. [`maud`] escapes every text.

use maud::{Markup, PreEscaped, html};

use super::plot::{PlotOptions, plot};
use super::table::{Row, Status, Table, shown};

/// The style sheet of the run's page, which this page shares.
const STYLE: &str = include_str!("../report/html/style.css");

/// Returns the HTML text of the page. `verdict` is the last line of the sweep, or its error.
pub fn page(name: &str, table: &Table, options: &PlotOptions, verdict: &str) -> String {
    let axes: Vec<&str> = table.axes.iter().map(|axis| axis.name.as_str()).collect();
    let done = table.rows.iter().filter(|row| row.status == Status::Done).count();
    let markup = html! {
        (PreEscaped("<!doctype html>"))
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (name) " over " (axes.join(", ")) }
                style { (PreEscaped(STYLE)) }
            }
            body { main {
                h1 { (name) " over " (axes.join(", ")) }
                p class="soft" { (table.rows.len()) " points, " (done) " with a result as expected" }
                @if !verdict.trim().is_empty() { p class="verdict" { (verdict.trim()) } }
                (plots(table, options))
                (rows(table))
                (reasons(table))
            } }
        }
    };
    markup.into_string()
}

/// A plot for each column. The logarithmic y axis of `options` is for its own column.
fn plots(table: &Table, options: &PlotOptions) -> Markup {
    let each = table.columns.iter().map(|column| {
        let options = PlotOptions {
            y: column.clone(),
            // Another column may have values at or below 0.
            log_y: options.log_y && *column == options.y,
            ..options.clone()
        };
        plot(column, table, &options)
    });
    html! {
        h2 { "Curves" }
        p class="how" { "One curve for each series. A dot is a point of the sweep, with its values as a tooltip." }
        @for drawn in each {
            @match drawn {
                Ok(svg) => div class="chart" { (PreEscaped(svg)) },
                // No reason to fail: the table below has the values.
                Err(reason) => p class="how" { "Not drawn: " (reason) "." },
            }
        }
    }
}

fn rows(table: &Table) -> Markup {
    let is_whole = table.rows.iter().all(|row| row.status == Status::Done);
    html! {
        h2 { "Points" }
        div class="scroll" {
            table {
                tr {
                    @for axis in &table.axes { th class="n" { (axis.name) } }
                    @for column in &table.columns { th class="n" { (column) } }
                    @if !is_whole { th { "state" } }
                }
                @for row in &table.rows {
                    tr {
                        @for (_, setting) in &row.point { td class="n" { (setting) } }
                        @for n in 0..table.columns.len() { td class="n" { (value(row, n)) } }
                        @if !is_whole { td { (row.status.words().0) } }
                    }
                }
            }
        }
    }
}

/// The value of a column, or a dash.
fn value(row: &Row, column: usize) -> String {
    row.values
        .get(column)
        .map_or_else(|| "-".to_owned(), ToString::to_string)
}

/// The reasons of points that failed or are wrong.
fn reasons(table: &Table) -> Markup {
    let failed: Vec<&Row> = table
        .rows
        .iter()
        .filter(|row| !row.status.words().1.is_empty())
        .collect();
    html! {
        @if !failed.is_empty() {
            h2 { "Points that failed or are wrong" }
            ul {
                @for row in failed {
                    li { (row.status.words().0) " " (shown(&row.point)) ": " (row.status.words().1) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::table::tests::table;

    #[test]
    fn page_has_curves_table_and_reasons_and_loads_nothing() {
        let mut table = table(&["gpu=tiny,toy", "block=8,16"], &[900.0, 1000.0, 50.0, 60.0]);
        table.rows[3].values.clear();
        table.rows[3].status = Status::Failed("a trap in <k>".to_owned());
        let options = PlotOptions {
            x: None,
            y: "cycles".to_owned(),
            log_x: true,
            log_y: false,
        };
        let page = page("k & co", &table, &options, "1 of 4 points failed\n");
        for part in [
            "k &amp; co over gpu, block",
            "4 points, 3 with a result as expected",
            "<p class=\"verdict\">1 of 4 points failed</p>",
            "<svg ",
            ">gpu=toy</text>",
            "<td class=\"n\">1000</td>",
            "<td class=\"n\">-</td><td>failed</td>",
            "<li>failed gpu=toy block=16: a trap in &lt;k&gt;</li>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("<script") && !page.contains("src="), "{page}");
    }

    #[test]
    fn page_says_why_a_curve_is_not_drawn() {
        let mut table = table(&["block=8"], &[900.0]);
        table.rows[0].values.clear();
        table.rows[0].status = Status::Missing;
        let options = PlotOptions {
            x: None,
            y: "cycles".to_owned(),
            log_x: false,
            log_y: false,
        };
        let page = page("k", &table, &options, "");
        assert!(page.contains("Not drawn: no point has a value of cycles."), "{page}");
    }
}
