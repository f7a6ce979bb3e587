//! `warpwave bench`.

use super::*;

#[test]
fn one_kernel_timed_prints_its_figures_and_appends_a_row() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("speed.csv");
    let arguments = ["bench", "chase", "--gpu", "tiny", "--runs", "1", "--csv"];
    for rows in 1..=2 {
        let done = warpwave(&[&arguments[..], &[csv.to_str().unwrap()]].concat());
        assert_eq!(done.code, 0, "{}", done.err);
        assert!(done.out.starts_with("tiny\nkernel "), "{}", done.out);
        let text = std::fs::read_to_string(&csv).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with("commit,processor,gpu,kernel,"), "{text}");
        assert_eq!(lines.len(), 1 + rows, "{text}");
        assert_eq!(
            lines[rows].split(',').skip(2).take(2).collect::<Vec<_>>(),
            ["tiny", "chase"]
        );
    }
}

#[test]
fn changed_number_of_the_gpu_changes_the_cycles() {
    let cycles = |more: &[&str]| {
        let done = warpwave(&[&["bench", "chase", "--gpu", "tiny", "--runs", "1"], more].concat());
        assert_eq!(done.code, 0, "{}", done.err);
        let row = done
            .out
            .lines()
            .find(|line| line.starts_with("chase"))
            .unwrap()
            .to_owned();
        row.split_whitespace().nth(2).unwrap().to_owned()
    };
    assert_ne!(cycles(&[]), cycles(&["--set", "hbm.access_latency=250"]));
}

#[test]
fn unknown_kernel_lists_those_there_are() {
    let done = warpwave(&["bench", "sgem", "--gpu", "tiny"]);
    assert_eq!(done.code, 2);
    assert!(
        done.err.contains("no kernel `sgem`") && done.err.contains("sgemm_tiled"),
        "{}",
        done.err
    );
}

#[test]
fn growth_is_asked_for_without_kernels() {
    let done = warpwave(&["bench", "chase", "--growth"]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("--growth"), "{}", done.err);
}
