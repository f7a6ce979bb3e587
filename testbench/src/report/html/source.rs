//! Listings with the cost of each line: source files named in the PTX, the PTX, and the machine instructions.

use std::collections::BTreeMap;
use std::fmt::Write;

use maud::{Markup, html};
use warpwave_components::sm::subcore::stall::NAMES;

use super::{Page, heading, percent, stall_text, thousands};
use crate::watch::profile::{Cost, SELECTED};

/// Number of lines shown before and after a line with a cost.
const CONTEXT: usize = 3;

/// A line of PTX with its cost.
pub(super) struct Line<'a> {
    /// Its file, if the scenario names several.
    pub file: Option<&'a str>,
    /// Its number in the file, from 1.
    pub number: usize,
    /// Its text.
    pub text: &'a str,
    /// Its warp-cycles.
    pub cost: Cost,
}

/// The line of PTX with the highest cost.
pub(super) fn hottest<'a>(page: &Page<'a>) -> Option<Line<'a>> {
    let costs = by_line(page);
    let (&number, &cost) = costs
        .iter()
        // Among equal costs the first line wins, so that the page is deterministic.
        .max_by_key(|(line, cost)| (cost.total(), std::cmp::Reverse(**line)))?;
    let text = page.scenario.ptx.lines().nth(number.checked_sub(1)?)?;
    let place = page
        .scenario
        .modules
        .as_ref()
        .map(|modules| modules.place(number as u32));
    Some(Line {
        file: place.map(|(file, _)| file),
        number: place.map_or(number, |(_, line)| line as usize),
        text,
        cost,
    })
}

/// What the anchors of the lines of a PTX file begin with. `file` is its path, if the scenario names several.
pub(super) fn ptx_anchor(file: Option<&str>) -> String {
    file.map_or_else(|| "ptx".to_owned(), |file| format!("ptx-{file}"))
}

/// The listings of the PTX, one for each file.
fn ptx_listings(page: &Page<'_>, total: u64) -> Markup {
    let costs = by_line(page);
    let Some(modules) = &page.scenario.modules else {
        let lines: Vec<&str> = page.scenario.ptx.lines().collect();
        return listing(&ptx_anchor(None), &lines, &costs, total);
    };
    let mut of_file = BTreeMap::<&str, BTreeMap<usize, Cost>>::new();
    for (&number, cost) in costs.iter().filter(|(number, _)| **number > 0) {
        let (file, line) = modules.place(number as u32);
        of_file.entry(file).or_default().insert(line as usize, *cost);
    }
    html! {
        @for (file, text) in modules.parts() {
            @if let Some(costs) = of_file.get(file) {
                h3 { (file) }
                (listing(&ptx_anchor(Some(file)), &text.lines().collect::<Vec<_>>(), costs, total))
            }
        }
    }
}

/// Cost of each line of PTX, by its number.
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

/// Cost of each line of each source file, by file and number.
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

pub(super) fn markup(page: &Page<'_>) -> Markup {
    // Shares are of all warps' time, also in a file that few instructions name.
    let total = page.profile.costs().map(|(_, cost)| cost.total()).sum();
    html! {
        @for (n, (file, costs)) in (1..).zip(by_source(page)) { (source(page, (n, &file), &costs, total)) }
        (heading(
            "PTX",
            "Each line with the issues of its instructions, and the share of all warps' time that they took. A wait is charged \
             to the instruction that waited; its cause is on an earlier line.",
        ))
        (ptx_listings(page, total))
        @for code in machine_code(page) { (machine_listing(page, &code, total)) }
    }
}

/// The listing of source file number `n`. Without its text, it has only line numbers.
fn source(page: &Page<'_>, (n, file): (usize, &str), costs: &BTreeMap<usize, Cost>, total: u64) -> Markup {
    let text = (page.source)(file);
    let lines: Vec<&str> = text.as_deref().map_or(Vec::new(), |text| text.lines().collect());
    html! {
        (heading(
            &format!("Source: {file}"),
            "For each line: the issues of its instructions, and their share of all warp-cycles (stalls before the issue, and the issue).",
        ))
        @if lines.is_empty() {
            p.soft { "The file was not found. Put it beside the scenario to see its text." }
        }
        // By number: a path may have characters that no anchor has.
        (listing(&format!("source-{n}"), &lines, costs, total))
    }
}

/// A listing with its costs. Lines more than [`CONTEXT`] lines away from any cost are left out.
fn listing(anchor: &str, lines: &[&str], costs: &BTreeMap<usize, Cost>, total: u64) -> Markup {
    let hot = costs.values().map(Cost::total).max().unwrap_or(0);
    let last = lines.len().max(costs.keys().next_back().copied().unwrap_or(0));
    let is_near = |n: usize| costs.range(n.saturating_sub(CONTEXT)..=n + CONTEXT).next().is_some();
    // Without the file's text, only lines with a cost exist.
    let exists = |n: &usize| *n <= lines.len() || costs.contains_key(n);
    let shown: Vec<usize> = (1..=last).filter(exists).filter(|n| is_near(*n)).collect();
    // Finds the nearest earlier line that exists, for each shown line.
    let previous = |n: usize| (1..n).rev().find(exists);
    html! {
        div.scroll {
            table.code {
                (columns("line"))
                @for &n in &shown {
                    // A mark for the lines left out.
                    @if previous(n).is_some_and(|before| !is_near(before)) {
                        tr { td {} td {} td {} td.text.none { "…" } }
                    }
                    @let cost = costs.get(&n);
                    @let is_hot = cost.is_some_and(|cost| cost.total() == hot);
                    tr id={ (anchor) "-" (n) } class=[is_hot.then_some("hot")] {
                        td.n { (n) }
                        (cells(cost, total, hot, lines.get(n - 1).copied().unwrap_or("")))
                    }
                }
            }
        }
    }
}

fn columns(first: &str) -> Markup {
    html! {
        tr { th.n { (first) } th.n { "issues" } th { "time" } th {} }
    }
}

/// The cells of a line: issues, time with its main stall state, text.
fn cells(cost: Option<&Cost>, total: u64, hot: u64, text: &str) -> Markup {
    let Some(cost) = cost else {
        return html! { td {} td {} td.text.none { (text) } };
    };
    let mut states: Vec<_> = (0..NAMES.len()).filter(|state| cost.states[*state] > 0).collect();
    states.sort_by_key(|state| std::cmp::Reverse(cost.states[*state]));
    let share = percent(cost.total(), total);
    let top = states.iter().find(|state| **state != SELECTED);
    // The state of a cheap line would be noise.
    let why = top.filter(|_| share >= 1.0).map_or("", |state| NAMES[*state]);
    html! {
        td.n { (thousands(cost.issues())) }
        td.cost title=(account(cost)) {
            span.meter {
                @for &state in &states {
                    @let width = percent(cost.states[state], hot);
                    i style={ "width:" (format_args!("{width:.1}")) "%;background:" (stall_text::of(NAMES[state]).colour) } {}
                }
            }
            (format_args!("{share:.1} % ")) span.soft { (why) }
        }
        td.text { (text) }
    }
}

/// The tooltip of a line: its warp-cycles, lanes per issue, and the share of each state.
fn account(cost: &Cost) -> String {
    let lanes = cost.lanes as f64 / cost.issues().max(1) as f64;
    let mut text = format!("{} warp-cycles, {lanes:.1} lanes an issue", thousands(cost.total()));
    for (name, cycles) in NAMES.iter().zip(cost.states).filter(|(_, cycles)| *cycles > 0) {
        let _ = write!(text, "\n{name}: {:.1} %", percent(cycles, cost.total()));
    }
    text
}

/// The costs of a program's machine instructions, by index. Launches of the same program are added up.
struct MachineCode {
    /// Index of the program.
    program: usize,
    costs: BTreeMap<u32, Cost>,
}

fn machine_code(page: &Page<'_>) -> Vec<MachineCode> {
    let mut all = Vec::<MachineCode>::new();
    for ((grid, pc), cost) in page.profile.costs() {
        let Some(program) = page.programs.get(grid as usize) else {
            continue;
        };
        let place = all
            .iter()
            .position(|code| page.programs[code.program].name() == program.name());
        let place = place.unwrap_or_else(|| {
            all.push(MachineCode {
                program: grid as usize,
                costs: BTreeMap::new(),
            });
            all.len() - 1
        });
        // Equal names mean equal code: all launches share one module.
        all[place].costs.entry(pc).or_default().add(cost);
    }
    all
}

/// The listing of a program's machine instructions, collapsed.
fn machine_listing(page: &Page<'_>, code: &MachineCode, total: u64) -> Markup {
    let program = &page.programs[code.program];
    let hot = code.costs.values().map(Cost::total).max().unwrap_or(0);
    html! {
        details {
            summary { "Machine instructions of " (program.name()) }
            div.scroll {
                table.code {
                    (columns("pc"))
                    @for (pc, inst) in (0..).zip(program.code()) {
                        tr {
                            td.n { (pc) }
                            (cells(code.costs.get(&pc), total, hot, &inst.to_string()))
                        }
                    }
                }
            }
        }
    }
}
