//! The page of all metrics in Markdown, as `warpwave explain --all` prints it.

use std::fmt::Write;

use warpwave_components::sm::subcore::stall;

use super::super::html::stall_text;
use super::super::stalls::STATES;
use super::{Metric, stall_rows, table};

/// The head of the page.
const HEAD: &str = "\
# Metrics

This page is made by `cargo run --release -- explain --all`, so it may be longer than the other pages.

Names and units are those of Nsight Compute. The definitions and formulas are this machine's own. A formula names preset keys
(`warpwave gpus NAME` lists them) and the counters of the component in the last column.
A value is a number, `not modelled` if no component counts it, or `not reached` if the formula divides by zero.
`--json` writes every metric for each launch and for all launches together. An `[[assert]]` can bound any of them.
";

/// The head of the section on warp states.
const STATES_HEAD: &str = "
## States of a warp

A resident warp is in exactly one state in each cycle: the first row of this table that applies. So the states add up to
the resident cycles. `selected` is an issue. In `not_selected` the warp was ready, and another one issued. Other states are stalls.

| State | A warp in it | What helps |
|---|---|---|
";

/// The page as Markdown text.
pub fn page() -> String {
    let mut out = HEAD.to_owned();
    for (title, metrics) in table::parts() {
        section(&mut out, title, &metrics);
    }
    out.push_str(STATES_HEAD);
    for (state, _) in STATES {
        let text = stall_text::of(state);
        let note = if stall::NAMES.contains(&state) {
            ""
        } else {
            " (not modelled)"
        };
        let _ = writeln!(out, "| `{state}`{note} | {} | {} |", text.means, text.advice);
    }
    // One state stands for all 18: their metrics differ only in the name.
    let [(state, counter), ..] = STATES;
    let title = format!("Metrics of each state, with `{state}` as the example");
    section(&mut out, &title, &stall_rows(state, counter));
    out
}

/// The text about one warp state. `None` for a word that is no state.
pub fn state(name: &str) -> Option<String> {
    let (state, counter) = STATES.into_iter().find(|(state, _)| *state == name)?;
    let text = stall_text::of(state);
    let note = match stall::NAMES.contains(&state) {
        true => "",
        false => "This machine has no queue of its own for them, so no warp is in this state.\n\n",
    };
    let meaning = format!("A warp in it {}.\n\n{note}what helps {}\n", text.means, text.advice);
    let metrics = stall_rows(state, counter).map(|metric| format!("metric     {}\n", metric.name));
    Some(format!("{state} (state of a warp)\n\n{meaning}{}", metrics.concat()))
}

/// The names of all warp states.
pub fn states() -> [&'static str; STATES.len()] {
    STATES.map(|(state, _)| state)
}

fn section(out: &mut String, title: &str, metrics: &[Metric]) {
    let _ = writeln!(
        out,
        "\n## {title}\n\n| Metric | Unit | Definition | Formula | Counted by |\n|---|---|---|---|---|"
    );
    for metric in metrics {
        let Metric {
            name,
            unit,
            component,
            definition,
            formula,
            ..
        } = metric;
        let _ = writeln!(out, "| `{name}` | {unit} | {definition} | {formula} | {component} |");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_every_table_has_as_many_cells_as_its_head() {
        let page = page();
        let mut cells = 0;
        for line in page.lines() {
            let found = line.matches('|').count();
            if found > 0 && cells > 0 {
                assert_eq!(found, cells, "{line}");
            }
            cells = found;
        }
    }

    #[test]
    fn every_state_has_a_meaning_and_an_advice() {
        for (name, _) in STATES {
            let text = state(name).unwrap();
            assert!(!text.contains("A warp in it waited.\n"), "{text}");
            let advice = text.lines().find_map(|line| line.strip_prefix("what helps "));
            assert!(advice.is_some_and(|advice| !advice.is_empty()), "{text}");
        }
        let texture = state("tex_throttle").unwrap();
        assert!(
            texture.contains("texture fetch") && texture.contains("no warp is in this state"),
            "{texture}"
        );
    }

    #[test]
    fn every_metric_and_every_state_is_on_the_page() {
        let page = page();
        let metrics = table::parts().flat_map(|(_, metrics)| metrics);
        let names = metrics
            .map(|metric| metric.name)
            .chain(STATES.map(|(state, _)| state.to_owned()));
        for name in names {
            assert!(page.contains(&format!("| `{name}`")), "{name}");
        }
    }
}
