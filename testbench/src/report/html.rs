//! The HTML page of a run: one file without network access or scripts, for screens, phones and paper.
//!
//! ```text
//! diagnosis | each launch | roofline | where warps spent their cycles | over time | memory | latencies | source | machine code
//! ```
//!
//! Input: a [`Page`]. Output: markup, identical for identical runs. [`maud`] escapes every text.

mod calculator;
mod latencies;
mod launches;
mod memory;
mod roofline;
mod source;
pub(crate) mod stall_text;
mod stalls;
mod summary;
mod timeline;

use std::sync::Arc;

use maud::{Markup, PreEscaped, html};
use warpwave_isa::program::Program;

use crate::bench::Run;
use crate::report::diagnosis;
use crate::scenario::Scenario;
use crate::watch::profile::Profile;
use crate::watch::requests::Requests;

/// The style sheet of the page.
const STYLE: &str = include_str!("html/style.css");

/// The contents of a page.
pub struct Page<'a> {
    /// The scenario that ran.
    pub scenario: &'a Scenario,
    /// Launches and counters of the run.
    pub run: &'a Run,
    /// The program of each launch.
    pub programs: &'a [Arc<Program>],
    /// Warp-cycles by instruction and over time.
    pub profile: &'a Profile,
    /// Latencies of requests.
    pub requests: &'a Requests,
    /// Reads a source file that the program names. `None` if it does not exist.
    pub source: &'a dyn Fn(&str) -> Option<String>,
}

/// Returns the HTML text of the page.
pub fn write(page: &Page<'_>) -> String {
    let diagnoses = diagnosis::of_run(page.run);
    let markup = html! {
        (PreEscaped("<!doctype html>"))
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (page.scenario.name) " on " (page.run.config.name) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    (summary::markup(page, &diagnoses))
                    @if !page.run.launches.is_empty() {
                        (launches::markup(page, &diagnoses))
                        (roofline::markup(page))
                        (stalls::markup(page))
                        (timeline::markup(page))
                        (memory::markup(page))
                        (latencies::markup(page))
                        (source::markup(page))
                    }
                }
            }
        }
    };
    markup.into_string()
}

/// The heading of a section, with a sentence that explains it.
fn heading(title: &str, how: &str) -> Markup {
    html! {
        h2 { (title) }
        p.how { (how) }
    }
}

/// A chart that scrolls if it is wider than the window.
fn chart(svg: &Markup) -> Markup {
    html! { div.chart { (svg) } }
}

/// A text with a capital at its begin.
fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// An integer with a narrow space between thousands.
fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            // A narrow space that does not break.
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// `part` of `whole` in per cent. 0 if `whole` is 0.
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 * 100.0 / whole as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        let separated: Vec<_> = [0, 999, 1000, 1_234_567]
            .map(|n| thousands(n).replace('\u{202f}', "'"))
            .into();
        assert_eq!(separated, ["0", "999", "1'000", "1'234'567"]);
    }
}
