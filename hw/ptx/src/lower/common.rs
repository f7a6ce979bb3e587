//! Common subexpression elimination within a block.
//!
//! An operation equal to an earlier one in its block, on fixed values, becomes a copy of the earlier result. The copies are left
//! for `fold`.

use super::code::{Arg, Bits, Code, Flag, Op, What, When, Word};
use super::fold::Flags;
use super::graph::{Graph, Values};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use warpwave_isa::inst::Mods;
use warpwave_isa::opcode::{Opcode, Pipe};

pub(super) fn run(code: &mut Code) {
    let graph = Graph::of(code);
    let values = Values::of(code, &graph);
    let flags = Flags::of(code, &graph);
    for block in &mut code.blocks {
        let mut seen = Seen::default();
        let mut out = Vec::with_capacity(block.ops.len());
        for op in block.ops.drain(..) {
            let op = seen.with_originals(op);
            if !is_pure(&op, &values, &flags) {
                out.push(op);
            } else if let Some(first) = seen.ops.get(&key(&op)).copied() {
                seen.rename(&first, &op);
                out.extend(copies(&first, &op));
            } else {
                seen.ops.insert(key(&op), op);
                out.push(op);
            }
        }
        block.ops = out;
    }
}

/// Operations and copies of a block so far.
#[derive(Default)]
struct Seen {
    ops: HashMap<Key, Op>,
    /// Originals of registers that became copies.
    words: HashMap<Word, Word>,
    flags: HashMap<Flag, Flag>,
}

impl Seen {
    fn rename(&mut self, first: &Op, second: &Op) {
        self.words.extend(second.defs().zip(first.defs()));
        self.flags.extend(second.flag_defs().zip(first.flag_defs()));
    }

    /// Returns the operation with copies replaced by their originals.
    fn with_originals(&self, mut op: Op) -> Op {
        let shape = op.shape();
        for (arg, words) in op.src.iter_mut().zip(shape.src) {
            let Some(word) = arg.as_word() else { continue };
            let original = |n| self.words.get(&word.offset(n)).copied();
            let Some(first) = original(0) else { continue };
            if (1..words).all(|n| original(n) == Some(first.offset(n))) {
                arg.bits = Bits::Word(first);
            }
        }
        for when in &mut op.psrc[..shape.psrc] {
            when.flag = when.flag.map(|flag| self.flags.get(&flag).copied().unwrap_or(flag));
        }
        op
    }
}

/// An operation without its results. Only the presence of each predicate result counts.
#[derive(PartialEq, Eq)]
struct Key {
    what: What,
    src: [Arg; 4],
    psrc: [When; 2],
    mods: Mods,
    pdst: [bool; 2],
}

impl Hash for Key {
    /// Hashes the fields that differ most often.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.what, self.src[0].bits, self.src[1].bits).hash(state);
    }
}

fn key(op: &Op) -> Key {
    Key {
        what: op.what,
        src: op.src,
        psrc: op.psrc,
        mods: op.mods,
        pdst: op.pdst.map(|flag| flag.is_some()),
    }
}

/// True if an operation gives the same result at every position, and its sources and results are fixed.
fn is_pure(op: &Op, values: &Values, flags: &Flags) -> bool {
    let What::Row(opcode) = op.what else { return false };
    let reads_memory = opcode.info().pipe == Pipe::Lsu && opcode != Opcode::Ldc;
    let fixed_words = op.uses().chain(op.defs()).all(|word| values.is_fixed(word));
    let fixed_flags = op.flag_uses().chain(op.flag_defs()).all(|flag| flags.is_fixed(flag));
    let computes = !op.has_effect() && !reads_memory && opcode != Opcode::Mov && opcode != Opcode::P2r;
    computes && op.guard == When::ALWAYS && fixed_words && fixed_flags
}

/// Returns copies from the results of `first` to the results of `second`.
fn copies(first: &Op, second: &Op) -> Vec<Op> {
    let line = |op: Op| Op {
        line: second.line,
        ..op
    };
    let words = first
        .defs()
        .zip(second.defs())
        .map(|(from, to)| line(Op::row(Opcode::Mov).dst(to).src(&[Arg::word(from)])));
    let flags = first.flag_defs().zip(second.flag_defs()).map(|(from, to)| {
        line(
            Op::row(Opcode::Plop3)
                .psrc(When::flag(from))
                .flags(to)
                .mods(|mods| mods.lut = 0b1100),
        )
    });
    words.chain(flags).collect()
}
