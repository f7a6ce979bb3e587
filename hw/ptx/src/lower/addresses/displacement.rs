//! Moves constants through sums of addresses, down to the displacements of the accesses.
//!
//! ```text
//!   p = q + 32                              x = IMAD.WIDE lane, 4, q
//!   x = IMAD.WIDE lane, 4, p      becomes   LD [x + 32]
//!   LD [x]
//! ```
//!
//! Compilers keep one address per tile, and a matrix load adds the lane's part to each. Without the constants all sums are equal, and
//! `cse` leaves one.
//! A constant moves only if every reader of the sum is an access, or a sum with such readers.

use super::{Context, MAX_DISPLACEMENT, address_slot};
use crate::lower::code::{Arg, BlockId, Code, Op, OpKind, VGuard, VReg, Wide};
use crate::lower::graph::indexed_ops;
use warpwave_isa::opcode::Opcode;

/// Longest chain of sums between a constant and an access.
const MAX_SUMS: u32 = 8;

/// Place of an operation: its block, and its index in it.
type Place = (BlockId, usize);

pub(super) fn run(code: &mut Code, context: &Context) {
    let readers = Readers::of(code, context);
    for block in 0..code.blocks.len() {
        for index in 0..code.blocks[block].ops.len() {
            while readers.move_down(code, (block, index)) {}
        }
    }
}

/// The operations that read each register.
struct Readers<'c> {
    context: &'c Context,
    of: Vec<Vec<Place>>,
}

impl<'c> Readers<'c> {
    fn of(code: &Code, context: &'c Context) -> Self {
        let mut of: Vec<Vec<Place>> = vec![Vec::new(); code.groups.len()];
        for (block, index, op) in indexed_ops(code) {
            for vreg in op.uses() {
                of[vreg.0 as usize].push((block, index));
            }
        }
        Readers { context, of }
    }

    /// Moves one constant from an addend of a sum to the accesses below. Returns false if there is none, or if it cannot move.
    fn move_down(&self, code: &mut Code, (block, index): Place) -> bool {
        let op = &code.blocks[block].ops[index];
        let Some(sum) = Sum::of(op) else { return false };
        for slot in sum.addends {
            let found = self.context.sum_with_constant(code, op.src[slot], sum.words);
            let Some((base, more)) = found.filter(|&(_, more)| more != 0) else {
                continue;
            };
            let mut accesses = Vec::new();
            if self.take(code, &sum, more, MAX_SUMS, &mut accesses) {
                code.blocks[block].ops[index].src[slot] = base;
                for (block, index) in accesses {
                    code.blocks[block].ops[index].mods.offset += more as i32;
                }
                return true;
            }
        }
        false
    }

    /// True if every reader of a sum can take `more` into its displacement. Collects the accesses that do.
    fn take(&self, code: &Code, sum: &Sum, more: i64, depth: u32, accesses: &mut Vec<Place>) -> bool {
        let word = |n| sum.result.offset(n);
        let readers = &self.of[word(0).0 as usize];
        let is_fixed = (0..sum.words).all(|n| self.context.values.is_fixed(word(n)));
        // Each reader reads the whole value once.
        let is_whole = (1..sum.words).all(|n| self.of[word(n).0 as usize] == *readers);
        let is_once = readers.windows(2).all(|pair| pair[0] != pair[1]);
        let takes = |&(block, index): &Place| {
            let op = &code.blocks[block].ops[index];
            let shape = op.shape();
            let is_value = |slot: usize| op.src[slot] == Arg::vreg(sum.result) && shape.src[slot] == sum.words;
            if address_slot(op).is_some_and(is_value) {
                let offset = i64::from(op.mods.offset) + more;
                let is_new = !accesses.contains(&(block, index));
                accesses.push((block, index));
                // By two ways, an access would take the constant twice.
                return is_new && (-MAX_DISPLACEMENT..MAX_DISPLACEMENT).contains(&offset);
            }
            let next = Sum::of(op).filter(|next| next.addends.into_iter().any(is_value));
            depth > 0 && next.is_some_and(|next| self.take(code, &next, more, depth - 1, accesses))
        };
        is_fixed && is_whole && is_once && readers.iter().all(takes)
    }
}

/// A sum of addresses, without guard and without carry.
struct Sum {
    result: VReg,
    /// Words of the result and of the addends.
    words: u8,
    /// The operands that are added whole.
    addends: [usize; 2],
}

impl Sum {
    fn of(op: &Op) -> Option<Sum> {
        let has_no_carry = op.pdst[0].is_none() && !op.mods.extended;
        let (words, addends) = match op.kind {
            OpKind::Wide(Wide::Add) => (2, [0, 1]),
            OpKind::Machine(Opcode::ImadWide) => (2, [2, 2]),
            OpKind::Machine(Opcode::Iadd3) if op.src[2] == Arg::ZERO && has_no_carry => (1, [0, 1]),
            OpKind::Machine(Opcode::Imad) if !op.mods.high => (1, [2, 2]),
            OpKind::Machine(Opcode::Lea) if has_no_carry => (1, [1, 1]),
            _ => return None,
        };
        (op.guard == VGuard::ALWAYS).then_some(Sum {
            result: op.dst?,
            words,
            addends,
        })
    }
}
