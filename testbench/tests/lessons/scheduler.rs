//! The scheduler lessons, cycle for cycle: the machine's issues are those of a drawing, and those of a program of ten lines.

use std::collections::{BTreeMap, BTreeSet};

use warpwave::bench::{Bench, Options};
use warpwave::lesson;
use warpwave::scenario::Draft;
use warpwave::watch::Listener;
use warpwave_components::preset;
use warpwave_components::proto::event::{Event, EventKind};
use warpwave_isa::opcode::Opcode;

/// Collects the issues of the last launch, which has one block.
#[derive(Default)]
struct Issues {
    grid: u32,
    /// Index in the block of the warp in each slot of each scheduler.
    warps: BTreeMap<(u8, u8), u32>,
    /// Cycle, scheduler, warp of the block, program counter.
    issues: Vec<(u64, u8, u32, usize)>,
}

impl Listener for Issues {
    fn event(&mut self, _sm: u16, event: &Event) {
        let slot = (event.subcore, event.warp);
        match event.kind {
            EventKind::Start { grid, index, .. } => {
                if grid != self.grid {
                    (self.grid, self.issues) = (grid, Vec::new());
                }
                self.warps.insert(slot, index);
            }
            EventKind::Issue { pc, .. } => {
                self.issues
                    .push((event.at.0, event.subcore, self.warps[&slot], pc as usize));
            }
            _ => {}
        }
    }
}

/// The issues of a run after its first barrier. Cycle 1 is the first with an issue.
struct Timeline {
    /// Warp and operation of each cycle and scheduler.
    issues: BTreeMap<(u64, u8), (u32, Opcode)>,
    /// Warp of the last issue before the barrier opened.
    last: u32,
}

impl Timeline {
    fn of(name: &str, constants: &[(&str, &str)], set: &[(&str, &str)]) -> Timeline {
        let draft = Draft::find(name).unwrap().with_constants(constants).unwrap();
        let mut settings = draft.settings();
        settings.extend(set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        let config = preset::load("toy", &settings).unwrap().config;
        let scenario = draft.build(Some(&config)).unwrap();
        let mut bench = Bench::new(&scenario, config).unwrap();
        let mut seen = Issues::default();
        let options = Options {
            threads: 1,
            max_cycles: None,
        };
        let run = bench.run_with_events(options, &mut [&mut seen], &mut |_| true);
        assert!(run.stopped.is_none() && run.differences.is_empty(), "{name}");
        let code = run.launches.last().unwrap().program.code();
        let is_barrier = |pc: usize| code[pc].op == Opcode::Bar;
        let warps = seen
            .issues
            .iter()
            .map(|&(_, _, warp, _)| warp)
            .collect::<BTreeSet<_>>()
            .len();
        let mut arrivals = (0..seen.issues.len()).filter(|&at| is_barrier(seen.issues[at].3));
        // No warp reaches a second barrier before all have reached the first.
        let arrival = arrivals.nth(warps - 1).unwrap();
        let after = &seen.issues[arrival + 1..];
        let start = after[0].0 - 1;
        let shown = |&(at, subcore, warp, pc): &(u64, u8, u32, usize)| ((at - start, subcore), (warp, code[pc].op));
        Timeline {
            issues: after.iter().map(shown).collect(),
            last: seen.issues[arrival].2,
        }
    }

    /// The row of a warp in a drawing: E an instruction, L its load, R the first use of the loaded value, dots between.
    fn row(&self, warp: u32, cycles: u64) -> String {
        let mut row = format!("    warp {warp}  ");
        let mut letters = ["E", " "];
        for cycle in 1..=cycles {
            let mut here = self.issues.range((cycle, 0)..(cycle + 1, 0));
            let op = here.find_map(|(_, &(of, op))| (of == warp).then_some(op));
            let letter = letters[usize::from(op.is_none())];
            letters = match (letter, op) {
                (_, Some(Opcode::Ld)) => ["R", "."],
                ("R", _) => [" ", " "],
                _ => letters,
            };
            let letter = if op == Some(Opcode::Ld) { "L" } else { letter };
            row.push_str(&format!("{letter:>3}"));
        }
        row.trim_end().to_owned()
    }
}

#[test]
fn four_warps_issue_in_the_cycles_that_the_lesson_draws() {
    let timeline = Timeline::of("scheduler-timeline", &[], &[]);
    let text = lesson::find("scheduler-timeline").unwrap().text;
    for warp in 0..4 {
        let row = timeline.row(warp, 13);
        assert!(
            text.lines().any(|line| line.trim_end() == row),
            "`{row}` is not in\n{text}"
        );
    }
}

/// With one scheduler, 4 loads take the cycles 1 to 4. Each value comes 8 cycles after its load.
#[test]
fn four_warps_of_one_scheduler_load_in_turn_and_resume_in_turn() {
    let timeline = Timeline::of("scheduler-timeline-turns", &[], &[]);
    let rows: Vec<_> = (0..4).map(|warp| timeline.row(warp, 12)).collect();
    let wanted = [
        "    warp 0    L  .  .  .  .  .  .  .  R",
        "    warp 1       L  .  .  .  .  .  .  .  R",
        "    warp 2          L  .  .  .  .  .  .  .  R",
        "    warp 3             L  .  .  .  .  .  .  .  R",
    ];
    assert_eq!(rows, wanted);
}

/// Issue cycles of the warps 0 to 3, worked out by hand. A warp issues a load, two additions, the use of the loaded value, a barrier.
struct Drawn {
    policy: &'static str,
    warps: [[u64; 5]; 4],
}

/// One warp issues per cycle. A value comes 8 cycles after its load. All warps are ready in cycle 1, and warp 3 issued last before.
///
/// - In turn: warp 0 follows warp 3. The loads take the cycles 1 to 4, so their values come in 9 to 12, before the turn of their uses.
/// - Greedy then oldest: warp 3 continues to its second addition, then 0, then 1. The value of warp 3 comes in 9, when warp 1 continues.
///   In 10 warp 2 is older, and runs to 12. The value of warp 0 came in 12, and that of warp 1 comes in 15. Both are older than warp 3, so they go
///   first. The value of warp 2 comes in 18, when warp 3 continues.
/// - Oldest first: warp 2 loads in 7. In 9 the value of warp 0 comes, and warp 2 gives way for two cycles. In 12 that of warp 1 comes. So
///   warp 3 loads in 14. The value of warp 2 comes in 15, and that of warp 3 in 22.
/// - Greedy then youngest: warp 3 continues, then 2, then 1. The value of warp 3 comes in 9, and warp 3 is the youngest in 10. That of
///   warp 2 comes in 12. Only warp 0 is ready in 14. The value of warp 1 comes in 15, when warp 0 continues, and that of warp 0 in 22.
const DRAWN: [Drawn; 4] = [
    Drawn {
        policy: "loose-round-robin",
        warps: [
            [1, 5, 9, 13, 17],
            [2, 6, 10, 14, 18],
            [3, 7, 11, 15, 19],
            [4, 8, 12, 16, 20],
        ],
    },
    Drawn {
        policy: "greedy-then-oldest",
        warps: [
            [4, 5, 6, 13, 14],
            [7, 8, 9, 15, 16],
            [10, 11, 12, 19, 20],
            [1, 2, 3, 17, 18],
        ],
    },
    Drawn {
        policy: "oldest-first",
        warps: [
            [1, 2, 3, 9, 10],
            [4, 5, 6, 12, 13],
            [7, 8, 11, 15, 16],
            [14, 17, 18, 22, 23],
        ],
    },
    Drawn {
        policy: "greedy-then-youngest",
        warps: [
            [14, 15, 16, 22, 23],
            [7, 8, 9, 17, 18],
            [4, 5, 6, 12, 13],
            [1, 2, 3, 10, 11],
        ],
    },
];

#[test]
fn four_warps_issue_in_the_cycles_worked_out_by_hand_under_each_policy() {
    for Drawn { policy, warps } in DRAWN {
        let timeline = Timeline::of("scheduler-policies-timeline", &[], &[("sm.scheduler", policy)]);
        assert_eq!(timeline.last, 3, "{policy}");
        let issues = |of: u32| timeline.issues.iter().filter(move |(_, (warp, _))| *warp == of).take(5);
        for (warp, wanted) in (0..).zip(warps) {
            let ops: Vec<_> = issues(warp).map(|(_, (_, op))| *op).collect();
            assert_eq!(
                ops,
                [Opcode::Ld, Opcode::Iadd3, Opcode::Iadd3, Opcode::Iadd3, Opcode::Bar]
            );
            let found: Vec<_> = issues(warp).map(|((cycle, _), _)| *cycle).collect();
            assert_eq!(found, wanted, "{policy}, warp {warp}");
        }
    }
}

/// The course's algorithm: the warp of each cycle, where `latency` cycles lie between a load and the use of its value.
fn ten_lines(warps: u32, latency: u64, is_oldest_first: bool, mut last: u32) -> Vec<Option<u32>> {
    let mut state = vec![(0, 0); warps as usize]; // Operations since the last use, and the cycle in which the value comes.
    let issue = |now| {
        let is_ready = |&warp: &u32| matches!(state[warp as usize], (done, due) if done > 0 || due <= now);
        let in_turn = |warp: &u32| (warp + warps - last - 1) % warps;
        let order = |warp: &u32| if is_oldest_first { *warp } else { in_turn(warp) };
        last = (0..warps).filter(is_ready).min_by_key(order)?;
        let (done, due) = &mut state[last as usize];
        (*done, *due) = if *done == 4 {
            (0, now + latency)
        } else {
            (*done + 1, *due)
        };
        Some(last)
    };
    (1..=CYCLES).map(issue).collect()
}

/// Cycles compared: fewer than a lone warp takes for its 24 rounds of 12 cycles.
const CYCLES: u64 = 280;

#[test]
fn ten_lines_predict_every_issue_of_1_to_64_warps_under_both_policies() {
    let memories = [("1", 8), ("9", 16)]; // `toy`: a value is usable 7 cycles later than `sm.ideal_memory_latency` says.
    for (name, is_oldest_first) in [("scheduler-toy", false), ("scheduler-toy-oldest", true)] {
        for warps in 1..=64 {
            let (memory, latency) = memories[warps as usize % 2];
            // A row of a block has 32 warps at most.
            let rows = if warps > 32 { warps } else { 1 };
            let constants = [("warps", &*warps.to_string()), ("rows", &*rows.to_string())];
            let timeline = Timeline::of(name, &constants, &[("sm.ideal_memory_latency", memory)]);
            let found: Vec<_> = (1..=CYCLES)
                .map(|cycle| timeline.issues.get(&(cycle, 0)).map(|(warp, _)| *warp))
                .collect();
            let wanted = ten_lines(warps, latency, is_oldest_first, timeline.last);
            assert_eq!(found, wanted, "{name}, {warps} warps, latency {latency}");
        }
    }
}
