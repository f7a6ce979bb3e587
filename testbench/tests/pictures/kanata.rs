//! The pipeline diagram, read by a strict reader of Konata's format.

use std::collections::{BTreeMap, BTreeSet};

use super::{ALWAYS, SCENARIOS, chain, picture};
use warpwave::bench::Run;
use warpwave::report::{kanata, stalls};
use warpwave::watch::pipeline::Picture;

/// A row as a viewer reads it.
#[derive(Default, Debug)]
struct Row {
    thread: u64,
    label: String,
    tooltip: String,
    /// Lane, name, first cycle, the cycle after the last.
    stages: Vec<(u8, String, u64, u64)>,
    open: BTreeMap<u8, (String, u64)>,
    needs: BTreeSet<usize>,
    retired: Option<u64>,
}

/// Reads a diagram. Any offence against the format is an error with its line.
fn read(text: &str) -> Result<Vec<Row>, String> {
    let mut lines = text.lines().enumerate();
    if lines.next().map(|(_, line)| line) != Some("Kanata\t0004") {
        return Err("no header".to_owned());
    }
    let (mut rows, mut now, mut retired) = (Vec::<Row>::new(), None, 0);
    for (n, line) in lines {
        let wrong = |what: &str| format!("line {}: {what}: {line}", n + 1);
        let fields: Vec<&str> = line.split('\t').collect();
        let number = |at: usize| -> Result<u64, String> {
            let field = fields.get(at).ok_or_else(|| wrong("too few fields"))?;
            field.parse().map_err(|_| wrong("no number"))
        };
        if now.is_none() && fields[0] != "C=" {
            return Err(wrong("before the first cycle"));
        }
        let at: u64 = now.unwrap_or(0);
        let n_rows = rows.len();
        let mut none = Row::default();
        let row = match fields[0] {
            "C=" | "C" | "I" => &mut none,
            _ => {
                let row = rows.get_mut(number(1)? as usize);
                row.filter(|row| row.retired.is_none())
                    .ok_or_else(|| wrong("no such row is open"))?
            }
        };
        match (fields[0], fields.len()) {
            ("C=", 2) if now.is_none() => now = Some(number(1)?),
            ("C", 2) if number(1)? > 0 => now = Some(at + number(1)?),
            ("I", 4) if number(1)? as usize == n_rows => rows.push(Row {
                thread: number(3)?,
                ..Row::default()
            }),
            ("L", 4) if fields[2] == "0" => row.label.push_str(fields[3]),
            ("L", 4) if fields[2] == "1" => row.tooltip.push_str(fields[3]),
            ("S", 4) => {
                let lane = number(2)? as u8;
                let stage = (fields[3].to_owned(), at);
                if row.open.insert(lane, stage).is_some() {
                    return Err(wrong("the lane is taken"));
                }
            }
            ("E", 4) => {
                let lane = number(2)? as u8;
                let (name, from) = row.open.remove(&lane).ok_or_else(|| wrong("nothing ends"))?;
                if name != fields[3] || from >= at {
                    return Err(wrong("another stage is open, or it has no cycle"));
                }
                row.stages.push((lane, name, from, at));
            }
            ("W", 4) if fields[3] == "0" => {
                let producer = number(2)? as usize;
                if producer >= number(1)? as usize {
                    return Err(wrong("a row waits for itself or a later one"));
                }
                row.needs.insert(producer);
            }
            ("R", 4) if number(2)? == retired && number(3)? <= 1 => {
                retired += 1;
                if !row.open.is_empty() {
                    return Err(wrong("stages are open"));
                }
                row.retired = Some(at);
            }
            _ => return Err(wrong("not a command here")),
        }
    }
    match rows
        .iter()
        .position(|row| row.retired.is_none() || row.label.is_empty())
    {
        Some(row) => Err(format!("row {row} never ends, or has no label")),
        None => Ok(rows),
    }
}

fn rows(run: &Run, picture: &Picture) -> Vec<Row> {
    let mut text = Vec::new();
    kanata::write(&mut text, picture, &run.config).unwrap();
    read(&String::from_utf8(text).unwrap()).unwrap()
}

#[test]
fn reader_refuses_what_the_format_does_not_allow() {
    let good = "Kanata\t0004\nC=\t5\nI\t0\t0\t0\nL\t0\t0\ta\nS\t0\t0\tX\nC\t1\nE\t0\t0\tX\nR\t0\t0\t0\n";
    assert!(read(good).is_ok());
    for (from, to) in [
        ("Kanata\t0004\n", ""),
        ("C=\t5\n", ""),
        ("C\t1\n", "C\t0\n"),
        ("C\t1\n", ""),
        ("I\t0", "I\t1"),
        ("E\t0\t0\tX\n", ""),
        ("E\t0\t0\tX", "E\t0\t0\tY"),
        ("E\t0\t0\tX", "E\t0\t1\tX"),
        ("S\t0\t0\tX\n", "S\t0\t0\tX\nS\t0\t0\tX\n"),
        ("L\t0\t0\ta", "W\t0\t0\t0"),
        ("R\t0\t0\t0\n", "R\t0\t1\t0\n"),
        ("R\t0\t0\t0\n", "R\t0\t0\t0\nR\t0\t1\t0\n"),
        ("R\t0\t0\t0\n", ""),
    ] {
        assert!(read(&good.replacen(from, to, 1)).is_err(), "{from:?} as {to:?}");
    }
}

#[test]
fn stages_of_a_chain_of_seven_instructions_match_a_hand_count() {
    let (run, picture) = chain::run();
    let rows = rows(&run, &picture);
    let s = rows[0].stages.iter().map(|stage| stage.2).min().unwrap();
    // Stages, then stall states of the warp, each with its first cycle and the cycle after its last one.
    let expected: [&[(&str, u64, u64)]; 7] = [
        &[
            ("F", 0, 4),
            ("I", 4, 5),
            ("OC", 5, 6),
            ("X", 6, 17),
            ("W", 17, 18),
            ("no_instruction", 0, 4),
        ],
        &[("F", 1, 5), ("I", 5, 6), ("OC", 6, 7), ("X", 7, 8), ("W", 8, 9)],
        &[
            ("F", 2, 6),
            ("D", 6, 7),
            ("I", 7, 8),
            ("OC", 8, 9),
            ("X", 9, 10),
            ("W", 10, 11),
            ("math_pipe_throttle", 6, 7),
        ],
        &[
            ("F", 4, 8),
            ("D", 8, 18),
            ("I", 18, 19),
            ("OC", 19, 20),
            ("X", 20, 22),
            ("W", 22, 23),
            ("short_scoreboard", 8, 18),
        ],
        &[
            ("F", 5, 9),
            ("D", 9, 23),
            ("I", 23, 24),
            ("OC", 24, 25),
            ("X", 25, 26),
            ("W", 26, 27),
            ("wait", 19, 23),
        ],
        &[
            ("F", 7, 11),
            ("D", 11, 27),
            ("I", 27, 28),
            ("OC", 28, 29),
            ("X", 29, 30),
            ("M", 30, 33),
            ("W", 33, 34),
            ("wait", 24, 27),
        ],
        &[("F", 18, 22), ("D", 22, 28), ("I", 28, 29)],
    ];
    assert_eq!(rows.len(), expected.len());
    for (n, (row, expected)) in rows.iter().zip(expected).enumerate() {
        assert!(row.label.contains(chain::INSTRUCTIONS[n]), "{}", row.label);
        assert!(row.label.contains("mask=ffffffff"), "{}", row.label);
        let mut found: Vec<_> = row
            .stages
            .iter()
            .map(|(lane, name, from, to)| (*lane, name.as_str(), from - s, to - s))
            .collect();
        found.sort_by_key(|stage| (stage.0, stage.2));
        let found: Vec<_> = found.into_iter().map(|(_, name, from, to)| (name, from, to)).collect();
        assert_eq!(found[..expected.len()], *expected, "row {n}");
        // Only the last row has another state: its warp drains.
        assert_eq!(found.len(), expected.len() + usize::from(n == 6), "row {n}");
    }
    let drain = rows[6].stages.iter().find(|stage| stage.1 == "drain").unwrap();
    assert_eq!((drain.0, drain.2 - s), (1, 29));
    let needs: Vec<Vec<usize>> = rows.iter().map(|row| row.needs.iter().copied().collect()).collect();
    assert_eq!(needs, [vec![], vec![], vec![], vec![0], vec![3], vec![4], vec![]]);
    assert!(rows[3].tooltip.contains("block (0, 0, 0) warp 0") && rows[3].tooltip.contains("PTX line 9"));
}

#[test]
fn every_instruction_has_a_row_and_lane_one_adds_up_to_the_stall_counters() {
    for name in SCENARIOS {
        let (run, picture) = picture(name, ALWAYS);
        let rows = rows(&run, &picture);
        assert_eq!(
            run.totals.sum("scheduler", "inst_issued"),
            Some(rows.len() as u64),
            "{name}"
        );
        let mut waits = BTreeMap::<&str, u64>::from([("selected", rows.len() as u64)]);
        for (lane, state, from, to) in rows.iter().flat_map(|row| &row.stages) {
            if *lane == 1 {
                *waits.entry(state).or_default() += to - from;
            }
        }
        for (state, counter) in stalls::STATES {
            let drawn = waits.get(state).copied().unwrap_or(0);
            assert_eq!(
                run.totals.sum("scheduler", counter).unwrap_or(0),
                drawn,
                "{name}: {state}"
            );
        }
        // A thread of the picture is one warp slot.
        let slots: BTreeSet<_> = picture.rows.iter().map(|row| (row.sm, row.subcore, row.slot)).collect();
        let threads: BTreeSet<u64> = rows.iter().map(|row| row.thread).collect();
        assert_eq!(threads.len(), slots.len(), "{name}");
        assert!(
            threads.len() > 1 && threads.iter().all(|thread| *thread < 2 * 64),
            "{name}"
        );
    }
}

#[test]
fn window_keeps_instructions_issued_in_it() {
    let (_, all) = picture("saxpy", ALWAYS);
    let cycles: Vec<_> = all.rows.iter().map(|row| row.issued()).collect();
    let (first, last) = (cycles[cycles.len() / 4], cycles[cycles.len() / 2]);
    let (run, part) = picture("saxpy", first..last);
    let inside = cycles.iter().filter(|at| (first..last).contains(at)).count();
    assert_eq!(rows(&run, &part).len(), inside);
    assert!(inside > 0 && inside < cycles.len());
}
