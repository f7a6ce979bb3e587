//! Bulk copies (`cp.async.bulk`): contiguous bytes, and tiles of a tensor.

use super::memory::MemOperand;
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::check::Value;
use crate::diag::Diagnostic;
use crate::lower::code::{Arg, Op, Wide};
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::{PARAM_WINDOW, Space};

const KNOWN: &[&str] = &[
    ".async",
    ".bulk",
    ".tensor",
    ".tile",
    ".1d",
    ".2d",
    ".3d",
    ".4d",
    ".5d",
    ".global",
    ".shared::cta",
    ".shared::cluster",
    ".mbarrier::complete_tx::bytes",
    ".bulk_group",
    ".L2::cache_hint",
];

impl<'t, 'a> Selector<'_, 't, 'a> {
    pub(super) fn bulk_copy(&mut self, form: &Form<'t, 'a>) -> Selected {
        if form.has(".commit_group") {
            form.only(&[".async", ".bulk", ".commit_group"])?;
            self.emit(Op::machine(Opcode::BulkCommit));
            return Ok(());
        }
        if form.has(".wait_group") {
            form.only(&[".async", ".bulk", ".wait_group", ".read"])?;
            let Some(Value::Int(groups)) = form.operands().first() else {
                return Err(form.malformed("the number of groups must be an integer"));
            };
            let groups = u8::try_from(*groups).map_err(|_| form.malformed("at most 255 groups"))?;
            self.emit(Op::machine(Opcode::BulkWait).mods(|mods| mods.count = groups));
            return Ok(());
        }
        // A prefetch is a hint without a visible effect.
        if form.has(".prefetch") {
            return form.only(&[KNOWN, &[".prefetch", ".L2", ".im2col"]].concat());
        }
        if !form.has(".tensor") && (form.has(".reduce") || !form.has(".global")) {
            return self.bulk_loop(form);
        }
        form.only(KNOWN)?;
        let to_global = form.has(".bulk_group");
        if to_global == form.has(".mbarrier::complete_tx::bytes") || !form.has(".global") {
            return Err(form.unsupported());
        }
        let (shared, global) = if to_global { (1, 0) } else { (0, 1) };
        let shared = self.shared_address(form, shared)?;
        let (from, extent, count, barrier) = match form.has(".tensor") {
            true => {
                let (map, coordinates, count) = self.tile(form, global)?;
                (map, coordinates, count, 2)
            }
            false => (self.global_address(form, global)?, self.src32(form, 2)?, 0, 3),
        };
        let barrier = if to_global {
            Arg::ZERO
        } else {
            self.shared_address(form, barrier)?
        };
        self.emit(
            Op::machine(Opcode::Ublkcp)
                .src(&[shared, from, extent, barrier])
                .mods(|mods| {
                    mods.high = to_global;
                    mods.count = count;
                }),
        );
        Ok(())
    }

    fn shared_address(&mut self, form: &Form<'t, 'a>, n: usize) -> Result<Arg, Diagnostic> {
        let MemOperand { base, offset, .. } = self.mem_operand(form, n, Space::Shared)?;
        Ok(match offset {
            0 => base,
            offset => self.compute(Op::machine(Opcode::Iadd3).src(&[base, Arg::imm(u64::from(offset as u32))])),
        })
    }

    fn global_address(&mut self, form: &Form<'t, 'a>, n: usize) -> Result<Arg, Diagnostic> {
        let MemOperand { base, offset, .. } = self.mem_operand(form, n, Space::Global)?;
        Ok(match offset {
            0 => base,
            offset => self.compute(Op::wide(Wide::Add).src(&[base, Arg::imm(offset as u64)])),
        })
    }

    /// Returns the address of the tensor map and the group of coordinates for `[map, {x, y}]`.
    fn tile(&mut self, form: &Form<'t, 'a>, n: usize) -> Result<(Arg, Arg, u8), Diagnostic> {
        let Some(Value::Handle(parts)) = form.operands().get(n) else {
            return Err(form.unsupported());
        };
        let [map, Value::Vector(coordinates)] = &parts[..] else {
            return Err(form.unsupported());
        };
        let address = match map {
            // A tensor map named as a kernel parameter.
            Value::Symbol(..) => {
                let offset = self.arg(form, map, Type::U64)?;
                self.compute(Op::wide(Wide::Add).src(&[offset, Arg::imm(PARAM_WINDOW)]))
            }
            map => self.arg(form, map, Type::U64)?,
        };
        let count = coordinates.len() as u8;
        if !(1..=5).contains(&count) {
            return Err(form.malformed("a tile has one to five coordinates"));
        }
        let group = self.code.new_group(count);
        for (n, coordinate) in (0..).zip(coordinates) {
            let source = self.arg(form, coordinate, Type::S32)?;
            self.emit(Op::machine(Opcode::Mov).dst(group.offset(n)).src(&[source]));
        }
        Ok((address, Arg::vreg(group), count))
    }
}
