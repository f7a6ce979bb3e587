//! Declared dependencies, features and the README's table of packages: all of them are used.

use std::collections::BTreeSet;
use std::fs;

use toml::{Table, Value};

use crate::{File, assert_none, files, root, rust};

/// Packages that must have a row in the README's table, with a file that uses them.
const PACKAGES: [&str; 6] = ["crossbeam", "bitvec", "hdrhistogram", "tracing", "serde", "arbitrary"];

/// Folders with code that may use dependencies, and folders that may use dev-dependencies.
const SOURCES: [&str; 3] = ["src/", "fuzz_targets/", "build.rs"];
const TEST_SOURCES: [&str; 4] = ["src/", "tests/", "benches/", "examples/"];

fn manifest(folder: &str) -> Table {
    let text = fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
    text.parse().unwrap()
}

/// The folders of the workspace's packages.
fn members() -> Vec<String> {
    let members = manifest("")["workspace"]["members"].clone();
    members.try_into().unwrap()
}

/// The keys of a table of a manifest, with the ones for one target.
fn keys<'a>(manifest: &'a Table, name: &'a str) -> impl Iterator<Item = &'a str> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let tables = targets
        .into_iter()
        .flat_map(|targets| targets.values().filter_map(Value::as_table));
    let tables = [manifest].into_iter().chain(tables);
    let table = tables.filter_map(|table| table.get(name)?.as_table());
    table.flat_map(|table| table.keys().map(String::as_str))
}

/// True if Rust text names a package: `name::`, or `use name`.
fn names(text: &str, package: &str) -> bool {
    let name = package.replace('-', "_");
    text.match_indices(&name).any(|(at, _)| {
        let is_part = text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let after = &text[at + name.len()..];
        let is_used = text[..at].ends_with("use ") && after.starts_with([';', ' ']);
        !is_part && (after.starts_with("::") || is_used)
    })
}

#[test]
fn every_declared_dependency_and_feature_is_used() {
    let files = files();
    let findings = members()
        .iter()
        .flat_map(|folder| unused(folder, &manifest(folder), &files))
        .collect();
    assert_none(findings, "take it out of the manifest, or move it to dev-dependencies");
}

/// The dependencies and features of a package that its files do not name.
fn unused(folder: &str, manifest: &Table, files: &[File]) -> Vec<String> {
    let of = |file: &&File, sources: &[&str]| {
        let path = file.path.strip_prefix(folder).and_then(|path| path.strip_prefix('/'));
        file.is_rust() && path.is_some_and(|path| sources.iter().any(|source| path.starts_with(source)))
    };
    let code = files.iter().filter(|file| of(file, &SOURCES) && !file.is_test());
    let code: Vec<String> = code.map(File::code).collect();
    let tests: Vec<&str> = files
        .iter()
        .filter(|file| of(file, &TEST_SOURCES))
        .map(|file| &*file.text)
        .collect();
    let in_code = keys(manifest, "dependencies").filter(|name| !code.iter().any(|text| names(text, name)));
    let in_tests = keys(manifest, "dev-dependencies").filter(|name| !tests.iter().any(|text| names(text, name)));
    let is_named = |feature: &&str| {
        code.iter()
            .any(|text| text.contains(&format!("feature = \"{feature}\"")))
    };
    let features = keys(manifest, "features").filter(|name| *name != "default" && !is_named(name));
    let unused = in_code.chain(in_tests).chain(features);
    unused
        .map(|name| format!("{folder}/Cargo.toml: {name} is not used"))
        .collect()
}

#[test]
fn every_workspace_dependency_is_used_by_a_member() {
    let members: Vec<Table> = members().iter().map(|folder| manifest(folder)).collect();
    let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
    let used: BTreeSet<&str> = members
        .iter()
        .flat_map(|manifest| kinds.iter().flat_map(|kind| keys(manifest, kind)))
        .collect();
    let workspace = manifest("");
    let declared = workspace["workspace"]["dependencies"].as_table().unwrap().keys();
    let findings = declared.filter(|name| !used.contains(name.as_str())).cloned().collect();
    assert_none(
        findings,
        "no package depends on these: take them out of the root's Cargo.toml",
    );
}

#[test]
fn readme_lists_each_package_with_a_file_that_uses_it() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let read = |path: &str| fs::read_to_string(root().join(path)).ok();
    let listed = PACKAGES.map(|package| listed(&readme, package, &read));
    assert_none(
        listed.into_iter().flatten().collect(),
        "the table of packages in README.md names each with a file to look at",
    );
}

/// The fault of a package's row in the table: `| \`name\` | what for | \`path\` |`.
fn listed(readme: &str, package: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let Some(row) = readme
        .lines()
        .find(|line| line.starts_with(&format!("| `{package}` |")))
    else {
        return Some(format!("{package} has no row"));
    };
    let path = row
        .rsplit('|')
        .nth(1)
        .and_then(|cell| cell.trim().strip_prefix('`')?.strip_suffix('`'));
    let Some(path) = path else {
        return Some(format!("{package}: no file to look at"));
    };
    match read(path) {
        Some(text) if names(&text, package) => None,
        Some(_) => Some(format!("{package}: {path} does not use it")),
        None => Some(format!("{package}: there is no {path}")),
    }
}

#[test]
fn unused_declaration_is_found() {
    let manifest = "[dependencies]\na-b = \"1\"\nc = \"1\"\n[dev-dependencies]\nd = \"1\"\ne = \"1\"\n[features]\nf = []\ng = []\n";
    let files = [
        rust(
            "x/src/lib.rs",
            "//! `c::C`\nuse a_b::C;\n#[cfg(feature = \"f\")]\nmod f;\n#[cfg(test)]\nmod tests {\n use c::C; }\n",
        ),
        rust("x/tests/t.rs", "use d;\nfn not_e::e() {}\n"),
        rust("y/src/lib.rs", "use c::C;\n"),
    ];
    assert_eq!(
        unused("x", &manifest.parse().unwrap(), &files),
        ["c", "e", "g"].map(|name| format!("x/Cargo.toml: {name} is not used"))
    );
}

#[test]
fn wrong_row_of_a_package_is_found() {
    let readme = "| `a` | counts | `src/a.rs` |\n| `b` | counts | `src/b.rs` |\n| `c` | counts | c.rs |\n";
    let read = |path: &str| (path == "src/a.rs").then(|| "use a::A;".to_owned());
    let found = |package| listed(readme, package, &read);
    assert_eq!(found("a"), None);
    assert_eq!(found("b").as_deref(), Some("b: there is no src/b.rs"));
    assert_eq!(found("c").as_deref(), Some("c: no file to look at"));
    assert_eq!(found("d").as_deref(), Some("d has no row"));
    let read = |_: &str| Some("use b::B;".to_owned());
    assert_eq!(
        listed(readme, "a", &read).as_deref(),
        Some("a: src/a.rs does not use it")
    );
}
