//! Vectors that four registers cannot hold: 256 bits, or eight elements. They are loaded and stored in two halves.
//!
//! PTX models a vector as scalar accesses in no order, so two accesses are allowed.

use super::memory::{MemOperand, cache_of, has_wide_addresses, scope_of};
use super::{Form, Selector};
use crate::ast::Type;
use crate::lower::code::{Arg, Op};
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::{Access, Space};

/// Registers of the largest access of a lane.
pub(super) const MAX_WORDS: u8 = 4;

impl<'t, 'a> Selector<'_, 't, 'a> {
    /// Returns part `n` of a load or store. The first of two parts checks the alignment of both.
    pub(super) fn access(
        &mut self,
        form: &Form<'t, 'a>,
        opcode: Opcode,
        value: &[Arg],
        mut mem: MemOperand,
        whole: Access,
        n: u8,
    ) -> Op {
        let part = part_of(whole);
        mem.offset += i64::from(n) * i64::from(part.total());
        let wide = has_wide_addresses(mem.space);
        self.limit_offset(&mut mem, wide);
        Op::machine(opcode).src(&[&[mem.base], value].concat()).mods(|mods| {
            mods.space = mem.space;
            mods.offset = mem.offset as i32;
            mods.access = part;
            mods.high = n == 0 && part != whole;
            mods.cache = cache_of(form);
            mods.scope = scope_of(form);
        })
    }

    /// Copies an address to a register of its own.
    pub(super) fn copy_of_address(&mut self, address: Arg, space: Space) -> Arg {
        let copy = self.code.new_group(if has_wide_addresses(space) { 2 } else { 1 });
        match has_wide_addresses(space) {
            true => self.copy(copy, address, Type::B64),
            false => self.copy(copy, address.part(0), Type::B32),
        }
        Arg::vreg(copy)
    }
}

/// Returns the access that the machine makes for a vector: the vector, or its half if four registers cannot hold it.
pub(super) fn part_of(whole: Access) -> Access {
    match whole.words() > MAX_WORDS {
        true => Access {
            count: whole.count / 2,
            ..whole
        },
        false => whole,
    }
}
