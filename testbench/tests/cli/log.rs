//! The log: contents of each level, order of lines, and filters.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::{Answer, assert_fails, error_scenario, json_at, scenario, warpwave, warpwave_in};

/// A line of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Line {
    cycle: Option<u64>,
    path: String,
    /// Message and fields.
    text: String,
}

impl Line {
    fn of(line: &str) -> Self {
        let (cycle, rest) = line.trim_start().split_once(' ').expect("a cycle comes first");
        let (path, text) = rest.split_once(' ').expect("a path comes second");
        Line {
            cycle: (cycle != "-").then(|| cycle.parse().expect("a cycle is a number")),
            path: path.to_owned(),
            text: text.trim_start().to_owned(),
        }
    }

    /// The value of a field.
    fn field(&self, name: &str) -> u64 {
        let words = self.text.split(' ');
        let value = words
            .filter_map(|word| word.strip_prefix(name)?.strip_prefix('='))
            .next();
        value.unwrap_or_else(|| panic!("no {name}: {self:?}")).parse().unwrap()
    }
}

/// The log of a run that ends with `code`.
fn log_of(code: i32, args: &[&str]) -> Vec<Line> {
    let answer = warpwave(args);
    assert_eq!(answer.code, code, "{}", answer.err);
    let is_log = |line: &&str| !line.starts_with("error: ");
    answer.err.lines().take_while(is_log).map(Line::of).collect()
}

/// The only line that contains `text`, by its index.
fn only(log: &[Line], text: &str) -> usize {
    let found: Vec<_> = (0..log.len()).filter(|&n| log[n].text.contains(text)).collect();
    assert_eq!(found.len(), 1, "lines with `{text}` in {log:#?}");
    found[0]
}

/// Lines by the number of the CTA in `cta N VERB`.
fn of_ctas<'l>(log: &'l [Line], verb: &str) -> BTreeMap<u64, &'l Line> {
    let mut lines = BTreeMap::new();
    for line in log {
        let words: Vec<_> = line.text.split(' ').collect();
        if words[0] == "cta" && words[2] == verb {
            assert!(
                lines.insert(words[1].parse().unwrap(), line).is_none(),
                "{line:?} twice"
            );
        }
    }
    lines
}

/// A kernel with these statements, and its scenario: each launch has `grid` CTAs of 64 threads.
fn kernel(statements: &str, launches: usize, grid: usize) -> (tempfile::TempDir, std::path::PathBuf) {
    let ptx = format!(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {{\n{statements}\nret; }}");
    let launch = format!("[[launch]]\ngrid = {grid}\nblock = 64\n");
    let text = format!("ptx = \"k.ptx\"\n{}", launch.repeat(launches));
    scenario(&text, &[("k.ptx", ptx.as_bytes())])
}

#[test]
fn debug_log_shows_a_launch_from_preset_to_write_back() {
    let log = log_of(0, &["run", "saxpy", "--gpu", "tiny", "--log", "debug"]);
    // saxpy has a grid of 40 CTAs of 256 threads; tiny has 2 SMs and a launch latency of 20 cycles.
    let (starts, ends) = (of_ctas(&log, "starts"), of_ctas(&log, "ends"));
    assert!(starts.keys().copied().eq(0..40) && ends.keys().copied().eq(0..40));
    let place = |line: &Line| log.iter().position(|other| other == line).unwrap();
    let story = [
        only(&log, "preset tiny loaded sms=2"),
        only(&log, "pass `select` of saxpy"),
        only(&log, "pass `registers` of saxpy"),
        only(&log, "PTX compiled entries=1"),
        only(&log, "launch 0 of saxpy begins grid=[40, 1, 1] block=[256, 1, 1]"),
        only(&log, "grid 0 is accepted ctas=40 latency=20"),
        place(starts[&0]),
        place(ends[&0]),
        only(&log, "launch 0 ends"),
        only(&log, "L2 write-back begins"),
        only(&log, "L2 write-back ends"),
    ];
    assert!(story.is_sorted(), "{story:?} in {log:#?}");
    let begins = &log[story[4]];
    let (accepted, ended) = (log[story[5]].cycle.unwrap(), &log[story[8]]);
    assert_eq!(ended.cycle.unwrap() - begins.cycle.unwrap(), ended.field("cycles"));
    for (start, end) in starts.values().zip(ends.values()) {
        let (from, to) = (start.cycle.unwrap(), end.cycle.unwrap());
        assert!(
            accepted + 20 <= from && from < to && Some(to) <= ended.cycle,
            "{start:?} {end:?}"
        );
        assert_eq!((&start.path, end.field("cycles")), (&end.path, to - from));
        assert_eq!(start.field("warps"), 8);
        assert!(
            ["gpu.gpc[0].sm[0].cta", "gpu.gpc[0].sm[1].cta"].contains(&start.path.as_str()),
            "{start:?}"
        );
    }
    // A grid invalidates the L1 of each SM once.
    let l1s: Vec<_> = log
        .iter()
        .filter(|line| line.text.starts_with("L1 invalidated"))
        .collect();
    assert_eq!(l1s.len(), 2, "{l1s:?}");
    let cycles: Vec<_> = log.iter().filter_map(|line| line.cycle).collect();
    assert!(
        cycles.is_sorted() && log.iter().is_sorted_by_key(|line| line.cycle.is_some()),
        "{log:#?}"
    );
}

#[test]
fn info_log_has_only_milestones() {
    let log = log_of(0, &["run", "saxpy", "--gpu", "tiny", "--log", "info"]);
    let texts: Vec<_> = log.iter().map(|line| line.text.split('=').next().unwrap()).collect();
    let milestones = [
        "preset tiny loaded sms",
        "PTX compiled entries",
        "launch 0 of saxpy begins grid",
        "launch 0 ends cycles",
    ];
    assert_eq!(texts, milestones);
    assert!(log[..2].iter().all(|line| line.cycle.is_none()), "{log:?}");
}

#[test]
fn log_is_the_same_on_two_threads_and_trace_shows_jumps() {
    let run = |threads| {
        let mut log = log_of(
            0,
            &[
                "run",
                "reduce_shuffle",
                "--gpu",
                "tiny",
                "--log",
                "trace",
                "--threads",
                threads,
            ],
        );
        // Host times differ.
        log.iter_mut()
            .for_each(|line| line.text = line.text.split(" us=").next().unwrap().to_owned());
        log
    };
    let log = run("1");
    assert_eq!(log, run("2"));
    let jumps: Vec<_> = log.iter().filter(|line| line.path == "clock").collect();
    assert!(!jumps.is_empty());
    assert!(
        jumps.iter().all(|line| line.field("to") > line.cycle.unwrap()),
        "{jumps:?}"
    );
}

#[test]
fn log_is_off_without_a_filter_and_changes_no_result() {
    let run = |options: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let run = ["run", "saxpy", "--gpu", "tiny", "--json", "run.json"];
        let answer = warpwave_in(folder.path(), &[&run, options].concat());
        assert_eq!(answer.code, 0, "{}", answer.err);
        let text = std::fs::read(folder.path().join("run.json")).unwrap();
        let mut report: serde_json::Value = serde_json::from_slice(&text).unwrap();
        report.as_object_mut().unwrap().remove("host");
        (answer.err, report)
    };
    let (plain, without) = run(&[]);
    assert_eq!(plain, "");
    let (log, with) = run(&["--log", "trace"]);
    assert_eq!(without, with);
    let cycles = json_at(&without, &["totals", "cycles"]).as_u64().unwrap();
    assert!(log.contains(&format!("launch 0 ends cycles={cycles}\n")), "{log}");
}

#[test]
fn barriers_are_released_in_order_between_start_and_end_of_their_cta() {
    let (_folder, path) = kernel("bar.sync 0; bar.sync 3;", 1, 3);
    let log = log_of(0, &["run", path.to_str().unwrap(), "--gpu", "tiny", "--log", "debug"]);
    let (starts, ends) = (of_ctas(&log, "starts"), of_ctas(&log, "ends"));
    assert_eq!(
        log.iter().filter(|line| line.text.starts_with("barrier ")).count(),
        2 * 3
    );
    for cta in 0..3 {
        let barrier = |number| &log[only(&log, &format!("barrier {number} of cta {cta} is released warps=2"))];
        let lines = [starts[&cta], barrier(0), barrier(3), ends[&cta]];
        let cycles = lines.map(|line| line.cycle.unwrap());
        assert!(cycles.is_sorted_by(|a, b| a < b), "{lines:?}");
        assert!(lines.iter().all(|line| line.path == lines[0].path), "{lines:?}");
    }
}

#[test]
fn barriers_of_clusters_are_complete_before_they_are_released() {
    // Six CTAs in pairs wait at the cluster barrier twice, and end after the second time.
    let log = log_of(0, &["run", "cluster_swap", "--log", "warpwave_components=debug"]);
    for cluster in [0, 2, 4] {
        let text = format!("barrier of cluster {cluster} is complete");
        let complete: Vec<_> = log.iter().filter(|line| line.text == text).collect();
        assert_eq!(complete.len(), 2, "{log:#?}");
        for cta in [cluster, cluster + 1] {
            let text = format!("cluster barrier of cta {cta} is released");
            let released: Vec<_> = log.iter().filter(|line| line.text == text).collect();
            assert_eq!(released.len(), 2, "{log:#?}");
            for (complete, released) in complete.iter().zip(&released) {
                assert!(complete.cycle < released.cycle, "{complete:?} {released:?}");
            }
        }
    }
}

#[test]
fn trap_deadlock_and_limit_are_milestones() {
    let info = |name: &str, code| {
        let scenario = error_scenario(name);
        log_of(
            code,
            &[
                "run",
                &scenario,
                "--gpu",
                "tiny",
                "--max-cycles",
                "20000",
                "--no-flight",
                "--log",
                "info",
            ],
        )
    };
    let log = info("trap", 3);
    let (trap, stop) = (
        only(&log, "trap: trap instruction"),
        only(&log, "launch 0 is stopped: trap"),
    );
    assert!(trap < stop && log[trap].cycle < log[stop].cycle, "{log:?}");
    assert!(
        log[trap].path.ends_with(".cta") && log[trap].text.contains("line=14 block=[0, 0, 0] thread=[7, 0, 0]"),
        "{log:?}"
    );
    let log = info("barrier", 4);
    assert_eq!(only(&log, "launch 0 is stopped: deadlock"), log.len() - 1);
    let log = info("endless", 4);
    // The run is repeated for the last write of the polled word, so the lines of the second run follow.
    let stop = only(&log, "launch 0 is stopped: cycle limit cycles=20000");
    assert!(stop + 1 < log.len(), "{log:?}");
}

#[test]
fn filter_selects_by_module_and_by_launch() {
    let log = log_of(
        0,
        &[
            "run",
            "saxpy",
            "--gpu",
            "tiny",
            "--log",
            "warpwave_components::sm::l1=debug",
        ],
    );
    assert!(
        !log.is_empty() && log.iter().all(|line| line.path.ends_with(".l1")),
        "{log:?}"
    );
    let (_folder, path) = kernel("bar.sync 0;", 2, 3);
    for threads in ["1", "2"] {
        let filter = "[launch{number=1}]=debug";
        let log = log_of(
            0,
            &[
                "run",
                path.to_str().unwrap(),
                "--gpu",
                "tiny",
                "--log",
                filter,
                "--threads",
                threads,
            ],
        );
        assert_eq!(of_ctas(&log, "ends").len(), 3, "{log:#?}");
        only(&log, "launch 1 ends");
        assert!(log.iter().all(|line| !line.text.starts_with("launch 0")), "{log:#?}");
    }
    let log = log_of(
        0,
        &[
            "check",
            path.with_file_name("k.ptx").to_str().unwrap(),
            "--log",
            "warpwave_ptx=debug",
        ],
    );
    assert!(only(&log, "pass `schedule` of k") < only(&log, "PTX compiled entries=1"));
}

/// Runs `gpus` with the variable, which loads a preset.
fn with_variable(folder: &Path, value: &str, args: &[&str]) -> Answer {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpwave"));
    command
        .env("RUST_LOG", value)
        .current_dir(folder)
        .arg("gpus")
        .arg("tiny");
    Answer::of(command.args(args).output().unwrap())
}

#[test]
fn variable_sets_the_filter_and_the_option_takes_precedence() {
    let folder = tempfile::tempdir().unwrap();
    let run = |value, args: &[&str]| with_variable(folder.path(), value, args);
    let loaded = "- warpwave_components::preset preset tiny loaded sms=2 changed=0\n";
    assert_eq!(run("info,other_program=debug", &[]).err.trim_start(), loaded);
    assert_eq!(run("off", &["--log", "info"]).err.trim_start(), loaded);
    for quiet in ["", "warn", "other_program=trace"] {
        assert_eq!(run(quiet, &[]).err, "");
    }
    assert_eq!(run("info", &["--log", "off"]).err, "");
    assert_fails(
        &run("info,=debug", &[]),
        2,
        &[
            "RUST_LOG: `=debug`: invalid filter directive",
            "such as info,warpwave_ptx=debug",
        ],
    );
}

#[test]
fn wrong_filter_is_refused_with_the_reason() {
    for (filter, says) in [
        ("debgu", "`debgu` is neither a level nor a module that emits events"),
        (
            "info,warpwave_components=loud",
            "`warpwave_components=loud`: error parsing level filter: expected one of",
        ),
        (
            "somewhere_else=info",
            "`somewhere_else` is neither a level nor a module",
        ),
        (" , ", "the filter is empty"),
        ("[launch", "`[launch`: invalid filter directive"),
        ("é=ü", "`é` is neither"),
        ("[launch{number=[}]=info", "`[launch{number=[}]=info`: invalid f"),
    ] {
        let answer = warpwave(&["run", "saxpy", "--gpu", "tiny", "--log", filter]);
        assert_fails(&answer, 2, &["error: --log: ", says, "such as info,warpwave_ptx=debug"]);
        assert_eq!(answer.out, "", "{filter}");
    }
}
