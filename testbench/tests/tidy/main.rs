//! Rules of the repository as tests, so that no reviewer has to repeat them.
//!
//! Each rule reads every file of the repository and returns findings as `path:line: what`. The message of a failed test has the advice.
//! Each rule also has a test with an offence that it must find.

mod faults;
mod imports;
mod kinds;
mod lists;
mod packages;
mod pages;
mod sbom;
mod text;

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of this test.
const OWN_FOLDER: &str = "testbench/tests/tidy/";

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
    fn without_tests(&self) -> impl Iterator<Item = &str> {
        let tests = self.text.find("#[cfg(test)]\nmod tests {");
        self.text[..tests.unwrap_or(self.text.len())].lines()
    }

    /// The text without unit tests and comments.
    fn code(&self) -> String {
        let is_code = |line: &&str| !line.trim_start().starts_with("//");
        self.without_tests()
            .filter(is_code)
            .flat_map(|line| [line, "\n"])
            .collect()
    }

    fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the package lies in the repository")
}

/// Every text file of the repository, without build output and version control.
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

/// All Rust files, without the ones of this test: they contain the forbidden texts.
fn rust_files() -> impl Iterator<Item = File> {
    files()
        .into_iter()
        .filter(|file| file.is_rust() && !file.path.starts_with(OWN_FOLDER))
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
