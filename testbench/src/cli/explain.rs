//! `warpwave explain`: a metric, a warp state, a preset key, or a word or label of a report.

use std::fmt::Write;

use warpwave::report::{glossary, metrics};
use warpwave::scenario::nearest;
use warpwave_components::config::doc::{KeyDoc, key_doc};
use warpwave_components::preset::{self, SourcedValue};

use super::failure::Failure;
use super::print;

/// Explains one word, or prints the page of all metrics.
pub fn explain(word: Option<&str>) -> Result<(), Failure> {
    let Some(word) = word else {
        return print(&metrics::page());
    };
    let text = match metrics::find(glossary::metric_of(word).unwrap_or(word)) {
        Some(metric) => Some(format!(
            "{}\n\n{}\n\nunit       {}\nformula    {}\ncomponent  {}\n",
            metric.name, metric.definition, metric.unit, metric.formula, metric.component
        )),
        // A report may write a state in capitals, as the profiler does.
        None => metrics::state(&word.to_ascii_lowercase()).or(preset_key(word)?),
    };
    // A word may be a state and a path of latencies.
    let meanings = glossary::meanings(word)
        .into_iter()
        .map(|meaning| format!("{word} ({meaning})\n"));
    let all: Vec<String> = text.into_iter().chain(meanings).collect();
    match all.is_empty() {
        true => Err(unknown(word)),
        false => print(&all.join("\n")),
    }
}

/// The meaning of a key, and its value in every built-in preset with its source and grade. `None` if no preset has the key.
fn preset_key(key: &str) -> Result<Option<String>, Failure> {
    let Some(KeyDoc { text, unit }) = key_doc(key) else {
        return Ok(None);
    };
    let mut out = format!("{key} (preset key): change it with --set {key}=VALUE\n\n{text}\n\nunit  {unit}\n\n");
    for name in preset::names() {
        let preset = preset::load(name, &[]).map_err(Failure::input)?;
        let Some(row) = preset.sources.iter().find(|row| row.key == key) else {
            // All presets have the same keys, so the first one decides.
            return Ok(None);
        };
        let SourcedValue {
            value,
            source,
            grade,
            note,
            ..
        } = row;
        let grade = if grade.is_empty() {
            String::new()
        } else {
            format!(" ({grade})")
        };
        let line = format!("{name:<14} {value:>12}  {source}{grade}  {note}");
        let _ = writeln!(out, "{}", line.trim_end());
    }
    Ok(Some(out))
}

/// The failure for a word that is nothing known, with the most similar one.
fn unknown(word: &str) -> Failure {
    let words: Vec<_> = glossary::words().chain(glossary::labels()).collect();
    let metrics = metrics::all();
    let states = metrics::states();
    // All presets have the same keys, so any one serves.
    let keys = preset::load(preset::names()[0], &[]).map_or_else(|_| Vec::new(), |preset| preset.sources);
    let known = states.into_iter().chain(keys.iter().map(|row| row.key.as_str()));
    let known = known
        .chain(words)
        .chain(metrics.iter().map(|metric| metric.name.as_str()));
    let hint = nearest(word, known).map_or_else(
        || "; `explain --all` lists the metrics, and `gpus tiny` the keys".to_owned(),
        |name| format!("; did you mean `{name}`?"),
    );
    Failure::input(format!(
        "no metric, warp state, preset key or word of a report is named `{word}`{hint}"
    ))
}

/// The failure for an unknown metric, with the most similar name.
pub fn unknown_metric(name: &str) -> Failure {
    let hint = nearest(name, metrics::all().iter().map(|metric| metric.name.as_str()));
    let hint = hint.map_or_else(
        || "; the names are those of Nsight Compute, as `warpwave run --json` writes them".to_owned(),
        |name| format!("; did you mean `{name}`?"),
    );
    Failure::input(format!("no metric is named `{name}`{hint}"))
}
