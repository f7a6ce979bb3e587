//! What starts a waveform: an event in the machine, seen in its signals to the cycle.
//!
//! | trigger | fires in the first cycle in which |
//! |---|---|
//! | `Launch(n)` | GigaThread runs launch n, counted from 0 |
//! | `Pc(n)` | a scheduler issues instruction n |
//! | `Stall(n)` | a warp has been in one waiting state for more than n cycles |
//! | `Address(a)` | an LSU asks for the sector of device address a |
//!
//! Schedulers, warps and LSUs are those of the SMs that are traced.

use std::fmt;

use bitvec::vec::BitVec;
use warpwave_hw::time::Cycle;

use crate::curves::{NOT_STALLED, is_warp_state};
use crate::signal::{Kind, Signal};

/// Bytes of a line and of a sector.
const LINE: u64 = 128;
const SECTOR: u64 = 32;

/// An event that starts the waveform.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trigger {
    /// This launch.
    Launch(u64),
    /// The issue of this instruction.
    Pc(u64),
    /// A wait of more than so many cycles.
    Stall(u64),
    /// A request for this device address.
    Address(u64),
}

impl Trigger {
    /// Whether it must see this signal.
    pub fn needs(self, signal: &Signal) -> bool {
        match self {
            Trigger::Launch(_) => signal.name == "launch",
            Trigger::Pc(_) => signal.name == "issue_pc",
            Trigger::Stall(_) => is_warp_state(signal),
            Trigger::Address(_) => matches!(signal.name.as_str(), "packet_line" | "packet_sectors"),
        }
    }

    /// Whether the signals that it must see belong to the front of the machine, not to the SMs.
    pub fn is_of_the_front(self) -> bool {
        matches!(self, Trigger::Launch(_))
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

/// A trigger that watches signals.
pub struct Armed {
    trigger: Trigger,
    /// One bit per signal, set if the trigger sees it.
    sees: BitVec,
    /// Of a stall, each warp's signal, its state, and since when; states that wait.
    warps: Vec<(usize, Option<u64>, Cycle)>,
    waits: Vec<bool>,
    /// Of an address, the places of a line and its sectors, side by side.
    touched: bool,
    fires: bool,
}

impl Armed {
    /// Watches these signals from cycle `start` on.
    pub fn new(trigger: Trigger, signals: &[Signal], start: Cycle) -> Armed {
        let sees: BitVec = signals.iter().map(|signal| trigger.needs(signal)).collect();
        let seen = || sees.iter_ones();
        let waits = seen().find_map(|n| match signals[n].kind {
            Kind::State(names) => Some(names.iter().map(|name| !NOT_STALLED.contains(name)).collect()),
            _ => None,
        });
        Armed {
            trigger,
            warps: seen().map(|n| (n, None, start)).collect(),
            waits: waits.unwrap_or_default(),
            sees,
            touched: false,
            fires: false,
        }
    }

    /// The cycle in which a wait becomes too long, if it goes on.
    pub fn next(&self) -> Cycle {
        let Trigger::Stall(limit) = self.trigger else {
            return Cycle::NEVER;
        };
        let waiting = self.warps.iter().filter(|(_, state, _)| self.is_wait(*state));
        let since = waiting.map(|&(_, _, since)| since).min();
        since.map_or(Cycle::NEVER, |since| since + (limit + 1))
    }

    fn is_wait(&self, state: Option<u64>) -> bool {
        state.is_some_and(|state| self.waits[state as usize])
    }

    /// The first values.
    pub fn begin(&mut self, now: Cycle, values: &[Option<u64>]) {
        for (n, &value) in values.iter().enumerate().take(self.sees.len()) {
            self.see(now, n as u32, value);
        }
    }

    /// A signal changes.
    #[inline]
    pub fn see(&mut self, now: Cycle, signal: u32, to: Option<u64>) {
        // What is worked out comes after what is recorded, and is not seen.
        if !self.sees.get(signal as usize).is_some_and(|sees| *sees) {
            return;
        }
        match self.trigger {
            Trigger::Launch(number) | Trigger::Pc(number) => self.fires |= to == Some(number),
            Trigger::Address(_) => self.touched = true,
            Trigger::Stall(_) => {
                let warp = self.warps.iter_mut().find(|warp| warp.0 == signal as usize);
                if let Some(warp) = warp {
                    (warp.1, warp.2) = (to, now);
                }
            }
        }
    }

    /// Whether it fires in this cycle, all of whose changes are seen.
    pub fn fires(&mut self, now: Cycle, values: &[Option<u64>]) -> bool {
        match self.trigger {
            Trigger::Address(address) if std::mem::take(&mut self.touched) => {
                let seen: Vec<_> = self.sees.iter_ones().collect();
                seen.chunks_exact(2).any(|pair| {
                    values[pair[0]] == Some(address - address % LINE)
                        && values[pair[1]].is_some_and(|sectors| sectors >> (address % LINE / SECTOR) & 1 == 1)
                })
            }
            Trigger::Stall(_) => self.next() <= now,
            _ => std::mem::take(&mut self.fires),
        }
    }
}
