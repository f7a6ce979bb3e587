//! A baseline: metrics of each scenario on each GPU, and how far each metric may move.
//!
//! ```toml
//! [tolerance]                            # relative; other metrics are not compared
//! cycles = 0.02
//!
//! [values."kernels/saxpy.toml".tiny]     # written by --bless
//! cycles = 7587
//! ```

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value as Json;
use thiserror::Error;
use toml::Value;

use crate::report::saved::{CYCLES, is_column, launch_of, value};

/// Tolerance of the cycles in a new baseline.
const TOLERANCE: f64 = 0.02;

/// The first lines of the file.
const HEAD: &str = "\
# Metrics of scenarios, for `warpwave test --baseline`. [tolerance] is written by hand: a metric may move by this part of its value.
# [values] is written with --bless.

";

/// The metrics of scenarios.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// Relative tolerance, by metric.
    tolerance: BTreeMap<String, f64>,
    /// Values by scenario, GPU and metric.
    #[serde(default)]
    values: BTreeMap<String, BTreeMap<String, BTreeMap<String, f64>>>,
}

/// The fault of a baseline file.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum BaselineError {
    /// The text is not a baseline.
    #[error("not a baseline: {0}")]
    Syntax(String),
    /// A metric does not exist.
    #[error("tolerance: no metric is named `{0}`; the names are those of `warpwave run --json`")]
    UnknownMetric(String),
    /// A tolerance is not from 0 to 1.
    #[error("tolerance: `{metric}` has {tolerance}; write a number from 0 to 1, such as 0.02")]
    BadTolerance {
        /// The metric.
        metric: String,
        /// Its tolerance.
        tolerance: f64,
    },
    /// No metric is compared.
    #[error("tolerance: it names no metric, so every run would pass; write one, such as cycles = 0.02")]
    NoMetric,
    /// A value is infinite or NaN: no metric is near to it, or every metric.
    #[error("values: `{metric}` of {scenario} has {value}; write it with --bless")]
    BadValue {
        /// The scenario.
        scenario: String,
        /// The metric.
        metric: String,
        /// Its value.
        value: f64,
    },
}

impl Default for Baseline {
    fn default() -> Self {
        Baseline {
            tolerance: BTreeMap::from([(CYCLES.to_owned(), TOLERANCE)]),
            values: BTreeMap::new(),
        }
    }
}

impl Baseline {
    /// Parses the text of a baseline.
    ///
    /// # Errors
    /// If the text has another form, names an unknown metric, or has a tolerance or a value out of range.
    pub fn parse(text: &str) -> Result<Self, BaselineError> {
        let baseline: Baseline = toml::from_str(text).map_err(|error| BaselineError::Syntax(error.to_string()))?;
        if baseline.tolerance.is_empty() {
            return Err(BaselineError::NoMetric);
        }
        for (metric, &tolerance) in &baseline.tolerance {
            if !is_column(metric) {
                return Err(BaselineError::UnknownMetric(metric.clone()));
            }
            if !(0.0..=1.0).contains(&tolerance) {
                return Err(BaselineError::BadTolerance {
                    metric: metric.clone(),
                    tolerance,
                });
            }
        }
        for (scenario, gpus) in &baseline.values {
            let mut values = gpus.values().flatten();
            if let Some((metric, &value)) = values.find(|(_, value)| !value.is_finite()) {
                let (scenario, metric) = (scenario.clone(), metric.clone());
                return Err(BaselineError::BadValue {
                    scenario,
                    metric,
                    value,
                });
            }
        }
        Ok(baseline)
    }

    /// The metrics of a scenario's report that moved beyond their tolerance, one sentence each.
    pub fn check(&self, scenario: &str, report: &Json) -> Vec<String> {
        let moved = self.tolerance.iter().filter_map(|(metric, &tolerance)| {
            // A metric without a kept value is one of `unblessed`.
            let &kept = self.kept(scenario, report)?.get(metric)?;
            let Some(found) = value(report, metric).number() else {
                return Some(format!("{metric} has no value, and the baseline is {kept}"));
            };
            let change = found - kept;
            // The tolerance is relative: near a baseline of 0 is only 0.
            let is_near = change.abs() <= tolerance * kept.abs();
            let percent = if kept == 0.0 { String::new() } else { format!("{:+.1} %, ", change / kept * 100.0) };
            (!is_near).then(|| {
                format!(
                    "{metric} is {found}, and the baseline is {kept} ({percent}tolerance {} %); if that is meant, run with --bless",
                    tolerance * 100.0
                )
            })
        });
        moved.collect()
    }

    /// The metrics of a scenario's report that the baseline has no value for, one sentence each.
    pub fn unblessed(&self, scenario: &str, report: &Json) -> Vec<String> {
        let kept = self.kept(scenario, report);
        let is_unblessed = |metric: &&String| match kept {
            None => true,
            // `not modelled` and `not reached` are no numbers, so --bless wrote no value. To have none in both is no change.
            Some(kept) => !kept.contains_key(*metric) && value(report, metric).number().is_some(),
        };
        let unblessed = self.tolerance.keys().filter(is_unblessed);
        unblessed
            .map(|metric| format!("{metric} on {} has no baseline; write it with --bless", gpu(report)))
            .collect()
    }

    /// The values of a scenario on the GPU of a report.
    fn kept(&self, scenario: &str, report: &Json) -> Option<&BTreeMap<String, f64>> {
        self.values.get(scenario)?.get(gpu(report))
    }

    /// The metrics of a launch that this report does not have, one sentence each.
    pub fn absent(&self, report: &Json) -> Vec<String> {
        let launches = report["launches"].as_array().map_or(0, Vec::len);
        let beyond = |metric: &&String| launch_of(metric).is_some_and(|(launch, _)| launch >= launches);
        let absent = self.tolerance.keys().filter(beyond);
        absent
            .map(|metric| format!("{metric}: launches are counted from 0, and the run has {launches}"))
            .collect()
    }

    /// Replaces a scenario's values on one GPU by those of a report.
    pub fn bless(&mut self, scenario: &str, report: &Json) {
        let numbers = self
            .tolerance
            .keys()
            .filter_map(|metric| Some((metric.clone(), value(report, metric).number()?)));
        let gpus = self.values.entry(scenario.to_owned()).or_default();
        // Replaces all values of this GPU, so a metric without a tolerance drops out.
        gpus.insert(gpu(report).to_owned(), numbers.collect());
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        let numbers = |values: &BTreeMap<String, f64>| -> toml::Table {
            values
                .iter()
                .map(|(name, &number)| (name.clone(), number_value(number)))
                .collect()
        };
        let tolerance = toml::Table::from_iter([("tolerance".to_owned(), Value::Table(numbers(&self.tolerance)))]);
        let mut out = format!("{HEAD}{tolerance}");
        let gpus = |gpus: &BTreeMap<String, BTreeMap<String, f64>>| {
            let all = gpus
                .iter()
                .map(|(gpu, values)| (gpu.clone(), Value::Table(numbers(values))));
            Value::Table(all.collect())
        };
        let scenarios = self.values.iter().map(|(name, all)| (name.clone(), gpus(all)));
        let values: toml::Table = scenarios.collect();
        if !values.is_empty() {
            let values = toml::Table::from_iter([("values".to_owned(), Value::Table(values))]);
            out.push_str(&format!("\n{values}"));
        }
        out
    }
}

fn gpu(report: &Json) -> &str {
    report["gpu"].as_str().unwrap_or_default()
}

/// The TOML value of a number: an integer if the number is whole and not 0, else a float.
fn number_value(number: f64) -> Value {
    // Below 2^53 every whole f64 is exact. 0 stays a float, which keeps the sign of -0.
    let is_whole = number.fract() == 0.0 && number.abs() < 9e15;
    match is_whole && number != 0.0 {
        true => Value::Integer(number as i64),
        false => Value::Float(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(cycles: u64) -> Json {
        serde_json::json!({ "gpu": "tiny", "totals": { "cycles": cycles, "metrics": { "dram__bytes_read.sum": 64 } } })
    }

    #[test]
    fn value_within_the_tolerance_passes_and_one_above_or_below_is_named() {
        let mut baseline = Baseline::default();
        baseline.bless("a.toml", &report(1000));
        assert_eq!(baseline.check("a.toml", &report(1020)), [""; 0]);
        assert_eq!(baseline.check("a.toml", &report(980)), [""; 0]);
        let says = baseline.check("a.toml", &report(1200));
        let wanted =
            "cycles is 1200, and the baseline is 1000 (+20.0 %, tolerance 2 %); if that is meant, run with --bless";
        assert_eq!(says, [wanted]);
        assert_eq!(baseline.check("a.toml", &report(979)).len(), 1);
    }

    #[test]
    fn scenario_without_a_value_is_named() {
        let says = Baseline::default().unblessed("a.toml", &report(5));
        assert_eq!(says, ["cycles on tiny has no baseline; write it with --bless"]);
        assert_eq!(Baseline::default().check("a.toml", &report(5)), [""; 0]);
    }

    #[test]
    fn blessed_values_come_back_from_the_text_and_other_scenarios_stay() {
        let text = "[tolerance]\ncycles = 0.0\n\"dram__bytes_read.sum\" = 0.5\n[values.\"b.toml\".h200]\ncycles = 7\n";
        let mut baseline = Baseline::parse(text).unwrap();
        baseline.bless("a.toml", &report(1000));
        let text = baseline.text();
        assert!(
            text.contains("[values.\"a.toml\".tiny]\ncycles = 1000\n\"dram__bytes_read.sum\" = 64\n"),
            "{text}"
        );
        assert!(text.contains("[values.\"b.toml\".h200]\ncycles = 7\n"), "{text}");
        assert_eq!(Baseline::parse(&text), Ok(baseline));
    }

    #[test]
    fn metric_without_a_number_is_blessed_and_then_holds() {
        let text = "[tolerance]\ncycles = 0.1\n\"dram__bytes_read.sum\" = 0.1\n";
        let mut baseline = Baseline::parse(text).unwrap();
        let metrics = serde_json::json!({ "dram__bytes_read.sum": "not reached" });
        let silent = serde_json::json!({ "gpu": "tiny", "totals": { "cycles": 5, "metrics": metrics } });
        let count = |baseline: &Baseline, report: &Json| {
            let lists = [baseline.unblessed("a.toml", report), baseline.check("a.toml", report)];
            lists.map(|list| list.len())
        };
        assert_eq!(count(&baseline, &silent), [2, 0]);
        baseline.bless("a.toml", &silent);
        let mut baseline = Baseline::parse(&baseline.text()).unwrap();
        assert_eq!(count(&baseline, &silent), [0, 0]);
        // A number in place of none has no baseline. None in place of a number is a change.
        assert_eq!(count(&baseline, &report(5)), [1, 0]);
        baseline.bless("a.toml", &report(5));
        assert_eq!(count(&baseline, &silent), [0, 1]);
    }

    #[test]
    fn metric_of_a_launch_beyond_the_last_one_is_named() {
        let baseline = Baseline::parse("[tolerance]\n\"launch[1].cycles\" = 0.1\n").unwrap();
        let with = |launches| serde_json::json!({ "gpu": "tiny", "launches": vec![serde_json::json!({}); launches] });
        let says = "launch[1].cycles: launches are counted from 0, and the run has 1";
        assert_eq!(baseline.absent(&with(1)), [says]);
        assert_eq!(baseline.absent(&with(2)), [""; 0]);
    }

    #[test]
    fn wrong_file_is_refused_with_its_fault() {
        let says = |text: &str| Baseline::parse(text).unwrap_err().to_string();
        assert!(says("[tolerance]\n").starts_with("tolerance: it names no metric"));
        assert!(says("[tolerances]\n").starts_with("not a baseline: "));
        assert!(says("[tolerance]\ncycle = 0.1\n").contains("no metric is named `cycle`"));
        for value in ["inf", "-inf", "nan"] {
            let text = format!("[tolerance]\ncycles = 0.1\n[values.\"a.toml\".tiny]\ncycles = {value}\n");
            assert!(
                says(&text).starts_with("values: `cycles` of a.toml has "),
                "{}",
                says(&text)
            );
        }
        assert!(says("[tolerance]\ncycles = 2.0\n").contains("`cycles` has 2; write a number from 0 to 1"));
    }
}
