//! `warpwave validate`: the store of figures, and what an interrupt keeps.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use crate::{Answer, command, records, warpwave_in};

/// The rows of one GPU in two families: instructions, which take milliseconds each.
const INSTRUCTIONS: [&str; 7] = ["validate", "latency", "rate", "--gpu", "v100-sxm2", "--csv", "t.csv"];

/// The line about the store: points, and points computed.
fn counts(answer: &Answer) -> (usize, usize) {
    let line = answer.out.lines().find(|line| line.contains(" points: "));
    let mut numbers = line.expect("the command counts points").split_whitespace();
    let number = |word: Option<&str>| word.unwrap().parse().unwrap();
    (number(numbers.next()), number(numbers.nth(1)))
}

fn csv(folder: &Path) -> String {
    fs::read_to_string(folder.join("t.csv")).unwrap()
}

#[test]
fn validation_killed_twice_goes_on_and_gives_the_same_csv() {
    let folder = tempfile::tempdir().unwrap();
    let (place, store) = (folder.path(), folder.path().join("store"));
    let args = [&INSTRUCTIONS[..], &["--store", "store", "--threads", "1"]].concat();
    let mut kept = Vec::new();
    for wanted in [3, 9] {
        let mut validate = command(place, &args)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while records(&store).len() < wanted {
            assert_eq!(validate.try_wait().unwrap(), None, "it ended before it was killed");
            sleep(Duration::from_millis(1));
        }
        validate.kill().unwrap();
        validate.wait().unwrap();
        assert!(!place.join("t.csv").exists());
        kept.push(records(&store));
    }
    let answer = warpwave_in(place, &args);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{}", answer.out);
    let all = records(&store);
    let (points, computed) = counts(&answer);
    assert_eq!((all.len(), computed), (points, points - kept[1].len()));
    // A record has the process and the wall time of its computation: a second one would differ.
    for record in kept.iter().flatten() {
        assert_eq!(&all[record.0], record.1, "{} was computed twice", record.0);
    }
    assert!(kept[0].len() < kept[1].len() && kept[1].len() < points);
    // A validation without interrupts gives the same rows.
    let resumed = csv(place);
    assert_eq!(resumed.lines().count(), points + 1);
    let whole = tempfile::tempdir().unwrap();
    let other = warpwave_in(whole.path(), &INSTRUCTIONS);
    assert_eq!((other.code, other.err.as_str()), (0, ""), "{}", other.out);
    assert_eq!(csv(whole.path()), resumed);
}

#[test]
fn second_validation_computes_nothing_unless_it_is_fresh_or_a_key_changes() {
    let folder = tempfile::tempdir().unwrap();
    let validate = |more: &[&str]| {
        let args = [&["validate", "cluster", "--gpu", "h100-sxm5"], more].concat();
        let answer = warpwave_in(folder.path(), &args);
        assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{}", answer.out);
        counts(&answer)
    };
    let (points, computed) = validate(&[]);
    assert!(points > 0);
    assert_eq!(computed, points);
    assert_eq!(validate(&[]), (points, 0));
    assert_eq!(validate(&["--set", "cluster.load_latency=200"]), (points, points));
    assert_eq!(validate(&["--fresh"]), (points, points));
    assert_eq!(validate(&[]), (points, 0));
    assert_eq!(records(&folder.path().join(".warpwave-store")).len(), 2 * points);
}

#[cfg(unix)]
#[test]
fn interrupted_validation_keeps_its_points_and_writes_no_record() {
    use std::process::Command;
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join(".warpwave-store");
    let args = ["validate", "latency", "--threads", "1", "--write", "."];
    let validate = command(folder.path(), &args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while records(&store).len() < 2 {
        sleep(Duration::from_millis(1));
    }
    let killed = Command::new("kill")
        .args(["-INT", &validate.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let answer = Answer::of(validate.wait_with_output().unwrap());
    assert_eq!(answer.code, 130, "{}", answer.err);
    let says = "points are not computed; the same command goes on with them";
    assert!(answer.err.contains(says), "{}", answer.err);
    assert_eq!(counts(&answer).0, records(&store).len());
    assert!(!folder.path().join("all.csv").exists());
}
