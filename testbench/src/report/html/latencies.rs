//! Latencies: both views of their distributions, what a request of each path spends its time on, and the slowest requests.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Page, chart, section, thousands};
use crate::report::hist;
use crate::report::svg::{colour, escape};
use crate::watch::requests::{STAGE_NAMES, begin};

/// Size of the charts, in pixels.
const SIZE: (u32, u32) = (1040, 300);

pub(super) fn write(out: &mut String, page: &Page<'_>) {
    let paths = hist::paths(page.run.totals.latencies(), page.requests);
    if paths.is_empty() {
        return;
    }
    section(
        out,
        "Latencies",
        "From issue to use, in cycles, by where the request found what it wanted; and how long blocks waited and ran.",
    );
    chart(out, &hist::density(&paths, SIZE));
    chart(out, &hist::percentiles(&paths, SIZE));
    table(out, &paths);
    stages(out, page);
    slowest(out, page);
}

fn table(out: &mut String, paths: &hist::Paths<'_>) {
    out.push_str("<div class=\"scroll\"><table>\n<tr><th>path</th>");
    for name in ["count", "min", "mean", "p50", "p90", "p99", "max"] {
        let _ = write!(out, "<th class=\"n\">{name}</th>");
    }
    out.push_str("</tr>\n");
    for (path, latency) in paths {
        let h = latency.histogram();
        let _ = write!(out, "<tr><td>{path}</td><td class=\"n\">{}</td>", thousands(h.len()));
        let cells = [
            h.min().to_string(),
            format!("{:.1}", h.mean()),
            h.value_at_quantile(0.5).to_string(),
            h.value_at_quantile(0.9).to_string(),
            h.value_at_quantile(0.99).to_string(),
            h.max().to_string(),
        ];
        for cell in cells {
            let _ = write!(out, "<td class=\"n\">{cell}</td>");
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n");
}

/// For each path a bar of its mean time by stage.
fn stages(out: &mut String, page: &Page<'_>) {
    let counts: BTreeMap<_, _> = page
        .requests
        .paths()
        .map(|(path, latency)| (path, latency.histogram().len()))
        .collect();
    let mut paths = BTreeMap::<&str, Vec<(&str, f64)>>::new();
    for (path, stage, latency) in page.requests.stages() {
        let histogram = latency.histogram();
        // Not every request of a path passes each stage: one that joins another's miss does not.
        let share = histogram.len() as f64 / counts[path] as f64;
        paths.entry(path).or_default().push((stage, histogram.mean() * share));
    }
    if paths.is_empty() {
        return;
    }
    out.push_str("<h3>What a request spends its time on, on average</h3>\n<div class=\"legend\">");
    for (n, stage) in STAGE_NAMES.iter().enumerate() {
        let _ = write!(out, "<span><i style=\"background:{}\"></i>{stage}</span>", shade(n));
    }
    out.push_str("</div>\n<div class=\"stages\">\n");
    let total = |stages: &[(&str, f64)]| stages.iter().map(|stage| stage.1).sum::<f64>();
    let longest = paths.values().map(|stages| total(stages)).fold(1.0, f64::max);
    for (path, stages) in &paths {
        let _ = write!(out, "<span>{path}</span><div class=\"stage\">");
        for (stage, cycles) in stages {
            let place = STAGE_NAMES.iter().position(|name| name == stage).unwrap_or(0);
            let _ = write!(
                out,
                "<i style=\"width:{:.2}%;background:{}\" title=\"{stage}: {cycles:.1} cycles\"></i>",
                cycles / longest * 100.0,
                shade(place)
            );
        }
        let _ = writeln!(out, "</div><span>{:.0} cycles</span>", total(stages));
    }
    out.push_str("</div>\n");
}

/// Colour of a stage.
fn shade(stage: usize) -> &'static str {
    if stage < 8 { colour(stage) } else { "#222222" }
}

fn slowest(out: &mut String, page: &Page<'_>) {
    if page.requests.worst().is_empty() {
        return;
    }
    out.push_str(
        "<h3>The slowest requests</h3>\n<div class=\"scroll\"><table>\n<tr><th>request</th><th>path</th><th class=\"n\">cycles</th>\
         <th class=\"n\">issued in cycle</th><th>block, warp</th><th>address</th><th>instruction</th></tr>\n",
    );
    for worst in page.requests.worst().iter().take(8) {
        let request = &worst.request;
        let [x, y, z] = worst.block;
        let code = page
            .programs
            .get(request.grid as usize)
            .map_or(&[][..], |program| program.code());
        let inst = code
            .get(request.pc as usize)
            .map(ToString::to_string)
            .unwrap_or_default();
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>({x}, {y}, {z}), {}</td>\
             <td>{:#x}</td><td><code>{}</code></td></tr>",
            worst.id,
            worst.path,
            thousands(worst.cycles),
            thousands(begin(request).0),
            worst.warp,
            request.line,
            escape(&inst)
        );
    }
    out.push_str("</table></div>\n");
}
