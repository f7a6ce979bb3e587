//! The list of faults of `.ci/mutants` fits the sources and the tests.

use super::*;
use std::collections::HashSet;
use toml::{Table, Value};

/// The list of faults.
fn list() -> Vec<Value> {
    let list = fs::read_to_string(root().join(".ci/mutants.toml")).expect("the list is there");
    let list: Table = list.parse().expect("the list is TOML");
    list["fault"].as_array().expect("it has faults").clone()
}

fn text<'a>(fault: &'a Value, key: &str) -> &'a str {
    fault.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// What is wrong with a fault, if its text is not in its file exactly once.
fn misplaced(fault: &Value, source: impl Fn(&str) -> Option<String>) -> Option<String> {
    let (file, text) = (text(fault, "file"), text(fault, "text").replace(['«', '»'], ""));
    let n = source(file)?.matches(text.trim_matches('\n')).count();
    (n != 1).then(|| format!("{file}: {n} times {text:?}"))
}

/// The tests that a fault names and that are not among `names`.
fn unknown_tests<'a>(fault: &'a Value, names: &HashSet<String>) -> Vec<&'a str> {
    let tests = fault.get("tests").and_then(Value::as_array).into_iter().flatten();
    let tests = tests.filter_map(Value::as_str);
    let is_known = |test: &str| {
        let place = test.split_once(' ').filter(|(label, _)| label.contains(':'));
        place.is_some_and(|(_, path)| names.contains(path.rsplit("::").next().unwrap_or(path)))
    };
    tests.filter(|test| !is_known(test)).collect()
}

/// The names in a source text. A macro can make a test of a name, so `fn` is not always before it.
fn names(source: &str) -> impl Iterator<Item = String> {
    let names = source.split(|c: char| !c.is_alphanumeric() && c != '_');
    names.map(str::to_owned)
}

#[test]
fn every_fault_of_the_list_has_one_place() {
    let faults = list();
    assert!(faults.len() >= 100, "only {} faults", faults.len());
    let source = |file: &str| Some(fs::read_to_string(root().join(file)).unwrap_or_default());
    let misplaced: Vec<_> = faults.iter().filter_map(|fault| misplaced(fault, source)).collect();
    assert!(
        misplaced.is_empty(),
        "adapt these faults of .ci/mutants.toml to the code:\n{}",
        misplaced.join("\n")
    );
}

#[test]
fn every_fault_has_a_sentence_of_its_own_and_names_tests_that_exist() {
    let faults = list();
    let sentences: HashSet<&str> = faults.iter().map(|fault| text(fault, "breaks")).collect();
    assert_eq!(sentences.len(), faults.len(), "results are kept by these sentences");
    let known = files()
        .iter()
        .filter(|file| file.is_rust())
        .flat_map(|file| names(&file.text))
        .collect();
    let unknown: Vec<_> = faults.iter().flat_map(|fault| unknown_tests(fault, &known)).collect();
    assert!(unknown.is_empty(), "no such tests: {unknown:#?}");
}

#[test]
fn fault_that_fits_no_place_or_two_is_found() {
    let fault: Value = toml::from_str("file = \"a.rs\"\ntext = \"if «a < b» {\"\n").expect("it is TOML");
    let found = |text: &str| misplaced(&fault, |_| Some(text.to_owned())).is_some();
    assert!(!found("if a < b {"));
    assert!(found("if a <= b {"));
    assert!(found("if a < b { if a < b {"));
}

#[test]
fn test_that_is_not_there_or_has_no_target_is_found() {
    let fault: Value =
        toml::from_str("tests = [\"hw:lib time::tests::a\", \"hw:lib time::tests::b\", \"a\"]").expect("it is TOML");
    let known = names("#[test]\nfn a() {}").collect();
    assert_eq!(unknown_tests(&fault, &known), ["hw:lib time::tests::b", "a"]);
}
