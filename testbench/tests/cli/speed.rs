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

#[test]
fn threads_asked_for_are_compared_with_one() {
    let done = warpwave(&[
        "bench",
        "chase",
        "scan",
        "--gpu",
        "tiny",
        "--runs",
        "1",
        "--threads",
        "2",
    ]);
    assert_eq!(done.code, 0, "{}", done.err);
    let lines: Vec<_> = done.out.lines().collect();
    assert_eq!(lines[0], "tiny");
    assert!(lines[1].contains("2 threads, s"), "{}", done.out);
    for (line, kernel) in lines[2..].iter().zip(["chase", "scan"]) {
        let columns: Vec<_> = line.split_whitespace().collect();
        assert_eq!(columns[0], kernel);
        let figures: Vec<f64> = columns[1..].iter().map(|figure| figure.parse().unwrap()).collect();
        let [alone, together, times] = figures[..] else {
            panic!("{line}");
        };
        // Of one pair the medians are its figures, rounded to milliseconds.
        let (least, most) = (
            (alone - 5e-4) / (together + 5e-4),
            (alone + 5e-4) / (together - 5e-4).max(1e-9),
        );
        assert!(least - 5e-3 <= times && times <= most + 5e-3, "{line}");
    }
    assert_eq!(lines.len(), 4, "{}", done.out);
}

#[test]
fn one_thread_is_nothing_to_compare_with_and_rows_are_not_of_threads() {
    for wrong in [&["--threads", "1"][..], &["--threads", "2", "--csv", "x.csv"]] {
        let done = warpwave(&[&["bench", "chase"], wrong].concat());
        assert_eq!(done.code, 2, "{}", done.out);
        assert!(done.err.contains("--threads"), "{}", done.err);
    }
}
