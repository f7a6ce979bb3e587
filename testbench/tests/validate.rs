//! Validation: recorded errors, and the model's figures for instructions with a known answer.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use warpwave::validate::{FAMILIES, Family, Lab, Row, Summary, differences};

const ALL: &str = include_str!("../validation/all.csv");
const QUICK: &str = include_str!("../validation/quick.csv");
const DEVIATIONS: &str = include_str!("../validation/DEVIATIONS.md");
const REASONS: &str = include_str!("../validation/reasons.toml");
const README: &str = include_str!("../../README.md");

fn run(name: &str, keep: impl Fn(&str) -> bool) -> Vec<Row> {
    let family = Family::find(name).unwrap();
    let points = family
        .points()
        .into_iter()
        .filter(|point| keep(&point.series))
        .collect();
    family.run(&Lab::default(), points, NonZeroUsize::MIN, |_, _| true)
}

#[test]
fn records_have_every_family_with_all_its_rows() {
    for family in &FAMILIES {
        let (all, quick): (Vec<_>, Vec<_>) = (
            family.points(),
            family
                .points()
                .into_iter()
                .filter(|point| family.is_quick(point))
                .collect(),
        );
        for (record, points) in [(ALL, all), (QUICK, quick)] {
            let begin = format!("{},{},", family.name, points.len());
            assert!(
                record.lines().any(|line| line.starts_with(&begin)),
                "{begin} in\n{record}"
            );
            assert!(!points.is_empty(), "{} has no rows", family.name);
        }
        let heading = format!("## {}\n", family.title);
        assert!(DEVIATIONS.contains(&heading), "DEVIATIONS.md lacks {heading}");
    }
}

#[test]
fn reasons_of_the_page_are_those_of_the_list() {
    let reasons: toml::Table = REASONS.parse().unwrap();
    let texts: Vec<&str> = reasons["reason"]
        .as_array()
        .unwrap()
        .iter()
        .map(|reason| reason["text"].as_str().unwrap())
        .collect();
    let rows = DEVIATIONS
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| GPU"));
    for row in rows {
        let reason = row.trim_end_matches(" |").rsplit("| ").next().unwrap();
        assert!(
            reason == "Cause not found." || texts.contains(&reason),
            "write DEVIATIONS.md again: {row}"
        );
    }
    for text in texts {
        assert!(DEVIATIONS.contains(text), "no row has this reason: {text}");
    }
}

#[test]
fn readme_gives_the_recorded_medians() {
    let median = |line: &str| line.split(',').nth(2).unwrap().parse::<f64>().unwrap();
    let rows: Vec<(&str, f64)> = ALL
        .lines()
        .skip(1)
        .map(|line| (line.split(',').next().unwrap(), median(line)))
        .collect();
    let least = rows.iter().map(|row| row.1).fold(f64::INFINITY, f64::min);
    let (family, most) = rows.iter().max_by(|one, other| one.1.total_cmp(&other.1)).unwrap();
    let kernels = ALL.lines().find(|line| line.starts_with("kernels,")).unwrap();
    let n_kernels = kernels.split(',').nth(1).unwrap();
    let line = format!(
        "Median errors: {least:.0} % (latencies) to {most:.0} % ({family}), by family; {:.0} % for {n_kernels} kernels",
        median(kernels)
    );
    let words: Vec<&str> = README.split_whitespace().collect();
    assert!(words.join(" ").contains(&line), "README.md lacks: {line}");
}

#[test]
fn errors_of_instructions_are_the_recorded_ones() {
    // The other families take longer: `.ci/run` compares them with an optimised build.
    for name in ["latency", "rate", "tensor", "cluster"] {
        let results = [(Family::find(name).unwrap(), Summary::of(&run(name, |_| true)))];
        assert_eq!(differences(QUICK, &results), [""; 0]);
    }
}

#[test]
fn chain_of_an_instruction_costs_the_latency_of_its_pipe() {
    // jia18, table 4.1 (V100): the presets take their latencies from it, so the kernels must give them back.
    let published = BTreeMap::from([
        ("FFMA", 4.0),
        ("IMAD", 5.0),
        ("DFMA", 8.0),
        ("HFMA2", 6.0),
        ("MUFU.EX2", 14.0),
    ]);
    let rows = run("latency", |series| published.contains_key(series));
    let v100: Vec<_> = rows.iter().filter(|row| row.point.gpu == "v100-sxm2").collect();
    assert_eq!(v100.len(), published.len());
    for row in v100 {
        assert_eq!(
            row.model,
            Ok(published[row.point.series.as_str()]),
            "{}",
            row.point.series
        );
    }
}

#[test]
fn change_of_a_preset_key_moves_the_figure() {
    let family = Family::find("latency").unwrap();
    let is_chain = |row: &warpwave::validate::Point| row.gpu == "v100-sxm2" && row.series == "FFMA";
    let points: Vec<_> = family.points().into_iter().filter(is_chain).collect();
    let lab = Lab::with_sets(vec![("sm.pipes.fp32.latency".to_owned(), "7".to_owned())]);
    let rows = family.run(&lab, points.clone(), NonZeroUsize::MIN, |_, _| true);
    assert_eq!(rows[0].model, Ok(7.0));
    // A key that does not exist is told in the row.
    let lab = Lab::with_sets(vec![("sm.pipes.fp99.latency".to_owned(), "7".to_owned())]);
    let rows = family.run(&lab, points, NonZeroUsize::MIN, |_, _| true);
    assert!(
        rows[0].model.as_ref().is_err_and(|reason| reason.contains("fp99")),
        "{:?}",
        rows[0].model
    );
}
