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

/// A plot for each column. The launches with a curve each share one. The logarithmic y axis of `options` is for its own column.
fn plots(table: &Table, options: &PlotOptions) -> Markup {
    let joined = match options.by_launch.is_empty() {
        true => Vec::new(),
        false => options.columns(),
    };
    let is_joined = |column: &str| joined.iter().any(|(name, _)| name == column);
    let alone = table
        .columns
        .iter()
        .filter(|column| !is_joined(column))
        .map(|column| PlotOptions {
            y: column.clone(),
            by_launch: Vec::new(),
            // Another column may have values at or below 0.
            log_y: options.log_y && *column == options.y,
            ..options.clone()
        });
    let joined = (!joined.is_empty()).then(|| options.clone());
    let each = joined
        .into_iter()
        .chain(alone)
        .map(|options| plot(&options.y, table, &options));
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
            y: "cycles".to_owned(),
            log_x: true,
            ..PlotOptions::default()
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
    fn launches_with_a_curve_each_share_a_plot() {
        let mut table = table(&["block=8,16"], &[900.0, 1000.0]);
        table.columns = ["cycles", "launch[0].cycles", "launch[1].cycles"]
            .map(str::to_owned)
            .to_vec();
        for row in &mut table.rows {
            row.values = vec![row.values[0]; 3];
        }
        let options = PlotOptions {
            y: "cycles".to_owned(),
            by_launch: vec![0, 1],
            launches: ["up", "down"].map(str::to_owned).to_vec(),
            ..PlotOptions::default()
        };
        let page = page("k", &table, &options, "");
        // One plot of both launches, and one of their sum.
        assert_eq!(page.matches("<svg ").count(), 2, "{page}");
        assert!(page.contains(">up</text>") && page.contains(">down</text>"), "{page}");
    }

    #[test]
    fn page_says_why_a_curve_is_not_drawn() {
        let mut table = table(&["block=8"], &[900.0]);
        table.rows[0].values.clear();
        table.rows[0].status = Status::Missing;
        let options = PlotOptions {
            y: "cycles".to_owned(),
            ..PlotOptions::default()
        };
        let page = page("k", &table, &options, "");
        assert!(page.contains("Not drawn: no point has a value of cycles."), "{page}");
    }
}
