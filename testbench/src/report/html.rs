//! A run as one page that needs nothing else: no network, no script; made for a screen, a phone, and paper.
//!
//! ```text
//! summary | where warps spent their cycles | over time | memory | latencies | source, line by line | machine code
//! ```
//!
//! Takes a [`Page`]; promises markup in which every text from outside is escaped, the same for the same run.

mod findings;
mod latencies;
mod memory;
mod source;
mod stalls;
mod summary;
mod timeline;
pub(super) mod words;

use std::fmt::Write;
use std::sync::Arc;

use warpwave_isa::program::Program;

use super::svg::escape;
use crate::bench::Run;
use crate::scenario::Scenario;
use crate::watch::profile::Profile;
use crate::watch::requests::Requests;

/// Looks of the page.
const STYLE: &str = include_str!("html/style.css");

/// What a page shows.
pub struct Page<'a> {
    /// What was run.
    pub scenario: &'a Scenario,
    /// What was counted.
    pub run: &'a Run,
    /// Programs of the launches.
    pub programs: &'a [Arc<Program>],
    /// What instructions cost.
    pub profile: &'a Profile,
    /// Latencies.
    pub requests: &'a Requests,
    /// The text of a source file that the program names, where it can be had.
    pub source: &'a dyn Fn(&str) -> Option<String>,
}

/// The page.
pub fn write(page: &Page<'_>) -> String {
    let name = escape(&page.scenario.name);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{name} on {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n",
        escape(&page.run.config.name)
    );
    summary::write(&mut out, page);
    if !page.run.launches.is_empty() {
        stalls::write(&mut out, page);
        timeline::write(&mut out, page);
        memory::write(&mut out, page);
        latencies::write(&mut out, page);
        source::write(&mut out, page);
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

/// A part of the page with its heading and a sentence that says how to read it.
fn section(out: &mut String, title: &str, how: &str) {
    let _ = writeln!(out, "<h2>{}</h2>\n<p class=\"how\">{how}</p>", escape(title));
}

/// A chart that scrolls where it does not fit.
fn chart(out: &mut String, svg: &str) {
    let _ = writeln!(out, "<div class=\"chart\">{svg}</div>");
}

/// A whole number with its thousands apart.
fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// So much of a whole, in per cent.
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
    fn thousands_stand_apart() {
        let apart: Vec<_> = [0, 999, 1000, 1_234_567]
            .map(|n| thousands(n).replace('\u{202f}', "'"))
            .into();
        assert_eq!(apart, ["0", "999", "1'000", "1'234'567"]);
    }
}
