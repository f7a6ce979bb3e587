//! What a block has computed already is not computed again.
//!
//! Takes: folded words. Promises: a second operation that is equal to one before it in its block, on values that do not
//! change, becomes a copy of its result. The copies are left for `fold`.

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

/// What a block has computed so far.
#[derive(Default)]
struct Seen {
    ops: HashMap<Key, Op>,
    /// Of results that are copies: the originals.
    words: HashMap<Word, Word>,
    flags: HashMap<Flag, Flag>,
}

impl Seen {
    fn rename(&mut self, first: &Op, second: &Op) {
        self.words.extend(second.defs().zip(first.defs()));
        self.flags.extend(second.flag_defs().zip(first.flag_defs()));
    }

    /// The operation with originals for the copies that it reads.
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

/// All of an operation but its results; which predicates it writes matters, not where to.
#[derive(PartialEq, Eq)]
struct Key {
    what: What,
    src: [Arg; 4],
    psrc: [When; 2],
    mods: Mods,
    pdst: [bool; 2],
}

impl Hash for Key {
    /// By what tells operations apart most often.
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

/// Whether an operation gives the same wherever it stands, and both its sources and its results are fixed.
fn is_pure(op: &Op, values: &Values, flags: &Flags) -> bool {
    let What::Row(opcode) = op.what else { return false };
    let reads_memory = opcode.info().pipe == Pipe::Lsu && opcode != Opcode::Ldc;
    let fixed_words = op.uses().chain(op.defs()).all(|word| values.is_fixed(word));
    let fixed_flags = op.flag_uses().chain(op.flag_defs()).all(|flag| flags.is_fixed(flag));
    let computes = !op.has_effect() && !reads_memory && opcode != Opcode::Mov && opcode != Opcode::P2r;
    computes && op.guard == When::ALWAYS && fixed_words && fixed_flags
}

/// The results of the first operation moved to those of the second.
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
