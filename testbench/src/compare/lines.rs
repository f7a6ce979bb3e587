//! Costs of PTX lines on two sides. Two texts are aligned as `diff` does, so a line keeps its partner when other lines are
//! added.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use similar::{Algorithm, DiffOp, capture_diff_slices};
use warpwave_components::sm::subcore::stall::NAMES;
use warpwave_isa::program::Program;

use crate::scenario::Scenario;
use crate::watch::profile::{Cost, Profile, SELECTED};

/// The PTX of a run, and the cost of each line. Empty lines are left out.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Lines(Vec<Line>);

/// A line of PTX with its cost.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(from = "SavedLine", into = "SavedLine")]
struct Line {
    /// The file, if the program has several.
    file: Option<String>,
    /// Number of the line in its file, from 1.
    number: usize,
    text: String,
    cost: Cost,
}

/// A line in a JSON report. States without warp-cycles are left out.
#[derive(Serialize, Deserialize)]
struct SavedLine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    line: usize,
    text: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    thread_instructions: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    warp_cycles: BTreeMap<String, u64>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl From<Line> for SavedLine {
    fn from(line: Line) -> Self {
        let states = NAMES.iter().zip(line.cost.states).filter(|(_, cycles)| *cycles > 0);
        SavedLine {
            file: line.file,
            line: line.number,
            text: line.text,
            thread_instructions: line.cost.lanes,
            warp_cycles: states.map(|(name, cycles)| ((*name).to_owned(), cycles)).collect(),
        }
    }
}

impl From<SavedLine> for Line {
    fn from(saved: SavedLine) -> Self {
        let of = |name: &&str| saved.warp_cycles.get(*name).copied().unwrap_or(0);
        let mut cost = Cost {
            lanes: saved.thread_instructions,
            ..Cost::default()
        };
        cost.states
            .iter_mut()
            .zip(NAMES.iter())
            .for_each(|(state, name)| *state = of(name));
        Line {
            file: saved.file,
            number: saved.line,
            text: saved.text,
            cost,
        }
    }
}

impl Lines {
    /// The lines of a run, over all launches.
    pub fn new(scenario: &Scenario, programs: &[Arc<Program>], profile: &Profile) -> Self {
        let mut costs = BTreeMap::<usize, Cost>::new();
        for ((launch, pc), cost) in profile.costs() {
            let program = programs.get(launch as usize);
            if let Some(inst) = program.and_then(|program| program.code().get(pc as usize)) {
                costs.entry(inst.line as usize).or_default().add(cost);
            }
        }
        let line = |(index, text): (usize, &str)| {
            let number = index + 1;
            let module = scenario.modules.as_ref().map(|modules| modules.place(number as u32));
            Line {
                file: module.map(|(file, _)| file.to_owned()),
                number: module.map_or(number, |(_, line)| line as usize),
                text: plain(text),
                cost: costs.get(&number).copied().unwrap_or_default(),
            }
        };
        let lines = scenario.ptx.lines().enumerate().map(line);
        Lines(lines.filter(|line| !line.text.is_empty()).collect())
    }
}

/// A line with single spaces between its words: compilers indent with tabs.
fn plain(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A line of PTX with its costs on both sides.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LineRow {
    /// The PTX files of A and B. `None` if a side has one file, or does not have the line.
    #[serde(skip_serializing_if = "is_unnamed")]
    pub files: [Option<String>; 2],
    /// Number of the line in A, from 1. `None` if A does not have it.
    pub a: Option<usize>,
    /// Number of the line in B.
    pub b: Option<usize>,
    /// The text.
    pub text: String,
    /// Issues of its instructions in A and B.
    pub issues: [u64; 2],
    /// Warp-cycles in A and B: waits before its issues, and the issues.
    pub warp_cycles: [u64; 2],
    /// The longest wait in A and B. Empty without a wait.
    pub stall: [&'static str; 2],
}

impl LineRow {
    /// Warp-cycles of B less the ones of A.
    pub fn gain(&self) -> i64 {
        self.warp_cycles[1] as i64 - self.warp_cycles[0] as i64
    }

    /// The line in A and B: its number, after its file if there are several.
    pub fn names(&self) -> [Option<String>; 2] {
        let [a, b] = &self.files;
        [(a, self.a), (b, self.b)].map(|(file, number)| {
            let number = number?;
            Some(match file {
                Some(file) => format!("{file}:{number}"),
                None => number.to_string(),
            })
        })
    }

    /// The number of the line. One number if both sides have the same.
    pub fn place(&self) -> String {
        match self.names() {
            [Some(a), Some(b)] if a == b => a,
            [Some(a), Some(b)] => format!("{a}, {b}"),
            [Some(a), None] => format!("{a}, -"),
            [None, Some(b)] => format!("-, {b}"),
            [None, None] => String::new(),
        }
    }
}

fn is_unnamed(files: &[Option<String>; 2]) -> bool {
    files.iter().all(Option::is_none)
}

/// The lines with different costs, the largest difference in warp-cycles first.
pub(super) fn rows(a: &Lines, b: &Lines) -> Vec<LineRow> {
    let row = |(i, j): (Option<usize>, Option<usize>)| {
        let lines = [i.map(|i| &a.0[i]), j.map(|j| &b.0[j])];
        let costs = lines.map(|line| line.map(|line| line.cost).unwrap_or_default());
        let text = lines[0].or(lines[1]).map(|line| line.text.clone());
        let [a, b] = lines.map(|line| line.map(|line| line.number));
        (costs[0] != costs[1]).then(|| LineRow {
            files: lines.map(|line| line.and_then(|line| line.file.clone())),
            a,
            b,
            text: text.unwrap_or_default(),
            issues: costs.map(|cost| cost.issues()),
            warp_cycles: costs.map(|cost| cost.total()),
            stall: costs.map(|cost| longest_wait(&cost)),
        })
    };
    let [a_text, b_text] = [a, b].map(|side| side.0.iter().map(|line| line.text.as_str()).collect::<Vec<_>>());
    let mut rows: Vec<_> = pairs(&a_text, &b_text).into_iter().filter_map(row).collect();
    // Equal differences stay in the order of the text.
    rows.sort_by_key(|row| std::cmp::Reverse(row.gain().abs()));
    rows
}

/// Pairs of indices of equal lines, and lines of one side alone.
fn pairs(a: &[&str], b: &[&str]) -> Vec<(Option<usize>, Option<usize>)> {
    let mut pairs = Vec::new();
    // Patience pairs unique lines first, so frequent ones such as `ret;` do not pair by chance.
    for operation in capture_diff_slices(Algorithm::Patience, a, b) {
        let (from, to) = (operation.old_range(), operation.new_range());
        match operation {
            DiffOp::Equal { .. } => pairs.extend(from.zip(to).map(|(i, j)| (Some(i), Some(j)))),
            _ => {
                pairs.extend(from.map(|i| (Some(i), None)));
                pairs.extend(to.map(|j| (None, Some(j))));
            }
        }
    }
    pairs
}

fn longest_wait(cost: &Cost) -> &'static str {
    let waits = (0..NAMES.len()).filter(|&state| state != SELECTED && cost.states[state] > 0);
    waits
        .max_by_key(|&state| cost.states[state])
        .map_or("", |state| NAMES[state])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines with waits in state 0, by the number of the line.
    fn lines(text: &[&str], waits: &[(usize, u64)]) -> Lines {
        let line = |(index, text): (usize, &&str)| {
            let number = index + 1;
            let mut cost = Cost::default();
            if let Some((_, waits)) = waits.iter().find(|(line, _)| *line == number) {
                (cost.states[0], cost.states[SELECTED], cost.lanes) = (*waits, 2, 64);
            }
            Line {
                file: None,
                number,
                text: (*text).to_owned(),
                cost,
            }
        };
        Lines(text.iter().enumerate().map(line).collect())
    }

    #[test]
    fn saved_lines_are_read_back_with_their_costs() {
        let lines = lines(&["ld", "add", "st"], &[(1, 10), (3, 5)]);
        let text = serde_json::to_string(&lines).unwrap();
        assert!(text.contains(r#"{"line":2,"text":"add"}"#), "{text}");
        assert_eq!(serde_json::from_str::<Lines>(&text).unwrap(), lines);
    }

    #[test]
    fn line_keeps_its_partner_when_another_is_added_before_it() {
        let a = lines(&["ld", "add", "st"], &[(1, 10), (3, 5)]);
        let b = lines(&["mul", "ld", "add", "st"], &[(1, 1), (2, 40), (4, 5)]);
        let rows = rows(&a, &b);
        let found: Vec<_> = rows
            .iter()
            .map(|row| (row.place(), row.text.as_str(), row.warp_cycles))
            .collect();
        assert_eq!(
            found,
            [("1, 2".to_owned(), "ld", [12, 42]), ("-, 1".to_owned(), "mul", [0, 3])]
        );
        assert_eq!((rows[0].gain(), rows[0].stall), (30, [NAMES[0]; 2]));
        // Two issues and one cycle of wait: an issue is no wait.
        assert_eq!(rows[1].stall, ["", NAMES[0]]);
    }

    #[test]
    fn line_of_one_side_counts_with_all_its_cost() {
        let a = lines(&["ld.global", "st"], &[(1, 50)]);
        let rows = rows(&a, &lines(&["ld.shared", "st"], &[(1, 8)]));
        let found: Vec<_> = rows.iter().map(|row| (row.place(), row.gain())).collect();
        assert_eq!(found, [("1, -".to_owned(), -52), ("-, 1".to_owned(), 10)]);
    }
}
