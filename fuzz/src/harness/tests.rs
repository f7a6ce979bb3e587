//! A broken member of a group is named.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

/// A component without messages. `counts` makes it count its ticks, and `never_rests` keeps it from being quiescent.
struct Unit {
    path: Path,
    ticks: u64,
    counts: bool,
    never_rests: bool,
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
    }

    fn is_quiescent(&self) -> bool {
        !self.never_rests
    }

    fn probe(&self, _: &mut dyn Probe) {}

    fn stats(&self, report: &mut dyn Report) {
        report.count("ticks", if self.counts { self.ticks } else { 0 });
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

/// The panic of a run of three units, if the last one counts, or never rests.
fn panic_of(counts: bool, never_rests: bool) -> String {
    let build = |_: &Wiring| {
        let unit = |n: usize| {
            let is_broken = n == 2;
            Box::new(Unit {
                path: Path::root(["first", "second", "third"][n]),
                ticks: 0,
                counts: counts && is_broken,
                never_rests: never_rests && is_broken,
            }) as Box<dyn Component>
        };
        ((0..3).map(unit).collect(), Nothing)
    };
    let run = AssertUnwindSafe(|| check_group(3, build, SecondRun::None, 100));
    let panic = catch_unwind(run).expect_err("the last unit is broken");
    *panic.downcast::<String>().expect("a panic with a text")
}

#[test]
fn broken_member_of_a_group_is_named() {
    let found = panic_of(false, true);
    assert!(found.starts_with("third: not quiescent"), "{found}");
    let found = panic_of(true, false);
    assert!(found.contains("third: it acts without work"), "{found}");
    assert!(!found.contains("first"), "{found}");
}
