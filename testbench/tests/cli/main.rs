//! Tests of the command `warpwave`: output, error texts and exit codes.

mod check;
#[path = "../dump/mod.rs"]
mod dump;
mod ending;
mod fault;
mod globals;
mod hang;
mod input;
mod language;
mod log;
mod modules;
mod outputs;
mod own;
mod run;
mod show;
mod speed;
mod standstill;
mod trace;
mod usage;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Standard output, standard error and exit code of a command.
struct Answer {
    out: String,
    err: String,
    code: i32,
}

impl Answer {
    fn of(output: Output) -> Self {
        Answer {
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().expect("no signal ends the command"),
        }
    }
}

fn warpwave(args: &[&str]) -> Answer {
    let folder = tempfile::tempdir().unwrap();
    warpwave_in(folder.path(), args)
}

/// Runs the command in a folder. A failed run writes its flight recorder there.
fn warpwave_in(folder: &Path, args: &[&str]) -> Answer {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpwave"));
    command.env_remove("RUST_LOG").current_dir(folder).args(args);
    Answer::of(command.output().unwrap())
}

/// The path of a failing program in `tests/errors`.
fn error_scenario(name: &str) -> String {
    let file = format!("{}/tests/errors/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    assert!(Path::new(&file).is_file(), "{file}");
    file
}

/// Runs a failing program on the smallest machine.
fn run_error(name: &str) -> Answer {
    warpwave(&["run", &error_scenario(name), "--gpu", "tiny", "--max-cycles", "20000"])
}

/// Asserts that the command failed with this code. Its error text must contain the parts in this order, each once.
fn assert_fails(answer: &Answer, code: i32, says: &[&str]) {
    assert_eq!(answer.code, code, "{}", answer.err);
    let mut rest = answer.err.as_str();
    for part in says {
        let at = rest
            .find(part)
            .unwrap_or_else(|| panic!("`{part}` is missing, or in the wrong order: {}", answer.err));
        rest = &rest[at + part.len()..];
    }
    assert!(!answer.err.contains("panicked"), "{}", answer.err);
}

/// Creates a folder with a scenario of this text and these files. Returns the folder and the scenario's path.
fn scenario(text: &str, files: &[(&str, &[u8])]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.toml");
    std::fs::write(&path, text).unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    (folder, path)
}

const FILL: &str = include_str!("../errors/out_of_bounds.ptx");

fn run_text(text: &str) -> Answer {
    let (_folder, path) = scenario(text, &[("k.ptx", FILL.as_bytes())]);
    warpwave(&["run", path.to_str().unwrap(), "--gpu", "tiny"])
}

/// Any JSON number or text below a path of keys.
fn json_at<'a>(value: &'a serde_json::Value, path: &[&str]) -> &'a serde_json::Value {
    path.iter().fold(value, |value, key| match key.parse::<usize>() {
        Ok(index) => &value[index],
        Err(_) => &value[*key],
    })
}
