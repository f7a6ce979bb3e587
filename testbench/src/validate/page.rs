//! The page of a validation: a table of families, and for each family its rows and plots.

use maud::{Markup, PreEscaped, html};
use warpwave_components::preset;

use super::text::{label, short};
use super::{Family, Row, Summary};
use crate::report::svg::{Axis, Plot, Scale, colour};

/// The style sheet of the run's page, which this page shares.
const STYLE: &str = include_str!("../report/html/style.css");

const SIZE: (u32, u32) = (640, 320);

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
            tr { th { "Family" } th { "Rows" } th { "Median %" } th { "p90 %" } th { "Worst %" } th { "Wanted: median, p90" } }
            @for (family, rows) in results {
                @let summary = Summary::of(rows);
                tr {
                    td { a href={ "#" (family.name) } { (family.title) } }
                    td { (summary.rows) }
                    td { (format!("{:.1}", summary.median)) }
                    td { (format!("{:.1}", summary.p90)) }
                    td { (format!("{:.1}", summary.worst)) }
                    td { (family.wanted.median) ", " (family.wanted.p90) @if summary.meets(family) { " met" } @else { " missed" } }
                }
            }
        }
    }
}

fn section(family: &Family, rows: &[Row]) -> Markup {
    html! {
        h2 id=(family.name) { (family.title) }
        @for plot in plots(family, rows) { (plot) }
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

/// One plot for each GPU: figures over the first parameter, model and silicon of each series. None without parameters.
fn plots(family: &Family, rows: &[Row]) -> Vec<Markup> {
    let mut gpus: Vec<&str> = rows.iter().map(|row| row.point.gpu.as_str()).collect();
    gpus.dedup();
    let has_curve = !family.x.is_empty() && family.y.is_empty();
    let of_gpu = |gpu: &str| rows.iter().filter(|row| row.point.gpu == gpu).collect::<Vec<_>>();
    let gpus = gpus.into_iter().filter(|_| has_curve);
    gpus.flat_map(|gpu| {
        by_unit(&of_gpu(gpu))
            .into_iter()
            .filter_map(|rows| plot(family, gpu, &rows))
            .collect::<Vec<_>>()
    })
    .collect()
}

/// Series of different kinds, such as strides and block widths, get plots of their own.
fn by_unit<'a>(rows: &[&'a Row]) -> Vec<Vec<&'a Row>> {
    let kind = |row: &Row| {
        (
            row.point.unit.clone(),
            row.point.series.split(' ').next().map(str::to_owned),
        )
    };
    let mut kinds: Vec<_> = rows.iter().map(|row| kind(row)).collect();
    kinds.sort();
    kinds.dedup();
    let of = |wanted| rows.iter().copied().filter(|row| kind(row) == wanted).collect();
    kinds.into_iter().map(of).collect()
}

fn plot(family: &Family, gpu: &str, rows: &[&Row]) -> Option<Markup> {
    let xs = || rows.iter().filter_map(|row| row.point.x);
    let (least, most) = (xs().fold(f64::INFINITY, f64::min), xs().fold(0.0, f64::max));
    if most <= least {
        return None;
    }
    let highest = rows
        .iter()
        .map(|row| row.point.silicon.max(*row.model.as_ref().unwrap_or(&0.0)))
        .fold(0.0, f64::max);
    let scale = if most / least.max(1.0) > 20.0 && least > 0.0 {
        Scale::Log
    } else {
        Scale::Linear
    };
    let unit = &rows[0].point.unit;
    let title = format!(
        "{gpu}: {}",
        rows[0].point.series.split(" of ").next().unwrap_or_default()
    );
    let mut plot = Plot::new(
        &title,
        SIZE,
        Axis::new(family.x, scale, least, most),
        Axis::new(unit, Scale::Linear, 0.0, highest * 1.05),
    );
    let mut series: Vec<&str> = rows.iter().map(|row| row.point.series.as_str()).collect();
    series.sort_unstable();
    series.dedup();
    for (n, name) in series.into_iter().enumerate() {
        let curve = |value: &dyn Fn(&Row) -> Option<f64>| {
            let of_series = rows.iter().filter(|row| row.point.series == name);
            let mut points: Vec<_> = of_series.filter_map(|row| Some((row.point.x?, value(row)?))).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            points
        };
        plot.line(
            &format!("{name}, silicon"),
            colour(2 * n),
            &curve(&|row| Some(row.point.silicon)),
        );
        plot.line(
            &format!("{name}, model"),
            colour(2 * n + 1),
            &curve(&|row| row.model.clone().ok()),
        );
    }
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
        table {
            @for key in keys { tr { td { (key) } td { (title(key).unwrap_or_default()) } } }
        }
    }
}

/// Title of a source.
pub(super) fn title(key: &str) -> Option<String> {
    let own: toml::Table = include_str!("../../validation/sources.toml").parse().ok()?;
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
