//! The README is true: its commands run word for word, and its files are what it says.
//!
//! Lines of `sh` blocks that begin with `cargo run --release -- ` go to the command built for this test, in an empty folder that
//! holds the README's own files (fenced blocks with a language and a name). What other commands promise, `.ci/run` checks.

use std::fs;
use std::path::Path;
use std::process::Command;

const RUN: &str = "cargo run --release -- ";

fn readme() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md")).unwrap()
}

/// Fenced blocks: what follows the fence, and the text.
fn blocks(readme: &str) -> Vec<(&str, &str)> {
    let fenced = readme.split("\n```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').unwrap()).collect()
}

fn commands(readme: &str) -> Vec<&str> {
    let shell = blocks(readme).into_iter().filter(|(language, _)| *language == "sh");
    let lines = shell.flat_map(|(_, text)| text.lines());
    lines
        .map(|line| line.split(" #").next().unwrap_or(line).trim())
        .collect()
}

/// Words of a command as a shell takes them, for single quotes and spaces.
fn words(command: &str) -> Vec<String> {
    let quoted = command.split('\'').enumerate();
    quoted
        .flat_map(|(n, part)| match n % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

#[test]
fn commands_run_word_for_word() {
    let readme = readme();
    let folder = tempfile::tempdir().unwrap();
    for (fence, text) in blocks(&readme) {
        if let Some((_, name)) = fence.split_once(' ') {
            fs::write(folder.path().join(name), text).unwrap();
        }
    }
    let commands: Vec<_> = commands(&readme)
        .into_iter()
        .filter_map(|line| line.strip_prefix(RUN))
        .collect();
    assert!(
        commands.len() > 10,
        "the README's commands were not found: {commands:?}"
    );
    for command in commands {
        let output = Command::new(env!("CARGO_BIN_EXE_warpwave"))
            .args(words(command))
            .current_dir(&folder)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "`warpwave {command}` ended with {}:\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn files_and_folders_of_the_map_exist() {
    let readme = readme();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let quoted = readme.split('`').skip(1).step_by(2);
    let is_path = |word: &&str| word.contains('/') && (word.ends_with(".rs") || word.ends_with('/'));
    for path in quoted.filter(is_path) {
        assert!(root.join(path).exists(), "the README names {path}");
    }
    let (_, map) = blocks(&readme)
        .into_iter()
        .find(|(_, text)| text.starts_with("hw/"))
        .unwrap();
    let mut parent = "";
    for line in map.lines() {
        let name = line.split_whitespace().next().unwrap();
        let path = match line.starts_with(' ') {
            true => root.join(parent).join(name),
            false => root.join(name),
        };
        assert!(path.exists(), "the map shows {}", path.display());
        parent = if line.starts_with(' ') { parent } else { name };
    }
}
