//! Each way to break the contract is found, and the broken member of a group is named.

use std::panic::{AssertUnwindSafe, catch_unwind};

use warpwave_hw::invariant::Invariants;

use super::*;

/// How a component breaks the contract.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// It keeps the contract.
    None,
    /// It is never quiescent.
    NeverRests,
    /// It counts its ticks, also idle ones.
    CountsTicks,
    /// A reset leaves a counter as it was.
    KeepsCount,
    /// After a reset, a counter falls with each tick.
    CountFalls,
    /// After its first tick an invariant is broken.
    BreaksInvariant,
    /// After a reset, an invariant is broken until the unit has ticked 60 times. That is before the end of a run in which it always ticks.
    BreaksInvariantEarly,
}

/// A component without messages.
struct Unit {
    path: Path,
    ticks: u64,
    resets: u64,
    fault: Fault,
}

impl warpwave_hw::warm::Warm for Unit {}

impl Component for Unit {
    fn path(&self) -> &Path {
        &self.path
    }

    fn tick(&mut self, _: Cycle) -> Activity {
        self.ticks += 1;
        Activity::Idle
    }

    fn reset(&mut self) {
        self.ticks = 0;
        self.resets += 1;
    }

    fn is_quiescent(&self) -> bool {
        self.fault != Fault::NeverRests
    }

    fn probe(&self, _: &mut dyn Probe) {}

    fn invariants(&self, check: &mut Invariants) {
        let broken = match self.fault {
            Fault::BreaksInvariant => self.ticks > 0,
            Fault::BreaksInvariantEarly => self.resets > 0 && self.ticks < 60,
            _ => false,
        };
        check.equal("entries", broken.into(), 0);
    }

    fn stats(&self, report: &mut dyn Report) {
        let value = match self.fault {
            Fault::CountsTicks => self.ticks,
            Fault::KeepsCount => self.resets,
            Fault::CountFalls if self.resets > 0 => 1000 - self.ticks.min(1000),
            _ => 0,
        };
        report.count("events", value);
    }
}

/// A world that sends nothing.
struct Nothing;

impl World for Nothing {
    fn tick(&mut self, _: Cycle) -> bool {
        false
    }

    fn reset(&mut self) {}

    fn digest(&self) -> u64 {
        0
    }
}

/// The panic of a run of three units. The last one has a fault.
fn panic_of(fault: Fault, second: SecondRun) -> String {
    let build = |_: &Wiring| {
        let unit = |n: usize| {
            Box::new(Unit {
                path: Path::root(["first", "second", "third"][n]),
                ticks: 0,
                resets: 0,
                fault: if n == 2 { fault } else { Fault::None },
            }) as Box<dyn Component>
        };
        ((0..3).map(unit).collect(), Nothing)
    };
    let run = AssertUnwindSafe(|| check_group(3, build, second, 100));
    let panic = catch_unwind(run).expect_err("the last unit is broken");
    *panic.downcast::<String>().expect("a panic with a text")
}

#[test]
fn broken_member_of_a_group_is_named() {
    let found = panic_of(Fault::NeverRests, SecondRun::None);
    assert!(found.starts_with("third: not quiescent"), "{found}");
    let found = panic_of(Fault::CountsTicks, SecondRun::None);
    assert!(found.contains("third: it acts without work"), "{found}");
    assert!(!found.contains("first"), "{found}");
}

#[test]
fn counter_that_a_reset_keeps_is_named() {
    for second in [
        SecondRun::NoSkip,
        SecondRun::OtherOrder,
        SecondRun::Reset(3),
        SecondRun::ResetTwice(3),
    ] {
        let found = panic_of(Fault::KeepsCount, second);
        assert!(found.contains("third: the second run differs"), "{second:?}: {found}");
        assert!(!found.contains("first"), "{second:?}: {found}");
    }
}

#[test]
fn counter_that_falls_is_named() {
    let found = panic_of(Fault::CountFalls, SecondRun::NoSkip);
    assert!(found.starts_with("third: counter events falls"), "{found}");
}

#[test]
fn broken_invariant_is_named_at_the_end_of_a_run_and_after_a_window() {
    let found = panic_of(Fault::BreaksInvariant, SecondRun::None);
    // A window has 32 cycles.
    let expected = "third: before cycle 32 an invariant is broken: entries: 1, not 0";
    assert_eq!(found, expected);
    let found = panic_of(Fault::BreaksInvariantEarly, SecondRun::NoSkip);
    assert!(found.starts_with("third: before cycle "), "{found}");
    assert!(found.ends_with("an invariant is broken: entries: 1, not 0"), "{found}");
}
