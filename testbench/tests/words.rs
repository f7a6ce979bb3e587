//! Plain words as tests: sentence length, phrases to avoid, the length of the README, subjects of commits.
//!
//! `hw/docs/glossary.md` has the words of the project. Each rule gives its findings as `path:line: what`. Each rule is also shown to
//! find an offence.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;

/// Maximum number of words of a sentence.
const MOST_WORDS: usize = 25;

/// Maximum number of lines of the README.
const README_LINES: usize = 150;

/// Maximum number of characters of the subject of a commit.
const SUBJECT: usize = 72;

/// The last commit before the rule for subjects.
const RULE_BEGINS_AFTER: &str = "56b470b1";

/// Phrases that cost a reader a second look, and what to write instead.
const PHRASES: [(&str, &str); 9] = [
    (r"\b[Ss]o many\b", "name the number"),
    (r"\b[Ww]ho(ever)?\b", "name the component, the thread or the caller"),
    (
        r"\b([Nn]obody|[Ss]omebody|[Ee]verybody)\b",
        "name the reader, the component or the thread",
    ),
    (r"\b[Tt]hose (that|who)\b", "repeat the noun"),
    (r"\b([Oo]f|[Bb]y) which\b", "write a second sentence, or `with`"),
    (
        r"\b(anew|in vain|all the same|but for|[Ss]ees to it|at hand)\b",
        "again, misses, still, except, ensures, current",
    ),
    (r"\b[Tt]he processor\b", "the host"),
    (
        r"\b(is|are|be|was) (had|said)\b|\bhad from\b",
        "is computed, is reported",
    ),
    (
        r"^(Likewise|As (above|both)|The same (as|for|from|if|of|while|with)\b|Asks? (for|ahead)\b)",
        "begin with the subject",
    ),
];

/// A sentence of a comment or a page: its place, and its text without code spans.
struct Sentence {
    path: String,
    line: usize,
    text: String,
}

impl Sentence {
    fn words(&self) -> usize {
        let has_word = |token: &&str| token.contains(|c: char| c.is_alphanumeric());
        self.text.split_whitespace().filter(has_word).count()
    }

    fn finding(&self, what: &str) -> String {
        format!("{}:{}: {what}: {}", self.path, self.line, self.text)
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the package lies in the repository")
}

/// The Rust files and the pages of the repository, as path and text. This file names what it forbids.
fn texts() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    collect(root(), &mut texts);
    assert!(
        texts.len() > 300,
        "only {} files found: is the walk broken?",
        texts.len()
    );
    texts
}

fn collect(folder: &Path, texts: &mut Vec<(String, String)>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            let is_ours = !name.starts_with('.') || name == ".github";
            if is_ours && name != "target" && name != "artifacts" {
                collect(&path, texts);
            }
        } else if (name.ends_with(".rs") && name != "words.rs") || name.ends_with(".md") {
            let shown = path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/");
            texts.push((shown, fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The prose lines of a file: those of comments, or all of a page. A line of code, a table row or a heading gives `None`.
fn prose<'a>(path: &str, text: &'a str) -> Vec<Option<&'a str>> {
    let is_page = path.ends_with(".md");
    let mut in_code = false;
    let line = |line: &'a str| {
        let comment = line.trim_start().strip_prefix("//");
        let prose = match is_page {
            true => line.trim(),
            false => comment?.trim_start_matches(['/', '!']).trim(),
        };
        if prose.starts_with("```") {
            in_code = !in_code;
            return None;
        }
        let is_prose = !in_code && !prose.is_empty() && !prose.starts_with(['|', '#', '<']);
        is_prose.then_some(prose)
    };
    text.lines().map(line).collect()
}

fn sentences(path: &str, text: &str) -> Vec<Sentence> {
    let code = Regex::new(r"`[^`]*`|\]\([^)]*\)").unwrap();
    let end = Regex::new(r"[.!?:;]\)?(\s+|$)").unwrap();
    let item = Regex::new(r"^([-*]|\d+\.) ").unwrap();
    let mut sentences: Vec<Sentence> = Vec::new();
    let mut is_open = false;
    for (n, prose) in prose(path, text).into_iter().enumerate() {
        let Some(prose) = prose else {
            is_open = false;
            continue;
        };
        is_open &= !item.is_match(prose);
        let plain = code.replace_all(prose, "code");
        let mut from = 0;
        let ends = end.find_iter(&plain).map(|end| end.end()).chain([plain.len()]);
        for to in ends.collect::<Vec<_>>() {
            let part = plain[from..to].trim();
            from = to;
            if part.is_empty() {
                continue;
            }
            if is_open && let Some(last) = sentences.last_mut() {
                last.text = format!("{} {part}", last.text);
            } else {
                sentences.push(Sentence {
                    path: path.into(),
                    line: n + 1,
                    text: part.into(),
                });
            }
            is_open =
                !part.ends_with(['.', '!', '?', ':', ';', ')']) || part.ends_with("e.g.") || part.ends_with("et al.");
        }
    }
    sentences
}

fn all_sentences() -> Vec<Sentence> {
    let texts = texts();
    texts.iter().flat_map(|(path, text)| sentences(path, text)).collect()
}

fn long_sentences(sentences: &[Sentence]) -> Vec<String> {
    let long = sentences.iter().filter(|sentence| sentence.words() > MOST_WORDS);
    long.map(|sentence| sentence.finding(&format!("{} words", sentence.words())))
        .collect()
}

fn phrases(sentences: &[Sentence]) -> Vec<String> {
    let patterns = PHRASES.map(|(pattern, advice)| (Regex::new(pattern).unwrap(), advice));
    let findings = sentences.iter().flat_map(|sentence| {
        let hits = patterns.iter().filter(|(pattern, _)| pattern.is_match(&sentence.text));
        hits.map(|(_, advice)| sentence.finding(advice)).collect::<Vec<_>>()
    });
    findings.collect()
}

fn assert_none(findings: &[String], advice: &str) {
    assert!(
        findings.is_empty(),
        "{} findings. {advice}:\n  {}",
        findings.len(),
        findings.join("\n  ")
    );
}

#[test]
fn sentences_are_short() {
    let findings = long_sentences(&all_sentences());
    assert_none(&findings, "split these sentences: one fact each, at most 25 words");
}

#[test]
fn sentences_name_their_subject() {
    assert_none(&phrases(&all_sentences()), "write these plainly");
}

#[test]
fn long_sentences_and_riddles_are_found() {
    let words = "word ".repeat(26);
    let text = format!("/// {words}end.\n/// Short `a b c` one. Nobody asks.\nlet who = 1;\n/// Asks for\n/// more.\n");
    let found = sentences("a.rs", &text);
    assert_eq!(found.iter().map(Sentence::words).collect::<Vec<_>>(), [27, 3, 2, 3]);
    assert_eq!(long_sentences(&found).len(), 1);
    assert_eq!(
        phrases(&found),
        [
            "a.rs:2: name the reader, the component or the thread: Nobody asks.",
            "a.rs:4: begin with the subject: Asks for more."
        ]
    );
}

/// Lines of the README beyond the limit.
fn long_readme(text: &str) -> Option<String> {
    let lines = text.lines().count();
    (lines > README_LINES).then(|| format!("README.md: {lines} lines, at most {README_LINES}"))
}

#[test]
fn readme_is_short() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let findings: Vec<_> = long_readme(&readme).into_iter().collect();
    assert_none(&findings, "move a part to a page of its own");
}

#[test]
fn long_readme_is_found() {
    assert_eq!(long_readme(&"Line.\n".repeat(150)), None);
    assert!(long_readme(&"Line.\n".repeat(151)).is_some());
}

/// What is wrong with the subject of a commit.
fn fault_of_subject(subject: &str) -> Option<String> {
    let characters = subject.chars().count();
    if characters > SUBJECT {
        return Some(format!("{characters} characters, at most {SUBJECT}: {subject}"));
    }
    let text = subject.split_once(": ").map_or(subject, |(_, text)| text);
    let first = text.split_whitespace().next().unwrap_or_default().to_lowercase();
    let endings = ["ed", "ing", "s"];
    let is_verb = !endings.iter().any(|end| first.ends_with(end))
        || [
            "need", "pass", "address", "process", "bring", "embed", "compress", "express", "access", "bless",
        ]
        .contains(&first.as_str());
    (!is_verb).then(|| format!("not an imperative: {subject}"))
}

#[test]
fn subjects_of_commits_are_imperatives() {
    let range = format!("{RULE_BEGINS_AFTER}..HEAD");
    let log = Command::new("git")
        .args(["log", "--no-merges", "--format=%s", &range])
        .current_dir(root())
        .output();
    // Without git, or in a copy without its history, there is no subject to check.
    let Some(log) = log.ok().filter(|log| log.status.success()) else {
        eprintln!("skipped: git has no history from {RULE_BEGINS_AFTER} on");
        return;
    };
    let log = String::from_utf8_lossy(&log.stdout).into_owned();
    let findings: Vec<_> = log.lines().filter_map(fault_of_subject).collect();
    assert_none(&findings, "say what the commit does, as an order");
}

#[test]
fn subjects_that_are_no_imperatives_are_found() {
    assert_eq!(fault_of_subject("L1: refuse a line of 64 bytes"), None);
    assert_eq!(fault_of_subject("Pass the cycle to the formatter"), None);
    assert!(fault_of_subject("Added tests").is_some());
    assert!(fault_of_subject("Clock: windows are longer now").is_some());
    assert!(fault_of_subject(&"Add ".repeat(20)).is_some());
}
