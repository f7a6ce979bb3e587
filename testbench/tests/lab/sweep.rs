//! `warpwave sweep`: axes, the store, limits, and what an interrupt keeps.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

#[cfg(unix)]
use crate::interrupt;
use crate::{Answer, command, error_scenario, project, records, warpwave, warpwave_in};

/// The fields of a table's rows, without its header and what follows it.
fn rows(answer: &Answer) -> Vec<Vec<&str>> {
    let lines = answer.out.lines().skip(1).take_while(|line| !line.is_empty());
    lines.map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn point_of_a_sweep_takes_the_cycles_of_the_same_run() {
    let folder = project("");
    let args = [
        "sweep",
        "count.toml",
        "--over",
        "n=64,128",
        "--over",
        "sm.scheduler=lrr,gto",
    ];
    let answer = warpwave_in(folder.path(), &args);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{}", answer.out);
    assert_eq!(
        answer.out.split_whitespace().take(3).collect::<Vec<_>>(),
        ["n", "sm.scheduler", "cycles"]
    );
    let rows = rows(&answer);
    let settings: Vec<_> = rows.iter().map(|row| row[..2].join(" ")).collect();
    assert_eq!(settings, ["64 lrr", "64 gto", "128 lrr", "128 gto"]);
    let text = fs::read_to_string(folder.path().join("count.toml")).unwrap();
    fs::write(folder.path().join("b.toml"), text.replace("u32 = 64", "u32 = 128")).unwrap();
    let single = ["run", "b.toml", "--set", "sm.scheduler=gto", "--json", "b.json"];
    assert_eq!(warpwave_in(folder.path(), &single).code, 0);
    let report: serde_json::Value = serde_json::from_slice(&fs::read(folder.path().join("b.json")).unwrap()).unwrap();
    assert_eq!(report["totals"]["cycles"].to_string(), rows[3][2]);
}

#[test]
fn constant_of_a_sweep_sets_the_data_and_the_arguments() {
    let folder = project("");
    let count = fs::read_to_string(folder.path().join("count.toml")).unwrap();
    let with_constant = count
        .replace(
            "buffers.data = { dtype = \"u32\", shape = [4096]",
            "[constants]\nelements = 64\n[buffers]\ndata = { dtype = \"u32\", shape = [\"elements\"]",
        )
        .replace("u32 = 64 }", "u32 = \"elements\" }");
    fs::write(folder.path().join("constant.toml"), with_constant).unwrap();
    let of_constant = warpwave_in(folder.path(), &["sweep", "constant.toml", "--over", "elements=64,128"]);
    assert_eq!(
        (of_constant.code, of_constant.err.as_str()),
        (0, ""),
        "{}",
        of_constant.out
    );
    let of_argument = warpwave_in(folder.path(), &["sweep", "count.toml", "--over", "n=64,128"]);
    // The buffers have other sizes, but the kernel does the same.
    assert_eq!(rows(&of_constant), rows(&of_argument));
    let wrong = warpwave_in(folder.path(), &["sweep", "constant.toml", "--over", "elements=64,oops"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("constants.elements"), "{}", wrong.err);
}

#[test]
fn axis_of_a_constant_that_no_launch_uses_as_this_size_is_refused() {
    let folder = project("");
    let count = fs::read_to_string(folder.path().join("count.toml")).unwrap();
    let with = |name: &str, grid: &str| {
        let text = count.replace("grid = 1", grid);
        let text = text.replace("[[launch]]", "[constants]\ngrid = 4\nn = 1024\n[[launch]]");
        fs::write(folder.path().join(name), text).unwrap();
    };
    with("other.toml", "grid = \"n / 256\"");
    with("own.toml", "grid = \"grid\"");
    let says = "other.toml: constants.grid: no launch computes its grid from this constant, so a new value changes no \
                grid; rename the constant, or sweep over launch[0].grid";
    let answer = warpwave_in(folder.path(), &["sweep", "other.toml", "--over", "grid=4,8"]);
    assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{}", answer.err);
    assert!(answer.err.contains(says), "{}", answer.err);
    // An option names the constant, and no column claims that it is the grid.
    let answer = warpwave_in(
        folder.path(),
        &["run", "other.toml", "--const", "grid=8", "--gpu", "tiny"],
    );
    assert_eq!(answer.code, 0, "{}", answer.err);
    for (name, axis) in [("other.toml", "launch[0].grid"), ("own.toml", "grid")] {
        let over = format!("{axis}=2,3");
        let answer = warpwave_in(
            folder.path(),
            &["sweep", name, "--over", &over, "--metric", "launch__grid_size"],
        );
        assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{}", answer.out);
        let sizes: Vec<_> = rows(&answer)
            .iter()
            .map(|row| (row[0].to_owned(), row[2].to_owned()))
            .collect();
        let size = |n: &str| (n.to_owned(), n.to_owned());
        assert_eq!(sizes, [size("2"), size("3")]);
    }
}

#[test]
fn assertion_for_each_point_is_checked_where_it_fails() {
    // A warp has a load for each of its turns: 2 warps and n / 64 turns.
    let assert = |bound: u32| {
        format!("[[assert]]\nmetric = \"smsp__sass_inst_executed_op_global_ld.sum\"\nmax = {bound}\npoints = true\n")
    };
    let other = "[[assert]]\nthat = \"cycles < 1\"\n";
    let folder = project(&format!("{}{other}", assert(4)));
    let over = ["sweep", "count.toml", "--over", "n=64,128,192"];
    let answer = warpwave_in(folder.path(), &over);
    assert_eq!(answer.code, 1);
    let says = "wrong n=192: assert: smsp__sass_inst_executed_op_global_ld.sum is 6, not at most 4\n";
    assert!(answer.out.contains(says), "{}", answer.out);
    assert!(answer.err.contains("1 of 3 points has wrong results"), "{}", answer.err);
    // Another bound is another point.
    let text = fs::read_to_string(folder.path().join("count.toml")).unwrap();
    fs::write(folder.path().join("count.toml"), text.replace("max = 4", "max = 6")).unwrap();
    let answer = warpwave_in(folder.path(), &over);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{}", answer.out);
}

#[test]
fn metric_is_a_column_of_table_and_csv_with_its_exact_value() {
    let folder = project("");
    // One load and one store instruction for each warp and each of its turns: 2 warps in a block of 64.
    let metric = "smsp__sass_inst_executed_op_global_ld.sum";
    let args = [
        "sweep",
        "count.toml",
        "--over",
        "n=64..256*2",
        "--metric",
        metric,
        "--csv",
        "t.csv",
    ];
    let answer = warpwave_in(folder.path(), &args);
    assert_eq!(answer.code, 0, "{}", answer.err);
    let csv = fs::read_to_string(folder.path().join("t.csv")).unwrap();
    let mut lines = csv.lines();
    assert_eq!(lines.next().unwrap(), format!("n,cycles,{metric},state,reason"));
    let loads: Vec<_> = lines.map(|line| line.split(',').nth(2).unwrap()).collect();
    assert_eq!(loads, ["2", "4", "8"]);
}

#[test]
fn parquet_file_is_written_or_the_missing_feature_is_named() {
    let folder = project("");
    let args = ["sweep", "count.toml", "--over", "block=32,64", "--parquet", "t.parquet"];
    let answer = warpwave_in(folder.path(), &args);
    let file = fs::read(folder.path().join("t.parquet"));
    if cfg!(feature = "parquet") {
        assert_eq!(answer.code, 0, "{}", answer.err);
        // A Parquet file begins and ends with these bytes.
        let bytes = file.unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
        return;
    }
    assert_eq!((answer.code, answer.out.as_str()), (2, ""));
    let says = "--parquet needs a program with the feature `parquet`: cargo build --release --features parquet";
    assert!(answer.err.contains(says) && file.is_err(), "{}", answer.err);
}

#[test]
fn second_sweep_computes_only_what_is_new_and_another_input_is_computed_again() {
    let folder = project("");
    let sweep = |over: &str| {
        let answer = warpwave_in(folder.path(), &["sweep", "count.toml", "--over", over]);
        assert_eq!(answer.code, 0, "{}", answer.err);
        let line = answer.out.lines().last().unwrap().to_owned();
        line.split_whitespace().nth(2).unwrap().parse::<usize>().unwrap()
    };
    assert_eq!(sweep("block=32,64"), 2);
    assert_eq!(sweep("block=32,64,128"), 1);
    assert_eq!(sweep("block=128,64"), 0);
    // A comment changes nothing, an instruction does.
    let path = folder.path().join("count.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        format!("# Why.\n{text}[sweep]\nmetrics = [\"dram__bytes_read.sum\"]\n"),
    )
    .unwrap();
    assert_eq!(sweep("block=32,64"), 0);
    let path = folder.path().join("count.ptx");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("%r4, 1;", "%r4, 2;")).unwrap();
    assert_eq!(sweep("block=32,64"), 2);
}

/// Sweeps two block sizes of `count.toml`. Returns the number of points that were computed.
fn computed(folder: &Path) -> String {
    let answer = warpwave_in(folder, &["sweep", "count.toml", "--over", "block=32,64"]);
    assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
    let line = answer.out.lines().find(|line| line.contains(" points: "));
    line.unwrap().split_whitespace().nth(2).unwrap().to_owned()
}

#[test]
fn files_of_a_compared_run_are_inputs_of_each_point() {
    let assert = "[[assert]]\nthat = \"cycles > 0.001 * cycles(other) + 0.001 * cycles('third.toml')\"\npoints = true\n\
                  [runs.other]\nscenario = \"other.toml\"\ngpu = \"gpu.toml\"\n";
    let folder = project(assert);
    let path = |name: &str| folder.path().join(name);
    let text = fs::read_to_string(path("count.toml")).unwrap();
    let without = &text[..text.find("[[assert]]").unwrap()];
    for name in ["other", "third"] {
        let own = without.replace("count.ptx", &format!("{name}.ptx"));
        fs::write(path(&format!("{name}.toml")), own).unwrap();
        fs::copy(path("count.ptx"), path(&format!("{name}.ptx"))).unwrap();
    }
    fs::write(path("gpu.toml"), "base = \"tiny\"\n").unwrap();
    assert_eq!(
        (computed(folder.path()), computed(folder.path())),
        ("2".into(), "0".into())
    );
    for name in ["other.ptx", "third.ptx"] {
        let text = fs::read_to_string(path(name)).unwrap();
        fs::write(path(name), text.replace("%r4, 1;", "%r4, 2;")).unwrap();
        assert_eq!(computed(folder.path()), "2", "{name}");
    }
    let text = fs::read_to_string(path("third.toml")).unwrap();
    fs::write(path("third.toml"), text.replace("u32 = 64", "u32 = 96")).unwrap();
    assert_eq!(computed(folder.path()), "2", "third.toml");
    fs::write(
        path("gpu.toml"),
        "base = \"tiny\"\n[sm.lsu]\nqueue_depth = { value = 3, src = \"assumed\" }\n",
    )
    .unwrap();
    assert_eq!(computed(folder.path()), "2", "gpu.toml");
    // Without `points`, no point reads the other runs.
    fs::write(path("count.toml"), text_without_points(&folder)).unwrap();
    assert_eq!(computed(folder.path()), "2");
    fs::write(
        path("gpu.toml"),
        "base = \"tiny\"\n[sm.lsu]\nqueue_depth = { value = 5, src = \"assumed\" }\n",
    )
    .unwrap();
    assert_eq!(computed(folder.path()), "0");
}

fn text_without_points(folder: &tempfile::TempDir) -> String {
    let text = fs::read_to_string(folder.path().join("count.toml")).unwrap();
    text.replace("points = true\n", "")
}

#[test]
fn column_of_an_absent_launch_is_refused() {
    let folder = project("");
    let args = ["sweep", "count.toml", "--over", "n=64,128", "--metric"];
    let answer = warpwave_in(folder.path(), &[&args[..], &["launch[1].cycles"]].concat());
    assert_eq!((answer.code, answer.out.as_str()), (2, ""));
    let says = "launch[1].cycles: launches are counted from 0, and the scenario has 1";
    assert!(answer.err.contains(says), "{}", answer.err);
    assert_eq!(
        warpwave_in(folder.path(), &[&args[..], &["launch[0].cycles"]].concat()).code,
        0
    );
    // A constant may change the number of launches, so the results decide.
    let text = fs::read_to_string(folder.path().join("count.toml")).unwrap();
    let text = text.replace("buffers.data", "constants.elements = 64\nbuffers.data");
    fs::write(
        folder.path().join("constant.toml"),
        text.replace("u32 = 64 }", "u32 = \"elements\" }"),
    )
    .unwrap();
    let args = ["sweep", "constant.toml", "--over", "elements=64,128", "--metric"];
    let answer = warpwave_in(folder.path(), &[&args[..], &["launch[1].cycles"]].concat());
    assert_eq!((answer.code, answer.out.as_str()), (2, ""));
    assert!(answer.err.contains(says), "{}", answer.err);
    let answer = warpwave_in(folder.path(), &[&args[..], &["launch[0].cycles"]].concat());
    assert_eq!(answer.code, 0, "{}", answer.err);
    assert!(answer.out.contains("2 points: 0 computed"), "{}", answer.out);
}

#[test]
fn built_in_preset_wins_over_a_file_of_its_name() {
    let folder = project("");
    fs::write(folder.path().join("tiny"), "no preset").unwrap();
    for over in [&["gpu=tiny"][..], &["block=64", "--gpu", "tiny"]] {
        let answer = warpwave_in(folder.path(), &[&["sweep", "count.toml", "--over"], over].concat());
        assert_eq!((answer.code, answer.err.as_str()), (0, ""));
        assert!(answer.out.contains("\n1 point: "), "{}", answer.out);
    }
}

#[test]
fn option_that_an_axis_of_the_file_overrides_is_noted() {
    let folder = project("\n[sweep]\nover = [\"gpu=tiny\", \"sm.scheduler=lrr,gto\"]\n");
    for (option, noted) in [
        (["--gpu", "h200"], "note: --gpu has no effect: an axis of the scenario"),
        (["--set", "sm.scheduler=gto"], "note: --set sm.scheduler has no effect"),
    ] {
        let answer = warpwave_in(folder.path(), &[&["sweep", "count.toml"][..], &option].concat());
        assert_eq!(answer.code, 0, "{}", answer.err);
        assert!(answer.err.starts_with(noted), "{}", answer.err);
        assert!(answer.out.contains("\n2 points: "), "{}", answer.out);
    }
}

#[test]
fn option_without_effect_and_wrong_plot_are_refused() {
    let folder = project("");
    for (more, says) in [
        (
            ["--over", "gpu=tiny", "--gpu", "h200"],
            "--gpu has no effect: --over gives each point its own value",
        ),
        (
            ["--over", "sm.scheduler=lrr", "--set", "sm.scheduler=gto"],
            "--set sm.scheduler has no effect",
        ),
        (
            ["--over", "block=64", "--plot", "a.png"],
            "--plot a.png: a plot is an SVG file",
        ),
        (
            ["--over", "block=64", "--csv", "-"],
            "`-` is no output here; write /dev/stdout for standard output",
        ),
    ] {
        let answer = warpwave_in(folder.path(), &[&["sweep", "count.toml"], &more[..]].concat());
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{more:?}");
        assert!(answer.err.contains(says), "{}", answer.err);
    }
    for option in ["--json", "--csv", "--html", "--vcd", "--hist"] {
        let answer = warpwave_in(folder.path(), &["run", "count.toml", option, "-"]);
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{option}");
        assert!(answer.err.contains("`-` is no output here"), "{option}: {}", answer.err);
    }
    let args = [
        "sweep",
        "count.toml",
        "--over",
        "block=64",
        "--quiet",
        "--csv",
        "/dev/stdout",
    ];
    let answer = warpwave_in(folder.path(), &args);
    assert!(
        answer.out.starts_with("block,cycles,state,reason\n64,"),
        "{}",
        answer.out
    );
}

#[test]
fn sweep_of_200_points_killed_twice_ends_complete_with_each_point_computed_once() {
    let folder = project("");
    let (place, store) = (folder.path(), folder.path().join("store"));
    let args = [
        "sweep",
        "count.toml",
        "--over",
        "n=16..1600+16",
        "--over",
        "block=32,96",
        "--store",
        "store",
        "--csv",
        "t.csv",
    ];
    let mut kept = Vec::new();
    for wanted in [30, 110] {
        let mut sweep = command(place, &args)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while records(&store).len() < wanted {
            assert_eq!(sweep.try_wait().unwrap(), None, "the sweep ended before it was killed");
            sleep(Duration::from_millis(1));
        }
        sweep.kill().unwrap();
        sweep.wait().unwrap();
        assert!(!place.join("t.csv").exists());
        kept.push(records(&store));
    }
    let answer = warpwave_in(place, &args);
    assert_eq!(answer.code, 0, "{}", answer.err);
    assert_eq!(rows(&answer).len(), 200);
    let all = records(&store);
    assert_eq!(all.len(), 200);
    // A record has the process and the wall time of its computation: a second one would differ.
    for record in kept.iter().flatten() {
        assert_eq!(&all[record.0], record.1, "{} was computed again", record.0);
    }
    assert!(
        kept[0].len() < kept[1].len() && kept[1].len() < 200,
        "{} and {}",
        kept[0].len(),
        kept[1].len()
    );
    // A sweep without interrupts gives the same table.
    let other = warpwave_in(place, &[&args[..6], &["--store", "other", "--csv", "u.csv"]].concat());
    assert_eq!(other.code, 0, "{}", other.err);
    let csv = |name: &str| fs::read_to_string(place.join(name)).unwrap();
    assert_eq!(csv("t.csv"), csv("u.csv"));
}

#[cfg(unix)]
#[test]
fn interrupt_keeps_what_is_done_and_says_how_to_go_on() {
    let folder = project("");
    let store = folder.path().join(".warpwave-store");
    let args = ["sweep", "count.toml", "--over", "n=1000..4000+1", "--jobs", "1"];
    let answer = interrupt(command(folder.path(), &args), || records(&store).len() >= 2);
    assert_eq!(answer.code, 130, "{}", answer.err);
    assert!(
        answer
            .err
            .contains("of 3001 points are not computed; the same command goes on with them"),
        "{}",
        answer.err
    );
    let done = rows(&answer).iter().filter(|row| row[2] == "done").count();
    assert_eq!(done, records(&store).len());
}

#[cfg(unix)]
#[test]
fn interrupt_of_a_sweep_ends_its_running_points() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join(".warpwave-store");
    let scenario = error_scenario("endless");
    // The first point never ends by itself. With the limit of time, a lost interrupt fails the test in place of a hang.
    let args = [
        "sweep",
        &scenario,
        "--gpu",
        "tiny",
        "--over",
        "block=32,64",
        "--jobs",
        "1",
    ];
    let mut sweep = command(folder.path(), &args);
    sweep.args(["--set", "gigathread.standstill_cycles=0", "--point-time-limit", "60"]);
    let is_running = || {
        let locks = fs::read_dir(store.join("locks")).into_iter().flatten();
        locks.count() > 0
    };
    let answer = interrupt(sweep, is_running);
    assert_eq!(answer.code, 130, "{}", answer.err);
    assert!(answer.err.contains("2 of 2 points are not computed"), "{}", answer.err);
    assert_eq!(records(&store).len(), 0);
}

#[test]
fn value_written_otherwise_is_the_same_point() {
    let constants = "[constants]\nelements = \"2 * 50\"\nhalf = \"elements / 2\"\n";
    let folder = project("");
    let count = fs::read_to_string(folder.path().join("count.toml")).unwrap();
    let text = format!("{constants}{}", count.replace("u32 = 64 }", "u32 = \"elements\" }"))
        .replace("ptx = \"count.ptx\"\ngpu = \"tiny\"\nbuffers.data", "[buffers]\ndata");
    let text = format!("ptx = \"count.ptx\"\ngpu = \"tiny\"\n{text}");
    fs::write(folder.path().join("constant.toml"), text).unwrap();
    let computed = |over: &[&str]| {
        let over = over.iter().flat_map(|axis| ["--over", *axis]);
        let args: Vec<&str> = ["sweep", "constant.toml"].into_iter().chain(over).collect();
        let answer = warpwave_in(folder.path(), &args);
        assert_eq!(answer.code, 0, "{}", answer.err);
        let line = answer.out.lines().find(|line| line.contains(" computed in "));
        line.and_then(|line| line.split_whitespace().nth(2)).unwrap().to_owned()
    };
    assert_eq!(computed(&["elements=100,200"]), "2");
    assert_eq!(computed(&["elements=1e2,2e2"]), "0");
    assert_eq!(computed(&["elements=10*10,0xC8"]), "0");
    assert_eq!(computed(&["half=25"]), "1");
    assert_eq!(computed(&["half=elements / 4"]), "0");
    // 64 is the value of the scenario, and its point is computed.
    assert_eq!(computed(&["block=32,64"]), "1");
    assert_eq!(computed(&["block=32x1,64x1x1"]), "0");
    assert_eq!(computed(&["args[1]=8,1_6"]), "2");
    assert_eq!(computed(&["args[1]=8,16"]), "0");
    assert_eq!(computed(&["n=8,16"]), "0");
    // The own values of the scenario: one point, whatever names it.
    assert_eq!(computed(&["elements=100", "block=64", "launch[0].grid=1"]), "0");
    assert_eq!(computed(&["n=100"]), "0");
}

#[test]
fn failed_point_keeps_its_reason_until_it_is_retried() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = error_scenario("endless");
    let args = [
        "sweep",
        &scenario,
        "--gpu",
        "tiny",
        "--over",
        "block=32,64",
        "--point-time-limit",
        "0.3s",
        "--set",
        "gigathread.standstill_cycles=0",
    ];
    let answer = warpwave_in(folder.path(), &args);
    assert_eq!(answer.code, 1);
    assert!(
        answer
            .out
            .contains("failed block=32: the time limit of 0.3 s is reached"),
        "{}",
        answer.out
    );
    assert!(
        answer
            .err
            .contains("2 of 2 points failed; mend the cause, then run with --retry-failed"),
        "{}",
        answer.err
    );
    let first = records(&folder.path().join(".warpwave-store"));
    let again = warpwave_in(folder.path(), &args);
    assert!(again.out.contains("2 points: 0 computed in"), "{}", again.out);
    // A lower limit is no reason either.
    let with = |limit| [&args[..7], &[limit], &args[8..]].concat();
    let lower = warpwave_in(folder.path(), &with("0.2s"));
    assert!(lower.out.contains("2 points: 0 computed in"), "{}", lower.out);
    let store = || records(&folder.path().join(".warpwave-store"));
    assert_eq!(store(), first);
    let retried = warpwave_in(folder.path(), &[&args[..], &["--retry-failed"]].concat());
    assert!(retried.out.contains("2 points: 2 computed in"), "{}", retried.out);
    assert_ne!(store(), first);
    let second = store();
    let higher = warpwave_in(folder.path(), &with("0.4s"));
    assert!(higher.out.contains("2 points: 2 computed in"), "{}", higher.out);
    assert!(store().iter().all(|(key, record)| second[key] != *record));
}

#[test]
fn plan_keeps_the_records_of_failed_points_until_new_ones_replace_them() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = error_scenario("endless");
    let with = |command: &[&str], more: &[&str]| {
        let axes = [
            "--gpu",
            "tiny",
            "--over",
            "block=32",
            "--set",
            "gigathread.standstill_cycles=0",
        ];
        warpwave_in(folder.path(), &[command, &[scenario.as_str()], &axes, more].concat())
    };
    let store = || records(&folder.path().join(".warpwave-store"));
    assert_eq!(with(&["sweep"], &["--point-time-limit", "0.2s"]).code, 1);
    let first = store();
    let key = first.keys().next().unwrap().trim_end_matches(".json").to_owned();
    let same = with(&["sweep", "plan"], &["--point-time-limit", "0.2s"]);
    assert_eq!((same.code, same.out.as_str()), (0, ""));
    for more in [
        &["--point-time-limit", "0.3s"][..],
        &[],
        &["--point-time-limit", "0.1s", "--retry-failed"],
    ] {
        let plan = with(&["sweep", "plan"], more);
        assert_eq!(plan.out, format!("{key} block=32\n"), "{more:?}: {}", plan.err);
        assert_eq!(store(), first);
    }
    let script = with(&["sweep", "plan", "--for", "parallel"], &["--retry-failed"]);
    assert!(script.out.contains("--retry-failed {1}"), "{}", script.out);
    let run_point = |more: &[&str]| warpwave_in(folder.path(), &[&["sweep", "run-point", &key], more].concat());
    assert_eq!(run_point(&["--point-time-limit", "0.2s"]).code, 0);
    assert_eq!(store(), first);
    assert_eq!(run_point(&["--point-time-limit", "0.3s"]).code, 4);
    let second = store();
    assert_ne!(second, first);
    assert_eq!(run_point(&["--point-time-limit", "0.1s", "--retry-failed"]).code, 4);
    assert_ne!(store(), second);
}

#[test]
fn point_that_traps_or_needs_too_much_memory_fails_alone() {
    let answer = warpwave(&[
        "sweep",
        &error_scenario("trap"),
        "--gpu",
        "tiny",
        "--over",
        "block=32,64",
    ]);
    assert_eq!(answer.code, 1);
    assert!(
        answer.out.contains("failed block=64: trap: launch[0]: "),
        "{}",
        answer.out
    );
    let folder = project("");
    let args = ["sweep", "count.toml", "--over", "block=32", "--point-memory", "12MiB"];
    let answer = warpwave_in(folder.path(), &args);
    assert_eq!(answer.code, 1);
    assert!(
        answer.out.contains("the memory limit of 12582912 bytes is reached"),
        "{}",
        answer.out
    );
    // A higher limit is enough: the point needs no --retry-failed.
    let answer = warpwave_in(folder.path(), &[&args[..5], &["2GiB"]].concat());
    assert_eq!(answer.code, 0, "{}", answer.out);
}

#[test]
fn point_with_a_wrong_result_is_named() {
    // With 20 of 40 blocks, half of the elements keep their values.
    let answer = warpwave(&["sweep", "saxpy", "--gpu", "tiny", "--over", "grid=20,40"]);
    assert_eq!(answer.code, 1);
    assert!(answer.out.contains("wrong grid=20: y[5120] is "), "{}", answer.out);
    assert!(answer.err.contains("1 of 2 points has wrong results"), "{}", answer.err);
}

#[test]
fn bad_input_is_refused_before_the_first_point() {
    let folder = project("");
    let says = |args: &[&str]| {
        let answer = warpwave_in(folder.path(), &[&["sweep", "count.toml"], args].concat());
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{args:?}: {}", answer.err);
        assert!(
            !folder.path().join(".warpwave-store/points").exists()
                || records(&folder.path().join(".warpwave-store")).is_empty()
        );
        answer.err
    };
    assert!(says(&[]).contains("a sweep needs an axis; give --over"));
    assert!(says(&["--over", "block=32,64", "--over", "m=4"]).contains("`m` is neither `gpu`, a preset key,"));
    assert!(says(&["--over", "n=4..8"]).contains("`4..8` is not a range"));
    assert!(says(&["--over", "gpu=tiny,tinny"]).contains("no preset `tinny`: did you mean `tiny`"));
    assert!(says(&["--over", "n=4,-1"]).contains("`n` cannot be `-1`; write a number of the type u32"));
    assert!(says(&["--over", "sm.scheduler=lrr,x"]).contains("unknown variant `x`"));
    assert!(
        says(&["--over", "n=4", "--metric", "dram__bytes_reed.sum"]).contains("did you mean `dram__bytes_read.sum`?")
    );
    assert!(says(&["--over", "n=4", "--csv", "count.ptx"]).contains("--csv count.ptx is read by this run"));
    assert!(says(&["--over", "n=4", "--csv", "a", "--plot", "a"]).contains("is also the file of --csv"));
    let block = ["--over", "block=32,64", "--over", "launch[0].block=128"];
    assert!(says(&block).contains("`block` has no effect: `launch[0].block` gives the same launch its own value"));
    let count = ["--over", "args[1]=4", "--over", "n=8"];
    assert!(says(&count).contains("`args[1]` has no effect: `n` gives the same launch its own value"));
    assert!(says(&["--over", "n=4", "--point-memory", "many"]).contains("write bytes, or 500MB, 2GiB"));
    let lost = warpwave_in(folder.path(), &["sweep", "run-point", &"0".repeat(32)]);
    assert_eq!(lost.code, 2);
    assert!(lost.err.contains("has no point 000"), "{}", lost.err);
}

#[test]
fn planned_point_is_not_computed_from_changed_files() {
    let folder = project("");
    let plan = ["sweep", "plan", "count.toml", "--over", "block=32"];
    let line = warpwave_in(folder.path(), &plan).out;
    let (key, point) = line.trim_end().split_once(' ').unwrap();
    assert_eq!(point, "block=32");
    let path = folder.path().join("count.ptx");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("%r4, 1;", "%r4, 2;")).unwrap();
    let answer = warpwave_in(folder.path(), &["sweep", "run-point", key]);
    assert_eq!(answer.code, 2);
    assert!(
        answer
            .err
            .contains("have changed since it was planned; plan the sweep again"),
        "{}",
        answer.err
    );
    fs::write(&path, text).unwrap();
    assert_eq!(warpwave_in(folder.path(), &["sweep", "run-point", key]).code, 0);
    assert_eq!(warpwave_in(folder.path(), &plan).out, "");
}
