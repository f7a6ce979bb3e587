//! Compares two runs: metric by metric, and PTX line by line, the largest difference first, with a sentence on what changed most.
//!
//! ```text
//! Side A: report, costs of lines --+
//!                                  +── Comparison ──> text, JSON, page
//! Side B: report, costs of lines --+
//! ```
//!
//! A side is a run of a scenario, or a saved JSON report. A report saved with `--no-lines` has no lines.

mod lines;

mod metric_rows;

mod sentence;

mod text;

mod page;

mod saved;

pub use lines::{LineRow, Lines};
pub use metric_rows::MetricRow;
pub use page::page;
pub use saved::read_report;

use serde::Serialize;
use serde_json::Value as Json;

use crate::report::saved::{CYCLES, value};

/// One of the two runs.
#[derive(Clone, Debug)]
pub struct Side {
    /// What ran: scenario, GPU and changed preset keys.
    pub name: String,
    /// The report of `warpwave run --json`, or what [`read_report`] keeps of it.
    pub report: Json,
    /// The costs of the PTX lines. `None` for a report that was saved without them.
    pub lines: Option<Lines>,
}

/// The differences of two runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// What ran as A.
    pub a: String,
    /// What ran as B.
    pub b: String,
    /// What changed most.
    pub sentence: String,
    /// Cycles of A and B.
    pub cycles: [f64; 2],
    /// Number of metrics with the same value.
    pub equal_metrics: usize,
    /// The metrics that differ, the largest relative difference first.
    pub metrics: Vec<MetricRow>,
    /// The lines of PTX that differ, the largest difference in warp-cycles first. Empty without lines on both sides.
    pub lines: Vec<LineRow>,
}

impl Comparison {
    /// Compares two runs.
    pub fn new(a: &Side, b: &Side) -> Self {
        let cycles = [a, b].map(|side| value(&side.report, CYCLES).number().unwrap_or(0.0));
        let (metrics, equal_metrics) = metric_rows::rows(&a.report, &b.report);
        let lines = match (&a.lines, &b.lines) {
            (Some(a), Some(b)) => lines::rows(a, b),
            _ => Vec::new(),
        };
        Comparison {
            a: a.name.clone(),
            b: b.name.clone(),
            sentence: sentence::sentence(&a.report, &b.report, cycles, &metrics, &lines),
            cycles,
            equal_metrics,
            metrics,
            lines,
        }
    }
}
