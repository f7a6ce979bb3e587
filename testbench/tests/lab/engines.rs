//! Job scripts of `warpwave sweep plan`, run by real engines where they are installed.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{project, warpwave_in};

const OVER: [&str; 4] = ["--over", "n=16..1600+16", "--over", "block=32,96"];

/// The CSV of the sweep, from a store.
fn table(folder: &Path, store: &str) -> (String, String) {
    let args = [&["sweep", "count.toml", "--store", store, "--csv", "t.csv"], &OVER[..]].concat();
    let answer = warpwave_in(folder, &args);
    assert_eq!(answer.code, 0, "{}", answer.err);
    (fs::read_to_string(folder.join("t.csv")).unwrap(), answer.out)
}

/// The job script for an engine.
fn script(folder: &Path, engine: &str, more: &[&str]) -> String {
    let plan = ["sweep", "plan", "count.toml", "--store", "engine", "--for", engine];
    let args = [&plan, &OVER[..], more].concat();
    let answer = warpwave_in(folder, &args);
    assert_eq!(answer.code, 0, "{}", answer.err);
    answer.out
}

fn is_installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        println!("skipped: {program} is not installed");
    }
    found
}

#[test]
fn plan_has_a_line_for_each_missing_point() {
    let folder = project("");
    let plan = |over: &str| warpwave_in(folder.path(), &["sweep", "plan", "count.toml", "--over", over]).out;
    let lines = plan("block=32,64");
    let points: Vec<_> = lines.lines().map(|line| line.split_once(' ').unwrap().1).collect();
    assert_eq!(points, ["block=32", "block=64"]);
    let done = warpwave_in(folder.path(), &["sweep", "count.toml", "--over", "block=64"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert_eq!(plan("block=32,64").lines().count(), 1);
}

#[test]
fn gnu_parallel_gives_the_same_table() {
    if !is_installed("parallel") {
        return;
    }
    let folder = project("");
    fs::write(folder.path().join("points.sh"), script(folder.path(), "parallel", &[])).unwrap();
    let ran = Command::new("sh")
        .arg("points.sh")
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let (parallel, out) = table(folder.path(), "engine");
    assert!(out.contains("200 points: 0 computed"), "{out}");
    assert_eq!(parallel, table(folder.path(), "own").0);
}

#[cfg(target_os = "linux")]
#[test]
fn slurm_array_gives_the_same_table() {
    let Some(cluster) = crate::slurm::Cluster::start() else {
        return;
    };
    let folder = project("");
    let path = folder.path().join("points.sbatch");
    // Slurm starts about one task a second.
    fs::write(&path, script(folder.path(), "slurm", &["--tasks", "4"])).unwrap();
    let ran = cluster.command("sbatch", &["--wait", path.to_str().unwrap()]);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let (slurm, out) = table(folder.path(), "engine");
    assert!(out.contains("200 points: 0 computed"), "{out}");
    assert_eq!(slurm, table(folder.path(), "own").0);
}

#[test]
fn array_scripts_are_valid_for_the_shell_and_each_task_computes_its_points() {
    for (engine, task) in [("slurm", "SLURM_ARRAY_TASK_ID"), ("hyperqueue", "HQ_TASK_ID")] {
        let folder = project("");
        fs::write(folder.path().join("points.sh"), script(folder.path(), engine, &[])).unwrap();
        let ran = Command::new("bash")
            .arg("points.sh")
            .env(task, "199")
            .current_dir(folder.path())
            .output();
        assert!(ran.unwrap().status.success());
        let left = script(folder.path(), engine, &[]);
        assert!(
            left.contains("--array=0-198") && !left.contains("n=1600 block=96"),
            "{left}"
        );
    }
}
