//! `DEVIATIONS.md`: the rows whose error is beyond the aim of their family, each with its reason.

use std::fmt::Write;

use serde::Deserialize;

use super::text::label;
use super::{FAMILIES, Family, Row, Summary};

/// Reasons, by family, GPU and series.
const REASONS: &str = include_str!("../../validation/reasons.toml");

#[derive(Deserialize)]
struct Reasons {
    reason: Vec<Reason>,
}

/// Why rows differ from silicon. A key that is left out matches everything.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reason {
    family: String,
    #[serde(default)]
    gpu: String,
    #[serde(default)]
    series: String,
    text: String,
}

impl Reason {
    fn fits(&self, family: &Family, row: &Row) -> bool {
        let fits = |pattern: &str, text: &str| pattern.is_empty() || pattern == text;
        self.family == family.name && fits(&self.gpu, &row.point.gpu) && fits(&self.series, &row.point.series)
    }
}

/// The page. Families that did not run keep their section of `earlier`.
///
/// # Panics
/// If the file of reasons is not valid.
pub fn deviations(earlier: &str, results: &[(&Family, Vec<Row>)]) -> String {
    let reasons: Reasons = toml::from_str(REASONS).unwrap_or_else(|error| panic!("reasons.toml: {error}"));
    let mut text = "# Deviations from silicon\n\n\
        This page is made by `warpwave validate --write testbench/validation`.\n\n\
        An error is (model - silicon) / silicon. A row stands here if its error is beyond the aim of its family.\n\
        `warpwave validate FAMILY` prints every row.\n"
        .to_owned();
    for family in &FAMILIES {
        let result = results.iter().find(|(ran, _)| ran.name == family.name);
        let section = result.map(|(_, rows)| section(family, rows, &reasons.reason));
        text += &section.unwrap_or_else(|| earlier_section(earlier, family).to_owned());
    }
    text
}

/// The section of a family in an earlier page; empty if there is none.
fn earlier_section<'a>(page: &'a str, family: &Family) -> &'a str {
    let Some(begin) = page.find(&heading(family)) else {
        return "";
    };
    let section = &page[begin..];
    // From 1: the section begins with the same characters.
    let end = section[1..].find("\n## ").map_or(section.len(), |end| end + 1);
    &section[..end]
}

fn heading(family: &Family) -> String {
    format!("\n## {}\n", family.title)
}

/// The section of a family. Rows with the same GPU and series share a line.
fn section(family: &Family, rows: &[Row], reasons: &[Reason]) -> String {
    // A row without a figure needs a reason too.
    let beyond: Vec<_> = rows.iter().filter(|row| family.is_deviation(row)).collect();
    let mut text = heading(family);
    let _ = writeln!(
        text,
        "\n`warpwave validate {}`: {} of {} rows differ by more than {} %{}.",
        family.name,
        beyond.len(),
        rows.len(),
        family.limits.row,
        on_plateaus(family)
    );
    if !beyond.is_empty() {
        text += "\n| GPU | Series | Rows | Errors % | Largest at | Reason |\n|---|---|---|---|---|---|\n";
        text.extend(groups(&beyond).map(|group| line(family, group, reasons)));
    }
    text
}

/// The limit of a plateau, if it differs from the limit of other rows.
fn on_plateaus(family: &Family) -> String {
    let limits = family.limits;
    if limits.plateau == limits.row {
        String::new()
    } else {
        format!(", or by more than {} % on a plateau", limits.plateau)
    }
}

/// Neighbours with the same GPU and series.
fn groups<'a>(rows: &'a [&'a Row]) -> impl Iterator<Item = &'a [&'a Row]> {
    rows.chunk_by(|a, b| (&a.point.gpu, &a.point.series) == (&b.point.gpu, &b.point.series))
}

fn line(family: &Family, group: &[&Row], reasons: &[Reason]) -> String {
    let first = group[0];
    let reason = reasons.iter().find(|reason| reason.fits(family, first));
    let errors: Vec<f64> = group.iter().filter_map(|row| row.error()).collect();
    let (least, most) = errors
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), error| {
            (least.min(*error), most.max(*error))
        });
    let range = match errors.len() {
        0 => "no figure".to_owned(),
        1 => format!("{least:+.1}"),
        _ => format!("{least:+.1} to {most:+.1}"),
    };
    // `Summary` finds the row with the largest error.
    let owned: Vec<Row> = group.iter().map(|row| (*row).clone()).collect();
    let worst = Summary::of(&owned).worst_row;
    format!(
        "| {} | {} | {} | {range} | {} | {} |\n",
        first.point.gpu,
        first.point.series,
        group.len(),
        worst.map_or_else(String::new, |row| label(family, &row)),
        reason.map_or("Cause not found.", |reason| &reason.text)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn family_that_did_not_run_keeps_its_section() {
        let (latency, rate) = (Family::find("latency").unwrap(), Family::find("rate").unwrap());
        let both = deviations("", &[(latency, Vec::new()), (rate, Vec::new())]);
        assert!(both.contains("`warpwave validate rate`: 0 of 0 rows"), "{both}");
        assert_eq!(deviations(&both, &[(latency, Vec::new())]), both);
        assert_eq!(deviations(&both, &[(rate, Vec::new())]), both);
    }
}
