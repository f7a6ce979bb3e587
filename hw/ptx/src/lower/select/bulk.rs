//! Bulk copies (`cp.async.bulk`): contiguous bytes, and tiles of a tensor.

use super::integer::parts;
use super::memory::MemOperand;
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::check::Value;
use crate::diag::Diagnostic;
use crate::lower::code::{Arg, Op, Wide};
use crate::lower::layout::{CONST_WINDOW, VarLoc};
use warpwave_isa::inst::AtomOp;
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
    ".im2col",
    ".im2col_no_offs",
    ".multicast::cluster",
    ".L2::cache_hint",
];

/// Operations of a reduction.
const REDUCTIONS: &[(&str, AtomOp)] = &[
    (".add", AtomOp::Add),
    (".min", AtomOp::Min),
    (".max", AtomOp::Max),
    (".inc", AtomOp::Inc),
    (".dec", AtomOp::Dec),
    (".and", AtomOp::And),
    (".or", AtomOp::Or),
    (".xor", AtomOp::Xor),
];

impl<'t, 'a> Selector<'_, 't, 'a> {
    /// Selects `cp.async.bulk` and its groups. Copies without a machine instruction become a loop.
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
        let operation = REDUCTIONS.iter().find(|(word, _)| form.has(word));
        match operation {
            Some((word, _)) if form.has(".reduce") => form.only(&[KNOWN, &[".reduce", word]].concat())?,
            _ => form.only(KNOWN)?,
        }
        let to_global = form.has(".bulk_group");
        let is_im2col = form.has(".im2col") && !to_global;
        let multicast = form.has(".multicast::cluster");
        let has_barrier = form.has(".mbarrier::complete_tx::bytes");
        let only_to_global = operation.is_some() || form.has(".im2col_no_offs");
        let is_mixed = match to_global {
            true => form.has(".im2col") || multicast,
            false => only_to_global,
        };
        // A copy completes at an mbarrier, or in a bulk group if it writes global memory.
        if to_global == has_barrier || !form.has(".global") || is_mixed {
            return Err(form.unsupported());
        }
        // PTX writes the destination first.
        let (shared, global) = if to_global { (1, 0) } else { (0, 1) };
        let shared = self.shared_address(form, shared)?;
        let (from, mut extent, barrier) = match form.has(".tensor") {
            true => {
                let (map, coordinates) = self.tile(form, global)?;
                (map, coordinates, 2)
            }
            false => (self.global_address(form, global)?, vec![self.src32(form, 2)?], 3),
        };
        // UBLKCP without coordinates copies contiguous bytes.
        let count = if form.has(".tensor") { extent.len() as u8 } else { 0 };
        // Optional operands follow the barrier: im2col offsets, then the CTA mask.
        let mut next = barrier + 1;
        if is_im2col {
            extent.extend(self.im2col_offsets(form, next, count)?);
            next += 1;
        }
        if multicast {
            extent.push(self.arg(form, form.operand(next)?, Type::U16)?);
        }
        let extent = self.group_of(&extent);
        let barrier = if to_global {
            Arg::ZERO
        } else {
            self.shared_address(form, barrier)?
        };
        let opcode = match operation {
            Some(_) => Opcode::Ublkred,
            None => Opcode::Ublkcp,
        };
        self.emit(Op::machine(opcode).src(&[shared, from, extent, barrier]).mods(|mods| {
            mods.high = to_global;
            mods.count = count;
            mods.trans = is_im2col;
            mods.wrap = multicast;
            mods.atom = operation.map_or(AtomOp::default(), |(_, op)| *op);
        }));
        Ok(())
    }

    /// Copies words to consecutive registers. A single word stays where it is.
    fn group_of(&mut self, words: &[Arg]) -> Arg {
        if let [only] = words {
            return *only;
        }
        let group = self.code.new_group(words.len() as u8);
        for (n, &word) in (0..).zip(words) {
            self.emit(Op::machine(Opcode::Mov).dst(group.offset(n)).src(&[word]));
        }
        Arg::vreg(group)
    }

    /// Returns the offsets `{w, h, d}` of an im2col copy in two words. `count` is the number of coordinates.
    fn im2col_offsets(&mut self, form: &Form<'t, 'a>, n: usize, count: u8) -> Result<[Arg; 2], Diagnostic> {
        let offsets = parts(form.operand(n)?);
        if count < 3 || offsets.len() + 2 != usize::from(count) {
            return Err(form.malformed("an im2col copy has three to five coordinates, and two offsets fewer"));
        }
        let mut halves = [Arg::ZERO; 4];
        for (half, offset) in halves.iter_mut().zip(offsets) {
            *half = self.arg(form, offset, Type::U16)?;
        }
        let [width, height, depth, none] = halves;
        // The low halves of two words.
        let pair = |low, high| Op::machine(Opcode::Prmt).src(&[low, high, Arg::imm(0x5410)]);
        Ok([self.compute(pair(width, height)), self.compute(pair(depth, none))])
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

    /// Returns the address of the tensor map and the coordinates for `[map, {x, y}]`.
    fn tile(&mut self, form: &Form<'t, 'a>, n: usize) -> Result<(Arg, Vec<Arg>), Diagnostic> {
        let Some(Value::Handle(parts)) = form.operands().get(n) else {
            return Err(form.unsupported());
        };
        let [map, Value::Vector(coordinates)] = &parts[..] else {
            return Err(form.unsupported());
        };
        let address = match map {
            Value::Symbol(symbol, _) => {
                let address = self.arg(form, map, Type::U64)?;
                match self.layout.location(*symbol) {
                    Some(VarLoc::Global(_)) => address,
                    Some(VarLoc::Const(_)) => self.in_window(address, CONST_WINDOW),
                    _ => self.in_window(address, PARAM_WINDOW),
                }
            }
            map => self.arg(form, map, Type::U64)?,
        };
        if !(1..=5).contains(&coordinates.len()) {
            return Err(form.malformed("a tile has one to five coordinates"));
        }
        let coordinates = coordinates
            .iter()
            .map(|coordinate| self.arg(form, coordinate, Type::S32));
        Ok((address, coordinates.collect::<Result<_, _>>()?))
    }

    /// Returns the generic address of an offset in a window.
    fn in_window(&mut self, offset: Arg, window: u64) -> Arg {
        self.compute(Op::wide(Wide::Add).src(&[offset, Arg::imm(window)]))
    }
}
