//! Malformed inputs of every kind. Each has its exit code and its message: what is wrong, where, and what to do.
//!
//! ```text
//! cases/KIND.toml -- case --> files, arguments, variables -- run, with a limit of memory --> exit code, texts
//! ```
//!
//! Every case holds, whatever its input: no panic, no signal, no control character and no flood on standard error. The system bounds
//! memory and CPU time of each child. A busy host takes nothing from that time. The limit of the wall time only ends a hang.
//!
//! With `WARPWAVE_WRITE_MALFORMED` the test writes the table of `docs/malformed.md`. Otherwise it compares.

#![cfg(target_os = "linux")]

mod case;
mod child;
mod page;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use case::{Answer, Case, Table};

/// All tables, in the order of the page.
const KINDS: [&str; 7] = ["scenario", "preset", "ptx", "npy", "command", "environment", "disk"];

/// Children that run at once.
const JOBS: usize = 2;

/// Runs all cases of a table, and asserts that none has a finding.
fn check(kind: &str) {
    let table = Table::load(kind);
    let (next, findings) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(case) = table.cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let found = finding(&table, case);
            findings.lock().unwrap().extend(found);
        }
    };
    std::thread::scope(|scope| (0..JOBS).for_each(|_| drop(scope.spawn(work))));
    let findings = findings.into_inner().unwrap();
    assert!(findings.is_empty(), "{}", findings.join("\n\n"));
}

fn finding(table: &Table, case: &Case) -> Option<String> {
    let answer = child::run(table, case);
    let faults = case.faults(table, &answer);
    let excerpt: String = answer.err.chars().take(2000).collect();
    (!faults.is_empty()).then(|| format!("{}: {}\n{excerpt}", case.name, faults.join("; ")))
}

#[test]
fn malformed_scenarios_are_refused() {
    check("scenario");
}

#[test]
fn malformed_presets_are_refused() {
    check("preset");
}

#[test]
fn malformed_ptx_is_refused() {
    check("ptx");
}

#[test]
fn malformed_arrays_are_refused() {
    check("npy");
}

#[test]
fn malformed_command_lines_are_refused() {
    check("command");
}

#[test]
fn hostile_environments_are_survived_or_refused() {
    check("environment");
}

#[test]
fn unusable_disks_are_reported() {
    check("disk");
}

#[test]
fn page_counts_the_cases() {
    let tables = KINDS.map(Table::load);
    let n: usize = tables.iter().map(|table| table.cases.len()).sum();
    assert!(n >= 250, "only {n} cases");
    page::compare(&tables);
}

/// A table with one case, for the tests of the test.
fn one_case(text: &str) -> Table {
    Table::parse(&format!("title = \"t\"\n[[case]]\nname = \"c\"\n{text}"))
}

#[test]
fn wrong_code_missing_text_and_control_characters_are_found() {
    let table = one_case("args = [\"x\"]\nsays = [\"first\", \"second\"]\n");
    let faults = |code, err: &str| {
        let answer = Answer {
            code,
            out: String::new(),
            err: err.to_owned(),
        };
        table.cases[0].faults(&table, &answer)
    };
    assert!(faults(Some(2), "first, then second").is_empty());
    assert_eq!(faults(Some(1), "first, then second"), ["exit code 1, not 2"]);
    assert_eq!(
        faults(None, "first, then second"),
        ["a signal or the time limit ended it"]
    );
    assert_eq!(faults(Some(2), "second, then first"), ["standard error lacks `second`"]);
    assert_eq!(
        faults(Some(2), "first\u{1b}second"),
        ["standard error has a control character"]
    );
    assert_eq!(faults(Some(2), "first second panicked at"), ["it panicked"]);
    let flood = format!("first second {}", "x".repeat(case::MAX_ERR));
    assert_eq!(faults(Some(2), &flood).len(), 1);
}

#[test]
fn child_that_works_without_end_is_ended_by_the_limit_of_its_cpu_time() {
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/errors/endless.toml");
    let args =
        format!("args = [\"run\", \"{scenario}\", \"--gpu\", \"tiny\", \"--set\", \"gigathread.standstill_cycles=0\"]");
    let table = one_case(&format!("{args}\ncpu_seconds = 1\n"));
    assert_eq!(child::run(&table, &table.cases[0]).code, None);
}

#[test]
fn child_is_bounded_in_memory_and_reports_its_exit_code() {
    let table = one_case("args = [\"list\"]\nmemory_mib = 1\n");
    let answer = child::run(&table, &table.cases[0]);
    assert_ne!(answer.code, Some(0), "{}", answer.err);
    let table = one_case("args = [\"list\"]\ncode = 0\n");
    assert_eq!(child::run(&table, &table.cases[0]).code, Some(0));
}
