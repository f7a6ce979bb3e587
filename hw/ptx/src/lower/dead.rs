//! Dead code elimination. An atomic with an unread old value becomes a reduction.
//!
//! Operations with effects stay, in order.

use super::code::{Code, Op, What};
use warpwave_isa::inst::AtomOp;
use warpwave_isa::opcode::Opcode;

pub(super) fn run(code: &mut Code) {
    let mut reads = Reads::of(code);
    loop {
        let mut removed = false;
        for block in code.blocks.iter_mut().rev() {
            for op in block.ops.iter_mut().rev() {
                reads.drop_unread_results(op);
            }
            block.ops.retain(|op| {
                let keep = op.has_effect() || reads.is_read(op);
                if !keep {
                    reads.count(op, u32::wrapping_sub);
                    removed = true;
                }
                keep
            });
        }
        if !removed {
            return;
        }
    }
}

/// Number of reads of each register and predicate.
struct Reads {
    words: Vec<u32>,
    flags: Vec<u32>,
}

impl Reads {
    fn of(code: &Code) -> Reads {
        let mut reads = Reads {
            words: vec![0; code.groups.len()],
            flags: vec![0; code.n_flags as usize],
        };
        for op in code.ops() {
            reads.count(op, u32::wrapping_add);
        }
        reads
    }

    fn count(&mut self, op: &Op, change: fn(u32, u32) -> u32) {
        for word in op.uses() {
            let n = &mut self.words[word.0 as usize];
            *n = change(*n, 1);
        }
        for flag in op.flag_uses() {
            let n = &mut self.flags[flag.0 as usize];
            *n = change(*n, 1);
        }
    }

    fn is_read(&self, op: &Op) -> bool {
        op.defs().any(|word| self.words[word.0 as usize] > 0)
            || op.flag_defs().any(|flag| self.flags[flag.0 as usize] > 0)
    }

    fn drop_unread_results(&self, op: &mut Op) {
        for flag in &mut op.pdst {
            *flag = flag.filter(|flag| self.flags[flag.0 as usize] > 0);
        }
        let returns_nothing = !matches!(op.mods.atom, AtomOp::Cas | AtomOp::Exch) && !self.is_read(op);
        if op.is(Opcode::Atom) && returns_nothing {
            op.what = What::Row(Opcode::Red);
            op.dst = None;
        }
    }
}
