//! The texts of the corpus: their paths, their compilers, and the cases that run on them.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::case::{Case, Source};

/// A PTX text of the corpus.
pub struct Text {
    /// Compiler and target, or `variants`.
    pub folder: String,
    /// The file's name without its ending.
    pub stem: String,
    /// The PTX text.
    pub ptx: String,
}

/// The corpus: folders of texts, sources beside them.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Every text, by folder and name.
pub fn all() -> Vec<Text> {
    let mut paths = elsewhere();
    let ptx = root().join("ptx");
    for folder in entries(&ptx) {
        for file in entries(&folder) {
            let path = file
                .strip_prefix(&ptx)
                .expect("below")
                .to_string_lossy()
                .replace('\\', "/");
            assert!(paths.insert(path, file).is_none(), "a text is stored twice");
        }
    }
    let mut texts: Vec<_> = paths.iter().map(|(path, file)| read(path, file)).collect();
    texts.sort_by(|a, b| (&a.folder, &a.stem).cmp(&(&b.folder, &b.stem)));
    texts
}

/// Texts stored with other tests, by their path in the corpus.
fn elsewhere() -> HashMap<String, PathBuf> {
    let list = fs::read_to_string(root().join("elsewhere.txt")).expect("the list is there");
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let lines = list.lines().map(|line| line.split_once(' ').expect("two paths a line"));
    lines
        .map(|(here, there)| (here.to_owned(), repository.join(there)))
        .collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.expect("readable").path()).collect()
}

fn read(path: &str, file: &Path) -> Text {
    let (folder, name) = path.split_once('/').expect("a folder and a name");
    Text {
        folder: folder.to_owned(),
        stem: name.trim_end_matches(".ptx").to_owned(),
        ptx: fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display())),
    }
}

impl Text {
    /// Its path in the corpus.
    pub fn path(&self) -> String {
        format!("{}/{}", self.folder, self.stem)
    }

    /// True if it has a kernel of this source.
    fn is_of(&self, source: Source) -> bool {
        let made_by = |compilers: &[&str]| {
            let by = |text: &str| compilers.iter().any(|compiler| text.starts_with(compiler));
            by(&self.folder) || (self.folder == "variants" && by(&self.stem))
        };
        // The name of a variant: compiler, option, source.
        let named = |stem: &str| match self.folder.as_str() {
            "variants" => self.stem.splitn(3, '_').nth(2) == Some(stem),
            _ => self.stem == stem,
        };
        match source {
            Source::Cuda(file) => named(file) && made_by(&["nvcc", "nvrtc", "clang"]),
            Source::Triton(kernel) => named(kernel) && made_by(&["triton"]),
            Source::Numba(kernel) => named(kernel) && made_by(&["numba"]),
            Source::OpenCl => made_by(&["opencl"]),
            Source::Rust => made_by(&["rust"]),
        }
    }

    /// True if a case is for an entry of this text and runs on it.
    pub fn runs(&self, case: &Case, entry: &str) -> bool {
        self.has(case, entry) && !self.is_excepted(case)
    }

    /// True if a case is for an entry of this text, but excludes this build.
    pub fn leaves_out(&self, case: &Case, entry: &str) -> bool {
        self.has(case, entry) && self.is_excepted(case)
    }

    fn has(&self, case: &Case, entry: &str) -> bool {
        self.is_of(case.source) && is_named(entry, case.entry)
    }

    fn is_excepted(&self, case: &Case) -> bool {
        case.exceptions.iter().any(|(folder, _)| *folder == self.folder)
    }
}

/// True if an entry has a source's name: plain, or in a mangled name after its length.
fn is_named(entry: &str, name: &str) -> bool {
    entry == name || entry.starts_with("_Z") && entry.contains(&format!("{}{name}", name.len()))
}
