//! The list of faults of `.ci/mutants` fits the sources.

use super::*;
use toml::{Table, Value};

/// What is wrong with a fault, if its text is not in its file exactly once.
fn misplaced(fault: &Value, source: impl Fn(&str) -> Option<String>) -> Option<String> {
    let key = |name: &str| fault.get(name).and_then(Value::as_str).unwrap_or_default();
    let (file, text) = (key("file"), key("text").replace(['«', '»'], ""));
    let n = source(file)?.matches(text.trim_matches('\n')).count();
    (n != 1).then(|| format!("{file}: {n} times {text:?}"))
}

#[test]
fn every_fault_of_the_list_has_one_place() {
    let list = fs::read_to_string(root().join(".ci/mutants.toml")).expect("the list is there");
    let list: Table = list.parse().expect("the list is TOML");
    let faults = list["fault"].as_array().expect("it has faults");
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
fn fault_that_fits_no_place_or_two_is_found() {
    let fault: Value = toml::from_str("file = \"a.rs\"\ntext = \"if «a < b» {\"\n").expect("it is TOML");
    let found = |text: &str| misplaced(&fault, |_| Some(text.to_owned())).is_some();
    assert!(!found("if a < b {"));
    assert!(found("if a <= b {"));
    assert!(found("if a < b { if a < b {"));
}
