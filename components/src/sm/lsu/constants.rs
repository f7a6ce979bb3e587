//! Constant loads (LDC), and the indexed constant cache (IDC) of the SM.
//!
//! A load takes a pass for each distinct address of the warp. A load whose lines are all present returns after `constant.latency`, and
//! `constant.latency_per_pass` more for each further pass. Absent lines are requested from the L1.5, and the load waits for them. Later loads whose lines are present overtake it.
//!
//! ```text
//!   accept -> look up --hit-----------------> [queue of the sub-core] -> link of results
//!                     --miss--> [waiting] --> fill ^
//! ```
//!
//! Loads with all lines return in order, through a queue for each sub-core. The queue delays no other result.
//!
//! Invariant: each waiting load waits for a line in flight.

use std::collections::VecDeque;

use warpwave_hw::component::Activity;
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

/// Number of returning loads of a sub-core from which on no further load of it is accepted. Assumed.
const MAX_RETURNING: usize = 24;

/// Loads on their way back to one sub-core, oldest first, each with the cycle in which it leaves.
type Returning = VecDeque<(Cycle, Box<WarpInst>)>;

/// The cache, the loads that wait for its lines, and the loads that return.
pub(super) struct Constants {
    lines: ConstantLines,
    waiting: Vec<Waiting>,
    /// Maximum number of waiting loads.
    capacity: usize,
    /// The returning loads of each sub-core.
    returning: Vec<Returning>,
    /// Number of returning loads.
    n_returning: usize,
}

impl Constants {
    /// An empty cache.
    pub(super) fn new(config: &config::Constant, subcores: usize) -> Self {
        let capacity = config.indexed_loads as usize;
        Constants {
            lines: constant_lines::indexed(config),
            waiting: Vec::with_capacity(capacity),
            capacity,
            returning: (0..subcores)
                .map(|_| VecDeque::with_capacity(MAX_RETURNING + capacity))
                .collect(),
            n_returning: 0,
        }
    }

    /// True if one more load of a sub-core can wait or return.
    pub(super) fn has_room(&self, subcore: usize) -> bool {
        self.waiting.len() < self.capacity && self.returning[subcore].len() < MAX_RETURNING
    }

    /// True if no load waits or returns.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.n_returning == 0
    }

    /// Sends the loads that leave now, as far as the links have room.
    #[inline]
    pub(super) fn send_due(&mut self, output: &mut [OutPort<Box<WarpInst>>], now: Cycle) {
        if self.n_returning == 0 {
            return;
        }
        for (queue, port) in self.returning.iter_mut().zip(output) {
            while port.has_room(now)
                && let Some((_, warp_inst)) = queue.pop_front_if(|(due, _)| *due <= now)
            {
                port.send(now, warp_inst);
                self.n_returning -= 1;
            }
        }
    }

    /// When the LSU must tick to send the next load.
    #[inline]
    pub(super) fn activity(&self, output: &[OutPort<Box<WarpInst>>], now: Cycle) -> Activity {
        if self.n_returning == 0 {
            return Activity::Idle;
        }
        let queues = self.returning.iter().zip(output);
        queues.fold(Activity::Idle, |next, (queue, port)| match queue.front() {
            Some(&(due, _)) if due > now => next.or(Activity::Until(due)),
            Some(_) => next.or(port.await_room(now)),
            None => next,
        })
    }

    pub(super) fn invariants(&self, check: &mut Invariants) {
        self.lines.invariants(check);
        check.at_most(
            "waiting constant loads",
            self.waiting.len() as u64,
            self.capacity as u64,
        );
        let most = MAX_RETURNING + self.capacity;
        for (subcore, queue) in self.returning.iter().enumerate() {
            let name = format!("returning constant loads of sub-core {subcore}");
            check.at_most(name, queue.len() as u64, most as u64);
        }
        let returning: usize = self.returning.iter().map(VecDeque::len).sum();
        check.equal("returning constant loads", returning as u64, self.n_returning as u64);
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
        if self.state.constants.waiting.is_empty() {
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

    /// Lets a load leave for its sub-core at its latency, or now if that has passed.
    fn return_constants(&mut self, warp_inst: Box<WarpInst>, passes: u64, now: Cycle) {
        // The first pass is part of the latency.
        let constant = &self.config.constant;
        let latency = u64::from(constant.latency) + passes.saturating_sub(1) * u64::from(constant.latency_per_pass);
        // The latency counts from issue, so the cycles spent so far are part of it.
        let spent = now.since(warp_inst.issued) + RETURN_CYCLES;
        let due = now + latency.saturating_sub(spent);
        let constants = &mut self.state.constants;
        constants.returning[warp_inst.subcore as usize].push_back((due, warp_inst));
        constants.n_returning += 1;
        constants.send_due(&mut self.ports.output, now);
    }
}
