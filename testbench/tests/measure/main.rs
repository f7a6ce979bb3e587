//! `measure.py` on a driver without a GPU: plans go in, results come out, figures are computed from them.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use warpwave::plan;
use warpwave::validate::{Family, Results};

/// Compiles the driver into a folder.
fn driver(folder: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/measure/driver.c");
    let library = folder.join("libcuda.so.1");
    let mut cc = Command::new("cc");
    let status = cc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    assert!(status.expect("a C compiler is installed").success());
}

/// Runs `measure.py` on the plans of a folder.
fn measure(driver: &Path, folder: &Path, options: &[&str]) -> Output {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("validation/measure.py");
    let mut python = Command::new("python3");
    python.arg("-B").arg(program).arg(folder).args(options);
    let answer = python.env("LD_LIBRARY_PATH", driver).output();
    answer.expect("Python is installed")
}

fn folders() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let plans = folder.path().join("plans");
    driver(folder.path());
    (folder, plans)
}

#[test]
fn figures_come_from_the_times_that_the_driver_gives() {
    let (folder, plans) = folders();
    let family = Family::find("small-kernels").unwrap();
    let gpu = "h100-sxm5";
    let wanted = family.plans(gpu).unwrap();
    plan::write(&plans, &wanted[..1]).unwrap();
    let answer = measure(folder.path(), &plans, &[]);
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    assert_eq!(
        String::from_utf8_lossy(&answer.stdout),
        "stub, CUDA 13.0\n1 plans ran, 0 failed\n"
    );
    let points = family.measured(gpu, &Results::read(&plans).unwrap()).unwrap();
    // A graph of 50 launches takes 0.1 ms.
    let figures: Vec<_> = points.iter().map(|point| point.silicon).collect();
    assert_eq!(figures.len(), 1, "the other plans were not run");
    assert!((figures[0] - 2.0).abs() < 1e-6, "2 us each: {figures:?}");
}

#[test]
fn data_that_the_gpu_left_otherwise_are_told() {
    let (folder, plans) = folders();
    let run = Command::new(env!("CARGO_BIN_EXE_warpwave"))
        .args(["run", "saxpy", "--gpu", "tiny", "--quiet", "--plan"])
        .arg(&plans)
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let answer = measure(folder.path(), &plans, &["--once"]);
    let text = String::from_utf8_lossy(&answer.stdout).into_owned();
    assert!(answer.status.success(), "{text}");
    // The driver launched nothing, so `y` is as it was.
    assert!(text.contains("x: equal; y: 10000 of 10000 differ"), "{text}");
}

#[test]
fn scenario_with_a_texture_is_refused_before_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_warpwave"))
        .args(["run", "texture", "--plan"])
        .arg(folder.path().join("plans"))
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(2));
    let error = String::from_utf8_lossy(&run.stderr);
    assert!(error.contains("it uses a texture or surface; plans hold"), "{error}");
}
