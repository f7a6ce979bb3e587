//! The lessons: their page, their command, and what no scenario can say.

mod scheduler;

use std::fs;
use std::path::Path;
use std::process::Command;

use warpwave::lesson::{self, NAMES};

/// What the command gave: exit code, standard output, standard error.
struct Answer {
    code: Option<i32>,
    out: String,
    err: String,
}

/// Runs the command in a folder.
fn warpwave(folder: &Path, args: &[&str]) -> Answer {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpwave"));
    let output = command
        .args(args)
        .current_dir(folder)
        .output()
        .expect("the command runs");
    Answer {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn page_is_current_and_has_a_plot_for_each_sweep() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let page = fs::read_to_string(docs.join("lessons.md")).unwrap();
    let wanted = lesson::page().unwrap();
    let made = "cargo run --release -- lesson --write testbench/docs";
    assert!(page == wanted, "docs/lessons.md is not current; run {made}");
    let has_sweep = |name: &&str| lesson::find(name).is_ok_and(|lesson| lesson.has_sweep);
    let mut wanted: Vec<_> = NAMES
        .into_iter()
        .filter(has_sweep)
        .map(|name| format!("{name}.svg"))
        .collect();
    wanted.sort();
    let plots = fs::read_dir(docs.join("lessons")).unwrap();
    let mut found: Vec<_> = plots
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(found, wanted, "run {made}");
}

#[test]
fn lesson_is_told_run_and_plotted() {
    let folder = tempfile::tempdir().unwrap();
    let answer = warpwave(folder.path(), &["lesson", "bank-conflicts"]);
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    let lesson = lesson::find("bank-conflicts").unwrap();
    let parts = [
        lesson.claim.as_str(),
        lesson.text.as_str(),
        "all held",
        "plot: bank-conflicts.svg",
        lesson.look[2].as_str(),
    ];
    let mut rest = answer.out.as_str();
    for part in parts {
        let at = rest
            .find(part)
            .unwrap_or_else(|| panic!("`{part}` in order in\n{}", answer.out));
        rest = &rest[at..];
    }
    let plot = fs::read_to_string(folder.path().join("bank-conflicts.svg")).unwrap();
    assert!(plot.contains("<svg"));
}

#[test]
fn lessons_are_listed_and_a_wrong_name_is_refused() {
    let answer = warpwave(Path::new("."), &["lesson"]);
    assert_eq!(answer.code, Some(0));
    let names: Vec<_> = answer
        .out
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1))
        .collect();
    assert_eq!(names, NAMES);
    let answer = warpwave(Path::new("."), &["lesson", "divergense"]);
    assert_eq!(answer.code, Some(2));
    assert!(answer.err.contains("did you mean `divergence`?"), "{}", answer.err);
}

#[test]
fn suite_checks_the_curves_too() {
    let folder = tempfile::tempdir().unwrap();
    let text = "ptx = \"k.ptx\"\ngpu = \"tiny\"\nlaunch = [{ grid = 1, block = 32 }]\n\
                sweep = { over = [\"block=32,64\"], assert = [{ metric = \"launch__block_size\", shape = \"falling\" }] }\n";
    let ptx = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n";
    fs::write(folder.path().join("s.toml"), text).unwrap();
    fs::write(folder.path().join("k.ptx"), ptx).unwrap();
    let without = warpwave(folder.path(), &["test", "s.toml"]);
    assert_eq!(without.code, Some(0), "{}{}", without.out, without.err);
    let with = warpwave(folder.path(), &["test", "s.toml", "--sweeps"]);
    assert_eq!(with.code, Some(1));
    assert!(with.out.contains("is not falling"), "{}", with.out);
}

/// H100 SXM5: 8 GPCs with 132 SMs in all.
#[test]
fn hierarchy_is_the_scope_tree_of_the_waveform() {
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "run",
        "hierarchy",
        "--no-progress",
        "--vcd",
        "h.vcd",
        "--trace",
        "gpu.gpc[*].sm[*]",
        "--trace-depth",
        "2",
    ];
    let answer = warpwave(folder.path(), &args);
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    let vcd = fs::read_to_string(folder.path().join("h.vcd")).unwrap();
    let count = |prefix: &str| {
        let is_it = |line: &&str| {
            line.split_whitespace()
                .nth(2)
                .is_some_and(|name| name.starts_with(prefix))
        };
        vcd.lines()
            .filter(|line| line.starts_with("$scope"))
            .filter(is_it)
            .count()
    };
    assert_eq!((count("gpc"), count("sm")), (8, 132));
}

/// GH100 in full: 8 GPCs, 72 TPCs, 144 SMs with 4 tensor cores each, 60 MB of L2.
#[test]
fn full_die_has_the_tpcs_the_tensor_cores_and_the_l2_of_the_white_paper() {
    let answer = warpwave(Path::new("."), &["gpus", "gh100-full"]);
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    let numbers = |key: &str| -> Vec<u64> {
        let line = answer
            .out
            .lines()
            .find(|line| line.split_whitespace().next() == Some(key));
        let line = line.unwrap_or_else(|| panic!("{key} in\n{}", answer.out));
        let value = line[key.len()..].trim_start();
        let end = if value.starts_with('[') { ']' } else { ' ' };
        let value = value.split(end).next().unwrap_or_default().trim_start_matches('[');
        value.split(", ").map(|number| number.parse().unwrap()).collect()
    };
    assert_eq!(numbers("topology.gpcs"), [8]);
    let tpcs: u64 = numbers("topology.tpcs_per_gpc").iter().sum();
    let sms = tpcs * numbers("topology.sms_per_tpc")[0];
    // Each sub-core of an SM has one tensor core.
    let tensor_cores = sms * numbers("sm.subcores")[0];
    assert_eq!((tpcs, sms, tensor_cores), (72, 144, 576));
    assert_eq!(numbers("l2.size"), [60 << 20]);
}

/// The lesson `barrier` has two scenarios: one with its name, and one in which half a block skips the barrier.
#[test]
fn name_of_a_lesson_and_its_folder_is_one_scenario_where_a_file_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let both = warpwave(folder.path(), &["run", "barrier"]);
    assert_eq!(both.code, Some(0), "{}", both.err);
    assert!(both.out.contains("barrier-half: failed as expected"), "{}", both.out);
    let one = warpwave(folder.path(), &["run", "barrier", "--json", "barrier.json"]);
    assert_eq!(one.code, Some(0), "{}", one.err);
    assert!(!one.out.contains("barrier-half"), "{}", one.out);
    let suite = warpwave(folder.path(), &["test", "barrier"]);
    assert!(suite.out.contains("\n2 passed, 0 failed in "), "{}", suite.out);
}
