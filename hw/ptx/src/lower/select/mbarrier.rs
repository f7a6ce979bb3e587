//! Memory barriers in shared memory (`mbarrier`).
//!
//! An arrival is an atomic on the barrier's 64 bits, and an initialisation is a store. At CTA scope their implied acquire and
//! release need no fence. All accesses of an SM pass its LSU in order, and the scheduler moves nothing across them. At cluster
//! scope they need a MEMBAR and an L1 invalidation.

use super::integer::{lop, shift_right};
use super::memory::{Spot, space_of};
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::check::Value;
use crate::diag::Diagnostic;
use crate::lower::code::{Arg, Op};
use warpwave_isa::inst::{AtomOp, Scope, Ty};
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::{Access, Space, WINDOW_BYTES};

/// Factor that puts a count into both fields of an initial state (`warpwave_isa::exec::mbarrier::init`).
const BOTH_COUNTS: u64 = 1 << 20 | 1;

/// Mask of a count field.
const COUNT: u64 = (1 << 20) - 1;

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
    fn mbarrier_spot(&mut self, form: &Form<'t, 'a>, n: usize) -> Result<Spot, Diagnostic> {
        if form.has(".shared") || form.has(".shared::cta") {
            return self.spot(form, n, Space::Shared);
        }
        let generic = self.spot(form, n, Space::Generic)?;
        let base = self.compute(lop(generic.base.part(0), Arg::imm(WINDOW_BYTES - 1), Arg::ZERO, 0xc0));
        Ok(Spot {
            space: Space::Shared,
            base,
            offset: generic.offset,
        })
    }

    /// Returns the barrier's operand in shared memory of any CTA of the cluster: the low word of the address.
    fn cluster_spot(&mut self, form: &Form<'t, 'a>, n: usize) -> Result<Spot, Diagnostic> {
        let spot = self.spot(form, n, space_of(form))?;
        Ok(Spot {
            space: Space::Cluster,
            base: spot.base.part(0),
            ..spot
        })
    }

    fn mbarrier_init(&mut self, form: &Form<'t, 'a>) -> Selected {
        let spot = self.mbarrier_spot(form, 0)?;
        let count = self.src32(form, 1)?;
        let state = Op::row(Opcode::ImadWide).src(&[count, Arg::imm(BOTH_COUNTS), Arg::ZERO]);
        let state = self.compute(state);
        self.emit(on_barrier(Op::row(Opcode::St).src(&[spot.base, state]), &spot));
        Ok(())
    }

    /// Selects `arrive`, `arrive_drop`, `expect_tx` and `complete_tx`: an arrival count and a byte count.
    fn mbarrier_arrive(&mut self, form: &Form<'t, 'a>) -> Selected {
        let arrives = form.has(".arrive") || form.has(".arrive_drop");
        let address = usize::from(arrives);
        let remote =
            form.has(".shared::cluster") || (space_of(form) == Space::Generic && *form.operand(0)? == Value::Sink);
        let spot = match remote {
            true => self.cluster_spot(form, address)?,
            false => self.mbarrier_spot(form, address)?,
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
                let come = Op::row(Opcode::Iadd3).src(&[Arg::ZERO, given.unwrap_or(Arg::ZERO).negated()]);
                (Arg::ZERO, self.compute(come))
            }
        };
        let operand = self.code.group(2);
        for (n, part) in [(0, arrivals), (1, bytes)] {
            self.emit(Op::row(Opcode::Mov).dst(operand.offset(n)).src(&[part]));
        }
        if arrives && form.has(".cluster") && !form.has(".relaxed") {
            self.release(Scope::Gpu);
        }
        let drops = form.has(".arrive_drop");
        let row = if remote { Opcode::Red } else { Opcode::Atom };
        let mut op = on_barrier(Op::row(row).src(&[spot.base, Arg::word(operand)]), &spot).mods(|mods| {
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
            false => Some(self.code.group(2)),
        };
        self.emit(op);
        Ok(())
    }

    /// Selects `test_wait` and `try_wait`.
    fn mbarrier_wait(&mut self, form: &Form<'t, 'a>) -> Selected {
        let spot = self.mbarrier_spot(form, 1)?;
        let parity = match form.has(".parity") {
            true => self.src32(form, 2)?,
            false => {
                // The parity of a token is its top bit.
                let token = self.arg(form, form.operand(2)?, Type::B64)?;
                self.compute(shift_right(Ty::U32, token.part(1), Arg::imm(31)))
            }
        };
        let waits = form.has(".try_wait");
        let mut op = on_barrier(Op::row(Opcode::Syncs).src(&[spot.base, parity]), &spot);
        op.mods.count = u8::from(waits);
        op.pdst[0] = match form.operand(0)? {
            Value::Sink => None,
            result => self.flag(form, result)?,
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
        let spot = self.mbarrier_spot(form, 0)?;
        self.emit(Op::row(Opcode::Ldgdepbar));
        self.emit(Op::row(Opcode::Depbar));
        // Without `.noinc` the arrival cancels its own increment of the pending count: nothing to do.
        if form.has(".noinc") {
            let one = self.code.group(2);
            self.emit(Op::row(Opcode::Mov).dst(one).src(&[Arg::imm(1)]));
            self.emit(Op::row(Opcode::Mov).dst(one.offset(1)));
            let op = on_barrier(Op::row(Opcode::Red).src(&[spot.base, Arg::word(one)]), &spot);
            self.emit(op.mods(|mods| {
                mods.atom = AtomOp::Arrive;
                mods.ty = Ty::U64;
            }));
        }
        Ok(())
    }
}

fn on_barrier(op: Op, spot: &Spot) -> Op {
    op.mods(|mods| {
        mods.space = spot.space;
        mods.offset = spot.offset as i32;
        mods.access = Access::one(8);
    })
}
