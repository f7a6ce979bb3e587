//! Tidiness as tests: what a reviewer would say twice, these say for ever.
//!
//! Each rule looks at every file of the repository and gives its findings, as `path:line: what`; the message of a failed test
//! says what to do. Each rule is also shown to find an offence, so that none goes blind.

use std::fs;
use std::path::{Path, PathBuf};

use toml::Table;

/// Who may import whom: a package's folder and the packages of this workspace that it may depend on.
const IMPORTS: [(&str, &[&str]); 7] = [
    ("hw", &[]),
    ("hw/isa", &[]),
    ("hw/ptx", &["warpwave-isa"]),
    ("components", &["warpwave-hw", "warpwave-isa"]),
    ("waveforms", &["warpwave-hw"]),
    (
        "testbench",
        &[
            "warpwave-hw",
            "warpwave-isa",
            "warpwave-ptx",
            "warpwave-components",
            "warpwave-waveforms",
        ],
    ),
    (
        "fuzz",
        &[
            "warpwave-hw",
            "warpwave-isa",
            "warpwave-ptx",
            "warpwave-components",
            "warpwave-waveforms",
            "warpwave",
        ],
    ),
];

/// The blocks of the machine, as modules of `components`. They meet only through `proto`.
const BLOCKS: [&str; 10] = [
    "front",
    "sm::cta",
    "sm::subcore",
    "sm::pipe",
    "sm::lsu",
    "sm::shared",
    "sm::l1",
    "xbar",
    "l2",
    "hbm",
];

/// Modules of `components` that any block may name: messages, numbers, bytes, and furniture and test rigs that are nobody's.
const OPEN: [&str; 10] = [
    "proto",
    "config",
    "preset",
    "occupancy",
    "storage",
    "text_file",
    "bits",
    "cache",
    "test_ports",
    "sm::timing",
];

/// Units that lie beside the block that they are part of.
const UNITS: [(&str, &str); 1] = [("sm::cta", "sm::barrier")];

/// Most lines of a file without its tests.
const MOST_LINES: usize = 400;

/// Files that may be longer, up to so many lines, and why.
const LONGER: &[(&str, usize, &str)] = &[];

/// Folders of pages, and of the pictures in them.
const DOCS: [&str; 3] = ["testbench/docs", "components/docs", "hw/docs"];

/// Least number of lines that is too many for a page.
const TOO_MANY_PAGE_LINES: usize = 200;

/// Most bytes of a picture.
const MOST_PICTURE_BYTES: u64 = 150_000;

/// How a page begins that a command prints, and that may be longer: its third line.
const MADE_BY: &str = "This page is made by `";

/// Components that stand in for others in tests, and need no contract test of their own.
const STAND_INS: [&str; 1] = ["components/src/gpu/rig/driver.rs"];

/// What does not belong into a committed Rust file, and what to do instead.
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

/// A file of the repository: its path from the root, with forward slashes, and its text.
struct File {
    path: String,
    text: String,
}

impl File {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    fn finding(&self, line: usize, what: &str) -> String {
        format!("{}:{}: {what}", self.path, line + 1)
    }

    /// The lines before the module of unit tests.
    fn lines_without_tests(&self) -> usize {
        let tests = self.text.find("#[cfg(test)]\nmod tests");
        self.text[..tests.unwrap_or(self.text.len())].lines().count()
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the package lies in the repository")
}

/// Every text file that is written here: no build output, no version control.
fn files() -> Vec<File> {
    let mut files = Vec::new();
    collect(root(), &mut files);
    assert!(
        files.len() > 100,
        "only {} files found: is the walk broken?",
        files.len()
    );
    files
}

fn collect(folder: &Path, files: &mut Vec<File>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if name != "target" && name != "artifacts" && !(name.starts_with('.') && name != ".ci") {
                collect(&path, files);
            }
        } else if name != ".git"
            && let Ok(text) = fs::read_to_string(&path)
        {
            let path = path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/");
            files.push(File { path, text });
        }
    }
}

/// All Rust files but this one, which names what it forbids.
fn rust_files() -> impl Iterator<Item = File> {
    files()
        .into_iter()
        .filter(|file| file.is_rust() && file.path != "testbench/tests/tidy.rs")
}

fn assert_none(findings: Vec<String>, advice: &str) {
    assert!(findings.is_empty(), "{advice}:\n  {}", findings.join("\n  "));
}

fn rust(path: &str, text: &str) -> File {
    File {
        path: path.into(),
        text: text.into(),
    }
}

// Imports.

#[test]
fn packages_depend_only_on_packages_below_them() {
    let mut findings = Vec::new();
    for (folder, allowed) in IMPORTS {
        let text = fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
        let manifest: Table = text.parse().unwrap();
        findings.extend(forbidden_dependencies(folder, &manifest, allowed));
    }
    assert_none(
        findings,
        "move the code down to the package that may know both, or pass a value instead",
    );
}

#[test]
fn every_package_has_a_row_in_the_import_table() {
    let manifest: Table = fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let members: Vec<_> = manifest["workspace"]["members"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|m| m.as_str())
        .collect();
    assert_eq!(
        members,
        IMPORTS.map(|(folder, _)| folder),
        "say in IMPORTS what the new package may import"
    );
}

fn forbidden_dependencies(folder: &str, manifest: &Table, allowed: &[&str]) -> Vec<String> {
    let ours = |name: &&String| name.starts_with("warpwave");
    let own = |name: &&String| manifest["package"]["name"].as_str() == Some(name.as_str());
    ["dependencies", "dev-dependencies", "build-dependencies"]
        .iter()
        .filter_map(|kind| manifest.get(*kind)?.as_table())
        .flat_map(|table| table.keys().filter(ours))
        .filter(|name| !allowed.contains(&name.as_str()) && !own(name))
        .map(|name| format!("{folder}/Cargo.toml: depends on {name}"))
        .collect()
}

#[test]
fn blocks_meet_only_through_proto() {
    let findings = files().iter().flat_map(foreign_blocks).collect();
    assert_none(findings, "send a message of `proto` instead of naming another block");
}

/// The module that a file of `components` is, such as `sm::lsu::agu`; nothing for those that may know everyone.
fn module(path: &str) -> Option<String> {
    let path = path.strip_prefix("components/src/")?.strip_suffix(".rs")?;
    let knows_everyone = path == "lib" || path == "gpu" || path.starts_with("gpu/");
    (!knows_everyone).then(|| path.replace('/', "::"))
}

/// Lines in which a file of one block, or of no block, names a block that it is not part of.
fn foreign_blocks(file: &File) -> Vec<String> {
    let Some(module) = module(&file.path) else {
        return Vec::new();
    };
    let lines = file.text.lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .flat_map(|(n, line)| named_modules(line).map(move |named| (n, named)))
        .filter(|(_, named)| !may_name(&module, named))
        .map(|(n, named)| file.finding(n, &format!("names crate::{named}")))
        .collect()
}

/// Module paths after `crate::` in a line.
fn named_modules(line: &str) -> impl Iterator<Item = String> {
    line.split("crate::").skip(1).map(|rest| {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
        rest[..end.unwrap_or(rest.len())].trim_end_matches(':').to_owned()
    })
}

fn may_name(module: &str, named: &str) -> bool {
    let is_in = |module: &str, of: &str| module == of || module.starts_with(&format!("{of}::"));
    let block = BLOCKS.iter().find(|block| is_in(module, block));
    let has_unit = |(of, unit): &(&str, &str)| is_in(module, of) && is_in(named, unit);
    OPEN.iter().any(|open| is_in(named, open))
        || block.is_some_and(|block| is_in(named, block))
        || UNITS.iter().any(has_unit)
}

#[test]
fn a_block_that_names_another_is_found() {
    let file = rust(
        "components/src/l2/slice.rs",
        "use crate::proto::mem::Packet;\nuse crate::hbm::channel::Channel;\n",
    );
    assert_eq!(
        foreign_blocks(&file),
        ["components/src/l2/slice.rs:2: names crate::hbm::channel::Channel"]
    );
    let manifest: Table = "[package]\nname = \"warpwave-hw\"\n[dependencies]\nwarpwave-isa = \"1\"\nserde = \"1\""
        .parse()
        .unwrap();
    assert_eq!(
        forbidden_dependencies("hw", &manifest, &[]),
        ["hw/Cargo.toml: depends on warpwave-isa"]
    );
}

// Documentation and size.

#[test]
fn every_module_opens_with_what_it_is() {
    let undocumented = |file: &File| !file.text.trim().is_empty() && !file.text.trim_start().starts_with("//!");
    let findings = rust_files().filter(undocumented).map(|file| file.path).collect();
    assert_none(
        findings,
        "open the file with `//!`: what it is, what it takes, what it promises",
    );
}

#[test]
fn files_stay_readable_in_one_sitting() {
    let limit = |path: &str| {
        LONGER
            .iter()
            .find(|(long, ..)| *long == path)
            .map_or(MOST_LINES, |(_, lines, _)| *lines)
    };
    let is_test = |file: &File| file.path.contains("/tests/") || file.path.ends_with("/tests.rs");
    let findings = rust_files()
        .filter(|file| !is_test(file))
        .map(|file| (file.lines_without_tests(), limit(&file.path), file.path))
        .filter(|(lines, limit, _)| lines > limit)
        .map(|(lines, limit, path)| format!("{path}: {lines} lines without tests, at most {limit}"))
        .collect();
    assert_none(
        findings,
        "split the file by stage or by unit, or add it to LONGER with its reason",
    );
}

#[test]
fn exceptions_that_are_no_longer_needed_are_gone() {
    let lines = |path: &str| fs::read_to_string(root().join(path)).map(|text| rust(path, &text).lines_without_tests());
    let findings = LONGER
        .iter()
        .filter(|(path, ..)| lines(path).is_ok_and(|lines| lines <= MOST_LINES) || lines(path).is_err())
        .map(|(path, ..)| path.to_string())
        .collect();
    assert_none(findings, "take these out of LONGER");
}

#[test]
fn tests_do_not_count_as_lines() {
    let file = rust("a.rs", "//! A.\nfn a() {}\n\n#[cfg(test)]\nmod tests {\n}\n");
    assert_eq!(file.lines_without_tests(), 3);
}

#[test]
fn pages_stay_readable_in_one_sitting() {
    let in_docs = |file: &File| DOCS.iter().any(|folder| file.path.starts_with(folder)) && file.path.ends_with(".md");
    let findings = files()
        .iter()
        .filter(|file| in_docs(file))
        .filter_map(long_page)
        .collect();
    assert_none(findings, "split the page by topic, or let a command print it");
}

/// A page with too many lines, unless a command prints it.
fn long_page(file: &File) -> Option<String> {
    let lines = file.text.lines().count();
    let is_made = file.text.lines().nth(2).is_some_and(|line| line.starts_with(MADE_BY));
    let is_long = lines >= TOO_MANY_PAGE_LINES && !is_made;
    is_long.then(|| {
        format!(
            "{}: {lines} lines, fewer than {TOO_MANY_PAGE_LINES} are allowed",
            file.path
        )
    })
}

#[test]
fn pictures_are_small_and_shown() {
    let mut findings = Vec::new();
    for folder in DOCS {
        pictures(&root().join(folder), &mut findings);
    }
    assert_none(
        findings,
        "take fewer colours or a smaller part; delete what no page shows",
    );
}

/// Findings on the pictures of a folder, and of the folders in it.
fn pictures(folder: &Path, findings: &mut Vec<String>) {
    let shown: String = files()
        .into_iter()
        .filter(|file| file.path.ends_with(".md"))
        .map(|file| file.text)
        .collect();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            pictures(&path, findings);
        } else if name.ends_with(".png") {
            findings.extend(picture(&name, fs::metadata(&path).unwrap().len(), &shown));
        }
    }
}

/// What is wrong with a picture of this name and size, where the pages have this text.
fn picture(name: &str, bytes: u64, pages: &str) -> Option<String> {
    let mut links = pages.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let is_shown = links.any(|link| link.ends_with(name));
    match (bytes, is_shown) {
        (_, false) => Some(format!("{name}: no page shows it")),
        (MOST_PICTURE_BYTES.., _) => Some(format!("{name}: {bytes} bytes, at most {MOST_PICTURE_BYTES}")),
        _ => None,
    }
}

#[test]
fn long_page_and_large_picture_are_found() {
    let page = |head: &str, lines| rust("testbench/docs/a.md", &(head.to_owned() + &"a\n".repeat(lines)));
    assert_eq!(long_page(&page("", 199)), None);
    assert!(long_page(&page("", 200)).is_some());
    assert_eq!(long_page(&page("# A\n\nThis page is made by `b`.\n", 300)), None);
    assert_eq!(picture("a.png", 1, "![text](b/a.png)"), None);
    assert_eq!(picture("a.png", 1, "a.png").as_deref(), Some("a.png: no page shows it"));
    assert!(picture("a.png", 150_001, "![text](a.png)").is_some());
}

// What must not stay.

#[test]
fn nothing_is_left_unfinished() {
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
fn every_allowed_lint_says_why() {
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
fn no_code_sleeps_in_comments() {
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
    let others = |file: &File| file.path != "testbench/tests/tidy.rs";
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
fn what_must_not_stay_is_found() {
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

// Lists that must be complete.

#[test]
fn every_component_is_held_to_the_contract() {
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
    let is_stand_in = |file: &File| STAND_INS.contains(&file.path.as_str());
    let components: Vec<_> = files.iter().filter(is_component).collect();
    assert!(components.len() > 10, "only {} components found", components.len());
    let findings = components
        .iter()
        .filter(|file| is_held(file) == is_stand_in(file))
        .map(|file| file.path.clone())
        .collect();
    assert_none(
        findings,
        "call `warpwave_hw::rig::check` in the component's tests; STAND_INS is for components of tests alone",
    );
}

#[test]
fn every_scenario_on_disk_is_built_in_and_says_what_it_proves() {
    let files = files();
    let on_disk: Vec<_> = files
        .iter()
        .filter_map(|file| file.path.strip_prefix("testbench/scenarios/")?.strip_suffix(".toml"))
        .filter(|path| !path.starts_with("speed/"))
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
fn only_what_belongs_there_is_at_the_top() {
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
fn every_fuzz_target_is_built_starts_from_a_corpus_and_is_replayed() {
    let manifest: Table = fs::read_to_string(root().join("fuzz/Cargo.toml"))
        .unwrap()
        .parse()
        .unwrap();
    let bins = manifest["bin"].as_array().unwrap().iter();
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
    let properties = fs::read_to_string(root().join("testbench/tests/properties.rs")).unwrap();
    for target in written {
        assert!(
            properties.contains(&format!("\"{target}\"")),
            "{target}: replay it in testbench/tests/properties.rs"
        );
        assert!(
            root().join("fuzz/corpus").join(&target).is_dir(),
            "{target}: give it a corpus to start from"
        );
    }
}

#[test]
fn every_regression_has_its_story() {
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
