//! Instruction scheduling within a block: operations with a long latency start early.
//!
//! Each block keeps its operations, and each operation stays after its dependencies. None crosses a branch, barrier, fence or
//! clock read, or leaves its region of [`MAX_REGION_OPS`] operations. The operation that can start first is next, and of equals
//! the one on the longest latency path. A limit bounds the live registers. Real assemblers do the same, because PTX leaves the
//! order to them.
//!
//! The latencies are weights for comparing paths. They need not match the machine's.

mod depend;

mod pressure;

use super::code::{Bits, Code, Op, OpKind, VPred, VReg};
use super::graph::Graph;
use super::live;
pub(super) use depend::{MemoryUse, dependencies};
use pressure::RegPressure;
use std::collections::HashSet;
use std::iter::{once, repeat_n};
use warpwave_isa::inst::AtomOp;
use warpwave_isa::opcode::{Opcode, Pipe};
use warpwave_isa::reg::Special;
use warpwave_isa::space::Space;

/// Registers of a thread when an SM is full of warps: 64 K registers for 2048 threads give 32, less the alignment reserve.
const FREE_REGISTERS: usize = 28;
/// Registers that latency hiding may take beyond the peak of the text's order.
const EXTRA_REGISTERS: usize = 8;
/// Registers reserved for alignment.
const ALIGNMENT_RESERVE: usize = 4;
/// Maximum operations scheduled together. Larger regions gain nothing, and the search time grows with the square.
const MAX_REGION_OPS: usize = 640;
/// Largest excess of the first order over its limit, in registers. Assumed to cost less than the latency that a lower limit would
/// expose.
const TOLERANCE: usize = 4;
/// Number of register limits tried for a region. With fewer, a region more often keeps the text's order.
const MAX_TRIES: usize = 16;
/// Maximum number of live predicates in a new order. A thread has seven.
pub(super) const FREE_PREDICATES: usize = 6;

/// Reorders the operations of every block, region by region.
pub(super) fn run(code: &mut Code) {
    let graph = Graph::of(code);
    let vregs_out = live::live_after_blocks::<live::GeneralRegs>(code, &graph);
    let preds_out = live::live_after_blocks::<live::Predicates>(code, &graph);
    let kills = live::killing_defs::<live::GeneralRegs>(code, &graph);
    let max_registers = code.max_registers.saturating_sub(ALIGNMENT_RESERVE);
    for (block, body) in code.blocks.iter_mut().enumerate() {
        let mut live_set = LiveSet::of(&vregs_out[block], &preds_out[block]);
        let ops = std::mem::take(&mut body.ops);
        let mut regions: Vec<Vec<Op>> = Vec::new();
        let sections = ops.chunk_by(are_in_one_section);
        // From the last region to the first, as the live set steps back.
        for region in sections.flat_map(|section| section.chunks(MAX_REGION_OPS)).rev() {
            regions.push(schedule_region(region, &live_set, &kills, max_registers));
            for op in region.iter().rev() {
                live_set.step_back(op, &kills);
            }
        }
        body.ops = regions.into_iter().rev().flatten().collect();
    }
}

/// Registers and predicates that later code reads.
#[derive(Clone)]
pub(super) struct LiveSet {
    pub vregs: HashSet<VReg>,
    pub preds: HashSet<VPred>,
}

impl LiveSet {
    /// Creates the set from the numbers of registers and predicates.
    pub fn of(vregs: &[usize], preds: &[usize]) -> LiveSet {
        LiveSet {
            vregs: vregs.iter().map(|&vreg| VReg(vreg as u32)).collect(),
            preds: preds.iter().map(|&pred| VPred(pred as u32)).collect(),
        }
    }

    /// Steps the set from after an operation to before it. `kills` marks registers with a definition that ends the old value, even under
    /// a guard ([`live::killing_defs`]).
    pub fn step_back(&mut self, op: &Op, kills: &[bool]) {
        for vreg in op.defs() {
            if op.guard.pred.is_none() || kills[vreg.0 as usize] {
                self.vregs.remove(&vreg);
            }
        }
        self.vregs.extend(op.uses());
        self.step_preds_back(op);
    }

    /// Steps the predicates alone.
    pub fn step_preds_back(&mut self, op: &Op) {
        if op.guard.pred.is_none() {
            op.pred_defs().for_each(|pred| _ = self.preds.remove(&pred));
        }
        self.preds.extend(op.pred_uses());
    }

    /// Returns the largest number of registers that are live at once in `ops`. The set is live after them.
    pub fn peak(&self, ops: &[Op], kills: &[bool]) -> usize {
        let mut set = self.clone();
        let counts = ops.iter().rev().map(|op| {
            set.step_back(op, kills);
            set.vregs.len()
        });
        counts.max().unwrap_or(0).max(self.vregs.len())
    }
}

/// True if two neighbouring operations are in one section: neither is a fence. Only operations of one section are reordered.
pub(super) fn are_in_one_section(a: &Op, b: &Op) -> bool {
    !is_fence(a) && !is_fence(b)
}

/// True if no operation may move across this one.
pub(super) fn is_fence(op: &Op) -> bool {
    // No 64-bit operation is left after `legalize`.
    let OpKind::Machine(opcode) = op.kind else { return true };
    let reads_clock = matches!(
        op.src[0].bits,
        Bits::Special(Special::ClockLo | Special::ClockHi | Special::GlobaltimerLo | Special::GlobaltimerHi)
    );
    // An arrival at an mbarrier publishes the accesses before it.
    let arrives = matches!(op.mods.atom, AtomOp::Arrive | AtomOp::ArriveDrop);
    opcode.info().pipe == Pipe::Control
        || reads_clock
        || arrives
        || matches!(
            opcode,
            Opcode::Membar
                | Opcode::CctlIvall
                | Opcode::FenceView
                | Opcode::Ldgdepbar
                | Opcode::Syncs
                | Opcode::Ublkcp
                | Opcode::Ublkred
        )
}

/// Returns the approximate latency of an operation in cycles.
fn latency(op: &Op) -> u32 {
    let OpKind::Machine(opcode) = op.kind else { return 1 };
    match (opcode, op.mods.space) {
        (Opcode::Ld, Space::Shared) | (Opcode::Shfl | Opcode::Ldsm, _) => 25,
        (Opcode::Atom, Space::Shared) => 60,
        (Opcode::Ld | Opcode::Atom | Opcode::Tex | Opcode::Suld, _) => 300,
        _ => match opcode.info().pipe {
            Pipe::Sfu => 20,
            Pipe::Tensor | Pipe::Lsu => 25,
            Pipe::Fp64 => 10,
            _ => 5,
        },
    }
}

/// Schedules a region without fences. Keeps the text's order if each new order needs too many registers.
fn schedule_region(region: &[Op], live_set: &LiveSet, kills: &[bool], max_registers: usize) -> Vec<Op> {
    if region.len() < 3 {
        return region.to_vec();
    }
    let text_peak = live_set.peak(region, kills);
    // Up to `FREE_REGISTERS` latency hiding costs no occupancy.
    let max_live = (text_peak + EXTRA_REGISTERS).max(FREE_REGISTERS).min(max_registers);
    // The text's order may exceed the limit of registers, and is kept if nothing better is found.
    let allowed = max_live.max(text_peak);
    let mut list = ListScheduler::of(region, Pressure::of(region, live_set, kills, max_live));
    // The limit bounds each step, but operations started together may need more registers later. A lower limit starts fewer of them.
    for tolerance in once(TOLERANCE).chain(repeat_n(0, MAX_TRIES - 1)) {
        let order = list.clone().order(region);
        let excess = live_set.peak(&order, kills).saturating_sub(allowed);
        if excess <= tolerance {
            return order;
        }
        // A small step keeps most of the latency hidden.
        list.pressure.vregs.lower_limit(excess.div_ceil(4));
    }
    region.to_vec()
}

/// List scheduler: the ready operation with the shortest wait is next, and of equals the one with the longest remaining path.
#[derive(Clone)]
struct ListScheduler {
    /// Dependents of each operation, with the minimum distance in cycles.
    edges: Vec<Vec<(usize, u32)>>,
    /// Number of unscheduled dependencies of each operation.
    pending: Vec<usize>,
    /// Earliest cycle of each operation.
    earliest: Vec<u32>,
    /// Longest path from each operation to the end, in cycles.
    path: Vec<u32>,
    ready: Vec<usize>,
    cycle: u32,
    pressure: Pressure,
}

impl ListScheduler {
    /// Prepares a region: its dependencies, and the longest path from each operation.
    fn of(region: &[Op], pressure: Pressure) -> Self {
        let edges = dependencies(region);
        let n = region.len();
        let mut pending = vec![0; n];
        let mut path = vec![0; n];
        for from in (0..n).rev() {
            for &(to, cycles) in &edges[from] {
                pending[to] += 1;
                path[from] = path[from].max(path[to] + cycles);
            }
            // A result that only later code reads has its latency too.
            path[from] = path[from].max(latency(&region[from]));
        }
        let ready = (0..n).filter(|&op| pending[op] == 0).collect();
        ListScheduler {
            edges,
            pending,
            earliest: vec![0; n],
            path,
            ready,
            cycle: 0,
            pressure,
        }
    }

    /// Returns the operations in their new order.
    fn order(mut self, region: &[Op]) -> Vec<Op> {
        let mut order = Vec::with_capacity(region.len());
        while let Some(next) = self.choose(region) {
            self.take(next);
            order.push(region[next]);
        }
        order
    }

    /// Chooses the next operation; `None` at the end.
    fn choose(&self, region: &[Op]) -> Option<usize> {
        let fits = |&&op: &&usize| self.pressure.fits(op);
        let best = |candidates: &mut dyn Iterator<Item = &usize>| {
            candidates.copied().min_by_key(|&op| {
                let wait = self.earliest[op].saturating_sub(self.cycle);
                // Equal operations keep the order of the text.
                (wait, std::cmp::Reverse(self.path[op]), op)
            })
        };
        let first = best(&mut self.ready.iter())?;
        // A wide load needs several registers at once, and narrow results would take them one by one. So operations that free registers go
        // first.
        if !fits(&&first) && region[first].is(Opcode::Ld) && self.pressure.vregs.change(first) > 1 {
            let frees = |&&op: &&usize| self.pressure.vregs.change(op) <= 0;
            if let Some(op) = best(&mut self.ready.iter().filter(frees).filter(fits)) {
                return Some(op);
            }
        }
        best(&mut self.ready.iter().filter(fits)).or_else(|| self.fallback())
    }

    /// Chooses when no operation fits: the one that adds the fewest registers, and of equals the first in text order.
    fn fallback(&self) -> Option<usize> {
        self.ready
            .iter()
            .copied()
            .min_by_key(|&op| (self.pressure.vregs.change(op).max(0), op))
    }

    /// Issues an operation, and makes its dependents ready where nothing else is pending.
    fn take(&mut self, op: usize) {
        self.ready.retain(|&ready| ready != op);
        // One operation issues per cycle.
        self.cycle = self.cycle.max(self.earliest[op]) + 1;
        for &(to, cycles) in &self.edges[op] {
            // `cycle` is already the cycle after this issue.
            self.earliest[to] = self.earliest[to].max(self.cycle - 1 + cycles);
            self.pending[to] -= 1;
            if self.pending[to] == 0 {
                self.ready.push(to);
            }
        }
        self.pressure.take(op);
    }
}

/// Register pressure at the current point of the new order.
#[derive(Clone)]
struct Pressure {
    vregs: RegPressure,
    preds: RegPressure,
}

impl Pressure {
    fn of(region: &[Op], live_set: &LiveSet, kills: &[bool], max_live: usize) -> Pressure {
        let mut before = live_set.clone();
        region.iter().rev().for_each(|op| before.step_back(op, kills));
        let vregs = region.iter().map(|op| (op.uses().collect(), op.defs().collect()));
        let preds = region
            .iter()
            .map(|op| (op.pred_uses().collect(), op.pred_defs().collect()));
        Pressure {
            vregs: RegPressure::of(vregs, &live_set.vregs, &before.vregs, max_live),
            preds: RegPressure::of(preds, &live_set.preds, &before.preds, FREE_PREDICATES),
        }
    }

    fn fits(&self, op: usize) -> bool {
        self.vregs.fits(op) && self.preds.fits(op)
    }

    fn take(&mut self, op: usize) {
        self.vregs.take(op);
        self.preds.take(op);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::code::Arg;
    use warpwave_isa::space::Access;

    #[test]
    fn no_operation_moves_across_a_fence_of_memory() {
        for opcode in [Opcode::Membar, Opcode::CctlIvall, Opcode::FenceView, Opcode::Bar] {
            assert!(is_fence(&Op::machine(opcode)), "{opcode:?}");
        }
        assert!(!is_fence(&Op::machine(Opcode::St)));
    }

    #[test]
    fn wide_load_takes_free_registers_before_narrow_ones() {
        let access = |opcode, space, base, count| {
            Op::machine(opcode).src(&[Arg::vreg(VReg(base))]).mods(|mods| {
                mods.space = space;
                mods.access = Access {
                    count,
                    ..Access::one(4)
                };
            })
        };
        let wide = access(Opcode::Ld, Space::Shared, 2, 4).dst(VReg(4));
        let narrow = access(Opcode::Ld, Space::Shared, 2, 1).dst(VReg(8));
        let store = access(Opcode::St, Space::Local, 1, 1).src(&[Arg::vreg(VReg(1)), Arg::vreg(VReg(0))]);
        let region = [wide, narrow, store];
        let later = LiveSet::of(&[1, 2, 4, 5, 6, 7, 8], &[]);
        // Three registers are live at the start. With six, the wide load needs the store's value to be dead.
        let pressure = Pressure::of(&region, &later, &[false; 9], 6);
        let order = ListScheduler::of(&region, pressure).order(&region);
        assert_eq!(order, [store, wide, narrow]);
    }
}
