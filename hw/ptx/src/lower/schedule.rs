//! The order of operations inside a block: long latencies begin early.
//!
//! Takes: final virtual code. Promises: the same operations in each block, every one behind those that it depends on;
//! nothing crosses a branch, a barrier, a fence or a read of the clock, nor leaves its [`LONGEST`] operations. The order follows the longest path of latencies,
//! as compilers for real hardware have it, as long as registers last: PTX itself leaves that to the assembler.
//!
//! The latencies weigh one path against another; they are no promise of the machine's.

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

/// Words that a kernel may want at once without fewer warps fitting on an SM (64 K registers, 2048 threads), less what
/// alignment may cost.
const FREE_WORDS: usize = 28;
/// Words more than the text's own order wants that hiding latency may cost.
const MORE_WORDS: usize = 8;
/// Words fewer than there are registers, for what alignment may cost.
const SPARE_WORDS: usize = 4;
/// Operations that are put into order together: what is farther apart gains nothing, and the time for the search grows with the square.
const LONGEST: usize = 640;
/// Predicates that may be wanted at once.
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

/// What later code reads.
#[derive(Clone)]
struct Wanted {
    words: HashSet<Word>,
    flags: HashSet<Flag>,
}

impl Wanted {
    /// From behind an operation to before it.
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

/// Whether nothing may move across an operation.
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

/// Cycles that a dependent operation waits, roughly.
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

/// The operations of a stretch without fences, in a better order.
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

/// List scheduling: of the operations whose sources are there, the one with the longest path behind it comes next.
struct List {
    /// Dependents of each operation, with the cycles until they may issue.
    edges: Vec<Vec<(usize, u32)>>,
    /// Operations that each still waits for.
    waits: Vec<usize>,
    /// First cycle for each.
    earliest: Vec<u32>,
    /// Cycles from each to the end of the longest path.
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

    /// The next operation; `None` at the end.
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

    /// With no register free: what frees most, or else what comes first in the text.
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

/// How many registers are wanted at the present place of the new order.
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
