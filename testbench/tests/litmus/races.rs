//! The race detector on the litmus files. Each report is a race of the memory model, and a program that always races has a report.
//!
//! The reference runs each file as a plain kernel, once for each order of its CTAs. The axioms give all executions with the outcome of
//! that run. Each reported pair races in one of these executions. If all of them have a race, there is a report.

use warpwave::bench::Bench;
use warpwave::lockstep;
use warpwave::reference::{Checks, RaceSpace};

use super::axioms::{Place, races};
use super::machine::Plain;
use super::program::{Op, Program};
use super::suite::{file, files, machine};

/// Limit of warp instructions: a plain kernel has no loops.
const LIMIT: u64 = 100_000;

/// Files with a race that the detector may leave out, as `docs/races.md` says: `.cluster` counts as `.gpu`.
const NOT_FOUND: [&str; 1] = ["MP+cluster+other-cluster"];

/// True if only the order of two `fence.sc` can prevent a race. The detector does not know this order, as `docs/races.md` says.
fn needs_fence_sc(program: &Program) -> bool {
    program.name.starts_with("SB+") && program.name.contains("fence.sc")
}

/// A run of a file on the reference.
struct Checked {
    /// The pairs of instructions that the detector reports. The first of a pair is the one of the lower thread.
    pairs: Vec<[Place; 2]>,
    outcome: Vec<u32>,
}

/// Runs a file with its CTAs in this order.
fn checked(program: &Program, order: &[usize]) -> Checked {
    let plain = Plain::new(program, order);
    let config = machine("h100-sxm5", &[]);
    let checks = Checks {
        races: true,
        ..Checks::default()
    };
    let found = lockstep::check_memory(&plain.scenario, &config, checks, LIMIT).expect("the kernel loads");
    let bench = Bench::new(&plain.scenario, config).expect("the kernel loads");
    let memory = lockstep::reference(&bench, LIMIT).unwrap_or_else(|(_, error)| panic!("{}: {error}", program.name));
    let buffers: Vec<_> = bench
        .data()
        .map(|(buffer, address)| memory.get(address, buffer.init.len()).expect("the buffer is allocated"))
        .collect();
    let word = |buffer: usize, at: usize| u32::from_le_bytes(buffers[buffer][at..at + 4].try_into().expect("a word"));
    let [launch] = &found[..] else { panic!("one launch") };
    let place = |pc: u32| -> Place {
        let line = launch.program.code()[pc as usize].line;
        let known = plain.lines.iter().find(|(of, _, _)| *of == line);
        let (_, thread, step) = known.unwrap_or_else(|| panic!("{}: a race at line {line}", program.name));
        (*thread, *step)
    };
    let pair = |race: &warpwave::reference::Race| {
        assert_eq!(race.space(), RaceSpace::Global);
        let mut pair = [race.first.pc, race.second.pc].map(place);
        pair.sort_unstable();
        pair
    };
    Checked {
        pairs: launch.findings.races.iter().map(pair).collect(),
        outcome: plain.outcome(word),
    }
}

/// True if a file has an access that is not strong.
fn has_weak_access(program: &Program) -> bool {
    let is_weak = |op: &Op| matches!(op, Op::Load { .. } | Op::Store { .. });
    let mut code = program.threads.iter().flat_map(|thread| &thread.code);
    code.any(|inst| is_weak(&inst.op) && inst.order == super::program::Order::Weak)
}

#[test]
fn reported_races_are_those_of_the_memory_model() {
    let (mut reported, mut clean, mut wrong) = (0, 0, Vec::new());
    for program in files() {
        for order in Plain::orders(&program) {
            let Checked { pairs, outcome } = checked(&program, &order);
            let expected = races(&program, &outcome);
            let shown = || format!("{} {order:?}, {}", program.name, program.show(&outcome));
            for pair in &pairs {
                if !expected.any.contains(pair) && !needs_fence_sc(&program) {
                    wrong.push(format!("{}: no race: {pair:?}", shown()));
                }
            }
            if expected.in_all && pairs.is_empty() && !NOT_FOUND.contains(&&program.name[..]) {
                wrong.push(format!("{}: not found: {:?}", shown(), expected.any));
            }
            reported += usize::from(!pairs.is_empty());
            clean += usize::from(pairs.is_empty() && has_weak_access(&program));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // `clean` counts runs without a report although they have weak accesses: synchronization orders these.
    assert!(reported >= 100 && clean >= 20, "{reported} reported, {clean} clean");
}

/// The first CTA passes a message to the second one. Fences on both sides order it.
#[test]
fn fenced_message_is_clean_and_a_message_without_a_fence_names_the_pair() {
    for name in [
        "MP+release+acquire",
        "MP+acquire-pattern",
        "MP+release-pattern",
        "MP+release-sequence",
        "MP+membar.gl",
        "MP+fences.sys",
        "MP+red+atom",
        "S+release+acquire",
        "WRC+release+acquire",
        "ISA2+release+acquire",
    ] {
        let program = file(name);
        let order: Vec<usize> = (0..program.threads.len()).collect();
        assert_eq!(checked(&program, &order).pairs, [[(0, 0); 2]; 0], "{name}");
    }
    // The store and the load of `x`. The flag `y` is weak too in the first file.
    let [x, y] = [[(0, 0), (1, 1)], [(0, 1), (1, 0)]];
    assert_eq!(checked(&file("MP+weak"), &[0, 1]).pairs, [y, x]);
    assert_eq!(checked(&file("MP+release+relaxed"), &[0, 1]).pairs, [x]);
}
