//! The page of a validation: a table of families, and for each family its rows and plots.

use maud::{Markup, PreEscaped, html};
use warpwave_components::preset;

use super::text::{label, short};
use super::{Family, Row, Summary};
use crate::report::svg::{Axis, Plot, Scale, colour};

/// The style sheet of the run's page, which this page shares.
const STYLE: &str = include_str!("../report/html/style.css");

/// Width and height of a plot, in pixels.
const SIZE: (u32, u32) = (520, 260);

/// The text of the page.
pub fn page(results: &[(&Family, Vec<Row>)]) -> String {
    let markup = html! {
        (PreEscaped("<!doctype html>"))
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Model beside silicon" }
                style { (PreEscaped(STYLE)) }
            }
            body { main {
                h1 { "Model beside silicon" }
                p { "Microbenchmarks on the model, and the figures that others measured on the cards. "
                    "Error: (model - silicon) / silicon." }
                (overview(results))
                @for (family, rows) in results { (section(family, rows)) }
                (sources(results))
            } }
        }
    };
    markup.into_string()
}

fn overview(results: &[(&Family, Vec<Row>)]) -> Markup {
    html! {
        table {
            tr { th { "Family" } th { "Rows" } th { "Median %" } th { "p90 %" } th { "Worst %" } th { "Limits: median, p90" } }
            @for (family, rows) in results {
                @let summary = Summary::of(rows);
                tr {
                    td { a href={ "#" (family.name) } { (family.title) } }
                    td { (summary.rows) }
                    td { (format!("{:.1}", summary.median)) }
                    td { (format!("{:.1}", summary.p90)) }
                    td { (format!("{:.1}", summary.worst)) }
                    td { (family.limits.median) ", " (family.limits.p90) @if summary.meets(family) { " met" } @else { " missed" } }
                }
            }
        }
    }
}

fn section(family: &Family, rows: &[Row]) -> Markup {
    html! {
        h2 id=(family.name) { (family.title) }
        div class="plots" { @for plot in plots(family, rows) { (plot) } }
        details {
            summary { (rows.len()) " rows" }
            table {
                tr { th { "GPU" } th { "What" } th { "Model" } th { "Silicon" } th { "Error %" } th { "Unit" } th { "Grade, source" } }
                @for row in rows {
                    tr {
                        td { (row.point.gpu) }
                        td { (label(family, row)) }
                        td { (row.model.as_ref().map_or_else(|_| "-".to_owned(), |value| short(*value))) }
                        td { (short(row.point.silicon)) }
                        td { (row.error().map_or_else(|| "-".to_owned(), |error| format!("{error:+.1}"))) }
                        td { (row.point.unit) }
                        td { (row.point.grade) ", " (row.point.source) }
                    }
                }
            }
        }
    }
}

/// One plot for each GPU and series: figures of model and silicon over the first parameter.
fn plots(family: &Family, rows: &[Row]) -> Vec<Markup> {
    let mut series: Vec<_> = rows.iter().map(series).collect();
    series.sort_unstable();
    series.dedup();
    series
        .into_iter()
        .filter_map(|wanted| plot(family, wanted, rows))
        .collect()
}

fn series(row: &Row) -> (&str, &str) {
    (&row.point.gpu, &row.point.series)
}

/// The plot of a series. `None` if it has fewer than two points, or several with the same first parameter.
fn plot(family: &Family, wanted: (&str, &str), rows: &[Row]) -> Option<Markup> {
    let of_series = rows.iter().filter(|row| series(row) == wanted && row.point.x.is_some());
    let mut points: Vec<(f64, &Row)> = of_series.filter_map(|row| Some((row.point.x?, row))).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let is_curve = points.len() > 1 && points.windows(2).all(|pair| pair[0].0 < pair[1].0);
    let (&(least, first), &(most, _)) = (points.first()?, points.last()?);
    if !is_curve {
        return None;
    }
    let silicon: Vec<_> = points.iter().map(|(x, row)| (*x, row.point.silicon)).collect();
    let model: Vec<_> = points
        .iter()
        .filter_map(|(x, row)| Some((*x, *row.model.as_ref().ok()?)))
        .collect();
    let highest = silicon.iter().chain(&model).map(|point| point.1).fold(0.0, f64::max);
    // More than two decades are unreadable on a linear axis.
    let scale = if least > 0.0 && most / least > 100.0 {
        Scale::Log
    } else {
        Scale::Linear
    };
    let mut plot = Plot::new(
        &format!("{}: {}", wanted.0, wanted.1),
        SIZE,
        Axis::new(family.x_label, scale, least, most),
        Axis::new(&first.point.unit, Scale::Linear, 0.0, highest * 1.05),
    );
    plot.line("silicon", colour(0), &silicon);
    plot.line("model", colour(1), &model);
    Some(plot.finish())
}

/// Sources of the rows, with their titles.
fn sources(results: &[(&Family, Vec<Row>)]) -> Markup {
    let mut keys: Vec<&str> = results
        .iter()
        .flat_map(|(_, rows)| rows.iter().map(|row| row.point.source.as_str()))
        .collect();
    keys.sort_unstable();
    keys.dedup();
    html! {
        h2 { "Sources" }
        p { "Grade A: read from the primary text or data. B: read from a digest of it. C: recalled." }
        // Titles are longer than a line, and cells of a table do not wrap.
        ul { @for key in keys { li { b { (key) } ": " (title(key).unwrap_or_default()) } } }
    }
}

/// Title of a source.
pub(super) fn title(key: &str) -> Option<String> {
    let own: toml::Table = include_str!("../../validation/sources.toml").parse().ok()?;
    // A source is one of the presets, or of silicon rows alone.
    let of_presets = preset::source_titles().get(key).map(ToString::to_string);
    of_presets.or_else(|| Some(own.get(key)?.as_str()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::FAMILIES;

    #[test]
    fn every_source_of_a_row_has_a_title() {
        for point in FAMILIES.iter().flat_map(Family::points) {
            assert!(title(&point.source).is_some(), "source {} has no title", point.source);
            assert!("ABC".contains(point.grade), "{point:?}");
        }
    }
}
