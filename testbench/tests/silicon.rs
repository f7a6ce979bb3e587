//! The profiler counters of an H100 beside the model's, for the built-in scenarios. `validation/h100/counters.csv` has a row for each.
//!
//! A row without a reason must be equal. A row with a reason must differ, so that no reason outlives its cause.

use std::collections::BTreeMap;

use serde::Deserialize;
use warpwave::bench::{Bench, Options};
use warpwave::report::metrics;
use warpwave::scenario::Scenario;
use warpwave_components::preset;

/// A counter of one launch on an H100.
#[derive(Deserialize)]
struct Counter {
    scenario: String,
    launch: usize,
    metric: String,
    silicon: f64,
    /// Why the model's value differs. Empty if it is equal.
    reason: String,
}

#[test]
fn counters_are_those_of_an_h100() {
    let text = include_str!("../validation/h100/counters.csv");
    let rows: Vec<Counter> = csv::Reader::from_reader(text.as_bytes())
        .deserialize()
        .collect::<Result<_, _>>()
        .expect("counters.csv has these columns");
    let mut by_scenario: BTreeMap<String, Vec<Counter>> = BTreeMap::new();
    for row in rows {
        by_scenario.entry(row.scenario.clone()).or_default().push(row);
    }
    assert!(by_scenario.len() >= 35, "{} scenarios", by_scenario.len());
    let findings: Vec<_> = by_scenario
        .iter()
        .flat_map(|(name, rows)| differences(name, rows))
        .collect();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

/// The rows of a scenario that do not say what is true.
fn differences(name: &str, rows: &[Counter]) -> Vec<String> {
    let scenario = Scenario::find(name).expect("the scenario is built in");
    let config = preset::load("h100-sxm5", &[]).expect("the preset is built in").config;
    let mut bench = Bench::new(&scenario, config).expect("the scenario runs on an H100");
    let options = Options {
        threads: 1,
        max_cycles: None,
    };
    let run = bench.run(options, &mut |_| true);
    let check = |row: &Counter| {
        let metric = metrics::find(&row.metric).expect("the metric exists");
        let launch = &run.launches[row.launch];
        let model = metric.value(&launch.inputs(&run.config)).number().unwrap_or(f64::NAN);
        // The profiler prints percentages and ratios with two digits.
        let is_equal = (model - row.silicon).abs() <= if row.silicon.fract() == 0.0 { 0.0 } else { 0.005 };
        (is_equal != row.reason.is_empty()).then(|| {
            let (launch, metric, silicon, reason) = (row.launch, &row.metric, row.silicon, &row.reason);
            format!("{name},{launch},{metric},{silicon},{reason}: the model has {model}")
        })
    };
    rows.iter().filter_map(check).collect()
}
