//! Lists that must be complete.

use std::fs;
use std::path::Path;

use toml::{Table, Value};

use crate::{File, assert_none, files, root};

#[test]
fn every_component_is_checked_for_the_contract() {
    let files = files();
    let is_component =
        |file: &&File| file.path.starts_with("components/src/") && file.text.contains("impl Component for ");
    // A file's tests are in it, in a folder of its name, or beside it.
    let is_held = |file: &File| {
        let stem = file.path.trim_end_matches(".rs");
        let folder = stem.rsplit_once('/').map_or("", |(folder, _)| folder);
        let homes = [
            file.path.clone(),
            format!("{stem}/tests.rs"),
            format!("{folder}/tests.rs"),
        ];
        let holds =
            |file: &File| homes.contains(&file.path) && file.text.contains("rig::") && file.text.contains("check(");
        files.iter().any(holds)
    };
    let components: Vec<_> = files.iter().filter(is_component).collect();
    assert!(components.len() > 10, "only {} components found", components.len());
    let findings = components
        .iter()
        .filter(|file| !is_held(file))
        .map(|file| file.path.clone())
        .collect();
    assert_none(findings, "call `warpwave_hw::rig::check` in the component's tests");
}

/// The row of a component in the table of invariants: the doc of its `Component::invariants`. `None` without such a doc.
fn invariants_row(code: &str) -> Option<String> {
    let name = code.split(|c: char| !c.is_alphanumeric()).next()?;
    let (before, _) = code.split_once("fn invariants(&self, check: &mut Invariants)")?;
    // The last line before the function is only its indent.
    let doc = before
        .lines()
        .rev()
        .skip(1)
        .map_while(|line| line.trim().strip_prefix("/// "));
    let mut lines: Vec<_> = doc.collect();
    lines.reverse();
    (!lines.is_empty()).then(|| format!("| `{name}` | {} |\n", lines.join(" ")))
}

#[test]
fn every_component_states_its_invariants_and_the_guarantees_list_them() {
    const HEAD: &str = "| Component | Checked |\n|---|---|\n";
    let path = root().join("testbench/docs/guarantees.md");
    let page = fs::read_to_string(&path).unwrap();
    let (mut findings, mut table) = (Vec::new(), String::new());
    for file in files().iter().filter(|file| file.path.starts_with("components/src/")) {
        let Some((_, code)) = file.text.split_once("impl Component for ") else {
            continue;
        };
        match invariants_row(code) {
            Some(row) => table += &row,
            None => findings.push(file.path.clone()),
        }
    }
    assert_none(
        findings,
        "check the invariants in `Component::invariants`, and state them in its doc",
    );
    let (before, after) = page.split_once(HEAD).expect("the page has the table of invariants");
    let (written, after) = after.split_once("\n\n").expect("an empty line ends the table");
    if std::env::var_os("WARPWAVE_WRITE_CONTRACTS").is_some() {
        fs::write(&path, format!("{before}{HEAD}{table}\n{after}")).unwrap();
    } else {
        assert_eq!(
            format!("{written}\n"),
            table,
            "write the page with WARPWAVE_WRITE_CONTRACTS=1"
        );
    }
}

#[test]
fn row_of_a_component_is_the_doc_of_its_invariants() {
    let code = "Queue {\n    /// Its depth.\n    /// Its order.\n    fn invariants(&self, check: &mut Invariants) {\n";
    assert_eq!(
        invariants_row(code).as_deref(),
        Some("| `Queue` | Its depth. Its order. |\n")
    );
    assert_eq!(invariants_row(&code.replace("///", "//")), None);
}

#[test]
fn every_scenario_on_disk_is_built_in_and_has_a_claim() {
    let files = files();
    let on_disk: Vec<_> = files
        .iter()
        .filter_map(|file| file.path.strip_prefix("testbench/scenarios/")?.strip_suffix(".toml"))
        .filter(|path| !path.starts_with("speed/") && !path.starts_with("lessons"))
        .map(|path| path.rsplit('/').next().unwrap_or(path))
        .collect();
    let listed = warpwave::scenario::builtin::names();
    for name in &on_disk {
        assert!(listed.contains(name), "scenario {name} is not listed: build again");
        let entry = warpwave::scenario::builtin::entry(name).unwrap();
        assert!(
            !entry.title.is_empty() && !entry.claim.is_empty(),
            "scenario {name} needs a title and a claim"
        );
    }
    assert_eq!(on_disk.len(), listed.len(), "two scenarios bear the same name");
}

#[test]
fn top_folder_has_only_known_entries() {
    let folders = ["components", "fuzz", "hw", "testbench", "waveforms"];
    let is_source = |name: &str| {
        [".rs", ".toml", ".md", ".py", ".sh", ".ptx"]
            .iter()
            .any(|end| name.ends_with(end))
    };
    let findings = fs::read_dir(root())
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.path().is_dir(), entry.file_name().to_string_lossy().into_owned()))
        .filter(|(_, name)| !name.starts_with('.') && name != "target")
        .filter(|(is_folder, name)| match is_folder {
            true => !folders.contains(&name.as_str()),
            false => is_source(name) && !["Cargo.toml", "README.md", "CHANGELOG.md"].contains(&name.as_str()),
        })
        .map(|(_, name)| name)
        .collect();
    assert_none(
        findings,
        "the top level is fixed: move these into the part that they belong to",
    );
}

#[test]
fn every_fuzz_target_is_built_has_a_corpus_and_is_replayed() {
    let manifest: Table = fs::read_to_string(root().join("fuzz/Cargo.toml"))
        .unwrap()
        .parse()
        .unwrap();
    let is_target = |bin: &&Value| bin["path"].as_str().unwrap().starts_with("fuzz_targets/");
    let bins = manifest["bin"].as_array().unwrap().iter().filter(is_target);
    let mut built: Vec<String> = bins.map(|bin| bin["name"].as_str().unwrap().to_owned()).collect();
    built.sort();
    let written: Vec<String> = files()
        .iter()
        .filter_map(|file| file.path.strip_prefix("fuzz/fuzz_targets/")?.strip_suffix(".rs"))
        .map(str::to_owned)
        .collect();
    assert_eq!(
        built, written,
        "each file of fuzz_targets needs a [[bin]] in fuzz/Cargo.toml"
    );
    let listed = fs::read_to_string(root().join("fuzz/src/targets.rs")).unwrap();
    for target in written {
        assert!(
            listed.contains(&format!("\"{target}\"")),
            "{target}: list it in fuzz/src/targets.rs, so that it is replayed"
        );
        assert!(
            root().join("fuzz/corpus").join(&target).is_dir(),
            "{target}: give it a corpus to start from"
        );
    }
}

#[test]
fn every_regression_is_described() {
    let folder = root().join("fuzz/regressions");
    let stories = fs::read_to_string(folder.join("README.md")).unwrap();
    let entries = |folder: &Path| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let inputs = entries(&folder)
        .filter(|path| path.is_dir())
        .flat_map(|target| entries(&target).collect::<Vec<_>>());
    let findings = inputs
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .filter(|name| !stories.contains(&format!("`{name}`")))
        .collect();
    assert_none(
        findings,
        "tell in fuzz/regressions/README.md what these broke and what was changed",
    );
}
