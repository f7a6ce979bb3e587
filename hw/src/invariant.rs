//! Invariants of a component, checked between two ticks by a run that asks for it.

use std::fmt::Display;

use crate::path::Path;
use crate::time::Cycle;

/// Collects the broken invariants of a component.
///
/// ```
/// use warpwave_hw::invariant::Invariants;
/// let broken = Invariants::broken(|check| {
///     check.at_most("entries", 5, 4);
///     check.equal("credits", 3, 3);
/// });
/// assert_eq!(broken, ["entries: 5, at most 4"]);
/// ```
#[derive(Default)]
pub struct Invariants(Vec<String>);

impl Invariants {
    /// Runs checks. Returns one sentence for each broken invariant.
    pub fn broken(checks: impl FnOnce(&mut Invariants)) -> Vec<String> {
        let mut invariants = Invariants::default();
        checks(&mut invariants);
        invariants.0
    }

    /// Panics if a check before cycle `now` finds a violation, with path, cycle and values.
    pub fn assert_unbroken(now: Cycle, path: impl FnOnce() -> Path, checks: impl FnOnce(&mut Invariants)) {
        if let Some(first) = Invariants::broken(checks).first() {
            panic!("{}: before cycle {now} an invariant is broken: {first}", path());
        }
    }

    /// Checks that two numbers are equal. `what` is formatted only if they are not: give it as `format_args!`.
    pub fn equal(&mut self, what: impl Display, found: u64, expected: u64) {
        if found != expected {
            self.0.push(format!("{what}: {found}, not {expected}"));
        }
    }

    /// Checks that `found` is at most `most`.
    pub fn at_most(&mut self, what: impl Display, found: u64, most: u64) {
        if found > most {
            self.0.push(format!("{what}: {found}, at most {most}"));
        }
    }

    /// Checks that another check has found no violation.
    pub fn none(&mut self, violation: Option<impl Display>) {
        self.0.extend(violation.map(|violation| violation.to_string()));
    }

    /// Checks that every bit of `mask` is set in `all`.
    pub fn within(&mut self, what: impl Display, mask: u64, all: u64) {
        if mask & !all != 0 {
            self.0.push(format!("{what}: {mask:#x}, all within {all:#x}"));
        }
    }
}
