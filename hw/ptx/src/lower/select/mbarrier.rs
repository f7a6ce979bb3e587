//! Memory barriers in shared memory (`mbarrier`).
//!
//! An arrival is an atomic on the barrier's 64 bits, and an initialisation is a store. At CTA scope their implied acquire and
//! release need no fence. All accesses of an SM pass its LSU in order, and the scheduler moves nothing across them. At cluster
//! scope they need a MEMBAR and an L1 invalidation.

use super::integer::{lop, shift_right};
use super::memory::{MemOperand, space_of};
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::check::Value;
use crate::diag::Diagnostic;
use crate::lower::code::{Arg, Op, VGuard};
use warpwave_isa::inst::{AtomOp, Cmp, Scope, Ty};
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::{Access, Space, WINDOW_BYTES};

/// Factor that puts a count into both fields of an initial state (`warpwave_isa::exec::mbarrier::init`).
const BOTH_COUNTS: u64 = 1 << 20 | 1;

/// Mask of a count field.
const COUNT: u64 = (1 << 20) - 1;

/// Largest count of an mbarrier.
const MOST_ARRIVALS: u64 = (1 << 20) - 1;

const KNOWN: &[&str] = &[
    ".init",
    ".inval",
    ".arrive",
    ".arrive_drop",
    ".expect_tx",
    ".complete_tx",
    ".noComplete",
    ".test_wait",
    ".try_wait",
    ".parity",
    ".pending_count",
    ".shared",
    ".shared::cta",
    ".acquire",
    ".release",
    ".relaxed",
    ".cta",
    ".cluster",
    ".shared::cluster",
];

impl<'t, 'a> Selector<'_, 't, 'a> {
    /// Selects `mbarrier`, by its operation.
    pub(super) fn mbarrier(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(KNOWN)?;
        match () {
            () if form.has(".init") => self.mbarrier_init(form),
            // The memory becomes free, and the barrier state needs no update.
            () if form.has(".inval") => Ok(()),
            () if form.has(".test_wait") || form.has(".try_wait") => self.mbarrier_wait(form),
            () if form.has(".pending_count") => {
                let (result, token) = (self.dst_of(form, form.operand(0)?, Type::B32)?, self.src(form, 1)?);
                self.emit(lop(token.part(0), Arg::imm(COUNT), Arg::ZERO, 0xc0).dst(result));
                Ok(())
            }
            () => self.mbarrier_arrive(form),
        }
    }

    /// Returns the barrier's operand in shared memory. A generic address is reduced to its window offset.
    fn mbarrier_operand(&mut self, form: &Form<'t, 'a>, n: usize) -> Result<MemOperand, Diagnostic> {
        if form.has(".shared") || form.has(".shared::cta") {
            return self.mem_operand(form, n, Space::Shared);
        }
        let generic = self.mem_operand(form, n, Space::Generic)?;
        // The offset in the window is the address in the CTA's own shared memory.
        let base = self.compute(lop(generic.base.part(0), Arg::imm(WINDOW_BYTES - 1), Arg::ZERO, 0xc0));
        Ok(MemOperand {
            space: Space::Shared,
            base,
            offset: generic.offset,
        })
    }

    /// Returns the barrier's operand in shared memory of any CTA of the cluster: the low word of the address.
    fn cluster_operand(&mut self, form: &Form<'t, 'a>, n: usize) -> Result<MemOperand, Diagnostic> {
        let mem = self.mem_operand(form, n, space_of(form))?;
        Ok(MemOperand {
            space: Space::Cluster,
            base: mem.base.part(0),
            ..mem
        })
    }

    fn mbarrier_init(&mut self, form: &Form<'t, 'a>) -> Selected {
        let mem = self.mbarrier_operand(form, 0)?;
        let count = self.src32(form, 1)?;
        // `check::barrier` refuses an immediate count out of range.
        if !matches!(form.operand(1)?, Value::Int(_)) {
            self.trap_at_count(count);
        }
        // One product puts the count into both fields.
        let state = Op::machine(Opcode::ImadWide).src(&[count, Arg::imm(BOTH_COUNTS), Arg::ZERO]);
        let state = self.compute(state);
        self.emit(at_mbarrier(Op::machine(Opcode::St).src(&[mem.base, state]), &mem));
        Ok(())
    }

    /// Traps if the count of an mbarrier is 0 or above 2^20 - 1, which PTX does not define.
    fn trap_at_count(&mut self, count: Arg) {
        // 0 wraps to the largest number.
        let less = self.compute(Op::machine(Opcode::Iadd3).src(&[count, Arg::imm(u32::MAX.into()), Arg::ZERO]));
        let is_wrong = self.code.new_pred();
        let compare = Op::machine(Opcode::Isetp)
            .src(&[less, Arg::imm(MOST_ARRIVALS)])
            .pdst(is_wrong);
        // Lanes that skip the instruction do not trap.
        let compare = compare.psrc(self.guard).mods(|mods| {
            mods.cmp = Cmp::Ge;
            mods.ty = Ty::U32;
        });
        self.emit(compare);
        let trap = Op::machine(Opcode::Trap).guard(VGuard::pred(is_wrong));
        self.emit(trap.mods(|mods| mods.count = 1));
    }

    /// Selects `arrive`, `arrive_drop`, `expect_tx` and `complete_tx`: an arrival count and a byte count.
    fn mbarrier_arrive(&mut self, form: &Form<'t, 'a>) -> Selected {
        let arrives = form.has(".arrive") || form.has(".arrive_drop");
        let address = usize::from(arrives);
        let remote =
            form.has(".shared::cluster") || (space_of(form) == Space::Generic && *form.operand(0)? == Value::Sink);
        let mem = match remote {
            true => self.cluster_operand(form, address)?,
            false => self.mbarrier_operand(form, address)?,
        };
        let given = match form.operands().get(address + 1) {
            Some(value) => Some(self.arg(form, value, Type::U32)?),
            None => None,
        };
        let (arrivals, bytes) = match (arrives, form.has(".expect_tx")) {
            (true, true) => (Arg::imm(1), given.unwrap_or(Arg::ZERO)),
            (true, false) => (given.unwrap_or(Arg::imm(1)), Arg::ZERO),
            (false, true) => (Arg::ZERO, given.unwrap_or(Arg::ZERO)),
            (false, false) => {
                // Completed bytes lower the expected count.
                let come = Op::machine(Opcode::Iadd3).src(&[Arg::ZERO, given.unwrap_or(Arg::ZERO).negated()]);
                (Arg::ZERO, self.compute(come))
            }
        };
        let operand = self.code.new_group(2);
        for (n, part) in [(0, arrivals), (1, bytes)] {
            self.emit(Op::machine(Opcode::Mov).dst(operand.offset(n)).src(&[part]));
        }
        if arrives && form.has(".cluster") && !form.has(".relaxed") {
            self.release(Scope::Gpu);
        }
        let drops = form.has(".arrive_drop");
        // A remote arrival returns no state, so nothing waits for a response.
        let opcode = if remote { Opcode::Red } else { Opcode::Atom };
        let mut op = at_mbarrier(Op::machine(opcode).src(&[mem.base, Arg::vreg(operand)]), &mem).mods(|mods| {
            mods.atom = if drops { AtomOp::ArriveDrop } else { AtomOp::Arrive };
            mods.ty = Ty::U64;
        });
        if remote {
            if arrives && *form.operand(0)? != Value::Sink {
                return Err(form.malformed("an arrival on a cluster barrier returns no state: write `_`"));
            }
            self.emit(op);
            return Ok(());
        }
        op.dst = match arrives {
            true => Some(self.dst_of(form, form.operand(0)?, Type::B64)?),
            false => Some(self.code.new_group(2)),
        };
        self.emit(op);
        Ok(())
    }

    /// Selects `test_wait` and `try_wait`.
    fn mbarrier_wait(&mut self, form: &Form<'t, 'a>) -> Selected {
        let mem = self.mbarrier_operand(form, 1)?;
        let parity = match form.has(".parity") {
            true => self.src32(form, 2)?,
            false => {
                // The parity of a token is its top bit.
                let token = self.arg(form, form.operand(2)?, Type::B64)?;
                self.compute(shift_right(Ty::U32, token.part(1), Arg::imm(31)))
            }
        };
        // `try_wait` may suspend the warp for a while. `test_wait` never does.
        let waits = form.has(".try_wait");
        let mut op = at_mbarrier(Op::machine(Opcode::Syncs).src(&[mem.base, parity]), &mem);
        op.mods.count = u8::from(waits);
        op.pdst[0] = match form.operand(0)? {
            Value::Sink => None,
            result => self.dst_pred(form, result)?,
        };
        self.emit(op);
        if form.has(".cluster") && !form.has(".relaxed") {
            self.acquire(Scope::Gpu);
        }
        Ok(())
    }

    /// Selects `cp.async.mbarrier.arrive`: waits here for the copies started so far.
    pub(super) fn mbarrier_after_copies(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".async", ".mbarrier", ".arrive", ".noinc", ".shared", ".shared::cta"])?;
        let mem = self.mbarrier_operand(form, 0)?;
        self.emit(Op::machine(Opcode::Ldgdepbar));
        self.emit(Op::machine(Opcode::Depbar));
        // Without `.noinc` the arrival cancels its own increment of the pending count: nothing to do.
        if form.has(".noinc") {
            let one = self.code.new_group(2);
            self.emit(Op::machine(Opcode::Mov).dst(one).src(&[Arg::imm(1)]));
            self.emit(Op::machine(Opcode::Mov).dst(one.offset(1)));
            let op = at_mbarrier(Op::machine(Opcode::Red).src(&[mem.base, Arg::vreg(one)]), &mem);
            self.emit(op.mods(|mods| {
                mods.atom = AtomOp::Arrive;
                mods.ty = Ty::U64;
            }));
        }
        Ok(())
    }
}

fn at_mbarrier(op: Op, mem: &MemOperand) -> Op {
    op.mods(|mods| {
        mods.space = mem.space;
        mods.offset = mem.offset as i32;
        mods.access = Access::one(8);
    })
}
