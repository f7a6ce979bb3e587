//! The litmus files: the checker agrees with the published or derived verdict of each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use warpwave_components::config::GpuConfig;
use warpwave_components::preset;

use super::axioms::allowed;
use super::machine::{DELAYS, LAYOUTS, Trial, outcomes};
use super::presets;
use super::program::{Outcome, Program};
use super::reader::read;

/// Settings with short queues, so that packets wait everywhere.
const SHORT_QUEUES: [(&str, &str); 5] = [
    ("sm.lsu.queue_depth", "1"),
    ("sm.l1.store_queue", "4"),
    ("sm.l1.mshr_entries", "4"),
    ("sm.l1.return_queue", "1"),
    ("l2.queue_depth", "1"),
];

/// Settings with long paths.
const LONG_LATENCIES: [(&str, &str); 4] = [
    ("sm.l1.hit_latency", "97"),
    ("xbar.latency", "61"),
    ("l2.hit_latency", "400"),
    ("hbm.access_latency", "470"),
];

/// Settings with which the machine reorders on purpose, by longer than a load takes. The stores of a warp to 32 lines have room twice.
pub const WEAK: [(&str, &str); 2] = [("check.weak", "2000"), ("sm.l1.store_queue", "64")];

/// Allowed conditions that a machine in order never shows. Each is a fence that is missing.
const MISSING_FENCES: [&str; 6] = [
    "MP+relaxed",
    "MP+relaxed+acquire",
    "MP+volatile",
    "LB+relaxed",
    "2+2W+relaxed",
    "IRIW+relaxed",
];

/// The litmus tests of `files/`, by name.
pub fn files() -> Vec<Program> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/litmus/files");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let read_file = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let program = read(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(Some(&program.name[..]), path.file_stem().and_then(|name| name.to_str()));
        program
    };
    paths.iter().map(read_file).collect()
}

/// The outcomes that meet the condition of a litmus test.
pub fn in_question(program: &Program, outcomes: &BTreeSet<Outcome>) -> usize {
    outcomes
        .iter()
        .filter(|outcome| program.condition.holds(outcome))
        .count()
}

#[test]
fn checker_gives_the_verdict_of_each_file() {
    let files = files();
    assert!(files.len() >= 80, "{} files", files.len());
    let mut wrong = Vec::new();
    for program in &files {
        assert!(
            program.info("Source").is_some(),
            "{}: no source of the verdict",
            program.name
        );
        let outcomes = allowed(program);
        let found = match in_question(program, &outcomes) {
            0 => "forbidden",
            _ => "allowed",
        };
        if program.info("Verdict") != Some(found) {
            let shown: Vec<String> = outcomes.iter().map(|outcome| program.show(outcome)).collect();
            wrong.push(format!("{}: {found}\n  {}", program.name, shown.join("\n  ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Two partitions of the L2, with copies of far lines. Each of the two SMs is in its own partition.
pub const FAR_COPIES: [(&str, &str); 4] = [
    ("l2.slices", "4"),
    ("l2.partitions", "2"),
    ("l2.far_latency", "50"),
    ("l2.far_lines", "copied"),
];

/// Trials per program and configuration: `WARPWAVE_LITMUS_TRIALS`, or a few.
fn n_trials() -> u64 {
    let given = std::env::var("WARPWAVE_LITMUS_TRIALS");
    given.map_or(4, |text| text.parse().expect("WARPWAVE_LITMUS_TRIALS is a number"))
}

/// Trial `n` of a program: each layout meets each kind of delay.
fn trial(n: u64) -> Trial {
    Trial {
        layout: LAYOUTS[n as usize % LAYOUTS.len()],
        delays: DELAYS[n as usize % DELAYS.len()],
        seed: n,
        warps: 16,
        rounds: 2,
    }
}

/// The instances of each outcome.
#[derive(Default)]
pub struct Histogram(BTreeMap<Outcome, u64>);

impl Histogram {
    pub fn run(&mut self, program: &Program, config: &GpuConfig, trials: impl Iterator<Item = Trial>) {
        for trial in trials {
            for outcome in outcomes(program, config, trial) {
                *self.0.entry(outcome).or_default() += 1;
            }
        }
    }

    pub fn instances(&self) -> u64 {
        self.0.values().sum()
    }

    /// Instances that meet the condition of the program.
    pub fn in_question(&self, program: &Program) -> u64 {
        let meets = self.0.iter().filter(|(outcome, _)| program.condition.holds(outcome));
        meets.map(|(_, n)| n).sum()
    }

    /// The forbidden outcomes as text.
    pub fn forbidden(&self, program: &Program, allowed: &BTreeSet<Outcome>) -> Vec<String> {
        let forbidden = self.0.iter().filter(|(outcome, _)| !allowed.contains(*outcome));
        let line = |(outcome, n): (&Outcome, &u64)| format!("{}: {}, {n} times", program.name, program.show(outcome));
        forbidden.map(line).collect()
    }
}

/// A preset with settings.
pub fn machine(gpu: &str, sets: &[(&str, &str)]) -> GpuConfig {
    let owned: Vec<(String, String)> = sets
        .iter()
        .map(|(key, value)| ((*key).into(), (*value).into()))
        .collect();
    let preset = preset::load(gpu, &owned).unwrap_or_else(|error| panic!("{error}"));
    preset.config
}

/// The litmus test of this name.
pub fn file(name: &str) -> Program {
    let mut files = files().into_iter();
    files
        .find(|program| program.name == name)
        .expect("a file has this name")
}

/// True if a machine has clusters of two CTAs.
pub fn has_clusters(config: &GpuConfig) -> bool {
    config.cc_major >= 9 && config.n_sms() > 1
}

/// Runs every file on a preset with settings. No outcome may be forbidden.
fn assert_allowed(gpu: &str, sets: &[(&str, &str)], share: usize) {
    let config = machine(gpu, sets);
    let mut wrong = Vec::new();
    for (n, program) in files().iter().enumerate().filter(|(n, _)| n % share == 0) {
        if program.needs_clusters() && !has_clusters(&config) {
            continue;
        }
        let first = 100 * n as u64;
        let mut seen = Histogram::default();
        seen.run(program, &config, (first..first + n_trials()).map(trial));
        wrong.extend(seen.forbidden(program, &allowed(program)));
    }
    assert!(wrong.is_empty(), "on {gpu} {sets:?}:\n{}", wrong.join("\n"));
}

#[test]
fn two_sms_show_only_allowed_outcomes() {
    assert_allowed("tiny", &[], 1);
}

#[test]
fn short_queues_show_only_allowed_outcomes() {
    assert_allowed("tiny", &SHORT_QUEUES, 2);
}

#[test]
fn long_latencies_show_only_allowed_outcomes() {
    assert_allowed("tiny", &LONG_LATENCIES, 2);
}

#[test]
fn copies_of_far_lines_show_only_allowed_outcomes() {
    assert_allowed("tiny", &FAR_COPIES, 1);
    let weak: Vec<_> = FAR_COPIES.into_iter().chain(WEAK).collect();
    assert_allowed("tiny", &weak, 2);
}

#[test]
fn plain_accesses_show_weak_outcomes() {
    let config = machine("tiny", &[]);
    for name in ["SB+weak", "MP+release+relaxed", "MP+fences.cta+other-cta"] {
        let program = file(name);
        let mut seen = Histogram::default();
        seen.run(&program, &config, (0..8).map(trial));
        assert!(seen.in_question(&program) > 0, "{name}: no load of a stale line");
    }
}

#[test]
fn disorder_on_purpose_shows_only_allowed_outcomes() {
    assert_allowed("tiny", &WEAK, 1);
}

#[test]
fn disorder_on_purpose_shows_each_missing_fence() {
    // A packet for a free slice passes one for a busy slice in a larger window.
    let in_order = [("xbar.input_window", "1")];
    let [ordered, weak] = [&in_order[..], &WEAK].map(|sets| machine("tiny", sets));
    let mut unseen = Vec::new();
    for name in MISSING_FENCES {
        let program = file(name);
        let times = |config, trials| {
            let mut seen = Histogram::default();
            seen.run(&program, config, (0..trials).map(trial));
            seen.in_question(&program)
        };
        assert_eq!(times(&ordered, 4), 0, "{name}");
        if times(&weak, 20) == 0 {
            unseen.push(name);
        }
    }
    assert!(unseen.is_empty(), "the fences of {unseen:?} are not missed");
}

#[test]
fn page_lists_each_file_with_its_verdict() {
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/litmus.md");
    let text = fs::read_to_string(&page).unwrap();
    let (head, old) = text
        .split_once("<!-- table -->\n\n")
        .expect("the page has a mark before its table");
    if std::env::var_os("WARPWAVE_WRITE_LITMUS").is_some() {
        fs::write(&page, format!("{head}<!-- table -->\n\n{}", presets::table())).unwrap();
        return;
    }
    let header = old.lines().next().unwrap_or_default();
    let rows: Vec<Vec<&str>> = old.lines().skip(2).map(presets::cells).collect();
    let expected: Vec<[String; 3]> = files().iter().map(stable_cells).collect();
    let found: Vec<&[&str]> = rows.iter().map(|row| &row[..3]).collect();
    assert_eq!(found, expected, "write the page with WARPWAVE_WRITE_LITMUS=1");
    assert_eq!(header, presets::header(), "write the page with WARPWAVE_WRITE_LITMUS=1");
    presets::check_table(old);
}

/// The cells of a row that do not depend on timing: name, verdict, number of allowed outcomes.
pub fn stable_cells(program: &Program) -> [String; 3] {
    let verdict = program.info("Verdict").unwrap_or_default().to_owned();
    [
        format!("`{}`", program.name),
        verdict,
        allowed(program).len().to_string(),
    ]
}
