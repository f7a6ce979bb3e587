//! Joining: neighbouring accesses through one register become one wider access.
//!
//! ```text
//! %1 = LD.Shared.32 [%9]            %20:2 = LD.Shared.2x32 [%9]
//! ...                         =>    %1 = MOV %20
//! %2 = LD.Shared.32 [%9+4]          ...
//!                                   %2 = MOV %21
//! ```
//!
//! The wide load stands where the first load was, and the wide store where the last store was. Words are copied at their old
//! places, so a destination keeps its old value up to its copy. `copy_prop` and the allocator remove most of the copies. The
//! pass runs before `if_convert`: a short block is guarded only after its accesses are joined.
//!
//! The accesses are plain loads or stores of 4 or 8 bytes without a guard. They are in one block, with no fence between them, and
//! their base keeps its value. No store to the same memory is between loads, and no other access to it between stores. Together
//! they cover each byte of the wide access once, and its address is proven to be a multiple of its size ([`Alignments`]).
//!
//! ptxas 13.5 follows these rules for sm_80 to sm_100. It joins shared and local memory to 16 bytes, and indexed constants to 8.
//! It never joins loads from global or generic addresses, guarded loads, or elements of 1 or 2 bytes. It joins stores to global
//! memory only through a `.ptr .align 16` parameter itself, which nvcc never writes. So global memory is left out here.
//! ptxas also reads three of four words with one access. Here the fourth word stays unread, for the race check of the reference.

use super::alignment::Alignments;
use super::code::{Arg, BlockId, Code, Op, OpKind, VGuard, VReg};
use super::schedule::{MemoryUse, is_fence};
use std::collections::HashMap;
use warpwave_isa::inst::CacheOp;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::{Access, Space};

/// Maximum size of an access, in bytes.
const MAX_BYTES: u32 = 16;
/// Maximum size of a joined access to constants, in bytes.
const MAX_CONSTANT_BYTES: u32 = 8;

pub(super) fn run(code: &mut Code) {
    let runs: Vec<Vec<Run>> = code.blocks.iter().map(|block| runs(&block.ops)).collect();
    if runs.iter().all(Vec::is_empty) {
        return;
    }
    let alignments = Alignments::of(code);
    for (block, runs) in runs.into_iter().enumerate() {
        let ops = &code.blocks[block].ops;
        let joins: Vec<Join> = runs.iter().flat_map(|run| joins(ops, run, &alignments)).collect();
        if !joins.is_empty() {
            rewrite(code, block, &joins);
        }
    }
}

/// Accesses of one kind through one base, in program order.
struct Run {
    base: Arg,
    kind: Kind,
    /// Indices in the block.
    ops: Vec<usize>,
}

/// Properties that joined accesses share.
#[derive(Clone, Copy, PartialEq)]
struct Kind {
    opcode: Opcode,
    space: Space,
    bank: u8,
    cache: CacheOp,
}

impl Kind {
    /// Returns the kind of an access that may be joined.
    fn of(op: &Op) -> Option<Kind> {
        let OpKind::Machine(opcode) = op.kind else { return None };
        let mods = &op.mods;
        let value = match opcode {
            Opcode::Ld | Opcode::Ldc => op.dst.map(Arg::vreg)?,
            Opcode::St => op.src[1],
            _ => return None,
        };
        let space = matches!(mods.space, Space::Shared | Space::Local | Space::Const);
        // Elements of 1 or 2 bytes take a register each, so a wide access could not deliver them.
        let size = mods.access.bytes >= 4 && mods.access.total() < MAX_BYTES;
        let plain = op.guard == VGuard::ALWAYS && mods.cache != CacheOp::Volatile && value.is_plain();
        (space && size && plain).then_some(Kind {
            opcode,
            space: mods.space,
            bank: mods.bank,
            cache: mods.cache,
        })
    }

    fn max_bytes(self) -> u32 {
        if self.opcode == Opcode::Ldc {
            MAX_CONSTANT_BYTES
        } else {
            MAX_BYTES
        }
    }
}

/// Runs that the next access may continue, and ended runs of two or more accesses.
#[derive(Default)]
struct Runs {
    loads: HashMap<Arg, Vec<Run>>,
    /// At most one run for each space, because any other store ends it.
    stores: Vec<Run>,
    ended: Vec<Run>,
}

impl Runs {
    fn add(&mut self, base: Arg, kind: Kind, index: usize) {
        let runs = match kind.opcode {
            Opcode::St => &mut self.stores,
            _ => self.loads.entry(base).or_default(),
        };
        match runs.iter_mut().find(|run| run.base == base && run.kind == kind) {
            Some(run) => run.ops.push(index),
            None => runs.push(Run {
                base,
                kind,
                ops: vec![index],
            }),
        }
    }

    /// Ends the runs that an access interrupts.
    fn interrupt(&mut self, ops: &[Op], op: &Op, memory: MemoryUse) {
        let kind = Kind::of(op);
        let continues = |run: &Run| {
            let is_apart = |&other: &usize| are_apart(&ops[other], op);
            run.base == op.src[0] && Some(run.kind) == kind && run.ops.iter().all(is_apart)
        };
        // An open run of stores is delayed to its last one. An access in between might have to come first.
        let stores = self
            .stores
            .extract_if(.., |run| memory.includes(run.kind.space) && !continues(run));
        self.ended.extend(stores);
        // An open run of loads moves up to its first one, across this store.
        if memory.writes {
            for runs in self.loads.values_mut() {
                self.ended
                    .extend(runs.extract_if(.., |run| memory.includes(run.kind.space)));
            }
        }
    }

    /// Ends the runs through a register that has changed.
    fn change_base(&mut self, vreg: VReg) {
        let base = Arg::vreg(vreg);
        self.ended.extend(self.loads.remove(&base).into_iter().flatten());
        self.ended.extend(self.stores.extract_if(.., |run| run.base == base));
    }

    fn end_all(&mut self) {
        self.ended.extend(self.loads.drain().flat_map(|(_, runs)| runs));
        self.ended.append(&mut self.stores);
    }
}

/// True if the bytes of two accesses through one base are disjoint.
fn are_apart(a: &Op, b: &Op) -> bool {
    let start = |op: &Op| i64::from(op.mods.offset);
    let end = |op: &Op| start(op) + i64::from(op.mods.access.total());
    end(a) <= start(b) || end(b) <= start(a)
}

/// Returns the runs of two or more accesses in a block.
fn runs(ops: &[Op]) -> Vec<Run> {
    let mut runs = Runs::default();
    for (index, op) in ops.iter().enumerate() {
        if is_fence(op) {
            runs.end_all();
            continue;
        }
        if let Some(memory) = MemoryUse::of(op) {
            runs.interrupt(ops, op, memory);
        }
        if let Some(kind) = Kind::of(op) {
            runs.add(op.src[0], kind, index);
        }
        // After `add`, because a load into its own base belongs to the run that it ends.
        op.defs().for_each(|vreg| runs.change_base(vreg));
    }
    runs.end_all();
    // A single access has nothing to join.
    runs.ended.retain(|run| run.ops.len() > 1);
    runs.ended
}

/// Accesses of a block that become one.
struct Join {
    /// Indices in the block, in order of their addresses.
    ops: Vec<usize>,
    bytes: u32,
}

/// Returns the accesses of a run that become wider ones.
fn joins(ops: &[Op], run: &Run, alignments: &Alignments) -> Vec<Join> {
    let mut by_address = run.ops.clone();
    // The sort is stable, so of equal loads the first stays.
    by_address.sort_by_key(|&index| ops[index].mods.offset);
    by_address.dedup_by_key(|index| ops[*index].mods.offset);
    let mut joins = Vec::new();
    let mut rest = &by_address[..];
    while let [first, others @ ..] = rest {
        let alignment = alignments.of_address(run.base, ops[*first].mods.offset);
        // The widest access first.
        let sizes = [16, 8]
            .into_iter()
            .filter(|&bytes| bytes <= alignment.min(run.kind.max_bytes()));
        let found = sizes
            .filter_map(|bytes| Some((bytes, covering(ops, rest, bytes)?)))
            .next();
        rest = match found {
            Some((bytes, count)) => {
                joins.push(Join {
                    ops: rest[..count].to_vec(),
                    bytes,
                });
                &rest[count..]
            }
            None => others,
        };
    }
    joins
}

/// Returns how many of the first accesses cover `bytes` bytes without a gap; `None` if they do not.
fn covering(ops: &[Op], accesses: &[usize], bytes: u32) -> Option<usize> {
    let start = i64::from(ops[accesses[0]].mods.offset);
    let mut covered = 0;
    for (count, &index) in accesses.iter().enumerate() {
        let mods = &ops[index].mods;
        if covered == bytes {
            return (count > 1).then_some(count);
        }
        if i64::from(mods.offset) != start + i64::from(covered) {
            return None;
        }
        covered += mods.access.total();
    }
    (covered == bytes && accesses.len() > 1).then_some(accesses.len())
}

/// Part of a joined access: the join, and the word in its group.
#[derive(Clone, Copy)]
struct Part {
    join: usize,
    word: u8,
}

/// Replaces the accesses of a block.
fn rewrite(code: &mut Code, block: BlockId, joins: &[Join]) {
    let ops = std::mem::take(&mut code.blocks[block].ops);
    let mut parts: HashMap<usize, Part> = HashMap::new();
    for (join, Join { ops: members, .. }) in joins.iter().enumerate() {
        let mut word = 0;
        for &index in members {
            parts.insert(index, Part { join, word });
            word += ops[index].mods.access.words();
        }
    }
    let mut groups: HashMap<usize, VReg> = HashMap::new();
    let mut out = Vec::with_capacity(ops.len());
    for (index, op) in ops.iter().enumerate() {
        let Some(&Part { join, word }) = parts.get(&index) else {
            out.push(*op);
            continue;
        };
        let Join { ops: members, bytes } = &joins[join];
        let words = (bytes / 4) as u8;
        // First in the block, which need not be the lowest address.
        let is_first = !groups.contains_key(&join);
        let group = *groups.entry(join).or_insert_with(|| code.new_group(words));
        let mut wide = *op;
        // Members are in order of their addresses.
        wide.mods.offset = ops[members[0]].mods.offset;
        wide.mods.access = Access {
            count: words,
            ..Access::one(4)
        };
        let n_words = op.mods.access.words();
        let copies = |to: Arg, from: Arg| (0..n_words).filter_map(move |n| Some((to.part(n).as_vreg()?, from.part(n))));
        let copy = |(to, from): (VReg, Arg)| Op {
            line: op.line,
            ..Op::machine(Opcode::Mov).dst(to).src(&[from])
        };
        let part = Arg::vreg(group.offset(word));
        if op.is(Opcode::St) {
            out.extend(copies(part, op.src[1]).map(copy));
            if members.iter().max() == Some(&index) {
                wide.src[1] = Arg::vreg(group);
                out.push(wide);
            }
        } else {
            if is_first {
                out.push(wide.dst(group));
            }
            let target = op.dst.map_or(Arg::ZERO, Arg::vreg);
            out.extend(copies(target, part).map(copy));
        }
    }
    code.blocks[block].ops = out;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::code::{Block, VPred};
    use crate::lower::dump;
    use warpwave_isa::inst::Scope;

    const BASE: Arg = Arg::vreg(VReg(0));

    /// Returns an access of `bytes` bytes at an offset from a base in shared memory.
    fn access(opcode: Opcode, base: Arg, offset: i32, bytes: u8) -> Op {
        Op::machine(opcode).src(&[base]).mods(|mods| {
            mods.space = Space::Shared;
            mods.offset = offset;
            mods.access = Access::one(bytes);
        })
    }

    fn load(to: u32, offset: i32) -> Op {
        access(Opcode::Ld, BASE, offset, 4).dst(VReg(to))
    }

    fn store(value: u32, offset: i32) -> Op {
        access(Opcode::St, BASE, offset, 4).src(&[BASE, Arg::vreg(VReg(value))])
    }

    /// Returns the code after the pass, with the base a multiple of 16. New registers have numbers from 32.
    fn joined(ops: &[Op]) -> String {
        let mut code = Code::default();
        (0..32).for_each(|_| _ = code.new_group(1));
        let base = Op::machine(Opcode::Shf)
            .dst(VReg(0))
            .src(&[Arg::vreg(VReg(1)), Arg::imm(4)]);
        let ops = [&[base], ops].concat();
        code.blocks.push(Block { ops });
        run(&mut code);
        let text = dump::text(&code);
        let (_, text) = text.split_once("0x4, 0\n").unwrap();
        text.lines().map(|line| format!("{}\n", line.trim())).collect()
    }

    fn is_joined(ops: &[Op]) -> bool {
        joined(ops).contains("2x32") || joined(ops).contains("4x32")
    }

    #[test]
    fn four_words_in_any_order_become_one_load_at_the_first() {
        let sum = Op::machine(Opcode::Fadd)
            .dst(VReg(9))
            .src(&[Arg::vreg(VReg(5)), Arg::vreg(VReg(6))]);
        assert_eq!(
            joined(&[load(5, 24), load(6, 16), sum, load(5, 28), load(7, 20)]),
            "%32:4 = LD.Shared.4x32 [%0+16]\n%5 = MOV %34\n%6 = MOV %32\n%9 = FADD %5, %6\n%5 = MOV %35\n%7 = MOV %33\n"
        );
    }

    #[test]
    fn stores_become_one_at_the_last() {
        let change = Op::machine(Opcode::Mov).dst(VReg(5)).src(&[Arg::imm(7)]);
        let second = access(Opcode::St, BASE, 4, 4).src(&[BASE, Arg::imm(3)]);
        assert_eq!(
            joined(&[store(5, 0), change, second]),
            "%32 = MOV %5\n%5 = MOV 0x7\n%33 = MOV 0x3\nST.Shared.2x32 [%0], %32:2\n"
        );
    }

    #[test]
    fn wide_elements_join_with_narrow_ones() {
        let pair = access(Opcode::Ld, BASE, 0, 8).dst(VReg(10));
        assert_eq!(
            joined(&[pair, load(6, 8), load(7, 12)]),
            "%32:4 = LD.Shared.4x32 [%0]\n%10 = MOV %32\n%11 = MOV %33\n%6 = MOV %34\n%7 = MOV %35\n"
        );
    }

    #[test]
    fn three_words_become_two_loads_and_constants_have_at_most_8_bytes() {
        assert_eq!(
            joined(&[load(5, 0), load(6, 4), load(7, 8)]),
            "%32:2 = LD.Shared.2x32 [%0]\n%5 = MOV %32\n%6 = MOV %33\n%7 = LD.Shared.32 [%0+8]\n"
        );
        let constant = |to, offset| {
            let op = access(Opcode::Ldc, BASE, offset, 4).dst(VReg(to));
            op.mods(|mods| mods.space = Space::Const)
        };
        let four = joined(&[constant(5, 0), constant(6, 4), constant(7, 8), constant(8, 12)]);
        assert_eq!(four.matches("LDC.Const.2x32").count(), 2, "{four}");
    }

    #[test]
    fn accesses_that_need_their_place_or_size_stay() {
        assert!(is_joined(&[load(5, 0), load(6, 4)]));
        let guarded = |op: Op| op.guard(VGuard::pred(VPred(0)));
        let volatile = |op: Op| op.mods(|mods| mods.cache = CacheOp::Volatile);
        let global = |op: Op| op.mods(|mods| mods.space = Space::Global);
        let half = |op: Op| op.mods(|mods| mods.access.bytes = 2);
        for change in [guarded, volatile, global, half] {
            assert!(!is_joined(&[change(load(5, 0)), change(load(6, 4))]));
        }
        // Not a multiple of 8, and a gap.
        assert!(!is_joined(&[load(5, 4), load(6, 8)]));
        assert!(!is_joined(&[load(5, 0), load(6, 8)]));
    }

    #[test]
    fn interruptions_end_a_run() {
        let barrier = Op::machine(Opcode::Bar);
        let fence = Op::machine(Opcode::Membar).mods(|mods| mods.scope = Scope::Cta);
        let step = Op::machine(Opcode::Iadd3).dst(VReg(0)).src(&[BASE, Arg::imm(16)]);
        let through_other = |opcode| access(opcode, Arg::vreg(VReg(2)), 0, 4).dst(VReg(9));
        let atomic = through_other(Opcode::Atom);
        let generic_store = through_other(Opcode::St).mods(|mods| mods.space = Space::Generic);
        for between in [barrier, fence, step, atomic, generic_store, load(0, 64)] {
            assert!(!is_joined(&[load(5, 0), between, load(6, 4)]), "{between:?}");
            assert!(!is_joined(&[store(5, 0), between, store(6, 4)]), "{between:?}");
        }
        // A load interrupts stores alone, and an access to other memory nothing.
        let other_load = through_other(Opcode::Ld);
        assert!(is_joined(&[load(5, 0), other_load, load(6, 4)]));
        assert!(!is_joined(&[store(5, 0), other_load, store(6, 4)]));
        let local = through_other(Opcode::St).mods(|mods| mods.space = Space::Local);
        assert!(is_joined(&[load(5, 0), local, load(6, 4)]));
        assert!(is_joined(&[store(5, 0), local, store(6, 4)]));
    }

    #[test]
    fn only_the_last_of_stores_to_one_word_joins() {
        assert_eq!(
            joined(&[store(5, 0), store(6, 0), store(7, 4)]),
            "ST.Shared.32 [%0], %5\n%32 = MOV %6\n%33 = MOV %7\nST.Shared.2x32 [%0], %32:2\n"
        );
    }

    #[test]
    fn loads_of_one_word_twice_keep_the_second() {
        assert_eq!(
            joined(&[load(5, 0), load(6, 0), load(7, 4)]),
            "%32:2 = LD.Shared.2x32 [%0]\n%5 = MOV %32\n%6 = LD.Shared.32 [%0]\n%7 = MOV %33\n"
        );
    }
}
