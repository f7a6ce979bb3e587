//! The command `warpwave bench`.

use super::*;

#[test]
fn figures_of_a_kernel_are_consistent() {
    let done = warpwave(&["bench", "chase", "--gpu", "tiny", "--runs", "1"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let lines: Vec<_> = done.out.lines().collect();
    assert_eq!(lines[0], "tiny");
    let head: Vec<_> = lines[1]
        .split("  ")
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .collect();
    assert_eq!(
        head,
        ["kernel", "warp inst", "cycles", "CPU s", "M inst/s", "k cycle/s"]
    );
    let columns: Vec<_> = lines[2].split_whitespace().collect();
    assert_eq!((columns[0], columns.len()), ("chase", 6));
    let [instructions, cycles, seconds, m_inst, k_cycles] = [1, 2, 3, 4, 5].map(|n| columns[n].parse::<f64>().unwrap());
    assert!(instructions > 0.0 && cycles > 0.0, "{}", lines[2]);
    // Each rate is rounded, and so are the seconds.
    let (least, most) = ((seconds - 5e-4).max(1e-9), seconds + 5e-4);
    for (count, rate, rounding) in [(instructions / 1e6, m_inst, 5e-3), (cycles / 1e3, k_cycles, 5e-2)] {
        assert!(
            count / most - rounding <= rate && rate <= count / least + rounding,
            "{}",
            lines[2]
        );
    }
    assert!(
        lines[3].starts_with("peak memory: ") && lines[3].ends_with(" MB"),
        "{}",
        done.out
    );
    assert_eq!(lines.len(), 4, "{}", done.out);
}

#[test]
fn changed_parameter_of_the_gpu_changes_the_cycles() {
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

/// The times that `benches/speed.rs` compares with.
const PUBLISHED: &str = include_str!("../../benches/peer/published.csv");

#[test]
fn published_times_are_of_eight_kernels_of_the_suite() {
    let rows: Vec<Vec<_>> = PUBLISHED
        .lines()
        .filter(|line| !line.starts_with('#'))
        .skip(1)
        .map(|line| line.split(',').collect())
        .collect();
    assert_eq!(rows.len(), 8);
    for row in rows {
        assert!(warpwave::suite::kernels().contains(&row[0]), "{row:?}");
        assert!(row.last().unwrap().parse::<f64>().unwrap() > 0.0, "{row:?}");
    }
}

#[test]
fn unknown_kernel_is_refused_with_the_list_of_kernels() {
    let done = warpwave(&["bench", "sgem", "--gpu", "tiny"]);
    assert_eq!(done.code, 2);
    assert!(
        done.err.contains("no kernel `sgem`") && done.err.contains("sgemm_tiled"),
        "{}",
        done.err
    );
}

#[test]
fn several_threads_are_compared_with_one() {
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
fn comparison_of_one_thread_with_itself_is_refused() {
    let done = warpwave(&["bench", "chase", "--threads", "1"]);
    assert_eq!(done.code, 2, "{}", done.out);
    assert!(done.err.contains("--threads"), "{}", done.err);
}
