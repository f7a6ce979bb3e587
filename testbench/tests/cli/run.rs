//! Runs that succeed: printed text and written files.

use crate::{FILL, assert_fails, error_scenario, json_at, warpwave};

#[test]
fn successful_run_writes_all_requested_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (json, hist, dump, vcd) = (path("run.json"), path("hist"), path("dump"), path("run.vcd"));
    let files = ["--json", &json, "--hist", &hist, "--dump", &dump, "--vcd", &vcd];
    let select = ["--trace", "gpu.gpc[0].sm[0].**", "--trace-cycles", "100..600"];
    let answer = warpwave(
        &[
            &["run", "saxpy", "--gpu", "tiny", "--threads", "2"],
            &files[..],
            &select[..],
        ]
        .concat(),
    );
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(answer.out.starts_with("saxpy: "), "{}", answer.out);
    assert!(answer.out.contains("\nsaxpy on tiny: 2 SMs at "), "{}", answer.out);
    assert!(
        answer.out.contains("all held (buffers expected: 1, assertions: 0)"),
        "{}",
        answer.out
    );

    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(json_at(&report, &["scenario"]), "saxpy");
    assert_eq!(json_at(&report, &["gpu"]), "tiny");
    let cycles = json_at(&report, &["launches", "0", "cycles"]);
    assert!(cycles.as_u64().unwrap() > 0);
    assert_eq!(json_at(&report, &["totals", "cycles"]), cycles);
    let metrics = json_at(&report, &["launches", "0", "metrics"]);
    assert_eq!(&metrics["gpc__cycles_elapsed.max"], cycles);
    assert_eq!(
        metrics["smsp__average_warps_issue_stalled_misc_per_issue_active.ratio"],
        0
    );
    assert_eq!(metrics["sm__icc_request_hit_rate.pct"], "not modelled");
    assert!(json_at(&report, &["host", "wall_seconds"]).as_f64().unwrap() > 0.0);

    let y = warpwave::scenario::builtin::load("saxpy").unwrap();
    let y = y.buffers.iter().find(|buffer| buffer.name == "y").unwrap();
    let file = std::fs::read(folder.path().join("dump/y.npy")).unwrap();
    let bytes = warpwave::scenario::npy::read("y.npy", &file[..], y.layout.dtype, &y.layout.shape).unwrap();
    assert_eq!(bytes, y.expect.as_ref().unwrap().bytes);

    assert!(
        std::fs::read_to_string(folder.path().join("hist/latencies.txt"))
            .unwrap()
            .contains("hbm")
    );
    assert!(
        std::fs::read_to_string(folder.path().join("hist/hbm.hgrm"))
            .unwrap()
            .contains("#[Max ")
    );
    assert!(std::fs::read_to_string(&vcd).unwrap().contains("$enddefinitions"));
    assert!(folder.path().join("run.gtkw").is_file());
}

#[test]
fn every_report_is_written_in_its_format_and_changes_no_result() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let [html, kanata, perfetto, fst] = ["run.html", "run.kanata", "run.json", "run.fst"].map(path);
    let plain = ["run", "diverge_nested", "--gpu", "tiny", "--no-progress"];
    let views = [
        "--html",
        &html,
        "--kanata",
        &kanata,
        "--perfetto",
        &perfetto,
        "--fst",
        &fst,
    ];
    let (bare, seen) = (warpwave(&plain), warpwave(&[&plain[..], &views[..]].concat()));
    assert_eq!((seen.code, seen.err.as_str()), (0, ""));
    assert_eq!(seen.out, bare.out);
    let begins = |file: &str, with: &[u8]| std::fs::read(file).unwrap().starts_with(with);
    assert!(begins(&html, b"<!doctype html>"));
    assert!(begins(&kanata, b"Kanata\t0004\n"));
    assert!(begins(&perfetto, b"{\"displayTimeUnit\""));
    // Block 0 is the header. It has 329 bytes.
    assert!(begins(
        &fst,
        &[0, 0, 0, 0, 0, 0, 0, 329u16.to_be_bytes()[0], 329u16.to_be_bytes()[1]]
    ));
    assert!(folder.path().join("run.fst.gtkw").is_file());
}

#[test]
fn repeated_run_gives_the_same_json_except_for_the_host() {
    let folder = tempfile::tempdir().unwrap();
    let json = |name: &str, threads: &str| {
        let path = folder.path().join(name);
        let args = [
            "run",
            "reduce_shuffle",
            "--gpu",
            "tiny",
            "--threads",
            threads,
            "--json",
            path.to_str().unwrap(),
        ];
        assert_eq!(warpwave(&args).code, 0);
        let mut report: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        report.as_object_mut().unwrap().remove("host");
        report
    };
    assert_eq!(json("one.json", "1"), json("two.json", "2"));
}

#[test]
fn all_scenarios_run_and_the_greatest_exit_code_is_returned() {
    let wrong = error_scenario("wrong_result");
    let answer = warpwave(&["run", "vector_add", &wrong, "saxpy", "--gpu", "tiny"]);
    assert_fails(&answer, 1, &["wrong_result: 2 did not hold"]);
    assert!(answer.out.contains("vector_add on tiny") && answer.out.contains("saxpy on tiny"));
    assert!(
        answer
            .out
            .ends_with("2 of 3 scenarios held\n\nvector_add    held\nwrong_result  exit code 1\nsaxpy         held\n"),
        "{}",
        answer.out
    );
}

#[test]
fn each_of_several_scenarios_writes_files_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let text = fill_text();
    for name in ["sub/one.toml", "sub/deep/one.toml", "sub/two.toml"] {
        let file = folder.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &text).unwrap();
        std::fs::write(file.with_file_name("k.ptx"), FILL).unwrap();
    }
    let files = ["--json", "r.json", "--csv", "r.csv", "--vcd", "w.vcd.gz", "--dump", "d"].map(str::to_owned);
    let files: Vec<String> = files
        .chunks(2)
        .flat_map(|pair| [pair[0].clone(), path(&pair[1])])
        .collect();
    for scenarios in ["sub".to_owned(), "sub/**/*.toml".to_owned()] {
        let mut args = vec![
            "run".to_owned(),
            path(&scenarios),
            "--gpu".to_owned(),
            "tiny".to_owned(),
        ];
        args.extend(files.iter().cloned());
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let answer = warpwave(&args);
        assert_eq!(answer.code, 0, "{}", answer.err);
        // In the order of the paths: sub/deep/one.toml comes first.
        assert!(
            answer
                .out
                .ends_with("3 of 3 scenarios held\n\none    held\none.2  held\ntwo    held\n"),
            "{}",
            answer.out
        );
        for name in ["one", "one.2", "two"] {
            for file in [
                format!("r.{name}.json"),
                format!("r.{name}.csv"),
                format!("w.{name}.vcd.gz"),
                format!("d/{name}/out.npy"),
            ] {
                assert!(folder.path().join(&file).is_file(), "{file}");
                std::fs::remove_file(folder.path().join(&file)).unwrap();
            }
        }
    }
}

#[test]
fn name_of_a_scenario_and_a_folder_says_what_an_output_option_leaves_out() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("r.json").display().to_string();
    let run = |args: &[&str]| warpwave(&[&["run", "scheduler-timeline"], args].concat());
    let inside = warpwave::scenario::builtin::in_folder("scheduler-timeline");
    assert!(inside.len() > 1, "{inside:?}");
    let one = run(&["--json", &json]);
    assert_eq!(one.code, 0, "{}", one.err);
    let note = format!(
        "with an output option, `scheduler-timeline` is the scenario of this name alone; its folder has {}: ",
        inside.len()
    );
    assert!(one.err.contains(&note), "{}", one.err);
    let all = run(&[]);
    assert!(
        !all.err.contains("output option") && all.out.contains(&format!("{0} of {0} scenarios held", inside.len())),
        "{}",
        all.out
    );
}

/// A scenario that fills `out` with the index of each element.
fn fill_text() -> String {
    "ptx = \"k.ptx\"\n[buffers.out]\ndtype = \"u32\"\nshape = [64]\n[[launch]]\ngrid = 1\nblock = 64\nargs = [\"out\"]\n".to_owned()
}

#[test]
fn folder_of_scenarios_runs_each_of_them() {
    let answer = warpwave(&["run", "reduce", "--gpu", "tiny"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    for name in ["reduce_interleaved", "reduce_sequential", "reduce_shuffle"] {
        assert!(answer.out.contains(&format!("{name} on tiny")), "{}", answer.out);
    }
}
