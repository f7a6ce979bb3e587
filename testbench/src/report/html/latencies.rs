//! The section on latencies: charts and a table of the distributions, mean cycles by stage, and the slowest requests.

use std::collections::BTreeMap;

use maud::{Markup, html};
use warpwave_components::proto::event::Request;

use super::{Page, chart, heading, thousands};
use crate::report::svg::colour;
use crate::report::{hist, latency};
use crate::watch::requests::{STAGE_NAMES, begin};

/// Size of the charts, in pixels.
const SIZE: (u32, u32) = (1040, 300);

/// Number of the slowest requests listed.
const SLOWEST: usize = 8;

/// The section. Empty if no latency was recorded.
pub(super) fn markup(page: &Page<'_>) -> Markup {
    let paths = hist::paths(page.run.totals.latencies(), page.requests);
    if paths.is_empty() {
        return Markup::default();
    }
    html! {
        (heading(
            "Latencies",
            "Cycles from the issue of an access to the use of its value, by the level that had the data. Also how long blocks waited and ran.",
        ))
        (chart(&hist::density(&paths, SIZE)))
        (chart(&hist::percentiles(&paths, SIZE)))
        (table(&paths))
        (stages(page))
        (slowest(page))
    }
}

fn table(paths: &hist::Paths<'_>) -> Markup {
    html! {
        div.scroll {
            table {
                tr {
                    th { "path" }
                    @for name in ["count", "min", "mean", "p50", "p90", "p99", "max"] { th.n { (name) } }
                }
                @for (path, latency) in paths {
                    @let h = latency.histogram();
                    tr {
                        td { (path) }
                        td.n { (thousands(h.len())) }
                        td.n { (h.min()) }
                        td.n { (format_args!("{:.1}", h.mean())) }
                        @for thousandths in [500, 900, 990] { td.n { (latency::percentile(&h, thousandths)) } }
                        td.n { (h.max()) }
                    }
                }
            }
        }
    }
}

/// Mean cycles of each stage, by path.
type Stages<'a> = BTreeMap<&'a str, Vec<(&'a str, f64)>>;

fn mean_stages<'a>(page: &Page<'a>) -> Stages<'a> {
    let counts: BTreeMap<_, _> = page
        .requests
        .paths()
        .map(|(path, latency)| (path, latency.histogram().len()))
        .collect();
    let mut paths = Stages::new();
    for (path, stage, latency) in page.requests.stages() {
        let histogram = latency.histogram();
        // A request that merges with a miss skips stages, so the mean is over all requests of the path.
        let share = histogram.len() as f64 / counts[path] as f64;
        paths.entry(path).or_default().push((stage, histogram.mean() * share));
    }
    paths
}

/// A bar per path with the mean cycles of each stage. Empty without requests.
fn stages(page: &Page<'_>) -> Markup {
    let paths = mean_stages(page);
    if paths.is_empty() {
        return Markup::default();
    }
    let total = |stages: &[(&str, f64)]| stages.iter().map(|stage| stage.1).sum::<f64>();
    // At least 1, since the widths are divided by it.
    let longest = paths.values().map(|stages| total(stages)).fold(1.0, f64::max);
    html! {
        h3 { "Mean cycles of a request in each stage" }
        div.legend {
            @for (n, stage) in STAGE_NAMES.iter().enumerate() {
                span { i style={ "background:" (shade(n)) } {} (stage) }
            }
        }
        div.stages {
            @for (path, stages) in &paths {
                span { (path) }
                div.stage {
                    @for &(stage, cycles) in stages { (stage_bar(stage, cycles, longest)) }
                }
                span { (format_args!("{:.0} cycles", total(stages))) }
            }
        }
    }
}

fn stage_bar(stage: &str, cycles: f64, longest: f64) -> Markup {
    let place = STAGE_NAMES.iter().position(|name| *name == stage).unwrap_or(0);
    let width = cycles / longest * 100.0;
    let style = format_args!("width:{width:.2}%;background:{}", shade(place)).to_string();
    html! {
        i style=(style) title=(format_args!("{stage}: {cycles:.1} cycles")) {}
    }
}

/// Colour of a stage.
fn shade(stage: usize) -> &'static str {
    // There are nine stages and eight colours.
    if stage < 8 { colour(stage) } else { "#222222" }
}

/// A table of the slowest requests. Empty without requests.
fn slowest(page: &Page<'_>) -> Markup {
    if page.requests.slowest().is_empty() {
        return Markup::default();
    }
    html! {
        h3 { "The slowest requests" }
        div.scroll {
            table {
                tr {
                    th { "request" } th { "path" } th.n { "cycles" } th.n { "issued in cycle" } th { "block, warp" } th { "address" }
                    th { "instruction" }
                }
                @for slow in page.requests.slowest().iter().take(SLOWEST) {
                    @let request = &slow.request;
                    @let [x, y, z] = slow.block;
                    tr {
                        td { (slow.id.to_string()) }
                        td { (slow.path) }
                        td.n { (thousands(slow.cycles)) }
                        td.n { (thousands(begin(request).0)) }
                        td { (format_args!("({x}, {y}, {z}), {}", slow.warp)) }
                        td { (format_args!("{:#x}", request.line)) }
                        td { code { (instruction(page, request)) } }
                    }
                }
            }
        }
    }
}

/// The text of the instruction that sent a request.
fn instruction(page: &Page<'_>, request: &Request) -> String {
    let program = page.programs.get(request.grid as usize);
    let inst = program.and_then(|program| program.code().get(request.pc as usize));
    inst.map(ToString::to_string).unwrap_or_default()
}
