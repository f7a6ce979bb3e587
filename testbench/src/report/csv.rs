//! The launches as CSV, in the layout of the profiler's raw page (`ncu --csv --page raw`).
//!
//! | line | content |
//! |---|---|
//! | 1 | names of the columns: the launch, then every metric, then `Stopped` |
//! | 2 | units |
//! | 3 on | one launch each |
//!
//! A metric without a number is `n/a`, as the profiler writes it. The last column is this model's own: why the launch was stopped or
//! counted in part, or nothing. Process, context, stream and device have the numbers of a program with one stream.

use csv::{QuoteStyle, WriterBuilder};

use super::metrics::{self, Value};
use crate::bench::{LaunchRun, Run};

/// Columns before the metrics.
const COLUMNS: [&str; 11] = [
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
];

/// Returns the launches as CSV text.
///
/// # Panics
/// Never: the text is written to memory, and all lines have the same number of columns.
pub fn launches(scenario: &str, run: &Run) -> String {
    let mut writer = WriterBuilder::new()
        .quote_style(QuoteStyle::Always)
        .from_writer(Vec::new());
    let names = metrics::all().iter().map(|metric| metric.name.as_str());
    let units = metrics::all().iter().map(|metric| metric.unit);
    let mut lines = vec![
        texts(COLUMNS.into_iter().chain(names).chain(["Stopped"])),
        texts([""; COLUMNS.len()].into_iter().chain(units).chain([""])),
    ];
    let launches = run.launches.iter().enumerate();
    lines.extend(launches.map(|(index, launch)| line(scenario, run, index, launch)));
    for line in lines {
        writer.write_record(line).expect("memory can be written");
    }
    let bytes = writer.into_inner().expect("memory can be written");
    String::from_utf8(bytes).expect("every field is text")
}

fn texts<'a>(fields: impl Iterator<Item = &'a str>) -> Vec<String> {
    fields.map(str::to_owned).collect()
}

fn line(scenario: &str, run: &Run, index: usize, launch: &LaunchRun) -> Vec<String> {
    // A fixed process id, context 1 and stream 7: the profiler shows these two for the default stream.
    let sizes = |[x, y, z]: [u32; 3]| format!("({x}, {y}, {z})");
    // As one number: 90 is 9.0.
    let capability = run.config.compute_capability();
    let id = index.to_string();
    let head = [
        id.as_str(),
        "1",
        scenario,
        "warpwave",
        &launch.entry,
        "1",
        "7",
        &sizes(launch.block),
        &sizes(launch.grid),
        "0",
        &format!("{}.{}", capability / 10, capability % 10),
    ]
    .map(str::to_owned);
    let inputs = launch.inputs(&run.config);
    let values = metrics::all().iter().map(|metric| match metric.value(&inputs) {
        Value::Number(number) => number.to_string(),
        Value::NotModelled | Value::NotReached => "n/a".to_owned(),
    });
    let stopped = run.launch_stopped_by(index).map_or("", |reason| reason.word());
    head.into_iter().chain(values).chain([stopped.to_owned()]).collect()
}
