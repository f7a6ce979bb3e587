//! Every litmus file on every preset, in order and with disorder on purpose.
//!
//! `WARPWAVE_LITMUS_INSTANCES=N` runs at least N instances of each file on each preset and in each mode. Without it each runs once.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::thread;

use warpwave_components::config::GpuConfig;
use warpwave_components::preset;

use super::axioms::allowed;
use super::machine::{DELAYS, LAYOUTS, Trial};
use super::program::{Outcome, Program};
use super::suite::{Histogram, WEAK, files, has_clusters, machine, stable_cells};

/// Instances of each row of the page.
const PAGE_INSTANCES: u64 = 10_000;

/// A file and its allowed outcomes.
struct File {
    program: Program,
    allowed: BTreeSet<Outcome>,
}

/// What the files showed on a preset.
struct Column {
    gpu: &'static str,
    /// Instances of each file that meet its condition, in order and in disorder. `None` if the preset lacks the clusters of the file.
    seen: Vec<Option<[u64; 2]>>,
    /// The forbidden outcomes as text.
    forbidden: Vec<String>,
}

/// Launch `n` of a file. A launch for many instances is larger.
fn trial(n: u64, instances: u64) -> Trial {
    let (warps, rounds) = if instances > 1 { (32, 4) } else { (16, 1) };
    Trial {
        layout: LAYOUTS[n as usize % LAYOUTS.len()],
        delays: DELAYS[n as usize % DELAYS.len()],
        seed: n,
        warps,
        rounds,
    }
}

/// Runs at least this number of instances of a file on a machine. Returns how many meet its condition.
fn run(file: &File, config: &GpuConfig, first: u64, instances: u64, column: &mut Column) -> u64 {
    let mut seen = Histogram::default();
    for n in first.. {
        seen.run(&file.program, config, [trial(n, instances)].into_iter());
        if seen.instances() >= instances {
            break;
        }
    }
    let forbidden = seen.forbidden(&file.program, &file.allowed);
    column.forbidden.extend(
        forbidden
            .iter()
            .map(|line| format!("{}, check.weak={}: {line}", column.gpu, config.check.weak)),
    );
    seen.in_question(&file.program)
}

/// Runs all files on a preset.
fn column(gpu: &'static str, number: usize, files: &[File], instances: u64) -> Column {
    let configs = [machine(gpu, &[]), machine(gpu, &WEAK)];
    let mut column = Column {
        gpu,
        seen: Vec::new(),
        forbidden: Vec::new(),
    };
    for (n, file) in files.iter().enumerate() {
        let can_run = !file.program.needs_clusters() || has_clusters(&configs[0]);
        // With few launches, the layout and delay differ between presets and files.
        let first = 101 * n as u64 + number as u64;
        let seen = can_run.then(|| {
            configs
                .each_ref()
                .map(|config| run(file, config, first, instances, &mut column))
        });
        column.seen.push(seen);
    }
    column
}

/// Runs all files on all presets, on the threads of the host.
///
/// # Panics
/// If an outcome is forbidden.
fn columns(instances: u64) -> Vec<Column> {
    let file = |program: Program| File {
        allowed: allowed(&program),
        program,
    };
    let files: Vec<File> = files().into_iter().map(file).collect();
    let gpus = preset::names();
    let waiting = Mutex::new((0..gpus.len()).collect::<Vec<_>>());
    let done = Mutex::new(Vec::new());
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some(number) = waiting.lock().unwrap().pop() else {
                        break;
                    };
                    let column = column(gpus[number], number, &files, instances);
                    done.lock().unwrap().push((number, column));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(number, _)| *number);
    let columns: Vec<Column> = done.into_iter().map(|(_, column)| column).collect();
    assert_eq!(columns.len(), gpus.len());
    let forbidden: Vec<&str> = columns
        .iter()
        .flat_map(|column| &column.forbidden)
        .map(String::as_str)
        .collect();
    assert!(forbidden.is_empty(), "{}", forbidden.join("\n"));
    columns
}

#[test]
fn every_preset_shows_only_allowed_outcomes() {
    let given = std::env::var("WARPWAVE_LITMUS_INSTANCES");
    let instances = given.map_or(1, |text| text.parse().expect("WARPWAVE_LITMUS_INSTANCES is a number"));
    let columns = columns(instances);
    // A forbidden outcome has failed above. The page has the form of this table, so the test of the page must be able to read it.
    check_table(&text(&columns));
}

/// The table of the page.
pub fn table() -> String {
    text(&columns(PAGE_INSTANCES))
}

/// The first line of the table.
pub fn header() -> String {
    let names: Vec<String> = preset::names().iter().map(|name| format!("`{name}`")).collect();
    format!("| Test | Condition | Outcomes allowed | {} |", names.join(" | "))
}

fn text(columns: &[Column]) -> String {
    let mut table = format!("{}\n|{}\n", header(), "---|".repeat(3 + columns.len()));
    for (n, program) in files().iter().enumerate() {
        let cell = |column: &Column| match column.seen[n] {
            None => String::new(),
            Some([ordered, weak]) => format!("{ordered} {weak}"),
        };
        let cells: Vec<String> = columns.iter().map(cell).collect();
        table += &format!("| {} | {} |\n", stable_cells(program).join(" | "), cells.join(" | "));
    }
    table
}

/// Asserts that a table has a column for each preset and a row for each file. A cell is empty if and only if the preset lacks the clusters
/// of the file. Any other cell has two counts.
pub fn check_table(table: &str) {
    let mut rows = table.lines().map(cells);
    let names = preset::names();
    let first = rows.next().expect("the first line");
    let gpus: Vec<&str> = first[3..].iter().map(|name| name.trim_matches('`')).collect();
    assert_eq!(gpus, names);
    let has_clusters: Vec<bool> = names.iter().map(|name| has_clusters(&machine(name, &[]))).collect();
    let files = files();
    assert_eq!(table.lines().count(), 2 + files.len(), "a row for each file");
    for (program, row) in files.iter().zip(rows.skip(1)) {
        assert_eq!(row.len(), 3 + names.len(), "{row:?}");
        assert_eq!(row[0], format!("`{}`", program.name));
        for (n, cell) in row[3..].iter().enumerate() {
            let counts: Vec<u64> = cell
                .split_whitespace()
                .map(|count| count.parse().unwrap_or_else(|_| panic!("{row:?}")))
                .collect();
            let expected = if program.needs_clusters() && !has_clusters[n] {
                0
            } else {
                2
            };
            assert_eq!(counts.len(), expected, "{} on {}", program.name, names[n]);
        }
    }
}

/// The cells of a row.
pub fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split('|').map(str::trim).collect()
}
