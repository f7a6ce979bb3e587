//! `warpwave compare`: two runs side by side.

use std::fs;

use serde_json::Value as Json;

use crate::{COUNT, error_scenario, project, warpwave, warpwave_in};

/// A folder with `count.toml`, and `long.toml` whose loop takes four turns instead of one.
fn two() -> tempfile::TempDir {
    let folder = project("");
    fs::write(folder.path().join("long.toml"), COUNT.replace("u32 = 64", "u32 = 256")).unwrap();
    folder
}

#[test]
fn lines_of_a_loop_have_the_issues_of_both_sides() {
    let folder = two();
    let answer = warpwave_in(
        folder.path(),
        &["compare", "count.toml", "long.toml", "--json", "c.json"],
    );
    assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{}", answer.out);
    assert!(
        answer.out.starts_with("A  count on tiny\nB  long on tiny\n\nB takes "),
        "{}",
        answer.out
    );
    let json: Json = serde_json::from_slice(&fs::read(folder.path().join("c.json")).unwrap()).unwrap();
    let lines = json["lines"].as_array().unwrap();
    let issues = |text: &str| {
        let line = lines.iter().find(|line| line["text"] == text);
        line.unwrap_or_else(|| panic!("no line {text} in {json}"))["issues"].to_string()
    };
    // Two warps, with one turn and with four. The loop's test runs once more.
    assert_eq!(issues("ld.global.u32 %r4, [%rd3];"), "[2,8]");
    assert_eq!(issues("st.global.u32 [%rd3], %r5;"), "[2,8]");
    let gains: Vec<i64> = lines
        .iter()
        .map(|line| (line["warp_cycles"][1].as_i64().unwrap() - line["warp_cycles"][0].as_i64().unwrap()).abs())
        .collect();
    assert!(gains.is_sorted_by(|a, b| a >= b), "{gains:?}");
    let metrics = json["metrics"].as_array().unwrap();
    let differences: Vec<f64> = metrics.iter().map(|row| row["difference"].as_f64().unwrap()).collect();
    assert!(
        differences.is_sorted_by(|a, b| a >= b) && differences[0] > 0.5,
        "{differences:?}"
    );
    let loads = metrics
        .iter()
        .find(|row| row["name"] == "smsp__sass_inst_executed_op_global_ld.sum")
        .unwrap();
    assert_eq!((&loads["a"], &loads["b"]), (&Json::from(2), &Json::from(8)));
}

#[test]
fn run_compared_with_itself_is_equal() {
    let answer = warpwave(&["compare", "saxpy", "--gpu", "tiny"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    assert!(
        answer.out.contains("cycles, and every metric is equal."),
        "{}",
        answer.out
    );
    assert!(!answer.out.contains("warp-cycles A"), "{}", answer.out);
}

#[test]
fn gpu_and_preset_keys_of_each_side_are_used_and_named() {
    let folder = two();
    let args = [
        "compare",
        "count.toml",
        "--gpu-b",
        "v100-sxm2",
        "--set",
        "sm.scheduler=lrr",
        "--set-a",
        "sm.lsu.queue_depth=3",
    ];
    let answer = warpwave_in(folder.path(), &args);
    assert_eq!(answer.code, 0, "{}", answer.err);
    let head = "A  count on tiny, sm.scheduler=lrr, sm.lsu.queue_depth=3\nB  count on v100-sxm2, sm.scheduler=lrr\n";
    assert!(answer.out.starts_with(head), "{}", answer.out);
}

/// Compares with `--json`, and returns the lines.
fn lines_of(folder: &std::path::Path, sides: [&str; 2]) -> Json {
    let answer = warpwave_in(folder, &["compare", sides[0], sides[1], "--json", "c.json"]);
    assert_eq!(answer.code, 0, "{sides:?}: {}", answer.err);
    let json: Json = serde_json::from_slice(&fs::read(folder.join("c.json")).unwrap()).unwrap();
    json["lines"].clone()
}

#[test]
fn saved_reports_are_compared_line_by_line_as_runs_are() {
    let folder = two();
    for (scenario, report) in [("count.toml", "a.json"), ("long.toml", "b.json")] {
        let saved = warpwave_in(folder.path(), &["run", scenario, "--json", report]);
        assert_eq!(saved.code, 0, "{}", saved.err);
    }
    let runs = lines_of(folder.path(), ["count.toml", "long.toml"]);
    assert!(!runs.as_array().unwrap().is_empty());
    for sides in [["a.json", "b.json"], ["a.json", "long.toml"], ["count.toml", "b.json"]] {
        assert_eq!(lines_of(folder.path(), sides), runs, "{sides:?}");
    }
    let answer = warpwave_in(folder.path(), &["compare", "a.json", "b.json"]);
    assert!(
        answer
            .out
            .starts_with("A  count on tiny, saved in a.json\nB  long on tiny, saved in b.json\n")
            && answer.out.contains("warp-cycles A"),
        "{}",
        answer.out
    );
    let again = warpwave_in(folder.path(), &["compare", "a.json", "count.toml"]);
    assert!(again.out.contains("and every metric is equal."), "{}", again.out);
}

#[test]
fn report_saved_without_lines_is_compared_by_its_metrics() {
    let folder = two();
    let saved = warpwave_in(
        folder.path(),
        &["run", "count.toml", "--no-lines", "--json", "old.json"],
    );
    assert_eq!(saved.code, 0, "{}", saved.err);
    let answer = warpwave_in(folder.path(), &["compare", "old.json", "long.toml", "--html", "c.html"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    assert!(!answer.out.contains("warp-cycles A"), "{}", answer.out);
    let page = fs::read_to_string(folder.path().join("c.html")).unwrap();
    assert!(
        page.contains("smsp__sass_inst_executed_op_global_ld.sum") && !page.contains("Lines of PTX"),
        "{page}"
    );
}

/// A device has no end, and its length is 0.
#[test]
#[cfg(unix)]
fn report_without_an_end_is_refused_at_its_first_wrong_byte() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("endless.json")).unwrap();
    let answer = warpwave_in(folder.path(), &["compare", "endless.json", "saxpy", "--gpu", "tiny"]);
    assert_eq!(answer.code, 2);
    let says =
        "endless.json is no report (expected value at line 1 column 1); write one with `warpwave run --json FILE`";
    assert!(answer.err.contains(says), "{}", answer.err);
}

#[test]
fn saved_report_of_thousands_of_launches_is_compared() {
    let folder = two();
    let path = folder.path().join("a.json");
    let run = ["run", "count.toml", "--json", "a.json"];
    assert_eq!(warpwave_in(folder.path(), &run).code, 0);
    let report: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let launch = report["launches"][0].to_string();
    // 80 MB, above the limit of a text.
    let launches = vec![launch.as_str(); 80_000_000 / launch.len()].join(",");
    let mut rest = report.clone();
    rest.as_object_mut().unwrap().remove("launches");
    let rest = rest.to_string();
    fs::write(&path, format!("{{\"launches\":[{launches}],{}", &rest[1..])).unwrap();
    let answer = warpwave_in(folder.path(), &["compare", "a.json", "count.toml"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    assert!(answer.out.contains("every metric is equal"), "{}", answer.out);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let folder = two();
    let fails = |code: i32, args: &[&str]| {
        let answer = warpwave_in(folder.path(), &[&["compare"], args].concat());
        assert_eq!(
            (answer.code, answer.out.as_str()),
            (code, ""),
            "{args:?}: {}",
            answer.err
        );
        answer.err
    };
    fs::write(folder.path().join("no.json"), "{}").unwrap();
    assert!(
        fails(2, &["no.json", "count.toml"])
            .contains("no.json is no report (it has no `totals.cycles`); write one with `warpwave run --json FILE`")
    );
    assert!(fails(2, &["count.toml", "saxpi"]).contains("did you mean `saxpy`?"));
    assert!(fails(2, &["count.toml", "--html", "count.toml"]).contains("--html count.toml is read by this run"));
    for option in [
        ["--set-b", "sm.scheduler=lrr"],
        ["--gpu-a", "tiny"],
        ["--gpu-b", "tiny"],
    ] {
        assert!(fails(2, &["no.json", option[0], option[1]]).contains("no.json is a saved report: "));
    }
    assert!(fails(2, &["no.json", "--gpu", "tiny"]).contains("--gpu cannot change a saved report, and both sides are"));
    assert!(fails(2, &["no.json", "--set", "sm.scheduler=lrr"]).contains("--set cannot change a saved report"));
    let stopped = ["run", "count.toml", "--max-cycles", "50", "--json", "stopped.json"];
    assert_eq!(warpwave_in(folder.path(), &stopped).code, 4);
    let says = "stopped.json is the report of a run that stopped early (limit); save one of a whole run";
    assert!(fails(2, &["stopped.json", "count.toml"]).contains(says));
    assert!(fails(3, &["count.toml", &error_scenario("trap")]).contains("trap: launch[0]: "));
}
