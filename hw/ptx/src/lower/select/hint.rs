//! Cache hints: no visible effect, but lines can arrive earlier.

use super::memory::space_of;
use super::qualifiers::HINT_QUALIFIERS;
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::lower::code::{Arg, Op};
use warpwave_isa::inst::CacheOp;
use warpwave_isa::opcode::Opcode;

impl<'t, 'a> Selector<'_, 't, 'a> {
    pub(super) fn hint(&mut self, form: &Form<'t, 'a>) -> Selected {
        match form.opcode() {
            "prefetch" | "prefetchu" => self.prefetch(form),
            "createpolicy" => self.policy(form),
            // `discard` and `applypriority` change no data that a program may read.
            _ => form.only(HINT_QUALIFIERS),
        }
    }

    /// Selects `createpolicy`: a policy is zero, because only hints read it.
    fn policy(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(HINT_QUALIFIERS)?;
        let result = self.dst_of(form, form.operand(0)?, Type::B64)?;
        self.copy(result, Arg::ZERO, Type::B64);
        Ok(())
    }

    /// Selects `prefetch` into the named cache.
    fn prefetch(&mut self, form: &Form<'t, 'a>) -> Selected {
        if form.has(".tensormap") {
            // Tensor maps are not cached here, and constant memory needs no prefetch.
            return form.only(&[".tensormap", ".param", ".const"]);
        }
        form.only(&[
            ".global",
            ".local",
            ".L1",
            ".L2",
            ".L2::evict_last",
            ".L2::evict_normal",
        ])?;
        let mem = self.mem_operand(form, 0, space_of(form))?;
        let is_l1 = form.has(".L1");
        let op = Op::machine(Opcode::Cctl).src(&[mem.base]).mods(|mods| {
            mods.space = mem.space;
            mods.offset = mem.offset as i32;
            mods.cache = if is_l1 { CacheOp::All } else { CacheOp::Global };
        });
        self.emit(op.guard(self.guard));
        Ok(())
    }
}
