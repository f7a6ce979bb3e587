//! The files of `--hist`: latencies as a table, as files for HdrHistogram's tools, and as charts.
//!
//! | file | holds |
//! |---|---|
//! | `latencies.txt` | a row per path, a row per path and stage, the slowest requests |
//! | `PATH.hgrm`, `PATH.STAGE.hgrm` | the distribution by percentiles |
//! | `latencies.hlog` | each path over time, tagged; a cycle is a millisecond of log time |
//! | `latencies.svg` | density and percentile curves of all paths |

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use maud::Markup;
use warpwave_hw::stats::Latency;
use warpwave_isa::program::Program;

use super::latency;
use super::svg::{Axis, Plot, Scale, colour, stroke};
use crate::watch::requests::{Requests, SlowRequest, begin};

/// Bars of the density chart per doubling of the latency.
const BARS: f64 = 8.0;

/// Latencies of a run by path. Includes latencies of components and of requests.
pub type Paths<'a> = BTreeMap<&'static str, &'a Latency>;

/// Collects all paths: those of components (`reported`) and those of requests.
pub fn paths<'a>(reported: impl Iterator<Item = (&'static str, &'a Latency)>, requests: &'a Requests) -> Paths<'a> {
    requests.paths().chain(reported).collect()
}

/// Returns all files with their names. `programs` has the program of each launch, for the instructions of the slowest requests.
///
/// # Errors
/// If a histogram cannot be encoded.
pub fn files(paths: &Paths<'_>, requests: &Requests, programs: &[Arc<Program>]) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut files = vec![
        ("latencies.txt".to_owned(), table(paths, requests, programs)?),
        ("latencies.svg".to_owned(), picture(paths).into_bytes()),
        ("latencies.hlog".to_owned(), log(requests)?),
    ];
    let mut add = |name: String, distribution: &Latency| -> io::Result<()> {
        let mut file = Vec::new();
        latency::hgrm(&mut file, distribution)?;
        files.push((format!("{name}.hgrm"), file));
        Ok(())
    };
    for (path, distribution) in paths {
        add((*path).to_owned(), distribution)?;
    }
    for (path, stage, distribution) in requests.stages() {
        add(format!("{path}.{stage}"), distribution)?;
    }
    Ok(files)
}

fn table(paths: &Paths<'_>, requests: &Requests, programs: &[Arc<Program>]) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    latency::table(
        &mut out,
        paths.iter().map(|(path, latency)| ((*path).to_owned(), *latency)),
    )?;
    out.push(b'\n');
    let stages = requests.stages();
    latency::table(
        &mut out,
        stages.map(|(path, stage, latency)| (format!("{path}.{stage}"), latency)),
    )?;
    out.push(b'\n');
    out.extend(slowest(requests.slowest(), programs).bytes());
    Ok(out)
}

/// The slowest requests as a table.
fn slowest(slowest: &[SlowRequest], programs: &[Arc<Program>]) -> String {
    let mut out = format!(
        "{:<16}{:<8}{:>8}{:>10}  {:<18}{:<22}{:<14}instruction\n",
        "slowest", "path", "cycles", "issued", "warp", "of block", "address"
    );
    for one in slowest {
        let request = &one.request;
        let slot = format!("sm[{}].{}.{}", one.id.sm, request.subcore, request.warp);
        let [x, y, z] = one.block;
        let block = format!("({x}, {y}, {z}) warp {}", one.warp);
        let code = programs
            .get(request.grid as usize)
            .map_or(&[][..], |program| program.code());
        let inst = code.get(request.pc as usize).map(ToString::to_string);
        let _ = writeln!(
            out,
            "{:<16}{:<8}{:>8}{:>10}  {slot:<18}{block:<22}{:<14}{} {}",
            one.id.to_string(),
            one.path,
            one.cycles,
            begin(request).0,
            format!("{:#x}", request.line),
            request.pc,
            inst.unwrap_or_default(),
        );
    }
    out
}

/// An interval log: latency counts by interval and path. A request belongs to the interval of its response.
fn log(requests: &Requests) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let millis = Duration::from_millis;
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("a cycle is a millisecond of log time; values are cycles")
        .with_base_time(SystemTime::UNIX_EPOCH)
        // The maximum of each interval is in cycles too.
        .with_max_value_divisor(1.0)
        .begin_log_with(&mut out, &mut serializer)?;
    let length = requests.interval();
    for (n, path, spread) in requests.intervals() {
        let mut latency = Latency::new();
        spread
            .iter()
            .for_each(|(cycles, count)| latency.record_n(*cycles, *count));
        let tag = Tag::new(path).expect("paths have no commas, spaces or line ends");
        log.write_histogram(&latency.histogram(), millis(n * length), millis(length), Some(tag))
            .map_err(|error| io::Error::other(format!("{error:?}")))?;
    }
    drop(log);
    Ok(out)
}

/// One SVG with the density chart above the percentile chart.
pub fn picture(paths: &Paths<'_>) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 900 760\">\n{}<g transform=\"translate(0 380)\">\n{}</g>\n</svg>\n",
        density(paths, (900, 380)).into_string(),
        percentiles(paths, (900, 380)).into_string()
    )
}

/// A logarithmic axis in cycles for all latencies.
fn cycles(paths: &Paths<'_>) -> Axis {
    let histograms = || paths.values().map(|latency| latency.histogram());
    let least = histograms().map(|histogram| histogram.min()).min().unwrap_or(1).max(1);
    let most = histograms().map(|histogram| histogram.max()).max().unwrap_or(10);
    Axis::new("cycles", Scale::Log, least as f64 / 1.2, most as f64 * 1.2)
}

/// The density chart: the share of a path's requests in each bar. Bars have equal ratios of cycles.
pub fn density(paths: &Paths<'_>, size: (u32, u32)) -> Markup {
    let bars: Vec<_> = paths.iter().map(|(path, latency)| (path, bars(latency))).collect();
    let tallest = bars
        .iter()
        .flat_map(|(_, bars)| bars)
        .map(|bar| bar.1)
        .fold(1.0, f64::max);
    // Both charts and all paths share the axis of cycles.
    let x = cycles(paths);
    let y = Axis::new("share of the path, %", Scale::Linear, 0.0, tallest);
    let mut plot = Plot::new("Density", size, x, y);
    for (n, (path, bars)) in bars.iter().enumerate() {
        let end = bars.last().map_or(1.0, |bar| bar.0);
        plot.steps(path, colour(n), bars, end);
    }
    plot.finish()
}

/// Lower edge in cycles and share in per cent of each bar, with empty bars. The last bar is the upper edge, without height.
fn bars(latency: &Latency) -> Vec<(f64, f64)> {
    let histogram = latency.histogram();
    let bar = |cycles: u64| (cycles.max(1) as f64).log2() * BARS;
    let mut shares = BTreeMap::<i64, f64>::new();
    for step in histogram.iter_recorded() {
        // A value on an edge must not round into the bar below.
        let place = (bar(step.value_iterated_to()) + 1e-9).floor() as i64;
        let share = step.count_since_last_iteration() as f64 * 100.0 / histogram.len() as f64;
        *shares.entry(place).or_default() += share;
        // The next bar ends this one, even if it is empty.
        shares.entry(place + 1).or_default();
    }
    let edge = |place: &i64| 2f64.powf(*place as f64 / BARS);
    shares.iter().map(|(place, share)| (edge(place), *share)).collect()
}

/// The percentile chart: latency by percentile of a path's requests.
pub fn percentiles(paths: &Paths<'_>, size: (u32, u32)) -> Markup {
    let requests = paths.values().map(|latency| latency.histogram().len()).max();
    let rarest = (requests.unwrap_or(1) as f64).max(10.0);
    // Percentiles 0, 50 and 75, then 90, 99, 99.9 and so on.
    let shares = [1.0, 2.0, 4.0].into_iter().chain((1..).map(|n| 10f64.powi(n)));
    let shares = shares.take_while(|share| *share <= rarest);
    let ticks = shares.map(|share| (share, percent(share))).collect();
    let x = Axis::new("percentile", Scale::Log, 1.0, rarest).with_ticks(ticks);
    let mut plot = Plot::new("Percentiles", size, x, cycles(paths));
    for (n, (path, latency)) in paths.iter().enumerate() {
        plot.line(path, stroke(n), &curve(latency, rarest));
    }
    plot.finish()
}

/// The label of the percentile that one in `share` requests exceeds.
fn percent(share: f64) -> String {
    let percent = 100.0 - 100.0 / share;
    format!("{percent}")
}

/// The points of a percentile curve: 1/(1 - percentile) and cycles, for each recorded value.
fn curve(latency: &Latency, end: f64) -> Vec<(f64, f64)> {
    let histogram = latency.histogram();
    let (mut points, mut below) = (Vec::new(), 0);
    for step in histogram.iter_recorded() {
        let one_in = |below: u64| match histogram.len() - below {
            // No request is above the maximum: the curve goes on to the edge.
            0 => end,
            above => (histogram.len() as f64 / above as f64).min(end),
        };
        let cycles = step.value_iterated_to() as f64;
        // Two points per value: a horizontal step over all percentiles that have it.
        points.push((one_in(below), cycles));
        below += step.count_since_last_iteration();
        points.push((one_in(below), cycles));
    }
    points
}

#[cfg(test)]
mod tests;
