//! The tables of cases: their format, their checks.
//!
//! | key of a case | meaning |
//! |---|---|
//! | `name` | the weakness |
//! | `text`, `edit` | the file under test, whole; or `[old, new]` in the table's one |
//! | `files`, `folders`, `links`, `modes` | more files, folders, symbolic links, permissions |
//! | `args`, `more` | all arguments; further ones after the table's |
//! | `env` | environment variables |
//! | `stdin`, `stdout`, `stderr` | `closed`, `full` (a full device) or `pipe` (closed by its reader) |
//! | `cpu_seconds`, `memory_mib`, `file_kib`, `open_files`, `as_user` | limits of the system; run without the rights of root |
//! | `code`, `says`, `prints` | exit code; parts of standard error in this order; parts of standard output |
//!
//! A text may be a list of parts: texts, `{ hex = "ff" }`, or `{ repeat = "x", times = 1000 }`, where `{#}` is the index.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

/// Maximum number of bytes on standard error.
pub const MAX_ERR: usize = 32 << 10;

/// Limit of the address space of a child, in MiB.
const MEMORY_MIB: u64 = 512;

/// Limit of the CPU time of a child, in seconds. It excludes the time of other processes on the host.
const CPU_SECONDS: u64 = 5;

/// A file of cases.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    pub title: String,
    /// The file under test.
    pub file: Option<String>,
    #[serde(default)]
    pub args: Vec<Content>,
    #[serde(default)]
    pub files: BTreeMap<String, Content>,
    #[serde(rename = "case")]
    pub cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    pub text: Option<Content>,
    edit: Option<Edits>,
    #[serde(default)]
    pub files: BTreeMap<String, Content>,
    #[serde(default)]
    pub folders: Vec<String>,
    #[serde(default)]
    pub links: BTreeMap<String, String>,
    #[serde(default)]
    pub modes: BTreeMap<String, String>,
    pub args: Option<Vec<Content>>,
    #[serde(default)]
    pub more: Vec<Content>,
    #[serde(default)]
    pub env: BTreeMap<String, Content>,
    pub stdin: Option<Stream>,
    pub stdout: Option<Stream>,
    pub stderr: Option<Stream>,
    #[serde(default = "cpu_seconds")]
    pub cpu_seconds: u64,
    #[serde(default = "memory_mib")]
    pub memory_mib: u64,
    pub file_kib: Option<u64>,
    pub open_files: Option<u64>,
    #[serde(default)]
    pub as_user: bool,
    #[serde(default = "input")]
    pub code: i32,
    #[serde(default)]
    pub says: Vec<String>,
    #[serde(default)]
    prints: Vec<String>,
}

/// A standard stream that is not usable.
#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    Closed,
    Full,
    Pipe,
}

/// Bytes of a file, an argument or a variable.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
#[serde(untagged)]
pub enum Part {
    Text(String),
    Hex { hex: String },
    Repeat { repeat: Box<Content>, times: usize },
}

/// One replacement, or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum Edits {
    One(String, Content),
    Many(Vec<(String, Content)>),
}

/// Exit code and texts of a child. No code if a signal ended it.
pub struct Answer {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// The exit code of bad input.
fn input() -> i32 {
    2
}

fn cpu_seconds() -> u64 {
    CPU_SECONDS
}

fn memory_mib() -> u64 {
    MEMORY_MIB
}

impl Content {
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Content::Text(text) => text.clone().into(),
            Content::Parts(parts) => parts.iter().flat_map(Part::bytes).collect(),
        }
    }
}

impl Part {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Part::Text(text) => text.clone().into(),
            Part::Hex { hex } => {
                let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
                (0..hex.len()).step_by(2).map(byte).collect()
            }
            Part::Repeat { repeat, times } => match &**repeat {
                Content::Text(text) if text.contains("{#}") => {
                    let texts = (0..*times).map(|n| text.replace("{#}", &n.to_string()));
                    texts.collect::<String>().into()
                }
                content => content.bytes().repeat(*times),
            },
        }
    }
}

impl Table {
    /// Reads the table of a kind.
    pub fn load(kind: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/malformed/cases/{kind}.toml"));
        Self::parse(&std::fs::read_to_string(path).unwrap())
    }

    pub fn parse(text: &str) -> Self {
        let table: Table = toml::from_str(text).unwrap();
        for (n, case) in table.cases.iter().enumerate() {
            let is_new = table.cases[..n].iter().all(|other| other.name != case.name);
            assert!(is_new, "two cases have the name {}", case.name);
        }
        table
    }
}

impl Case {
    /// All files of the case.
    pub fn all_files(&self, table: &Table) -> BTreeMap<String, Vec<u8>> {
        let all = table.files.iter().chain(&self.files);
        let mut all: BTreeMap<String, Vec<u8>> = all.map(|(name, content)| (name.clone(), content.bytes())).collect();
        let tested = table.file.clone().unwrap_or_default();
        if let Some(text) = &self.text {
            all.insert(tested.clone(), text.bytes());
        }
        let edits: Vec<(&String, &Content)> = match &self.edit {
            None => Vec::new(),
            Some(Edits::One(old, new)) => vec![(old, new)],
            Some(Edits::Many(edits)) => edits.iter().map(|(old, new)| (old, new)).collect(),
        };
        for (old, new) in edits {
            let file = all.get_mut(&tested).unwrap();
            let at = file.windows(old.len()).position(|window| window == old.as_bytes());
            let at = at.unwrap_or_else(|| panic!("{}: {tested} has no `{old}`", self.name));
            file.splice(at..at + old.len(), new.bytes());
        }
        all
    }

    /// What is wrong with an answer.
    pub fn faults(&self, table: &Table, answer: &Answer) -> Vec<String> {
        let mut faults = Vec::new();
        match answer.code {
            None => faults.push("a signal or the time limit ended it".to_owned()),
            Some(code) if code != self.code => faults.push(format!("exit code {code}, not {}", self.code)),
            Some(_) => {}
        }
        let mut rest = answer.err.as_str();
        for part in &self.says {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => faults.push(format!("standard error lacks `{part}`")),
            }
        }
        let missing = self.prints.iter().filter(|part| !answer.out.contains(*part));
        faults.extend(missing.map(|part| format!("standard output lacks `{part}`")));
        if answer.err.contains("panicked") {
            faults.push("it panicked".to_owned());
        }
        if answer.err.contains(|c: char| c.is_control() && c != '\n' && c != '\t') {
            faults.push("standard error has a control character".to_owned());
        }
        if answer.err.len() > MAX_ERR {
            faults.push(format!("{} bytes on standard error", answer.err.len()));
        }
        if self.code != 0 && self.says.is_empty() && self.stderr.is_none() {
            faults.push(format!("{}: a failing case must say something", table.title));
        }
        faults
    }
}
