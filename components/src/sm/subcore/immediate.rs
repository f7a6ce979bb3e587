//! The immediate constant cache (IMC) of a sub-core: holds the constants that instructions have as operands.
//!
//! The scheduler looks up a warp's next instruction once nothing else blocks it. If its line is absent, the warp stalls as `imc_miss`, and
//! the line is requested from the L1.5. Other warps issue meanwhile. An instruction with words of several lines fetches them one after
//! the other (assumed). Once it has found them all, it issues even if a later fill evicts a line.
//!
//! Invariant: a warp stalls as `imc_miss` exactly while a line of its next instruction is in flight.

use warpwave_hw::invariant::Invariants;
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::time::Cycle;
use warpwave_isa::program::WordSource;

use crate::cache::constant_lines::{self, ConstantLines, Lookup};
use crate::config;
use crate::proto::constant::ConstantLine;
use crate::proto::launch::Grid;
use crate::proto::warp::SlotMask;

/// The links to the L1.5 constant cache.
pub struct Ports {
    /// Lines to fetch.
    pub request: OutPort<ConstantLine>,
    /// The same lines, back.
    pub fill: InPort<ConstantLine>,
}

warpwave_hw::show_ports!(Ports: request, fill);

/// The cache, and its requests.
pub(super) struct Immediate {
    lines: ConstantLines,
    /// Bytes of a line.
    line: u32,
    /// Lines to request. A miss found while an instruction issues is sent in the next cycle, the first in which the warp could issue.
    requests: Vec<ConstantLine>,
    /// Warps that wait for a line, bit i for slot i.
    pub(super) waiting: SlotMask,
}

impl Immediate {
    /// An empty cache for `warps` warp slots.
    pub(super) fn new(config: &config::Constant, warps: usize) -> Self {
        Immediate {
            lines: constant_lines::immediate(config, warps),
            line: config.line,
            requests: Vec::with_capacity(warps),
            waiting: 0,
        }
    }

    /// Looks up the constant operands of the instruction at `pc` for the warp in `slot`. Returns true if the cache holds all.
    pub(super) fn find(&mut self, slot: usize, grid: &Grid, pc: u32) -> bool {
        let decoded = grid.instruction(pc).1;
        let is_absent = |source: &WordSource| match *source {
            WordSource::Const { bank, word } => {
                let line = ConstantLine {
                    grid: grid.id,
                    line: ConstantLine::number(bank, 4 * u32::from(word), self.line),
                };
                let found = self.lines.look_up(line);
                if found == Lookup::Miss {
                    self.requests.push(line);
                }
                found != Lookup::Hit
            }
            _ => false,
        };
        // `any` stops at the first absent line, so one line at a time is requested for a warp.
        let is_waiting = decoded.sources[..decoded.source_words as usize].iter().any(is_absent);
        self.waiting = self.waiting & !(1 << slot) | SlotMask::from(is_waiting) << slot;
        !is_waiting
    }

    /// Takes the lines that have come. Returns the warps that waited for a line.
    pub(super) fn receive(&mut self, ports: &mut Ports, now: Cycle) -> SlotMask {
        let mut filled = false;
        while let Some(line) = ports.fill.recv(now) {
            filled |= self.lines.fill(line);
        }
        // All of them: the scheduler looks their lines up once more, and the ones without a line wait on.
        if filled { self.waiting } else { 0 }
    }

    /// Sends the requests.
    pub(super) fn send(&mut self, ports: &mut Ports, now: Cycle) {
        // The link has room for every line in flight.
        for line in self.requests.drain(..) {
            ports.request.send(now, line);
        }
    }

    /// True if a request has not been sent.
    pub(super) fn has_request(&self) -> bool {
        !self.requests.is_empty()
    }

    pub(super) fn invariants(&self, check: &mut Invariants) {
        self.lines.invariants(check);
        check.at_most(
            "constant requests to send",
            self.requests.len() as u64,
            self.lines.n_pending() as u64,
        );
    }
}
