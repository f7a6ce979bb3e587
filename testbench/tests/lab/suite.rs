//! `warpwave test`: a folder of scenarios as a test suite.

use std::fs;
use std::path::Path;

use crate::{COUNT, COUNT_PTX, error_scenario, project, warpwave, warpwave_in};
#[cfg(unix)]
use crate::{command, interrupt};

/// A folder `kernels` with a scenario that holds, one whose assertion fails, one that traps, and a preset.
fn kernels() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join("kernels").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("count.ptx", COUNT_PTX);
    write("deep/count.ptx", &COUNT_PTX.replace("ret;", "trap;"));
    write("holds.toml", COUNT);
    let assertion = "[[assert]]\nmetric = \"smsp__sass_inst_executed_op_global_ld.sum\"\nequal = 3\n";
    write("fails.toml", &format!("{COUNT}{assertion}"));
    write("deep/traps.toml", COUNT);
    write("small.toml", "name = \"small\"\nsummary = \"s\"\nbase = \"tiny\"\n");
    folder
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn each_scenario_of_a_folder_has_a_line_and_a_failed_one_its_reason() {
    let folder = kernels();
    let answer = warpwave_in(folder.path(), &["test", "kernels"]);
    assert_eq!((answer.code, answer.err.as_str()), (1, ""), "{}", answer.out);
    let words = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    let lines: Vec<_> = answer.out.lines().take(3).map(words).collect();
    assert_eq!(
        lines,
        [
            "FAILED kernels/deep/traps.toml",
            "FAILED kernels/fails.toml",
            "ok kernels/holds.toml"
        ]
    );
    for says in [
        "kernels/deep/traps.toml: exit code 3\nerror: traps: launch[0]: ",
        "kernels/fails.toml: exit code 5\nerror: fails: 1 did not hold\n  assert: smsp__sass_inst_executed_op_global_ld.sum is 2, not equal to 3",
        "\n1 passed, 2 failed in ",
    ] {
        assert!(answer.out.contains(says), "`{says}` is missing: {}", answer.out);
    }
}

#[test]
fn junit_file_has_a_case_for_each_scenario() {
    let folder = kernels();
    let args = [
        "test",
        "kernels/*.toml",
        "kernels/deep",
        "--junit",
        "r.xml",
        "--jobs",
        "1",
    ];
    let answer = warpwave_in(folder.path(), &args);
    // By a pattern, every file counts: a preset is no scenario.
    assert_eq!(answer.code, 1, "{}", answer.err);
    let xml = read(folder.path(), "r.xml");
    assert!(
        xml.contains("<testsuite name=\"scenarios\" tests=\"4\" failures=\"3\" errors=\"0\""),
        "{xml}"
    );
    let cases = ["fails", "holds", "small", "deep/traps"].map(|name| format!(" name=\"kernels/{name}.toml\" "));
    let places: Vec<_> = cases
        .iter()
        .map(|case| xml.find(case).unwrap_or_else(|| panic!("{case} in {xml}")))
        .collect();
    assert!(places.is_sorted(), "{xml}");
    assert!(
        xml.contains("<failure message=\"exit code 3\">error: traps: launch[0]"),
        "{xml}"
    );
}

#[test]
fn baseline_is_blessed_then_guards_the_metrics() {
    let folder = kernels();
    let run = |more: &[&str]| {
        let args = ["test", "kernels/holds.toml", "--baseline", "kernels/base.toml"];
        warpwave_in(folder.path(), &[&args, more].concat())
    };
    let absent = run(&[]);
    assert_eq!(absent.code, 2);
    assert!(absent.err.contains("cannot read kernels/base.toml") && absent.err.contains("create it with --bless"));
    assert_eq!(run(&["--bless"]).code, 0);
    let text = read(folder.path(), "kernels/base.toml");
    assert!(
        text.contains("[tolerance]\ncycles = 0.02\n\n[values.\"holds.toml\".tiny]\ncycles = "),
        "{text}"
    );
    assert_eq!(run(&[]).code, 0);
    // A loop over four times the elements takes longer.
    fs::write(
        folder.path().join("kernels/holds.toml"),
        COUNT.replace("u32 = 64", "u32 = 256"),
    )
    .unwrap();
    let moved = run(&[]);
    assert_eq!(moved.code, 1);
    assert!(
        moved.out.contains("kernels/holds.toml: metrics moved\ncycles is "),
        "{}",
        moved.out
    );
    assert_eq!(run(&["--bless"]).code, 0);
    assert_ne!(read(folder.path(), "kernels/base.toml"), text);
    assert_eq!(run(&[]).code, 0);
    let other = run(&["--gpu", "v100-sxm2"]);
    assert!(
        other
            .out
            .contains(": no baseline\ncycles on v100-sxm2 has no baseline; write it with --bless"),
        "{}",
        other.out
    );
    assert!(!other.out.contains("metrics moved"), "{}", other.out);
}

#[test]
fn baseline_beside_the_scenarios_has_paths_relative_to_it() {
    let folder = kernels();
    fs::create_dir(folder.path().join("ci")).unwrap();
    let run = |place: &str, scenario: &str, baseline: &str, more: &[&str]| {
        let args = ["test", scenario, "--baseline", baseline];
        warpwave_in(&folder.path().join(place), &[&args, more].concat()).code
    };
    assert_eq!(run("", "kernels/holds.toml", "ci/base.toml", &["--bless"]), 0);
    let text = read(folder.path(), "ci/base.toml");
    assert!(text.contains("[values.\"../kernels/holds.toml\".tiny]"), "{text}");
    assert_eq!(run("kernels", "holds.toml", "../ci/base.toml", &[]), 0);
}

#[test]
fn baseline_with_a_metric_of_an_absent_launch_is_not_blessed() {
    let folder = kernels();
    fs::write(
        folder.path().join("base.toml"),
        "[tolerance]\n\"launch[1].cycles\" = 0.1\n",
    )
    .unwrap();
    let args = ["test", "kernels/holds.toml", "--baseline", "base.toml"];
    for more in [&[][..], &["--bless"]] {
        let answer = warpwave_in(folder.path(), &[&args, more].concat());
        assert_eq!(answer.code, 1);
        let says = "no such launch\nlaunch[1].cycles: launches are counted from 0, and the run has 1\n";
        assert!(answer.out.contains(says), "{}", answer.out);
    }
}

#[test]
fn sweep_of_a_tested_scenario_has_the_options_of_the_test() {
    let folder = kernels();
    // The scenario ends within the limit, and the point with n = 4096 does not.
    let sweep = "[sweep]\nover = [\"n=64,4096\"]\n";
    fs::write(folder.path().join("kernels/holds.toml"), format!("{COUNT}{sweep}")).unwrap();
    let run = |more: &[&str]| {
        warpwave_in(
            folder.path(),
            &[&["test", "kernels/holds.toml", "--sweeps"], more].concat(),
        )
    };
    assert_eq!(run(&[]).code, 0);
    let limited = run(&["--max-cycles", "5000"]);
    assert_eq!(limited.code, 1);
    assert!(limited.out.contains("1 of 2 points failed"), "{}", limited.out);
    // sm_90 is newer than the GPU.
    let path = folder.path().join("kernels/count.ptx");
    fs::write(&path, COUNT_PTX.replace(".target sm_70", ".target sm_90")).unwrap();
    assert_eq!(run(&["--gpu", "v100-sxm2"]).code, 1);
    let ignored = run(&["--gpu", "v100-sxm2", "--ignore-target"]);
    assert_eq!(ignored.code, 0, "{}", ignored.out);
}

#[test]
fn failed_scenario_is_not_blessed() {
    let folder = kernels();
    let args = ["test", "kernels", "--baseline", "base.toml", "--bless"];
    assert_eq!(warpwave_in(folder.path(), &args).code, 1);
    let text = read(folder.path(), "base.toml");
    assert!(
        text.contains("[values.\"kernels/holds.toml\".tiny]") && !text.contains("fails.toml"),
        "{text}"
    );
}

#[test]
fn built_in_scenarios_are_tested_by_name_or_folder() {
    let answer = warpwave(&["test", "gelu", "saxpy", "--gpu", "tiny"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{}", answer.out);
    assert!(answer.out.contains("\n3 passed, 0 failed in "), "{}", answer.out);
}

#[test]
fn what_is_no_scenario_is_refused() {
    let folder = kernels();
    let says = |args: &[&str]| {
        let answer = warpwave_in(folder.path(), &[&["test"], args].concat());
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{}", answer.err);
        answer.err
    };
    assert!(says(&["kernel"]).contains("`kernel` is no file, folder, glob pattern or built-in scenario"));
    assert!(says(&["kernels/*.tml"]).contains("has no scenario; a scenario is a TOML file"));
    assert!(
        says(&["kernels", "--junit", "kernels/holds.toml"]).contains("--junit kernels/holds.toml is read by this run")
    );
    fs::write(folder.path().join("base.toml"), "[tolerance]\ncycle = 1\n").unwrap();
    assert!(says(&["kernels", "--baseline", "base.toml"]).contains("base.toml: tolerance: no metric is named `cycle`"));
}

#[cfg(unix)]
#[test]
fn scenario_that_ended_behind_a_running_one_has_its_line_after_an_interrupt() {
    let (folder, reports) = (project(""), tempfile::tempdir().unwrap());
    let endless = error_scenario("endless");
    let args = [
        "test",
        &endless,
        "count.toml",
        "--gpu",
        "tiny",
        "--jobs",
        "2",
        "--max-cycles",
        "5e6",
    ];
    let mut suite = command(folder.path(), &args);
    suite
        .args(["--set", "gigathread.standstill_cycles=0"])
        .env("TMPDIR", reports.path());
    let is_written = || {
        let folders = fs::read_dir(reports.path()).unwrap().flatten();
        let mut reports = folders.map(|folder| folder.path().join("1.json"));
        reports.any(|report| report.metadata().is_ok_and(|file| file.len() > 0))
    };
    let answer = interrupt(suite, is_written);
    assert_eq!(answer.code, 130, "{}", answer.err);
    // The first scenario was interrupted, so it has no line.
    assert!(answer.out.starts_with("ok      count.toml "), "{}", answer.out);
}
