//! Loops that can be unrolled, with their counters and their test.

use super::fold;
use crate::lower::code::{Arg, Bits, BlockId, Code, Op, OpKind, VGuard, VPred, VReg, Wide};
use crate::lower::graph::Graph;
use crate::lower::operands::mirrored;
use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;
use warpwave_isa::inst::{Cmp, Join, Ty};
use warpwave_isa::opcode::Opcode;

/// A loop without inner loops. Its blocks follow each other, and all jumps in it but the last go forward.
pub(super) struct Loop {
    pub header: BlockId,
    /// Block with the only jump back to the header.
    pub latch: BlockId,
    /// Blocks that every iteration runs, by distance from the header.
    pub straight: Vec<bool>,
    /// True if a branch other than the test leaves the loop.
    pub breaks: bool,
    /// True if threads may end in the loop.
    pub ends: bool,
    pub counters: Vec<Counter>,
    /// Test that ends the loop.
    pub test: Option<Test>,
}

/// A register that grows by a constant in each iteration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter {
    pub vreg: VReg,
    /// Number of words: 1 or 2.
    pub words: u8,
    /// Growth per iteration, in two's complement.
    pub step: u64,
    /// Value in the first iteration, if it is a constant.
    pub start: Option<u64>,
}

impl Counter {
    /// Returns a number cut to the width of the counter.
    pub fn cut(&self, value: u64) -> u64 {
        if self.words == 1 { value & 0xffff_ffff } else { value }
    }

    /// Returns the step as a signed number.
    pub fn signed_step(&self) -> i64 {
        if self.words == 1 {
            i64::from(self.step as u32 as i32)
        } else {
            self.step as i64
        }
    }
}

/// The test of a loop: it goes on while `counter + offset` compares with the bound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Test {
    pub block: BlockId,
    /// Index in [`Loop::counters`].
    pub counter: usize,
    /// Distance of the tested value from the counter at the start of the iteration.
    pub offset: u64,
    pub cmp: Cmp,
    pub ty: Ty,
    /// A constant, or a value that the loop does not change.
    pub bound: Arg,
}

impl Loop {
    pub fn blocks(&self) -> RangeInclusive<BlockId> {
        self.header..=self.latch
    }

    pub fn is_straight(&self, block: BlockId) -> bool {
        self.straight[block - self.header]
    }

    /// True if the test is at the end of the body. Otherwise an iteration may end before its last operations.
    pub fn tests_at_end(&self) -> bool {
        self.test.is_some_and(|test| test.block == self.latch)
    }

    /// Returns how often the test goes on, if start and bound are constants. `None` if the counter would wrap around.
    pub fn passes(&self) -> Option<u64> {
        let test = self.test.as_ref()?;
        let counter = &self.counters[test.counter];
        let first = counter.cut(counter.start?.wrapping_add(test.offset));
        let bound = test.bound.known()?;
        if !fold::compare(test.cmp, test.ty, first, bound)? {
            return Some(0);
        }
        let step = i128::from(counter.signed_step());
        let distance = fold::number(test.ty, bound) - fold::number(test.ty, first);
        let passes = match test.cmp {
            Cmp::Lt | Cmp::Gt => (distance + step - step.signum()) / step,
            Cmp::Le | Cmp::Ge => distance / step + 1,
            Cmp::Ne if distance % step == 0 => distance / step,
            Cmp::Eq => 1,
            _ => return None,
        };
        // The last value must be a number of the type. Also excludes a step away from the bound.
        let last = fold::number(test.ty, first) + passes * step;
        let is_kept = fold::number(test.ty, counter.cut(last as u64)) == last;
        let is_last = !fold::compare(test.cmp, test.ty, last as u64, bound)?;
        (passes > 0 && is_kept && is_last).then_some(passes as u64)
    }
}

/// Returns the loops without inner loops that no list keeps, in the order of their blocks.
pub(super) fn innermost(code: &Code, graph: &Graph) -> Vec<Loop> {
    (0..code.blocks.len())
        .filter_map(|latch| {
            let branch = code.blocks[latch].ops.last().filter(|op| op.is(Opcode::Bra))?;
            let header = branch.target.filter(|&header| header <= latch)?;
            // The vendor's assembler keeps a loop with `bra.uni`.
            (!branch.uniform && is_candidate(code, graph, header, latch)).then(|| analysed(code, graph, header, latch))
        })
        .collect()
}

/// True if the blocks from `header` to `latch` are one loop with one entry, whose other jumps go forward.
fn is_candidate(code: &Code, graph: &Graph, header: BlockId, latch: BlockId) -> bool {
    let blocks = header..=latch;
    let is_kept = code.kept_loops.iter().any(|block| blocks.contains(block));
    if header == 0 || is_kept || !graph.is_reachable(header) || !is_in_order(graph, header, latch) {
        return false;
    }
    blocks.clone().all(|block| {
        let mut before = graph.predecessors[block].iter();
        let mut after = graph.successors[block].iter();
        let enters = before.all(|from| match block == header {
            true => *from == latch || !blocks.contains(from),
            false => blocks.contains(from),
        });
        enters && after.all(|&to| !blocks.contains(&to) || to > block || (block, to) == (latch, header))
    })
}

/// True if the blocks that every iteration runs are in front of all later blocks. A block on the way out may go round one of them. So it must
/// not use what is known behind that one.
fn is_in_order(graph: &Graph, header: BlockId, latch: BlockId) -> bool {
    let mut last = header;
    let mut reachable = (header..=latch).filter(|&block| graph.is_reachable(block));
    reachable.all(|block| {
        let follows = graph.dominates(last, block);
        if graph.dominates(block, latch) {
            last = block;
        }
        follows
    })
}

/// Finds the counters and the test of a loop.
fn analysed(code: &Code, graph: &Graph, header: BlockId, latch: BlockId) -> Loop {
    let blocks = header..=latch;
    let mut found = Loop {
        header,
        latch,
        straight: blocks.clone().map(|block| graph.dominates(block, latch)).collect(),
        breaks: false,
        ends: false,
        counters: Vec::new(),
        test: None,
    };
    let scan = Scan::of(code, &found);
    found.counters = scan.counters();
    // A counter that is part of a wider value keeps its place in it.
    found
        .counters
        .retain(|counter| code.groups[counter.vreg.0 as usize] == (counter.vreg, counter.words));
    for counter in &mut found.counters {
        counter.start = start(code, graph, &blocks, counter);
    }
    found.test = scan.tests.iter().find_map(|candidate| scan.test(candidate, &found));
    let test = found.test.map(|test| test.block);
    let leaves = |block: &BlockId| graph.successors[*block].iter().any(|next| !blocks.contains(next));
    found.breaks = blocks.clone().any(|block| Some(block) != test && leaves(&block));
    let ends = |op: &Op| op.is(Opcode::Exit) || op.is(Opcode::Trap);
    found.ends = blocks.clone().any(|block| code.blocks[block].ops.iter().any(ends));
    found
}

/// Returns the constant that a counter holds before the first iteration.
fn start(code: &Code, graph: &Graph, blocks: &RangeInclusive<BlockId>, counter: &Counter) -> Option<u64> {
    let mut outside = graph.predecessors[*blocks.start()]
        .iter()
        .filter(|from| !blocks.contains(from));
    let (Some(&first), None) = (outside.next(), outside.next()) else {
        return None;
    };
    let mut block = first;
    // The bound is for unreachable code.
    for _ in 0..code.blocks.len() {
        let writes = |op: &&Op| {
            op.defs()
                .any(|vreg| (0..counter.words).any(|n| vreg == counter.vreg.offset(n)))
        };
        if let Some(op) = code.blocks[block].ops.iter().rev().find(writes) {
            let is_move = op.is(Opcode::Mov) || op.kind == OpKind::Wide(Wide::Mov);
            let is_whole = op.dst == Some(counter.vreg) && op.shape().dst == counter.words;
            return op.src[0]
                .known()
                .filter(|_| is_move && is_whole && op.guard == VGuard::ALWAYS);
        }
        match graph.predecessors[block][..] {
            [before] => block = before,
            _ => return None,
        }
    }
    None
}

/// A register plus a constant: first register, number of words, constant.
type Sum = (VReg, u8, u64);

/// A comparison of two operands, and the branch that it decides.
#[derive(Clone, Copy)]
struct Compare {
    /// Sums that the operands are, if known.
    sums: [Option<Sum>; 2],
    args: [Arg; 2],
    cmp: Cmp,
    ty: Ty,
}

/// A walk over the blocks that every iteration runs, in order.
#[derive(Default)]
struct Scan {
    /// Registers that are a value of the iteration's start plus a constant, with their number of words.
    sums: HashMap<VReg, Sum>,
    /// Registers written in the loop.
    written: HashSet<VReg>,
    /// Registers written so far in this iteration.
    so_far: HashSet<VReg>,
    /// Registers with a write that does not add a constant to their old value.
    irregular: HashSet<VReg>,
    /// Registers and predicates with a write that some iterations or lanes leave out.
    conditional: (HashSet<VReg>, HashSet<VPred>),
    compares: HashMap<VPred, Compare>,
    /// Blocks that end with a branch out of the loop, with the comparison under which the loop goes on.
    tests: Vec<(BlockId, Compare)>,
}

impl Scan {
    fn of(code: &Code, found: &Loop) -> Scan {
        let mut scan = Scan::default();
        for block in found.blocks() {
            for op in &code.blocks[block].ops {
                scan.written.extend(op.defs());
                if !found.is_straight(block) || op.guard != VGuard::ALWAYS {
                    scan.conditional.0.extend(op.defs());
                    scan.conditional.1.extend(op.pred_defs());
                }
            }
        }
        for block in found.blocks().filter(|&block| found.is_straight(block)) {
            code.blocks[block].ops.iter().for_each(|op| scan.step(op));
            scan.add_test(code, found, block);
        }
        scan
    }

    /// Notes the results of an operation.
    fn step(&mut self, op: &Op) {
        let sum = self.result(op);
        let compare = self.compare(op);
        for vreg in op.defs() {
            self.forget(vreg);
            self.so_far.insert(vreg);
            if sum.is_none_or(|sum| op.dst != Some(sum.0)) {
                self.irregular.insert(vreg);
            }
        }
        if let (Some(sum), Some(vreg)) = (sum, op.dst) {
            self.sums.insert(vreg, sum);
        }
        for pred in op.pred_defs() {
            self.compares.remove(&pred);
        }
        if let Some(compare) = compare {
            let inverse = Compare {
                cmp: inverse(compare.cmp),
                ..compare
            };
            for (pred, compare) in op.pdst.iter().zip([compare, inverse]) {
                self.compares.extend(pred.map(|pred| (pred, compare)));
            }
        }
    }

    /// Forgets the sums with a register.
    fn forget(&mut self, vreg: VReg) {
        self.sums.remove(&vreg);
        let low = VReg(vreg.0.wrapping_sub(1));
        if self.sums.get(&low).is_some_and(|sum| sum.1 == 2) {
            self.sums.remove(&low);
        }
    }

    /// Returns the sum that an operand is.
    fn operand(&self, arg: Arg, words: u8) -> Option<Sum> {
        let vreg = arg.as_vreg().filter(|_| arg.is_plain())?;
        if (0..words).any(|n| self.conditional.0.contains(&vreg.offset(n))) {
            return None;
        }
        let known = self.sums.get(&vreg).filter(|sum| sum.1 == words).copied();
        let is_old = (0..words).all(|n| !self.so_far.contains(&vreg.offset(n)));
        known.or_else(|| is_old.then_some((vreg, words, 0)))
    }

    /// Returns the sum that an operation computes.
    fn result(&self, op: &Op) -> Option<Sum> {
        if op.guard != VGuard::ALWAYS {
            return None;
        }
        let (base, more) = sum_of(op)?;
        let (vreg, words, constant) = self.operand(base, op.shape().dst)?;
        Some((vreg, words, constant.wrapping_add(more)))
    }

    fn compare(&self, op: &Op) -> Option<Compare> {
        let compares = op.is(Opcode::Isetp) && !op.mods.extended || op.kind == OpKind::Wide(Wide::Setp);
        let plain = op.psrc[0] == VGuard::ALWAYS && op.mods.join == Join::And && op.guard == VGuard::ALWAYS;
        let words = op.shape().src[0];
        (compares && plain).then(|| Compare {
            sums: [0, 1].map(|n| self.operand(op.src[n], words)),
            args: [op.src[0], op.src[1]],
            cmp: op.mods.cmp,
            ty: op.mods.ty,
        })
    }

    /// Adds the branch at the end of a block, if it leaves the loop and a comparison decides it.
    fn add_test(&mut self, code: &Code, found: &Loop, block: BlockId) {
        let Some(branch) = code.blocks[block].ops.last().filter(|op| op.is(Opcode::Bra)) else {
            return;
        };
        let (Some(target), Some(pred)) = (branch.target, branch.guard.pred) else {
            return;
        };
        let goes_back = block == found.latch;
        let goes_on = goes_back != branch.guard.negated;
        if !goes_back && found.blocks().contains(&target) {
            return;
        }
        let is_conditional = self.conditional.1.contains(&pred);
        if let Some(&compare) = self.compares.get(&pred).filter(|_| !is_conditional) {
            let cmp = if goes_on { compare.cmp } else { inverse(compare.cmp) };
            self.tests.push((block, Compare { cmp, ..compare }));
        }
    }

    /// Returns the registers that grow by a constant, in ascending order.
    fn counters(&self) -> Vec<Counter> {
        let grows = |(vreg, sum): (&VReg, &Sum)| {
            let &(base, words, step) = sum;
            let is_regular = (0..words).all(|n| {
                let vreg = vreg.offset(n);
                !self.irregular.contains(&vreg) && !self.conditional.0.contains(&vreg)
            });
            let counter = Counter {
                vreg: base,
                words,
                step: 0,
                start: None,
            };
            let step = counter.cut(step);
            (base == *vreg && step != 0 && is_regular).then_some(Counter { step, ..counter })
        };
        let mut counters: Vec<Counter> = self.sums.iter().filter_map(grows).collect();
        counters.sort_by_key(|counter| counter.vreg);
        counters
    }

    /// Returns the test of a candidate, if it compares a counter with a bound that the loop does not change.
    fn test(&self, &(block, compare): &(BlockId, Compare), found: &Loop) -> Option<Test> {
        let mirrored = Compare {
            sums: [compare.sums[1], compare.sums[0]],
            args: [compare.args[1], compare.args[0]],
            cmp: mirrored(compare.cmp),
            ..compare
        };
        [compare, mirrored].into_iter().find_map(|compare| {
            let (vreg, words, offset) = compare.sums[0]?;
            let is_tested = |counter: &Counter| counter.vreg == vreg && counter.words == words;
            let counter = found.counters.iter().position(is_tested)?;
            let bound = compare.args[1];
            let is_fixed = match bound.bits {
                Bits::VReg(vreg) => (0..words).all(|n| !self.written.contains(&vreg.offset(n))),
                Bits::Special(_) => false,
                _ => true,
            };
            (is_fixed && bound.is_plain()).then_some(Test {
                block,
                counter,
                offset: found.counters[counter].cut(offset),
                cmp: compare.cmp,
                ty: compare.ty,
                bound,
            })
        })
    }
}

/// Splits the result of an operation into an operand and a constant, if it is their sum.
pub(super) fn sum_of(op: &Op) -> Option<(Arg, u64)> {
    let [a, b, c, _] = op.src;
    match op.kind {
        OpKind::Machine(Opcode::Mov) | OpKind::Wide(Wide::Mov) => Some((a, 0)),
        OpKind::Machine(Opcode::Iadd3) if c == Arg::ZERO && op.pdst[0].is_none() && !op.mods.extended => sum(a, b),
        OpKind::Wide(Wide::Add) => sum(a, b),
        OpKind::Wide(Wide::Sub) => Some((a, b.known()?.wrapping_neg())),
        _ => None,
    }
}

fn sum(a: Arg, b: Arg) -> Option<(Arg, u64)> {
    match (a.known(), b.known()) {
        (None, Some(more)) => Some((a, more)),
        (Some(more), None) => Some((b, more)),
        _ => None,
    }
}

pub(super) fn inverse(cmp: Cmp) -> Cmp {
    match cmp {
        Cmp::Eq => Cmp::Ne,
        Cmp::Ne => Cmp::Eq,
        Cmp::Lt => Cmp::Ge,
        Cmp::Ge => Cmp::Lt,
        Cmp::Gt => Cmp::Le,
        Cmp::Le => Cmp::Gt,
        Cmp::Num => Cmp::Nan,
        Cmp::Nan => Cmp::Num,
    }
}
