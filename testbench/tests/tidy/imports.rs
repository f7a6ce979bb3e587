//! Allowed imports between packages, blocks and files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use toml::Table;

use crate::{File, assert_none, files, root, rust};

/// The folder of each package, and the packages of this workspace that it may depend on.
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
fn blocks_communicate_only_through_proto() {
    let files = files();
    let blocks = blocks(&files);
    assert!(blocks.len() > 8, "only {blocks:?} are blocks");
    let findings = files.iter().flat_map(|file| foreign_blocks(file, &blocks)).collect();
    assert_none(findings, "send a message of `proto` instead of naming another block");
}

/// The blocks of the machine: modules of `components` with a component in them. Those of an SM count one by one.
fn blocks(files: &[File]) -> BTreeSet<String> {
    let block = |module: &str| {
        let names = if module.starts_with("sm::") { 2 } else { 1 };
        module.split("::").take(names).collect::<Vec<_>>().join("::")
    };
    let has_component = |file: &&File| file.text.contains("impl Component for ");
    let modules = files.iter().filter(has_component).filter_map(|file| module(&file.path));
    modules.map(|module| block(&module)).collect()
}

/// The module of a file of `components`, such as `sm::lsu::agu`. `None` for a module that may name every block.
fn module(path: &str) -> Option<String> {
    let path = path.strip_prefix("components/src/")?.strip_suffix(".rs")?;
    let knows_everyone = path == "lib" || path == "gpu" || path.starts_with("gpu/");
    (!knows_everyone).then(|| path.replace('/', "::"))
}

/// Lines that name a foreign block: one that the file is not part of.
fn foreign_blocks(file: &File, blocks: &BTreeSet<String>) -> Vec<String> {
    let Some(module) = module(&file.path) else {
        return Vec::new();
    };
    let lines = file.text.lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .flat_map(|(n, line)| named_modules(line).map(move |named| (n, named)))
        .filter(|(_, named)| !may_name(&module, named, blocks))
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

/// True if `module` may name `named`. Modules that are no block (messages, numbers, containers) are open to all.
fn may_name(module: &str, named: &str, blocks: &BTreeSet<String>) -> bool {
    let block = blocks.iter().find(|block| contains(block, named));
    !contains("gpu", named) && block.is_none_or(|block| contains(block, module))
}

/// True if a module is `outer` or inside it.
fn contains(outer: &str, module: &str) -> bool {
    let rest = module.strip_prefix(outer);
    rest.is_some_and(|rest| outer.is_empty() || rest.is_empty() || rest.starts_with("::"))
}

#[test]
fn block_that_names_another_is_found() {
    let file = rust(
        "components/src/l2/slice.rs",
        "use crate::proto::mem::Packet;\nuse crate::hbm::channel::Channel;\n",
    );
    assert_eq!(
        foreign_blocks(&file, &["hbm", "l2"].map(str::to_owned).into()),
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

#[test]
fn files_have_no_import_cycles() {
    let files = files();
    for package in ["hw/src/", "components/src/"] {
        assert_none(
            circles(package, &files),
            "move what both need into a file of its own, or pass it as a parameter",
        );
    }
}

/// Groups of files that lead to one another by imports. A file and the files in its folder do not count: the folder holds the
/// stages and parts of the block, which share its types.
fn circles(package: &str, files: &[File]) -> Vec<String> {
    let sources = files.iter().filter(|file| !file.is_test());
    let sources = sources.filter_map(|file| {
        let path = file.path.strip_prefix(package)?.strip_suffix(".rs")?;
        Some((path.replace('/', "::"), file.code()))
    });
    let sources: BTreeMap<String, String> = sources.collect();
    let import = |module: &String, path: String| {
        let ends = path.match_indices("::").map(|(end, _)| end).chain([path.len()]);
        let file = ends
            .map(|end| &path[..end])
            .filter(|name| sources.contains_key(*name))
            .last()?;
        let is_family = contains(module, file) || contains(file, module);
        (!is_family).then(|| file.to_owned())
    };
    let imports: BTreeMap<&String, BTreeSet<String>> = sources
        .iter()
        .map(|(module, code)| {
            (
                module,
                paths(module, code)
                    .into_iter()
                    .filter_map(|path| import(module, path))
                    .collect(),
            )
        })
        .collect();
    let reached = |from: &String| {
        let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(module) = next.pop() {
            next.extend(imports[module].iter().filter(|other| reached.insert((*other).clone())));
        }
        reached
    };
    let reached: BTreeMap<&String, BTreeSet<String>> =
        imports.keys().map(|module| (*module, reached(module))).collect();
    let circles = reached
        .iter()
        .filter(|(module, to)| to.contains(**module))
        .map(|(module, to)| {
            let circle: Vec<&str> = to
                .iter()
                .filter(|other| reached[other].contains(*module))
                .map(String::as_str)
                .collect();
            format!("{package}: {} import one another", circle.join(", "))
        });
    circles.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The paths in a module's code that begin at the crate or at a parent module, from the crate on.
fn paths(module: &str, code: &str) -> Vec<String> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let (mut paths, mut rest) = (Vec::new(), code);
    while let Some(at) = ["crate::", "super::"].iter().filter_map(|root| rest.find(root)).min() {
        let is_macros = rest[..at].ends_with('$');
        let (path, after) = rest[at..].split_at(rest[at..].find(|c| !is_name(c)).unwrap_or(rest.len() - at));
        rest = after;
        let mut outer: Vec<&str> = module.split("::").collect();
        let mut names: Vec<&str> = path.split("::").collect();
        while names.first().is_some_and(|name| *name == "super") {
            names.remove(0);
            outer.pop();
        }
        if names[0] == "crate" {
            names.remove(0);
            outer.clear();
        }
        let path = [outer, names].concat().join("::");
        if !is_macros {
            expand(&path, after, &mut paths);
        }
    }
    paths
}

/// Adds a path, or each path of the group in braces that follows it.
fn expand(path: &str, after: &str, paths: &mut Vec<String>) {
    let Some(group) = after.strip_prefix('{') else {
        paths.push(path.trim_end_matches(':').to_owned());
        return;
    };
    let (mut depth, mut item) = (0, String::new());
    for c in group.chars() {
        match c {
            '}' if depth == 0 => break,
            ',' if depth == 0 => {
                paths.push(format!("{path}{item}"));
                item.clear();
                continue;
            }
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        item.extend(Some(c).filter(|c| !c.is_whitespace()));
    }
    paths.push(format!("{path}{item}"));
}

#[test]
fn import_cycle_is_found_but_not_between_a_file_and_its_folder() {
    let files = [
        rust(
            "hw/src/a.rs",
            "use crate::b::{c, d::{E, F}};\nmod part;\nuse part::P;\n",
        ),
        rust("hw/src/a/part.rs", "use super::A;\n"),
        rust("hw/src/b.rs", "// crate::a\nmod d;\n"),
        rust(
            "hw/src/b/d.rs",
            "fn e() { super::super::g::h() }\n#[cfg(test)]\nmod tests {\n use crate::a; }\n",
        ),
        rust("hw/src/g.rs", "use crate::{time::Cycle, a::A};\n"),
    ];
    assert_eq!(circles("hw/src/", &files), ["hw/src/: a, b::d, g import one another"]);
    assert_eq!(circles("hw/src/", &files[..4]), [""; 0]);
}
