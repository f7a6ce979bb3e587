//! Copies of a loop's body, with the counters as constants or as displacements.

use super::locals::Locals;
use super::loops::{Counter, Loop, sum_of};
use crate::lower::addresses::{MAX_DISPLACEMENT, address_slot};
use crate::lower::code::{Arg, Bits, Block, BlockId, Code, Op, OpKind, VGuard, VPred, VReg, Wide};
use crate::lower::fold::{self, Folded};
use std::collections::{HashMap, HashSet};
use warpwave_isa::opcode::Opcode;

/// Values of the counters at the start of a copy.
#[derive(Clone, Copy)]
pub(super) enum Start {
    /// Constants, for counters with a constant start: those of iteration `n`. The others are their registers plus the growth of `k`
    /// iterations.
    Iteration { n: u64, k: u64 },
    /// Their registers plus the growth of `k` iterations.
    Registers { k: u64 },
}

/// What is known at a place in a copy, by the names of the original loop.
#[derive(Default)]
struct Facts {
    words: HashMap<VReg, u32>,
    /// Registers that are a register plus a constant: register, words, constant. All copies have the same value in the register.
    sums: HashMap<VReg, (VReg, u8, u64)>,
    preds: HashMap<VPred, bool>,
}

impl Facts {
    fn forget(&mut self, vreg: VReg) {
        self.words.remove(&vreg);
        self.sums.remove(&vreg);
        let low = VReg(vreg.0.wrapping_sub(1));
        if self.sums.get(&low).is_some_and(|sum| sum.1 == 2) {
            self.sums.remove(&low);
        }
    }

    fn add_words(&mut self, vreg: VReg, words: &[u32]) {
        for (n, &word) in (0..).zip(words) {
            self.words.insert(vreg.offset(n), word);
        }
    }

    fn constant(&self, vreg: VReg, words: u8) -> Option<u64> {
        let word = |n| self.words.get(&vreg.offset(n)).copied().map(u64::from);
        match words {
            1 => word(0),
            2 => Some(word(0)? | word(1)? << 32),
            _ => None,
        }
    }
}

/// Writes copies of a loop's body.
pub(super) struct Copier<'c> {
    pub code: &'c mut Code,
    shape: &'c Loop,
    body: Vec<Block>,
    locals: Locals,
    /// Registers that the loop writes.
    written: HashSet<VReg>,
    /// Counters that are written after the last copy alone. Empty if a branch may leave the loop in between.
    deferred: HashSet<VReg>,
    /// The last line that writes a register. For a counter, that of its increment.
    lines: HashMap<VReg, u32>,
    facts: Facts,
    /// Names of local registers and predicates in the current copy.
    names: HashMap<VReg, VReg>,
    pred_names: HashMap<VPred, VPred>,
    /// Sums computed so far in the current block, by counter and constant.
    temps: HashMap<(VReg, u64), VReg>,
    /// The copies. A target below `n_blocks` is a block of the code, and any other one the block of this list behind that number.
    pub blocks: Vec<Block>,
    n_blocks: usize,
}

impl<'c> Copier<'c> {
    pub fn new(code: &'c mut Code, shape: &'c Loop, locals: Locals) -> Self {
        let counters = shape.counters.iter().map(|counter| counter.vreg);
        let ops = || code.blocks[shape.blocks()].iter().flat_map(|block| &block.ops);
        Copier {
            written: ops().flat_map(Op::defs).collect(),
            lines: ops().filter_map(|op| Some((op.dst?, op.line))).collect(),
            body: code.blocks[shape.blocks()].to_vec(),
            n_blocks: code.blocks.len(),
            code,
            shape,
            locals,
            deferred: counters.filter(|_| !shape.breaks).collect(),
            facts: Facts::default(),
            names: HashMap::new(),
            pred_names: HashMap::new(),
            temps: HashMap::new(),
            blocks: Vec::new(),
        }
    }

    /// Returns the target number of a block of the copies.
    pub fn label(&self, index: usize) -> BlockId {
        self.n_blocks + index
    }

    /// Appends a copy of the body. The test goes on without a branch, or leaves the loop if `exits`.
    pub fn copy(&mut self, start: Start, exits: bool) {
        self.begin(start);
        let first = self.blocks.len();
        let body = std::mem::take(&mut self.body);
        for (n, block) in body.iter().enumerate() {
            self.start_block();
            self.temps.clear();
            for op in &block.ops {
                match op.is(Opcode::Bra) {
                    true => self.branch(n, op, first, exits),
                    false => self.op(op),
                }
            }
            if !self.shape.straight[n] {
                // Later blocks run without this one too.
                block.ops.iter().for_each(|op| self.forget_results(op));
            }
        }
        self.body = body;
    }

    /// Appends the loop as it is.
    pub fn copy_loop(&mut self) {
        let first = self.blocks.len();
        for mut block in self.body.clone() {
            for target in block.ops.iter_mut().filter_map(|op| op.target.as_mut()) {
                if self.shape.blocks().contains(target) {
                    *target = self.n_blocks + first + *target - self.shape.header;
                }
            }
            self.blocks.push(block);
        }
    }

    /// Appends an operation to the last block.
    pub fn push(&mut self, op: Op) {
        self.blocks.last_mut().expect("a block was started").ops.push(op);
    }

    pub fn start_block(&mut self) {
        self.blocks.push(Block::default());
    }

    /// Appends a branch to the last block.
    pub fn push_branch(&mut self, target: BlockId, guard: VGuard, line: u32) {
        self.push(jump(target, line).guard(guard));
    }

    /// Writes the counters after the copies. If the loop is over, only those with a later reader.
    pub fn finish(&mut self, goes_on: bool, line: u32) {
        for counter in &self.shape.counters {
            let is_read = goes_on || self.locals.read_after.contains(&counter.vreg);
            if !is_read || !self.deferred.contains(&counter.vreg) {
                continue;
            }
            let known = self.facts.constant(counter.vreg, counter.words);
            let sum = self.facts.sums.get(&counter.vreg).map(|sum| sum.2);
            let value = match (known, sum) {
                (Some(value), _) => constant(counter.words, value),
                (None, Some(0) | None) => continue,
                (None, Some(more)) => added(counter.words, Arg::vreg(counter.vreg), more),
            };
            self.push(Op {
                line,
                ..value.dst(counter.vreg)
            });
        }
    }

    /// Starts a copy: new names for local registers, and the values of the counters.
    fn begin(&mut self, start: Start) {
        self.facts = Facts::default();
        for &(vreg, words) in &self.locals.groups {
            let new = self.code.new_group(words);
            self.names.extend((0..words).map(|n| (vreg.offset(n), new.offset(n))));
        }
        for &pred in &self.locals.preds {
            self.pred_names.insert(pred, self.code.new_pred());
        }
        for counter in &self.shape.counters {
            match start {
                Start::Iteration { n, .. } if counter.start.is_some() => {
                    let value = value_in(counter, n);
                    let words = [value as u32, (value >> 32) as u32];
                    self.facts.add_words(counter.vreg, &words[..counter.words as usize]);
                }
                Start::Iteration { k, .. } | Start::Registers { k } if self.deferred.contains(&counter.vreg) => {
                    let more = counter.cut(counter.step.wrapping_mul(k));
                    self.facts
                        .sums
                        .insert(counter.vreg, (counter.vreg, counter.words, more));
                }
                _ => {}
            }
        }
    }

    /// Copies the branch at the end of block `n` of the body. The copy begins at block `first`.
    fn branch(&mut self, n: usize, op: &Op, first: usize, exits: bool) {
        let shape = self.shape;
        let block = shape.header + n;
        let target = op.target.expect("a branch has a target");
        let after = shape.latch + 1;
        if shape.test.is_some_and(|test| test.block == block) {
            if exits {
                self.finish(false, op.line);
                let target = if block == shape.latch { after } else { target };
                self.push(jump(target, op.line));
            }
            return;
        }
        let guard = self.guard(op.guard);
        let (guard, target) = match target {
            // The next copy follows.
            _ if target == shape.header => (guard.negated(), after),
            _ if shape.blocks().contains(&target) => (guard, self.n_blocks + first + target - shape.header),
            _ => (guard, target),
        };
        if guard != VGuard::NEVER {
            self.push(Op {
                guard,
                target: Some(target),
                ..*op
            });
        }
    }

    /// Copies an operation.
    fn op(&mut self, original: &Op) {
        let mut op = *original;
        op.guard = self.guard(op.guard);
        if op.guard == VGuard::NEVER {
            return;
        }
        self.insert_constants(&mut op);
        op = fold::simplified(op);
        let folded = fold::evaluate(&op);
        let sum = self.sum(&op);
        if original.dst.is_some_and(|vreg| self.deferred.contains(&vreg)) {
            self.learn(&op, folded.as_ref(), sum);
            return;
        }
        let words = op.shape().dst;
        let plain = op.pdst == [None; 2];
        let new = match (&folded, sum) {
            (Some(folded), _) if plain && matches!(words, 1 | 2) => constant(words, value_of(&folded.words)),
            (None, Some((base, _, more))) => added(words, Arg::vreg(base), more),
            _ => self.with_names(op),
        };
        let mut new = Op {
            guard: op.guard,
            line: op.line,
            ..new
        };
        new.dst = op.dst.map(|vreg| self.name(vreg));
        new.pdst = op.pdst.map(|pred| pred.map(|pred| self.pred_name(pred)));
        self.push(new);
        self.learn(&op, folded.as_ref(), sum);
    }

    /// Replaces operands and predicates with known values.
    fn insert_constants(&self, op: &mut Op) {
        let shape = op.shape();
        for (arg, words) in op.src.iter_mut().zip(shape.src) {
            let known = arg.as_vreg().filter(|_| words > 0);
            if let Some(value) = known.and_then(|vreg| self.facts.constant(vreg, words)) {
                arg.bits = Arg::imm(value).bits;
            }
        }
        for guard in &mut op.psrc[..shape.psrc] {
            let value = guard.pred.and_then(|pred| self.facts.preds.get(&pred));
            if let Some(&value) = value {
                *guard = if value == guard.negated {
                    VGuard::NEVER
                } else {
                    VGuard::ALWAYS
                };
            }
        }
    }

    /// Returns a guard by its name in this copy; `ALWAYS` or `NEVER` if its value is known.
    fn guard(&self, guard: VGuard) -> VGuard {
        match guard.pred.map(|pred| (pred, self.facts.preds.get(&pred))) {
            Some((_, Some(&value))) if value == guard.negated => VGuard::NEVER,
            Some((_, Some(_))) => VGuard::ALWAYS,
            Some((pred, None)) => VGuard {
                pred: Some(self.pred_name(pred)),
                ..guard
            },
            None => guard,
        }
    }

    fn name(&self, vreg: VReg) -> VReg {
        self.names.get(&vreg).copied().unwrap_or(vreg)
    }

    fn pred_name(&self, pred: VPred) -> VPred {
        self.pred_names.get(&pred).copied().unwrap_or(pred)
    }

    /// Returns a register and a constant, if an operation computes their sum. The register is a counter, or the loop never writes it.
    fn sum(&self, op: &Op) -> Option<(VReg, u8, u64)> {
        if op.guard != VGuard::ALWAYS {
            return None;
        }
        let (arg, more) = sum_of(op)?;
        let vreg = arg.as_vreg().filter(|_| arg.is_plain())?;
        let unchanged = (vreg, op.shape().dst, 0);
        let is_unchanged = (0..unchanged.1).all(|n| !self.written.contains(&vreg.offset(n)));
        let known = self.facts.sums.get(&vreg).copied();
        let (base, words, constant) = known.or(is_unchanged.then_some(unchanged))?;
        let sum = constant.wrapping_add(more);
        let sum = if words == 1 { sum & 0xffff_ffff } else { sum };
        (words == op.shape().dst).then_some((base, words, sum))
    }

    /// Notes the results of an operation.
    fn learn(&mut self, op: &Op, folded: Option<&Folded>, sum: Option<(VReg, u8, u64)>) {
        self.forget_results(op);
        if op.guard != VGuard::ALWAYS {
            return;
        }
        if let Some(folded) = folded {
            if let Some(vreg) = op.dst {
                self.facts.add_words(vreg, &folded.words);
            }
            for (pred, value) in op.pdst.iter().zip(folded.preds) {
                self.facts.preds.extend(pred.map(|pred| (pred, value)));
            }
        } else if let (Some(vreg), Some(sum)) = (op.dst, sum) {
            self.facts.sums.insert(vreg, sum);
        }
    }

    fn forget_results(&mut self, op: &Op) {
        op.defs().for_each(|vreg| self.facts.forget(vreg));
        op.pred_defs().for_each(|pred| _ = self.facts.preds.remove(&pred));
    }

    /// Returns the operation with the registers of this copy as sources.
    fn with_names(&mut self, mut op: Op) -> Op {
        let shape = op.shape();
        for slot in 0..4 {
            if let Some(vreg) = op.src[slot].as_vreg().filter(|_| shape.src[slot] > 0) {
                self.insert_sum(&mut op, slot, vreg, shape.src[slot]);
            }
        }
        for guard in &mut op.psrc[..shape.psrc] {
            guard.pred = guard.pred.map(|pred| self.pred_name(pred));
        }
        op
    }

    /// Replaces an operand that is a counter plus a constant, or renames it.
    fn insert_sum(&mut self, op: &mut Op, slot: usize, vreg: VReg, words: u8) {
        let (first, _) = self.code.groups[vreg.0 as usize];
        let sum = self.facts.sums.get(&first).copied();
        let whole = sum.filter(|sum| first == vreg && sum.1 == words);
        if let Some((base, _, more)) = whole
            && add_displacement(op, slot, base, more)
        {
            return;
        }
        let Some((base, of_counter, more)) = sum.filter(|_| self.deferred.contains(&first)) else {
            op.src[slot].bits = Bits::VReg(self.name(vreg));
            return;
        };
        if more == 0 {
            return;
        }
        let plain = op.is(Opcode::Iadd3)
            && op.pdst[0].is_none()
            && !op.mods.extended
            && op.src[slot].is_plain()
            && of_counter == 1;
        let free = op.src[..3].iter().position(|&arg| arg == Arg::ZERO).filter(|_| plain);
        if let Some(free) = free {
            op.src[free] = Arg::imm(more);
            return;
        }
        let line = self.lines.get(&first).copied().unwrap_or(op.line);
        let value = self.materialized(base, of_counter, more, line);
        op.src[slot].bits = Bits::VReg(value.offset((vreg.0 - first.0) as u8));
    }

    /// Returns a register with a counter plus a constant.
    fn materialized(&mut self, base: VReg, words: u8, more: u64, line: u32) -> VReg {
        if let Some(&found) = self.temps.get(&(base, more)) {
            return found;
        }
        let new = self.code.new_group(words);
        self.push(Op {
            line,
            ..added(words, Arg::vreg(base), more).dst(new)
        });
        self.temps.insert((base, more), new);
        new
    }
}

/// Makes a counter the base of an access, and adds the constant to its displacement. False if the operand is no address, or if the
/// displacement does not fit.
fn add_displacement(op: &mut Op, slot: usize, base: VReg, more: u64) -> bool {
    let words = op.shape().src[slot];
    let more = if words == 1 {
        i64::from(more as u32 as i32)
    } else {
        more as i64
    };
    let total = i64::from(op.mods.offset).wrapping_add(more);
    let fits = (-MAX_DISPLACEMENT..MAX_DISPLACEMENT).contains(&total);
    if address_slot(op) != Some(slot) || !op.src[slot].is_plain() || !fits {
        return false;
    }
    op.src[slot] = Arg::vreg(base);
    op.mods.offset = total as i32;
    true
}

/// Returns the value of a counter at the start of iteration `n`.
fn value_in(counter: &Counter, n: u64) -> u64 {
    let start = counter.start.unwrap_or(0);
    counter.cut(start.wrapping_add(counter.step.wrapping_mul(n)))
}

fn value_of(words: &[u32]) -> u64 {
    words.iter().rev().fold(0, |value, &word| value << 32 | u64::from(word))
}

/// Creates a move of a constant to one or two words.
fn constant(words: u8, value: u64) -> Op {
    move_of(words).src(&[Arg::imm(value)])
}

fn move_of(words: u8) -> Op {
    if words == 2 {
        Op::wide(Wide::Mov)
    } else {
        Op::machine(Opcode::Mov)
    }
}

/// Creates the sum of a value of one or two words and a constant.
pub(super) fn added(words: u8, base: Arg, more: u64) -> Op {
    match (words, more) {
        (_, 0) => move_of(words).src(&[base]),
        (2, _) => Op::wide(Wide::Add).src(&[base, Arg::imm(more)]),
        _ => Op::machine(Opcode::Iadd3).src(&[base, Arg::imm(more & 0xffff_ffff)]),
    }
}

/// Creates a jump.
fn jump(target: BlockId, line: u32) -> Op {
    let mut op = Op::machine(Opcode::Bra);
    op.target = Some(target);
    op.line = line;
    op
}

/// Creates a comparison of two values of one or two words.
pub(super) fn comparison(words: u8) -> Op {
    Op::new(if words == 2 {
        OpKind::Wide(Wide::Setp)
    } else {
        OpKind::Machine(Opcode::Isetp)
    })
}
