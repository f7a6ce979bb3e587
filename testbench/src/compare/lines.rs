//! Costs of PTX lines on two sides. Two texts are aligned as `diff` does, so a line keeps its partner when other lines are
//! added.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices};
use warpwave_components::sm::subcore::stall::NAMES;
use warpwave_isa::program::Program;

use crate::scenario::{Modules, Scenario};
use crate::watch::profile::{Cost, Profile, SELECTED};

/// The PTX of a run, and the cost of each line.
#[derive(Clone, PartialEq, Debug)]
pub struct Lines {
    text: Vec<String>,
    /// Cost by the number of the line, from 1.
    costs: BTreeMap<usize, Cost>,
    /// The files of the program, if it has several.
    modules: Option<Arc<Modules>>,
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
        Lines {
            text: scenario.ptx.lines().map(plain).collect(),
            costs,
            modules: scenario.modules.clone(),
        }
    }

    /// File and number of a line, by its index. There is a file if the program has several.
    fn place(&self, index: Option<usize>) -> (Option<String>, Option<usize>) {
        let number = index.map(|index| index + 1);
        match (&self.modules, number) {
            (Some(modules), Some(number)) => {
                let (file, line) = modules.place(number as u32);
                (Some(file.to_owned()), Some(line as usize))
            }
            _ => (None, number),
        }
    }

    fn cost(&self, index: Option<usize>) -> Cost {
        let cost = index.and_then(|index| self.costs.get(&(index + 1)));
        cost.copied().unwrap_or_default()
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
        let costs = [a.cost(i), b.cost(j)];
        let text = i.map_or_else(|| j.map(|j| &b.text[j]), |i| a.text.get(i));
        let ((a_file, a_line), (b_file, b_line)) = (a.place(i), b.place(j));
        (costs[0] != costs[1]).then(|| LineRow {
            files: [a_file, b_file],
            a: a_line,
            b: b_line,
            text: text.cloned().unwrap_or_default(),
            issues: costs.map(|cost| cost.issues()),
            warp_cycles: costs.map(|cost| cost.total()),
            stall: costs.map(|cost| longest_wait(&cost)),
        })
    };
    let mut rows: Vec<_> = pairs(&a.text, &b.text).into_iter().filter_map(row).collect();
    // Equal differences stay in the order of the text.
    rows.sort_by_key(|row| std::cmp::Reverse(row.gain().abs()));
    rows
}

/// Pairs of indices of equal lines, and lines of one side alone.
fn pairs(a: &[String], b: &[String]) -> Vec<(Option<usize>, Option<usize>)> {
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
        let cost = |&(line, waits): &(usize, u64)| {
            let mut cost = Cost::default();
            cost.states[0] = waits;
            cost.states[SELECTED] = 2;
            (line, cost)
        };
        Lines {
            text: text.iter().map(|&line| line.to_owned()).collect(),
            costs: waits.iter().map(cost).collect(),
            modules: None,
        }
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
