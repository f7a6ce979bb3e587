//! Rules for the text of a file: documentation, size, and text that must not be committed.

use crate::{File, OWN_FOLDER, assert_none, files, rust, rust_files};

/// Maximum number of lines of a file without its tests.
const MOST_LINES: usize = 500;

/// Text that must not be in a committed Rust file, with advice.
const UNFINISHED: [(&str, &str); 6] = [
    ("todo!", "write it, or leave the whole feature out"),
    (
        "unimplemented!",
        "give an error that says what is not supported, at load",
    ),
    ("dbg!", "delete it; what is worth keeping is a `tracing` event"),
    (
        "#[ignore",
        "assert today's behaviour and say in a comment why it is wrong",
    ),
    ("TODO", "do it, or write down in words what is not modelled"),
    ("FIXME", "fix it, or assert today's behaviour in a test"),
];

/// Folders of one person's machine, which no file may name.
const MACHINE_PATHS: [&str; 6] = ["/home/", "/root/", "/work/", "/tmp/", "/Users/", "C:\\Users"];

#[test]
fn every_module_has_a_module_doc() {
    let undocumented = |file: &File| !file.text.trim().is_empty() && !file.text.trim_start().starts_with("//!");
    let findings = rust_files().filter(undocumented).map(|file| file.path).collect();
    assert_none(
        findings,
        "open the file with `//!`: what it is, what it takes, what it promises",
    );
}

#[test]
fn files_are_not_too_long() {
    let findings = rust_files()
        .filter(|file| !file.is_test())
        .map(|file| (file.without_tests().count(), file.path))
        .filter(|(lines, _)| *lines > MOST_LINES)
        .map(|(lines, path)| format!("{path}: {lines} lines without tests, at most {MOST_LINES}"))
        .collect();
    assert_none(findings, "split the file by stage or by unit");
}

#[test]
fn tests_do_not_count_as_lines() {
    let file = rust("a.rs", "//! A.\nfn a() {}\n\n#[cfg(test)]\nmod tests {\n}\n");
    assert_eq!(file.without_tests().count(), 3);
}

#[test]
fn no_file_is_unfinished() {
    let findings = rust_files().flat_map(|file| unfinished(&file)).collect();
    assert_none(findings, "finish these");
}

fn unfinished(file: &File) -> Vec<String> {
    let offence = |line: &str| UNFINISHED.iter().find(|(word, _)| line.contains(word));
    let lines = file.text.lines().enumerate();
    lines
        .filter_map(|(n, line)| offence(line).map(|(word, advice)| file.finding(n, &format!("{word}: {advice}"))))
        .collect()
}

#[test]
fn every_allowed_lint_has_a_reason() {
    let findings = rust_files().flat_map(|file| unexplained_lints(&file)).collect();
    assert_none(findings, "add `reason = \"...\"` to the attribute, or do without it");
}

fn unexplained_lints(file: &File) -> Vec<String> {
    let starts = file
        .text
        .match_indices("[allow(")
        .chain(file.text.match_indices("[expect("));
    starts
        .filter(|(at, _)| {
            !file.text[*at..]
                .split(")]")
                .next()
                .unwrap_or_default()
                .contains("reason")
        })
        .map(|(at, _)| file.finding(file.text[..at].lines().count() - 1, "a lint is off without a reason"))
        .collect()
}

#[test]
fn no_comment_contains_code() {
    let findings = rust_files().flat_map(|file| commented_code(&file)).collect();
    assert_none(findings, "delete it: version control remembers");
}

/// Comment lines that read like code: a statement's end, or a block that opens.
fn commented_code(file: &File) -> Vec<String> {
    let is_code = |comment: &str| {
        let statement = comment.ends_with(';') && (comment.contains(" = ") || comment.ends_with(");"));
        let opens = comment.ends_with('{')
            && ["fn ", "if ", "for ", "let ", "match ", "impl ", "pub "]
                .iter()
                .any(|word| comment.starts_with(word));
        statement || opens
    };
    let lines = file.text.lines().enumerate();
    lines
        .filter_map(|(n, line)| Some((n, line.trim_start().strip_prefix("//")?)))
        .filter(|(_, comment)| !comment.starts_with(['/', '!']) && is_code(comment.trim()))
        .map(|(n, comment)| file.finding(n, comment.trim()))
        .collect()
}

#[test]
fn no_file_names_a_folder_of_one_machine() {
    let others = |file: &File| !file.path.starts_with(OWN_FOLDER);
    let findings = files()
        .into_iter()
        .filter(others)
        .flat_map(|file| machine_paths(&file))
        .collect();
    assert_none(
        findings,
        "use a path relative to the file, or copy what is needed into the repository",
    );
}

fn machine_paths(file: &File) -> Vec<String> {
    let offence = |line: &str| MACHINE_PATHS.iter().find(|path| line.contains(**path));
    let lines = file.text.lines().enumerate();
    lines
        .filter_map(|(n, line)| offence(line).map(|path| file.finding(n, &format!("names {path}"))))
        .collect()
}

#[test]
fn offences_in_a_file_are_found() {
    let file = rust(
        "a.rs",
        "fn a() {\n    // let b = 1;\n    todo!()\n}\n#[allow(dead_code)]\nconst P: &str = \"/home/me\";\n// Let b be; one.\n",
    );
    assert_eq!(commented_code(&file), ["a.rs:2: let b = 1;"]);
    assert_eq!(
        unfinished(&file),
        ["a.rs:3: todo!: write it, or leave the whole feature out"]
    );
    assert_eq!(unexplained_lints(&file), ["a.rs:5: a lint is off without a reason"]);
    assert_eq!(machine_paths(&file), ["a.rs:6: names /home/"]);
}
