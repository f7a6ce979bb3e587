//! Latency distributions: as a text table, and as percentile files for HdrHistogram's plotters.

use std::io::{self, Write};

use hdrhistogram::Histogram;
use warpwave_hw::stats::Latency;

/// The percentiles of the table, in thousandths.
const PERCENTILES: [(u64, &str); 4] = [(500, "p50"), (900, "p90"), (990, "p99"), (999, "p99.9")];

/// The smallest value that `thousandths` / 1000 of the records do not exceed, in cycles.
pub fn percentile(histogram: &Histogram<u32>, thousandths: u64) -> u64 {
    // The rank is computed in integers. In binary fractions 99.9 % of 1000 is above 999, and its rank would be 1000.
    let rank = (histogram.len() * thousandths).div_ceil(1000).max(1);
    match histogram.len() {
        0 => 0,
        // The middle of the rank's step: rounding cannot reach a neighbour.
        n => histogram.value_at_quantile((rank as f64 - 0.5) / n as f64),
    }
}

/// Writes one row per path: count, minimum, mean, percentiles and maximum, in cycles.
///
/// # Errors
/// If `to` cannot be written.
pub fn table<'a>(to: &mut dyn Write, paths: impl Iterator<Item = (String, &'a Latency)>) -> io::Result<()> {
    write!(to, "{:<20}{:>12}{:>8}{:>10}", "latency", "count", "min", "mean")?;
    PERCENTILES.iter().try_for_each(|(_, name)| write!(to, "{name:>8}"))?;
    writeln!(to, "{:>8}   cycles", "max")?;
    for (path, latency) in paths {
        let histogram = latency.histogram();
        write!(
            to,
            "{path:<20}{:>12}{:>8}{:>10.1}",
            histogram.len(),
            histogram.min(),
            histogram.mean()
        )?;
        for (thousandths, _) in PERCENTILES {
            write!(to, "{:>8}", percentile(&histogram, thousandths))?;
        }
        writeln!(to, "{:>8}", histogram.max())?;
    }
    Ok(())
}

/// Writes HdrHistogram's percentile format (`.hgrm`): value in cycles, percentile, cumulative count, 1/(1-percentile).
///
/// # Errors
/// If `to` cannot be written.
pub fn hgrm(to: &mut dyn Write, latency: &Latency) -> io::Result<()> {
    let histogram = latency.histogram();
    writeln!(
        to,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    )?;
    let mut total = 0;
    for step in histogram.iter_recorded() {
        total += step.count_since_last_iteration();
        let quantile = total as f64 / histogram.len() as f64;
        write!(
            to,
            "{:>12.3} {quantile:>14.12} {total:>10}",
            step.value_iterated_to() as f64
        )?;
        // The last percentile is 100 %: its column would be infinite.
        if total < histogram.len() {
            write!(to, " {:>14.2}", 1.0 / (1.0 - quantile))?;
        }
        writeln!(to)?;
    }
    writeln!(
        to,
        "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]",
        histogram.mean(),
        histogram.stdev()
    )?;
    writeln!(
        to,
        "#[Max     = {:>12.3}, Total count    = {:>12}]",
        histogram.max() as f64,
        histogram.len()
    )?;
    writeln!(
        to,
        "#[Buckets = {:>12}, SubBuckets     = {:>12}]",
        histogram.buckets(),
        // The sub-buckets of a histogram with three significant digits.
        2048
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(values: &[u64]) -> Latency {
        let mut latency = Latency::new();
        values.iter().for_each(|&value| latency.record(value));
        latency
    }

    #[test]
    fn table_of_four_loads_matches_a_hand_count() {
        let loads = recorded(&[30, 30, 30, 410]);
        let mut text = Vec::new();
        table(&mut text, [("l1_hit".to_owned(), &loads)].into_iter()).unwrap();
        let text = String::from_utf8(text).unwrap();
        let row: Vec<_> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(row, ["l1_hit", "4", "30", "125.0", "30", "410", "410", "410", "410"]);
    }

    #[test]
    fn percentiles_of_1_to_1000_are_the_values_that_so_many_do_not_exceed() {
        let latencies = recorded(&(1..=1000).collect::<Vec<_>>());
        let mut text = Vec::new();
        table(&mut text, [("hbm".to_owned(), &latencies)].into_iter()).unwrap();
        let text = String::from_utf8(text).unwrap();
        let row: Vec<_> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(row, ["hbm", "1000", "1", "500.5", "500", "900", "990", "999", "1000"]);
    }

    #[test]
    fn percentile_file_has_a_line_per_value_and_no_fourth_column_in_the_last() {
        let mut text = Vec::new();
        hgrm(&mut text, &recorded(&[30, 30, 30, 410])).unwrap();
        let text = String::from_utf8(text).unwrap();
        let rows: Vec<Vec<_>> = text
            .lines()
            .skip(2)
            .take(2)
            .map(|row| row.split_whitespace().collect())
            .collect();
        assert_eq!(rows[0], ["30.000", "0.750000000000", "3", "4.00"]);
        assert_eq!(rows[1], ["410.000", "1.000000000000", "4"]);
        assert!(
            text.contains("#[Max     =      410.000, Total count    =            4]"),
            "{text}"
        );
    }
}
