//! Reads a saved report as a stream: a report of thousands of launches is larger than the part of it that a comparison needs.

use std::fmt;
use std::io::{BufReader, Read};

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value as Json, json};

/// Largest saved report in bytes. The most launches of a scenario, 100,000 of 16 kB, fit. It ends an endless file. Assumed.
const MAX_BYTES: u64 = 4 << 30;

/// Keys of a report that a comparison needs as they are.
const KEPT: [&str; 5] = ["scenario", "gpu", "stopped", "totals", "lines"];

/// Reads the parts of a JSON report that a comparison needs. Of a launch these are its phases, and whether it only warms up.
///
/// # Errors
/// If the text is no JSON object, cannot be read, or has more than 4 GiB. The text says why.
pub fn read_report(from: impl Read) -> Result<Json, String> {
    read(from, MAX_BYTES)
}

fn read(from: impl Read, most: u64) -> Result<Json, String> {
    // One byte more shows that the text goes on.
    let mut from = BufReader::new(from.take(most + 1));
    let report: Result<Report, _> = serde_json::from_reader(&mut from);
    if from.get_ref().limit() == 0 {
        return Err(format!(
            "larger than {} MiB, the limit of a saved report; save fewer launches, such as with a smaller `repeat`",
            most >> 20
        ));
    }
    report.map(|report| report.0).map_err(|error| error.to_string())
}

/// A report without the parts that no comparison needs.
struct Report(Json);

impl<'de> Deserialize<'de> for Report {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ReportVisitor)
    }
}

struct ReportVisitor;

impl<'de> Visitor<'de> for ReportVisitor {
    type Value = Report;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a report")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Report, A::Error> {
        let mut report = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "launches" => {
                    report.insert(key, map.next_value::<Launches>()?.0.into());
                }
                kept if KEPT.contains(&kept) => {
                    report.insert(key, map.next_value()?);
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Report(report.into()))
    }
}

/// The launches, one in memory at a time.
struct Launches(Vec<Json>);

impl<'de> Deserialize<'de> for Launches {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(LaunchesVisitor)
    }
}

struct LaunchesVisitor;

impl<'de> Visitor<'de> for LaunchesVisitor {
    type Value = Launches;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("launches")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut launches: A) -> Result<Launches, A::Error> {
        let mut kept = Vec::new();
        while let Some(launch) = launches.next_element::<Json>()? {
            let phases = &launch["diagnosis"]["phases"];
            kept.push(json!({ "warm_up": launch["warm_up"], "diagnosis": { "phases": phases } }));
        }
        Ok(Launches(kept))
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    const TEXT: &str = r#"{
        "scenario": "s", "gpu": "tiny", "latencies": { "cta": [1, 2] }, "stopped": null,
        "launches": [
            { "warm_up": true, "cycles": 7, "diagnosis": { "bound": "latency", "phases": { "launch": 3 } } },
            { "cycles": 9, "metrics": { "a": 1 } }
        ],
        "totals": { "cycles": 9, "metrics": { "a": 1 } }, "lines": [{ "line": 1 }]
    }"#;

    #[test]
    fn report_keeps_what_a_comparison_needs() {
        let report = read(TEXT.as_bytes(), 4096).unwrap();
        let launches = json!([
            { "warm_up": true, "diagnosis": { "phases": { "launch": 3 } } },
            { "warm_up": null, "diagnosis": { "phases": null } },
        ]);
        let expected = json!({
            "scenario": "s", "gpu": "tiny", "stopped": null, "launches": launches,
            "totals": { "cycles": 9, "metrics": { "a": 1 } }, "lines": [{ "line": 1 }],
        });
        assert_eq!(report, expected);
    }

    #[test]
    fn wrong_text_and_an_endless_one_are_refused() {
        let says = |text: &str, most| read(text.as_bytes(), most).unwrap_err();
        assert!(says("[1]", 4096).contains("expected a report"));
        assert!(says("{\"launches\": 3}", 4096).contains("expected launches"));
        assert!(says("{} {}", 4096).contains("trailing characters"));
        let remedy = "the limit of a saved report; save fewer launches";
        assert!(says(TEXT, 100).contains(remedy));
        assert!(read(io::repeat(b' '), 1 << 16).unwrap_err().contains(remedy));
    }
}
