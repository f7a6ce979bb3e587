//! The coverage table of the corpus in Markdown: written, printed, or compared with the committed one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;

use crate::case::Case;
use crate::family;
use crate::texts::Text;

/// A text with its kernels, or the reason for refusing it.
pub struct Loaded<'t> {
    /// The text.
    pub text: &'t Text,
    /// Its kernels, or the rendered findings.
    pub kernels: Result<Vec<Kernel>, Vec<String>>,
}

/// A kernel of one text.
pub struct Kernel {
    /// Its name in the text.
    pub name: String,
    /// The outcome.
    pub state: State,
}

/// The outcome of a kernel.
pub enum State {
    /// It cannot run. The messages name unsupported statements.
    Unsupported(Vec<String>),
    /// No case was run.
    Untried,
    /// Its cases exclude this build, with a reason.
    LeftOut,
    /// All its cases were run. The list has the failures.
    Tried(Vec<String>),
}

/// Counts of one folder, in the table's order.
#[derive(Clone, Copy, Default)]
struct Row([usize; 6]);

const COLUMNS: [&str; 6] = [
    "files",
    "loaded",
    "kernels",
    "lowered",
    "verified",
    "unsupported by name",
];

/// The whole table.
pub struct Table {
    rows: BTreeMap<String, Row>,
    families: BTreeMap<String, Family>,
    unsupported: BTreeMap<String, BTreeSet<String>>,
    untried: BTreeSet<String>,
    exceptions: BTreeSet<String>,
    faults: Vec<String>,
}

/// A family of instructions: number of kernels that contain it, and number of the verified ones.
#[derive(Default)]
struct Family {
    kernels: usize,
    verified: usize,
}

impl Kernel {
    fn is_verified(&self) -> bool {
        matches!(&self.state, State::Tried(faults) if faults.is_empty())
    }
}

impl Table {
    /// Builds the table. `cases` have the excluded builds.
    pub fn of(loaded: &[Loaded], cases: &[Case]) -> Self {
        let mut table = Table {
            rows: BTreeMap::new(),
            families: BTreeMap::new(),
            unsupported: BTreeMap::new(),
            untried: BTreeSet::new(),
            exceptions: cases.iter().flat_map(exceptions).collect(),
            faults: Vec::new(),
        };
        for loaded in loaded {
            match &loaded.kernels {
                Ok(kernels) => {
                    table.count(loaded.text, true, kernels);
                    table.count_families(loaded.text, kernels);
                }
                Err(findings) => {
                    table.count(loaded.text, false, &[]);
                    table.faults.extend(findings.iter().cloned());
                }
            }
        }
        table
    }

    fn count(&mut self, text: &Text, is_loaded: bool, kernels: &[Kernel]) {
        let mut row = self.rows.get(&text.folder).copied().unwrap_or_default();
        let Row([files, loaded, n_kernels, lowered, verified, unsupported]) = &mut row;
        *files += 1;
        *loaded += usize::from(is_loaded);
        *n_kernels += kernels.len();
        for kernel in kernels {
            let place = format!("{}/{}", text.path(), kernel.name);
            let source = format!("{}: {}", text.stem, short(&kernel.name));
            *verified += usize::from(kernel.is_verified());
            match &kernel.state {
                State::Unsupported(messages) => {
                    *unsupported += 1;
                    for message in messages {
                        self.unsupported
                            .entry(message.clone())
                            .or_default()
                            .insert(source.clone());
                    }
                    continue;
                }
                State::Untried => drop(self.untried.insert(source)),
                State::LeftOut => {}
                State::Tried(faults) => self
                    .faults
                    .extend(faults.iter().map(|fault| format!("{place}: {fault}"))),
            }
            *lowered += 1;
        }
        self.rows.insert(text.folder.clone(), row);
    }

    /// Counts families. A family in a device function is verified if all kernels of the text are.
    fn count_families(&mut self, text: &Text, kernels: &[Kernel]) {
        let module = warpwave_ptx::parse(&text.ptx).expect("it was compiled");
        for (function, families) in family::of_functions(&module) {
            let mut holders = kernels
                .iter()
                .filter(|kernel| !function.is_entry || kernel.name == function.name.text);
            let is_verified = holders.all(Kernel::is_verified);
            for family in families {
                let family = self.families.entry(family).or_default();
                family.kernels += 1;
                family.verified += usize::from(is_verified);
            }
        }
    }

    /// Refused texts and wrong results.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    /// Compares with the committed table: no number may be worse. Writes it instead if the environment variable is set.
    pub fn compare_or_write(&self, path: &Path) {
        if std::env::var_os("WARPWAVE_WRITE_COVERAGE").is_some() {
            fs::write(path, self.to_string()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
        let committed = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let worse = self.worse_than(&committed);
        assert!(worse.is_empty(), "worse than COVERAGE.md says:\n{}", worse.join("\n"));
    }

    fn worse_than(&self, committed: &str) -> Vec<String> {
        let lines = committed.lines().filter_map(|line| line.strip_prefix("| "));
        let mut worse = Vec::new();
        for line in lines {
            let cells: Vec<_> = line.trim_end_matches('|').split('|').map(str::trim).collect();
            let name = cells[0].trim_matches('`');
            if let Some(row) = self.rows.get(name) {
                let committed = cells[1..].iter().map(|cell| cell.parse::<usize>().unwrap_or(0));
                let pairs = COLUMNS.iter().zip(row.0.iter().zip(committed)).take(5);
                worse.extend(
                    pairs
                        .filter(|(_, (found, committed))| *found < committed)
                        .map(|(column, (found, committed))| format!("{name}: {column} {found}, not {committed}")),
                );
            } else if cells.last() == Some(&"yes") && self.families.get(name).is_none_or(|family| family.verified == 0)
            {
                worse.push(format!("{name} no longer executes"));
            }
        }
        worse
    }
}

fn exceptions(case: &Case) -> impl Iterator<Item = String> {
    let exceptions = case.exceptions.iter();
    exceptions.map(|(folder, why)| format!("{folder}, {}: {why}", case.entry))
}

/// The name of a kernel without mangling.
fn short(name: &str) -> &str {
    let is_mangled = name.starts_with("_Z");
    let end = name.find("B2v").filter(|_| is_mangled).unwrap_or(name.len());
    name[..end]
        .trim_start_matches("_ZN8__main__")
        .trim_start_matches(|c: char| is_mangled && c.is_ascii_digit())
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# What of the corpus runs\n")?;
        writeln!(f, "Written by `WARPWAVE_WRITE_COVERAGE=1 cargo test --test corpus`.\n")?;
        writeln!(f, "| folder | {} |\n|---{}|", COLUMNS.join(" | "), "|---:".repeat(6))?;
        let mut sum = Row::default();
        for (folder, row) in &self.rows {
            writeln!(f, "| `{folder}` | {row} |")?;
            sum.0.iter_mut().zip(row.0).for_each(|(sum, n)| *sum += n);
        }
        writeln!(f, "| all | {sum} |")?;
        self.fmt_lists(f)?;
        writeln!(f, "\n## Families of instructions\n")?;
        writeln!(f, "A family executes where a verified kernel holds it.\n")?;
        writeln!(f, "| family | kernels | verified | executes |\n|---|---:|---:|---|")?;
        for (name, family) in &self.families {
            let executes = if family.verified > 0 { "yes" } else { "no" };
            writeln!(
                f,
                "| `{name}` | {} | {} | {executes} |",
                family.kernels, family.verified
            )?;
        }
        Ok(())
    }
}

impl Table {
    fn fmt_lists(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.unsupported.is_empty() {
            writeln!(f, "\n## Unsupported by name\n\n| what | kernels |\n|---|---|")?;
        }
        for (message, places) in &self.unsupported {
            let places: Vec<_> = places.iter().cloned().collect();
            writeln!(f, "| {message} | {} |", places.join(", "))?;
        }
        if !self.untried.is_empty() {
            writeln!(f, "\n## Kernels without a case\n")?;
        }
        self.untried.iter().try_for_each(|place| writeln!(f, "- {place}"))?;
        if !self.exceptions.is_empty() {
            writeln!(f, "\n## Builds left out of a case\n")?;
        }
        self.exceptions
            .iter()
            .try_for_each(|exception| writeln!(f, "- {exception}"))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells: Vec<_> = self.0.iter().map(usize::to_string).collect();
        f.write_str(&cells.join(" | "))
    }
}

#[test]
fn folder_with_fewer_kernels_and_lost_family_are_found() {
    let text = Text {
        folder: "rustc".into(),
        stem: "kernels".into(),
        ptx: ".version 7.0\n.target sm_80\n.entry a() { exit; }\n.entry b() { ret; }".into(),
    };
    let kernel = |name: &str, faults: &[&str]| Kernel {
        name: name.into(),
        state: State::Tried(faults.iter().map(|&fault| fault.into()).collect()),
    };
    let kernels = Ok(vec![kernel("a", &["wrong"]), kernel("b", &[])]);
    let table = Table::of(&[Loaded { text: &text, kernels }], &[]);
    assert_eq!(table.faults(), ["rustc/kernels/a: wrong"]);
    assert_eq!(table.worse_than(&table.to_string()), [""; 0]);
    let committed = "| `rustc` | 1 | 1 | 2 | 2 | 2 | 0 |\n| `exit` | 1 | 1 | yes |\n| `ret` | 1 | 1 | yes |";
    assert_eq!(
        table.worse_than(committed),
        ["rustc: verified 1, not 2", "exit no longer executes"]
    );
}
