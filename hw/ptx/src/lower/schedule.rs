//! Instruction scheduling within a block: operations with a long latency start early.
//!
//! Each block keeps its operations, and each operation stays after its dependencies. None crosses a branch, barrier, fence or
//! clock read, or leaves its region of [`LONGEST`] operations. The order follows the longest latency path while registers last.
//! Real assemblers do the same, because PTX leaves the order to them.
//!
//! The latencies are weights for comparing paths. They need not match the machine's.

mod depend;

mod tally;

use super::code::{Bits, Code, Flag, Op, What, Word};
use super::graph::Graph;
use super::live;
use depend::dependencies;
use std::collections::HashSet;
use tally::Tally;
use warpwave_isa::inst::AtomOp;
use warpwave_isa::opcode::{Opcode, Pipe};
use warpwave_isa::reg::Special;
use warpwave_isa::space::Space;

/// Registers that leave an SM full of warps (64 K registers, 2048 threads), minus an alignment reserve.
const FREE_WORDS: usize = 28;
/// Registers above the need of the text's order that latency hiding may cost.
const MORE_WORDS: usize = 8;
/// Registers reserved for alignment.
const SPARE_WORDS: usize = 4;
/// Maximum operations scheduled together. Larger regions gain nothing, and the search time grows with the square.
const LONGEST: usize = 640;
/// Maximum number of live predicates.
const FREE_FLAGS: usize = 6;

pub(super) fn run(code: &mut Code) {
    let graph = Graph::of(code);
    let words_out = live::behind_blocks::<live::Words>(code, &graph);
    let flags_out = live::behind_blocks::<live::Flags>(code, &graph);
    let fresh = live::fresh_definitions::<live::Words>(code, &graph);
    let most = code.most_registers.saturating_sub(SPARE_WORDS);
    for (block, body) in code.blocks.iter_mut().enumerate() {
        let mut wanted = Wanted {
            words: words_out[block].iter().map(|&word| Word(word as u32)).collect(),
            flags: flags_out[block].iter().map(|&flag| Flag(flag as u32)).collect(),
        };
        let ops = std::mem::take(&mut body.ops);
        let mut regions: Vec<Vec<Op>> = Vec::new();
        let stretches = ops.chunk_by(|a, b| !is_fence(a) && !is_fence(b));
        for region in stretches.flat_map(|stretch| stretch.chunks(LONGEST)).rev() {
            regions.push(ordered(region, &wanted, &fresh, most));
            for op in region.iter().rev() {
                wanted.before(op, &fresh);
            }
        }
        body.ops = regions.into_iter().rev().flatten().collect();
    }
}

/// Registers and predicates that later code reads.
#[derive(Clone)]
struct Wanted {
    words: HashSet<Word>,
    flags: HashSet<Flag>,
}

impl Wanted {
    /// Steps the set from after an operation to before it.
    fn before(&mut self, op: &Op, fresh: &[bool]) {
        for word in op.defs() {
            if op.guard.flag.is_none() || fresh[word.0 as usize] {
                self.words.remove(&word);
            }
        }
        if op.guard.flag.is_none() {
            op.flag_defs().for_each(|flag| _ = self.flags.remove(&flag));
        }
        self.words.extend(op.uses());
        self.flags.extend(op.flag_uses());
    }
}

/// True if no operation may move across this one.
fn is_fence(op: &Op) -> bool {
    let What::Row(opcode) = op.what else { return true };
    let reads_clock = matches!(
        op.src[0].bits,
        Bits::Special(Special::ClockLo | Special::ClockHi | Special::GlobaltimerLo | Special::GlobaltimerHi)
    );
    let arrives = matches!(op.mods.atom, AtomOp::Arrive | AtomOp::ArriveDrop);
    opcode.info().pipe == Pipe::Control
        || reads_clock
        || arrives
        || matches!(
            opcode,
            Opcode::Membar | Opcode::CctlIvall | Opcode::Ldgdepbar | Opcode::Syncs | Opcode::Ublkcp
        )
}

/// Returns the approximate latency of an operation in cycles.
fn latency(op: &Op) -> u32 {
    let What::Row(opcode) = op.what else { return 1 };
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

/// Schedules a region without fences.
fn ordered(region: &[Op], wanted: &Wanted, fresh: &[bool], most: usize) -> Vec<Op> {
    if region.len() < 3 {
        return region.to_vec();
    }
    let mut list = List::of(region, Pressure::of(region, wanted, fresh, most));
    let mut order = Vec::with_capacity(region.len());
    while let Some(next) = list.choose() {
        list.take(next);
        order.push(region[next]);
    }
    order
}

/// List scheduler: among ready operations, the one with the longest remaining path is next.
struct List {
    /// Dependents of each operation, with the minimum distance in cycles.
    edges: Vec<Vec<(usize, u32)>>,
    /// Number of unscheduled dependencies of each operation.
    waits: Vec<usize>,
    /// Earliest cycle of each operation.
    earliest: Vec<u32>,
    /// Longest path from each operation to the end, in cycles.
    path: Vec<u32>,
    ready: Vec<usize>,
    cycle: u32,
    pressure: Pressure,
}

impl List {
    fn of(region: &[Op], pressure: Pressure) -> Self {
        let edges = dependencies(region);
        let n = region.len();
        let mut waits = vec![0; n];
        let mut path = vec![0; n];
        for from in (0..n).rev() {
            for &(to, cycles) in &edges[from] {
                waits[to] += 1;
                path[from] = path[from].max(path[to] + cycles);
            }
            path[from] = path[from].max(latency(&region[from]));
        }
        let ready = (0..n).filter(|&op| waits[op] == 0).collect();
        List {
            edges,
            waits,
            earliest: vec![0; n],
            path,
            ready,
            cycle: 0,
            pressure,
        }
    }

    /// Chooses the next operation; `None` at the end.
    fn choose(&self) -> Option<usize> {
        let fits = |&&op: &&usize| self.pressure.fits(op);
        let best = |candidates: &mut dyn Iterator<Item = &usize>| {
            candidates.copied().min_by_key(|&op| {
                let wait = self.earliest[op].saturating_sub(self.cycle);
                (wait, std::cmp::Reverse(self.path[op]), op)
            })
        };
        best(&mut self.ready.iter().filter(fits)).or_else(|| self.relief())
    }

    /// Chooses for a full register file: the operation that frees most, or else the first in text order.
    fn relief(&self) -> Option<usize> {
        self.ready
            .iter()
            .copied()
            .min_by_key(|&op| (self.pressure.words.change(op).max(0), op))
    }

    fn take(&mut self, op: usize) {
        self.ready.retain(|&ready| ready != op);
        self.cycle = self.cycle.max(self.earliest[op]) + 1;
        for &(to, cycles) in &self.edges[op] {
            self.earliest[to] = self.earliest[to].max(self.cycle - 1 + cycles);
            self.waits[to] -= 1;
            if self.waits[to] == 0 {
                self.ready.push(to);
            }
        }
        self.pressure.take(op);
    }
}

/// Register pressure at the current point of the new order.
struct Pressure {
    words: Tally,
    flags: Tally,
}

impl Pressure {
    fn of(region: &[Op], wanted: &Wanted, fresh: &[bool], most: usize) -> Pressure {
        let mut before = wanted.clone();
        let mut peak = before.words.len();
        for op in region.iter().rev() {
            before.before(op, fresh);
            peak = peak.max(before.words.len());
        }
        let most_words = (peak + MORE_WORDS).max(FREE_WORDS).min(most);
        let words = region.iter().map(|op| (op.uses().collect(), op.defs().collect()));
        let flags = region
            .iter()
            .map(|op| (op.flag_uses().collect(), op.flag_defs().collect()));
        Pressure {
            words: Tally::of(words, &wanted.words, &before.words, most_words),
            flags: Tally::of(flags, &wanted.flags, &before.flags, FREE_FLAGS),
        }
    }

    fn fits(&self, op: usize) -> bool {
        self.words.fits(op) && self.flags.fits(op)
    }

    fn take(&mut self, op: usize) {
        self.words.take(op);
        self.flags.take(op);
    }
}
