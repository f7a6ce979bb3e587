//! The program, line by line, with what each line cost: the source that the compiler was given where the text names it, the PTX,
//! and the machine's own instructions.

use std::collections::BTreeMap;
use std::fmt::Write;

use warpwave_components::sm::subcore::stall::NAMES;

use super::{Page, percent, section, thousands, words};
use crate::report::svg::escape;
use crate::watch::profile::{Cost, SELECTED};

/// Lines of PTX are shown around those that cost something.
const CONTEXT: usize = 3;

/// A line with its cost.
pub(super) struct Line<'a> {
    /// Its number, from 1.
    pub number: usize,
    /// Its text.
    pub text: &'a str,
    /// What it cost.
    pub cost: Cost,
}

/// The line of PTX that costs most.
pub(super) fn hottest<'a>(page: &Page<'a>) -> Option<Line<'a>> {
    let costs = by_line(page);
    let (&number, &cost) = costs
        .iter()
        .max_by_key(|(line, cost)| (cost.total(), std::cmp::Reverse(**line)))?;
    let text = page.scenario.ptx.lines().nth(number.checked_sub(1)?)?;
    Some(Line { number, text, cost })
}

/// Cost of each line of PTX.
fn by_line(page: &Page<'_>) -> BTreeMap<usize, Cost> {
    let mut lines = BTreeMap::<usize, Cost>::new();
    for ((grid, pc), cost) in page.profile.costs() {
        let program = page.programs.get(grid as usize);
        if let Some(inst) = program.and_then(|program| program.code().get(pc as usize)) {
            lines.entry(inst.line as usize).or_default().add(cost);
        }
    }
    lines
}

/// Cost of each line of each source file.
fn by_source(page: &Page<'_>) -> BTreeMap<String, BTreeMap<usize, Cost>> {
    let mut files = BTreeMap::<String, BTreeMap<usize, Cost>>::new();
    for ((grid, pc), cost) in page.profile.costs() {
        let program = page.programs.get(grid as usize);
        if let Some(place) = program.and_then(|program| program.source(pc)) {
            let lines = files.entry(place.file.to_owned()).or_default();
            lines.entry(place.line as usize).or_default().add(cost);
        }
    }
    files
}

pub(super) fn write(out: &mut String, page: &Page<'_>) {
    let total = page.profile.costs().map(|(_, cost)| cost.total()).sum();
    for (file, costs) in by_source(page) {
        section(
            out,
            &format!("Source: {file}"),
            "Each line with the issues of its instructions, and the share of all warps' time that they took: waiting, then issuing.",
        );
        let text = (page.source)(&file);
        let lines: Vec<&str> = text.as_deref().map_or(Vec::new(), |text| text.lines().collect());
        if lines.is_empty() {
            out.push_str(
                "<p class=\"soft\">The file itself is not here; put it beside the scenario to see its text.</p>\n",
            );
        }
        code(out, "source", &lines, &costs, total);
    }
    section(
        out,
        "PTX",
        "Each line with the issues of its instructions, and the share of all warps' time that they took. A wait is the price of the \
         instruction that could not go yet, so what made it wait stands above it.",
    );
    let lines: Vec<&str> = page.scenario.ptx.lines().collect();
    code(out, "ptx", &lines, &by_line(page), total);
    machine(out, page, total);
}

/// A listing. Lines far from any that cost something are left out.
fn code(out: &mut String, anchor: &str, lines: &[&str], costs: &BTreeMap<usize, Cost>, total: u64) {
    head(out, "line");
    let hot = costs.values().map(Cost::total).max().unwrap_or(0);
    let last = lines.len().max(costs.keys().next_back().copied().unwrap_or(0));
    let is_near = |n: usize| costs.range(n.saturating_sub(CONTEXT)..=n + CONTEXT).next().is_some();
    let mut skipped = false;
    for n in (1..=last).filter(|n| *n <= lines.len() || costs.contains_key(n)) {
        if !is_near(n) {
            skipped = true;
            continue;
        }
        if std::mem::take(&mut skipped) {
            out.push_str("<tr><td></td><td></td><td></td><td class=\"text none\">…</td></tr>\n");
        }
        let text = lines.get(n - 1).copied().unwrap_or("");
        let cost = costs.get(&n);
        let is_hot = cost.is_some_and(|cost| cost.total() == hot);
        let class = if is_hot { " class=\"hot\"" } else { "" };
        let _ = write!(out, "<tr id=\"{anchor}-{n}\"{class}><td class=\"n\">{n}</td>");
        row(out, cost, total, hot, text);
    }
    out.push_str("</table></div>\n");
}

fn head(out: &mut String, first: &str) {
    let _ = writeln!(
        out,
        "<div class=\"scroll\"><table class=\"code\">\n<tr><th class=\"n\">{first}</th><th class=\"n\">issues</th><th>time</th><th></th></tr>"
    );
}

/// The cells of a line: issues, time with the state that took most of it, text.
fn row(out: &mut String, cost: Option<&Cost>, total: u64, hot: u64, text: &str) {
    let class = if cost.is_some() { "text" } else { "text none" };
    let Some(cost) = cost else {
        let _ = writeln!(
            out,
            "<td></td><td></td><td class=\"{class}\">{}</td></tr>",
            escape(text)
        );
        return;
    };
    let _ = write!(
        out,
        "<td class=\"n\">{}</td><td class=\"cost\" title=\"{}\"><span class=\"meter\">",
        thousands(cost.issues()),
        escape(&account(cost))
    );
    let mut states: Vec<_> = (0..NAMES.len()).filter(|state| cost.states[*state] > 0).collect();
    states.sort_by_key(|state| std::cmp::Reverse(cost.states[*state]));
    for &state in &states {
        let width = percent(cost.states[state], hot);
        let colour = words::of(NAMES[state]).colour;
        let _ = write!(out, "<i style=\"width:{width:.1}%;background:{colour}\"></i>");
    }
    let share = percent(cost.total(), total);
    let top = states.into_iter().find(|state| *state != SELECTED);
    let why = top.filter(|_| share >= 1.0).map_or("", |state| NAMES[state]);
    let _ = writeln!(
        out,
        "</span>{share:.1} % <span class=\"soft\">{why}</span></td><td class=\"{class}\">{}</td></tr>",
        escape(text)
    );
}

/// All states of a line in words.
fn account(cost: &Cost) -> String {
    let lanes = cost.lanes as f64 / cost.issues().max(1) as f64;
    let mut text = format!("{} warp-cycles, {lanes:.1} lanes an issue", thousands(cost.total()));
    for (name, cycles) in NAMES.iter().zip(cost.states).filter(|(_, cycles)| *cycles > 0) {
        let _ = write!(text, "\n{name}: {:.1} %", percent(cycles, cost.total()));
    }
    text
}

/// The machine's own instructions, folded away; launches of one program together.
fn machine(out: &mut String, page: &Page<'_>, total: u64) {
    let mut programs: Vec<(&str, BTreeMap<u32, Cost>, usize)> = Vec::new();
    for ((grid, pc), cost) in page.profile.costs() {
        let Some(program) = page.programs.get(grid as usize) else {
            continue;
        };
        let place = programs.iter().position(|(name, ..)| *name == program.name());
        let place = place.unwrap_or_else(|| {
            programs.push((program.name(), BTreeMap::new(), grid as usize));
            programs.len() - 1
        });
        programs[place].1.entry(pc).or_default().add(cost);
    }
    for (name, costs, grid) in programs {
        let _ = writeln!(
            out,
            "<details><summary>Machine instructions of {}</summary>",
            escape(name)
        );
        head(out, "pc");
        let hot = costs.values().map(Cost::total).max().unwrap_or(0);
        for (pc, inst) in page.programs[grid].code().iter().enumerate() {
            let _ = write!(out, "<tr><td class=\"n\">{pc}</td>");
            row(out, costs.get(&(pc as u32)), total, hot, &inst.to_string());
        }
        out.push_str("</table></div></details>\n");
    }
}
