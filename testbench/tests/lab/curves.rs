//! The table `[sweep]` of a scenario: its axes, its assertions over the curves, and the plot.

use std::fs;

use crate::{project, warpwave_in};

/// More turns of the loop take longer. A wider block takes fewer turns.
const SWEEP: &str = "
[sweep]
over = [\"n=256..1024*2\", \"block=32,64\"]

[[sweep.assert]]
along = \"n\"
shape = \"rising\"

[[sweep.assert]]
along = \"block\"
where = { n = 1024 }
shape = \"falling\"

[[sweep.assert]]
metric = \"smsp__sass_inst_executed_op_global_ld.sum\"
along = \"n\"
slope = 0.03125
within = 0
";

#[test]
fn assertions_over_the_curves_hold_or_name_what_does_not() {
    let folder = project(SWEEP);
    let answer = warpwave_in(folder.path(), &["sweep", "count.toml"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{}", answer.out);
    assert!(
        answer.out.ends_with("all held (assertions over the curves: 3)\n"),
        "{}",
        answer.out
    );
    // One load a warp and 32 elements: the slope is 1/32.
    let folder = project(
        &SWEEP
            .replace("0.03125", "0.5")
            .replace("\"rising\"", "\"flat\"\nwithin = 0.01"),
    );
    let answer = warpwave_in(folder.path(), &["sweep", "count.toml"]);
    assert_eq!(answer.code, 1);
    let says = [
        "sweep.assert[0]: cycles along n at block=32: is not flat: ",
        "the slope is 0.0312, not 0.5",
    ];
    assert!(says.iter().all(|part| answer.err.contains(part)), "{}", answer.err);
    assert!(!answer.err.contains("sweep.assert[1]"), "{}", answer.err);
}

#[test]
fn curve_is_compared_with_a_file_beside_the_scenario() {
    let sweep = "
[sweep]
over = [\"n=64,128\"]
[[sweep.assert]]
metric = \"smsp__sass_inst_executed_op_global_ld.sum\"
csv = \"loads.csv\"
column = \"loads\"
within = 0.1
";
    let folder = project(sweep);
    let run = || warpwave_in(folder.path(), &["sweep", "count.toml"]);
    let missing = run();
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("cannot read loads.csv"), "{}", missing.err);
    fs::write(folder.path().join("loads.csv"), "n,loads\n64,2\n128,4\n").unwrap();
    assert_eq!(run().code, 0);
    fs::write(folder.path().join("loads.csv"), "n,loads\n64,2\n128,5\n").unwrap();
    let answer = run();
    assert_eq!(answer.code, 1);
    assert!(answer.err.contains("4 at 128, but the file has 5"), "{}", answer.err);
}

#[test]
fn table_does_not_replace_the_file_that_it_is_compared_with() {
    let folder = project(
        "\n[sweep]\nover = [\"n=64,128\"]\n[[sweep.assert]]\ncsv = \"ref.csv\"\ncolumn = \"cycles\"\nwithin = 0.1\n",
    );
    let path = folder.path().join("ref.csv");
    let reference = "n,cycles\n64,1\n128,1\n";
    fs::write(&path, reference).unwrap();
    for option in ["--csv", "--plot", "--html"] {
        let answer = warpwave_in(folder.path(), &["sweep", "count.toml", option, "ref.csv"]);
        let says = format!("{option} ref.csv is read by this run; choose another name");
        assert!(answer.code == 2 && answer.err.contains(&says), "{}", answer.err);
        assert_eq!(fs::read_to_string(&path).unwrap(), reference);
    }
}

#[test]
fn fault_of_an_assertion_is_told_before_the_first_point() {
    let folder = project("\n[sweep]\nover = [\"n=1,2\"]\n[[sweep.assert]]\nknee = 4\n");
    let answer = warpwave_in(folder.path(), &["sweep", "count.toml"]);
    assert_eq!((answer.code, answer.out.as_str()), (2, ""));
    assert!(
        answer.err.contains("count.toml: sweep.assert[0]: give `within`"),
        "{}",
        answer.err
    );
}

#[test]
fn plot_has_a_curve_for_each_series() {
    let folder = project(SWEEP);
    let args = ["sweep", "count.toml", "--plot", "p.svg", "--log-x", "--log-y"];
    assert_eq!(warpwave_in(folder.path(), &args).code, 0);
    let plot = fs::read_to_string(folder.path().join("p.svg")).unwrap();
    assert!(plot.starts_with("<svg ") && plot.contains(">block=32</text>") && plot.contains(">block=64</text>"));
    assert_eq!(plot.matches("<circle").count(), 6);
    let answer = warpwave_in(folder.path(), &["sweep", "count.toml", "--plot", "p.svg", "--x", "m"]);
    assert_eq!(answer.code, 2);
    assert!(
        answer.err.contains("--plot p.svg: the sweep has no axis `m`"),
        "{}",
        answer.err
    );
}

#[test]
fn plot_has_the_title_of_the_scenario_and_no_path() {
    let folder = project("\n[sweep]\nover = [\"launch[0].args[1]=64,128,256\"]\nplot = { x_label = \"Elements\" }\n");
    let path = folder.path().join("count.toml");
    let draw = || {
        let args = ["sweep", path.to_str().unwrap(), "--plot", "p.svg", "--store", "s"];
        let answer = warpwave_in(folder.path(), &args);
        assert_eq!(answer.code, 0, "{}", answer.err);
        fs::read_to_string(folder.path().join("p.svg")).unwrap()
    };
    let plot = draw();
    assert!(plot.contains("font-weight=\"bold\">count</text>"), "{plot}");
    assert!(
        plot.contains(">Elements</text>") && plot.contains(">Core cycles</text>"),
        "{plot}"
    );
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("title = \"Loads of a loop\"\n{text}")).unwrap();
    let plot = draw();
    assert!(plot.contains("font-weight=\"bold\">Loads of a loop</text>"), "{plot}");
}

#[test]
fn each_launch_has_a_curve_if_the_scenario_or_the_command_wants_it() {
    let launches = "
name = \"short\"

[[launch]]
name = \"long\"
grid = 1
block = 64
args = [\"data\", { u32 = 1024 }]

[sweep]
over = [\"block=32,64,128\"]
";
    let folder = project(launches);
    let sweep = |more: &[&str]| {
        let args = [&["sweep", "count.toml", "--plot", "p.svg"], more].concat();
        let answer = warpwave_in(folder.path(), &args);
        let plot = fs::read_to_string(folder.path().join("p.svg")).unwrap_or_default();
        (answer, plot)
    };
    let (_, plot) = sweep(&[]);
    assert_eq!(plot.matches("stroke-width=\"2\"").count(), 1);
    let (answer, plot) = sweep(&["--by-launch"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    assert!(
        plot.contains(">short</text>") && plot.contains(">long</text>"),
        "{plot}"
    );
    assert!(answer.out.contains("launch[1].cycles"), "{}", answer.out);
    let path = folder.path().join("count.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}plot = {{ launches = [\"long\"] }}\n")).unwrap();
    let (answer, plot) = sweep(&[]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    assert!(
        plot.contains(">long</text>") && !plot.contains(">short</text>"),
        "{plot}"
    );
    fs::write(&path, format!("{text}plot = {{ launches = [\"lung\"] }}\n")).unwrap();
    let (answer, _) = sweep(&[]);
    assert_eq!(answer.code, 2);
    let says = "count.toml: sweep.plot.launches: no launch is named `lung`; did you mean `long`?";
    assert!(answer.err.contains(says), "{}", answer.err);
}

#[test]
fn page_has_a_plot_for_each_column_and_the_verdict() {
    let folder = project(SWEEP);
    let answer = warpwave_in(folder.path(), &["sweep", "count.toml", "--html", "p.html", "--log-x"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    let page = fs::read_to_string(folder.path().join("p.html")).unwrap();
    // The cycles, and the metric of an assertion.
    assert_eq!(page.matches("<svg ").count(), 2);
    assert!(page.contains("all held (assertions over the curves: ") && page.contains(">block=32</text>"));
    let answer = warpwave_in(folder.path(), &["sweep", "count.toml", "--log-x"]);
    assert_eq!(answer.code, 2, "{}", answer.err);
}
