//! The litmus files: the checker agrees with the published or derived verdict of each.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use super::axioms::allowed;
use super::program::{Outcome, Program};
use super::reader::read;

/// The litmus tests of `files/`, by name.
pub fn files() -> Vec<Program> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/litmus/files");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let read_file = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let program = read(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(Some(&program.name[..]), path.file_stem().and_then(|name| name.to_str()));
        program
    };
    paths.iter().map(read_file).collect()
}

/// The outcomes that meet the condition of a litmus test.
pub fn in_question(program: &Program, outcomes: &BTreeSet<Outcome>) -> usize {
    outcomes
        .iter()
        .filter(|outcome| program.condition.holds(outcome))
        .count()
}

#[test]
fn checker_gives_the_verdict_of_each_file() {
    let files = files();
    assert!(files.len() >= 80, "{} files", files.len());
    let mut wrong = Vec::new();
    for program in &files {
        assert!(
            program.info("Source").is_some(),
            "{}: no source of the verdict",
            program.name
        );
        let outcomes = allowed(program);
        let found = match in_question(program, &outcomes) {
            0 => "forbidden",
            _ => "allowed",
        };
        if program.info("Verdict") != Some(found) {
            let shown: Vec<String> = outcomes.iter().map(|outcome| program.show(outcome)).collect();
            wrong.push(format!("{}: {found}\n  {}", program.name, shown.join("\n  ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
