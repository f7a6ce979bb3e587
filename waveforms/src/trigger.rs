//! Triggers: an event in the machine that starts a dump, exact to the cycle.
//!
//! | trigger | fires in the first cycle in which |
//! |---|---|
//! | `Launch(n)` | GigaThread runs launch n, counted from 0 |
//! | `Pc(n)` | a scheduler issues instruction n |
//! | `Stall(n)` | a warp has been in one stall state for more than n cycles |
//! | `Address(a)` | an LSU requests the sector of device address a |
//!
//! Only SMs with selected signals are observed.

use std::fmt;

use bitvec::vec::BitVec;
use warpwave_hw::time::Cycle;

use crate::derived::{NOT_STALLED, is_warp_state};
use crate::signal::{Kind, Signal};

/// Sizes of a line and of a sector, in bytes.
const LINE: u64 = 128;
const SECTOR: u64 = 32;

/// An event that starts a dump.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trigger {
    /// The launch with this number.
    Launch(u64),
    /// The issue of the instruction with this number.
    Pc(u64),
    /// A stall of more than this number of cycles.
    Stall(u64),
    /// A request for the sector of this device address.
    Address(u64),
}

impl Trigger {
    /// True if the trigger reads this signal.
    pub fn reads(self, signal: &Signal) -> bool {
        match self {
            Trigger::Launch(_) => signal.name == "launch",
            Trigger::Pc(_) => signal.name == "issue_pc",
            Trigger::Stall(_) => is_warp_state(signal),
            Trigger::Address(_) => matches!(signal.name.as_str(), "packet_line" | "packet_sectors"),
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trigger::Launch(number) => write!(f, "launch={number}"),
            Trigger::Pc(number) => write!(f, "pc={number:#x}"),
            Trigger::Stall(cycles) => write!(f, "stall>{cycles}"),
            Trigger::Address(address) => write!(f, "address={address:#x}"),
        }
    }
}

/// Detects a trigger in recorded signals.
pub struct TriggerDetector {
    trigger: Trigger,
    /// One bit per signal, set if the trigger reads it.
    inputs: BitVec,
    /// `Stall` only: for each warp slot the index of its signal, its state, and the state's first cycle.
    warps: Vec<(usize, Option<u64>, Cycle)>,
    /// `Stall` only: for each state, whether it is a stall.
    is_stall: BitVec,
    /// `Address` only: an input has changed in this cycle.
    has_changed: bool,
    /// `Launch` and `Pc` only: the awaited number has appeared in this cycle.
    has_fired: bool,
}

impl TriggerDetector {
    /// Creates a detector for these signals. Recording begins in cycle `start`.
    pub fn new(trigger: Trigger, signals: &[Signal], start: Cycle) -> TriggerDetector {
        let inputs: BitVec = signals.iter().map(|signal| trigger.reads(signal)).collect();
        let is_stall = inputs.iter_ones().find_map(|n| match signals[n].kind {
            Kind::State(names) => Some(names.iter().map(|name| !NOT_STALLED.contains(name)).collect()),
            _ => None,
        });
        TriggerDetector {
            trigger,
            warps: inputs.iter_ones().map(|n| (n, None, start)).collect(),
            is_stall: is_stall.unwrap_or_default(),
            inputs,
            has_changed: false,
            has_fired: false,
        }
    }

    /// The first cycle in which the trigger may fire without a change of its inputs.
    pub fn next(&self) -> Cycle {
        let Trigger::Stall(limit) = self.trigger else {
            return Cycle::NEVER;
        };
        let stalled = self.warps.iter().filter(|(_, state, _)| self.is_stall(*state));
        let since = stalled.map(|&(_, _, since)| since).min();
        // The longest stall fires first. Its first `limit` cycles are allowed.
        since.map_or(Cycle::NEVER, |since| since + (limit + 1))
    }

    fn is_stall(&self, state: Option<u64>) -> bool {
        state.is_some_and(|state| self.is_stall[state as usize])
    }

    /// Reads the initial values.
    pub fn begin(&mut self, now: Cycle, values: &[Option<u64>]) {
        for (n, &value) in values.iter().enumerate().take(self.inputs.len()) {
            self.on_change(now, n as u32, value);
        }
    }

    /// Notes a change of a signal.
    #[inline]
    pub fn on_change(&mut self, now: Cycle, signal: u32, to: Option<u64>) {
        // Derived signals have indices after those of the recorded ones, and are no inputs.
        if !self.inputs.get(signal as usize).is_some_and(|is_input| *is_input) {
            return;
        }
        match self.trigger {
            Trigger::Launch(number) | Trigger::Pc(number) => self.has_fired |= to == Some(number),
            Trigger::Address(_) => self.has_changed = true,
            Trigger::Stall(_) => {
                let warp = self.warps.iter_mut().find(|warp| warp.0 == signal as usize);
                if let Some(warp) = warp {
                    // Every change of state begins a stall of its own.
                    (warp.1, warp.2) = (to, now);
                }
            }
        }
    }

    /// True if the trigger fires in this cycle, after [`on_change`](Self::on_change) for all changes of the cycle.
    pub fn fires(&mut self, now: Cycle, values: &[Option<u64>]) -> bool {
        match self.trigger {
            Trigger::Address(address) if std::mem::take(&mut self.has_changed) => {
                // An LSU declares `packet_line` and `packet_sectors` one after the other.
                let inputs: Vec<_> = self.inputs.iter_ones().collect();
                inputs.chunks_exact(2).any(|pair| {
                    values[pair[0]] == Some(address - address % LINE)
                        && values[pair[1]].is_some_and(|sectors| sectors >> (address % LINE / SECTOR) & 1 == 1)
                })
            }
            Trigger::Stall(_) => self.next() <= now,
            _ => std::mem::take(&mut self.has_fired),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stall_fires_in_the_first_cycle_after_as_many_as_are_allowed() {
        let states = Kind::State(&["wait", "selected", "empty"]);
        let signals = [Signal::new("gpu.sm[0].warp[0].state", states)];
        let mut detector = TriggerDetector::new(Trigger::Stall(5), &signals, Cycle(0));
        detector.begin(Cycle(0), &[Some(2)]);
        assert_eq!(detector.next(), Cycle::NEVER);
        // The warp waits from cycle 10 on. In cycle 15 it has waited for 5 cycles, in cycle 16 for more.
        detector.on_change(Cycle(10), 0, Some(0));
        let first = (10..30).find(|&now| detector.fires(Cycle(now), &[Some(0)]));
        assert_eq!((first, detector.next()), (Some(16), Cycle(16)));
        // A warp that issues is not stalled.
        detector.on_change(Cycle(17), 0, Some(1));
        assert!(!detector.fires(Cycle(99), &[Some(1)]));
    }

    #[test]
    fn address_fires_for_its_own_sector_of_its_line() {
        let signals = ["packet_line", "packet_sectors"]
            .map(|name| Signal::new(&format!("gpu.sm[0].lsu.{name}"), Kind::Vector(64)));
        // Line 0x1080 has the sectors at 0x1080, 0x10a0, 0x10c0 and 0x10e0.
        for (address, sector) in [(0x1080, 0), (0x109f, 0), (0x10a4, 1), (0x10c0, 2), (0x10ff, 3)] {
            for line in [0x1000, 0x1080, 0x1100] {
                for sectors in 0..16 {
                    let mut detector = TriggerDetector::new(Trigger::Address(address), &signals, Cycle(0));
                    detector.begin(Cycle(0), &[None, None]);
                    assert!(!detector.fires(Cycle(0), &[None, None]));
                    detector.on_change(Cycle(1), 0, Some(line));
                    let fires = detector.fires(Cycle(1), &[Some(line), Some(sectors)]);
                    let holds_it = line == 0x1080 && sectors & (1 << sector) != 0;
                    assert_eq!(fires, holds_it, "{address:#x}: sectors {sectors:04b} of line {line:#x}");
                }
            }
        }
    }
}
