//! Constant loads (LDC), and the indexed constant cache (IDC) of the SM.
//!
//! A load takes a pass for each distinct address of the warp. A load whose lines are all present returns after `constant.latency`. Absent
//! lines are requested from the L1.5, and the load waits for them. Later loads whose lines are present overtake it.
//!
//! Invariant: each waiting load waits for a line in flight.

use warpwave_hw::invariant::Invariants;
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::time::Cycle;
use warpwave_isa::lane::LaneMask;

use super::{Lsu, RETURN_CYCLES, data};
use crate::cache::constant_lines::{self, ConstantLines, Lookup};
use crate::config;
use crate::proto::constant::ConstantLine;
use crate::proto::warp::WarpInst;

/// The links to the L1.5 constant cache.
pub struct Ports {
    /// Lines to fetch.
    pub request: OutPort<ConstantLine>,
    /// The same lines, back.
    pub fill: InPort<ConstantLine>,
}

warpwave_hw::show_ports!(Ports: request, fill);

/// A load that waits for lines.
struct Waiting {
    warp_inst: Box<WarpInst>,
    passes: u64,
    /// Lanes whose line has not come.
    lanes: LaneMask,
}

/// The cache, and the loads that wait for its lines.
pub(super) struct Constants {
    lines: ConstantLines,
    waiting: Vec<Waiting>,
    /// Maximum number of waiting loads.
    capacity: usize,
}

impl Constants {
    /// An empty cache.
    pub(super) fn new(config: &config::Constant) -> Self {
        let capacity = config.indexed_loads as usize;
        Constants {
            lines: constant_lines::indexed(config),
            waiting: Vec::with_capacity(capacity),
            capacity,
        }
    }

    /// True if one more load can wait.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() < self.capacity
    }

    /// True if no load waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn invariants(&self, check: &mut Invariants) {
        self.lines.invariants(check);
        check.at_most(
            "waiting constant loads",
            self.waiting.len() as u64,
            self.capacity as u64,
        );
        let idle = self.waiting.iter().filter(|load| load.lanes.is_empty());
        check.equal("constant loads that wait for nothing", idle.count() as u64, 0);
        let is_stuck = !self.waiting.is_empty() && self.lines.n_pending() == 0;
        check.equal(
            "constant loads that wait without a line in flight",
            u64::from(is_stuck),
            0,
        );
    }
}

/// The line of a lane's address.
fn line_of(warp_inst: &WarpInst, lane: usize, bytes: u32) -> ConstantLine {
    let address = warp_inst.addresses.get(lane) as u32;
    ConstantLine {
        grid: warp_inst.grid.id,
        line: ConstantLine::number(warp_inst.inst().mods.bank, address, bytes),
    }
}

impl Lsu {
    /// Serves a constant load, or lets it wait for its lines.
    pub(super) fn load_constants(&mut self, mut warp_inst: Box<WarpInst>, now: Cycle) {
        // The values may be read before their lines come: constants do not change during a grid.
        let passes = data::load_constants(&mut warp_inst);
        let stats = &mut self.state.stats;
        stats.constant_loads += 1;
        stats.constant_passes += passes;
        let lanes = self.request_lines(&warp_inst, now);
        if lanes.is_empty() {
            return self.return_constants(warp_inst, passes, now);
        }
        self.state.stats.constant_loads_missed += 1;
        self.state.constants.waiting.push(Waiting {
            warp_inst,
            passes,
            lanes,
        });
    }

    /// Requests the absent lines of a load. Returns its lanes that wait.
    fn request_lines(&mut self, warp_inst: &WarpInst, now: Cycle) -> LaneMask {
        let mut waiting = LaneMask::NONE;
        let Some(ports) = &mut self.ports.constant else {
            return waiting;
        };
        for lane in warp_inst.lanes.iter() {
            let line = line_of(warp_inst, lane, self.config.constant.line);
            match self.state.constants.lines.look_up(line) {
                Lookup::Hit => continue,
                Lookup::Pending => {}
                // The link has room for every line in flight.
                Lookup::Miss => ports.request.send(now, line),
            }
            waiting |= LaneMask(1 << lane);
        }
        waiting
    }

    /// Takes the lines that have come, and returns the loads that have all.
    pub(super) fn receive_constants(&mut self, now: Cycle) {
        // Each line in flight has a load that waits for it, so without loads nothing can arrive.
        if self.state.constants.is_empty() {
            return;
        }
        while let Some(line) = self.ports.constant.as_mut().and_then(|ports| ports.fill.recv(now)) {
            if self.state.constants.lines.fill(line) {
                self.wake_loads(line, now);
            }
        }
    }

    fn wake_loads(&mut self, line: ConstantLine, now: Cycle) {
        let bytes = self.config.constant.line;
        let mut n = 0;
        while n < self.state.constants.waiting.len() {
            let Waiting { warp_inst, lanes, .. } = &mut self.state.constants.waiting[n];
            for lane in lanes.iter() {
                if line_of(warp_inst, lane, bytes) == line {
                    *lanes &= !LaneMask(1 << lane);
                }
            }
            if !lanes.is_empty() {
                n += 1;
                continue;
            }
            // `remove` keeps the order, so the oldest load returns first.
            let load = self.state.constants.waiting.remove(n);
            self.return_constants(load.warp_inst, load.passes, now);
        }
    }

    /// Returns a load to its sub-core, at its latency or later.
    fn return_constants(&mut self, warp_inst: Box<WarpInst>, passes: u64, now: Cycle) {
        // The first pass is part of the latency.
        let latency = (u64::from(self.config.constant.latency) + passes).saturating_sub(1);
        // The latency counts from issue, so the cycles spent so far are part of it.
        let spent = now.since(warp_inst.issued) + RETURN_CYCLES;
        let (extra, subcore) = (latency.saturating_sub(spent), warp_inst.subcore as usize);
        let output = &mut self.ports.output;
        self.state.late.send(output, subcore, now, extra, warp_inst);
    }
}
