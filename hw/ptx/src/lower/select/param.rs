//! Call parameters and results: registers, stored and loaded byte by byte.
//!
//! A store to a part of a word keeps the other bytes. The declaration zeroes words that are stored in parts, so bytes without a
//! store are zero.

use super::memory::check_bounds;
use super::value::byte_permute;
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::check::{Body, Op as PtxOp, Step, SymbolId, Value};
use crate::diag::Diagnostic;
use crate::lower::code::{Arg, Op, VReg};
use crate::lower::layout::VarLoc;
use std::collections::HashSet;
use warpwave_isa::opcode::Opcode;
use warpwave_isa::space::Access as MemAccess;

/// Bytes of a call parameter that an instruction accesses.
pub(super) struct Access {
    pub symbol: SymbolId,
    /// First byte.
    pub first: u32,
    pub bytes: u32,
}

/// Returns the access of an `ld.param` or `st.param`; true for a store. `None` for other instructions.
pub(super) fn access(op: &PtxOp<'_, '_>) -> Option<(Access, bool)> {
    let stores = match op.instruction.opcode.text {
        "st" => true,
        "ld" => false,
        _ => return None,
    };
    let (address, values) = if stores { (0, 1) } else { (1, 0) };
    let words = || op.instruction.qualifiers.iter().map(|name| name.text);
    let Value::Address(base, offset) = op.operands.get(address)? else {
        return None;
    };
    let Value::Symbol(symbol, _) = **base else { return None };
    if !words().any(|word| word.starts_with(".param")) {
        return None;
    }
    let count = match op.operands.get(values)? {
        Value::Vector(parts) => parts.len() as u32,
        _ => 1,
    };
    let ty = words().rev().find_map(Type::from_dotted)?;
    let access = Access {
        symbol,
        first: u32::try_from(*offset).ok()?,
        bytes: count * ty.bytes(),
    };
    Some((access, stores))
}

/// Returns the `.param` variables with words that a function stores in parts.
pub(super) fn stored_in_part(body: &Body<'_, '_>, bytes_of: impl Fn(SymbolId) -> u32) -> HashSet<SymbolId> {
    let ops = body.code.iter().filter_map(|step| match step {
        Step::Op(op) => Some(op),
        _ => None,
    });
    let stores = ops.filter_map(|op| access(op).filter(|(_, stores)| *stores));
    let parts = stores.filter(|(access, _)| {
        // The last word may end with the parameter.
        let ends_word = access.bytes.is_multiple_of(4) || access.first + access.bytes == bytes_of(access.symbol);
        !(access.first.is_multiple_of(4) && ends_word)
    });
    parts.map(|(access, _)| access.symbol).collect()
}

/// A location in the registers of a call parameter.
pub(super) struct ParamLoc {
    words: VReg,
    first: u32,
    /// Bytes of the whole parameter.
    size: u32,
}

impl ParamLoc {
    /// Returns the register of byte `at`.
    fn word(&self, at: u32) -> VReg {
        VReg(self.words.0 + at / 4)
    }
}

impl<'t, 'a> Selector<'_, 't, 'a> {
    pub(super) fn param_bytes(&self, symbol: SymbolId) -> u32 {
        self.checked.symbols[symbol.0 as usize].bytes() as u32
    }

    /// Returns the first register of a call parameter.
    pub(super) fn param_vregs(&mut self, symbol: SymbolId) -> VReg {
        if let Some(&word) = self.call_params.get(&symbol) {
            return word;
        }
        let first = VReg(self.code.groups.len() as u32);
        // Words of their own, not one group: the allocator need not keep them together.
        for _ in 0..self.param_bytes(symbol).div_ceil(4).max(1) {
            self.code.new_group(1);
        }
        self.param_ranges.push(first.0..self.code.groups.len() as u32);
        self.call_params.insert(symbol, first);
        first
    }

    /// Zeroes a call parameter stored in parts: at its declaration, or at the start of the function that returns it.
    pub(super) fn init_param(&mut self, symbol: SymbolId) {
        let body = self.frame().body;
        let in_part = self
            .frame()
            .stored_in_part
            .get_or_init(|| stored_in_part(body, |symbol| self.param_bytes(symbol)));
        if !in_part.contains(&symbol) {
            return;
        }
        let first = self.param_vregs(symbol);
        for n in 0..self.param_bytes(symbol).div_ceil(4) {
            self.emit(Op::machine(Opcode::Mov).dst(VReg(first.0 + n)));
        }
    }

    /// Returns the location of an address in a call parameter; `None` for another address.
    pub(super) fn param_location(
        &mut self,
        form: &Form<'t, 'a>,
        address: &Value<'a>,
        access: MemAccess,
    ) -> Result<Option<ParamLoc>, Diagnostic> {
        let Value::Address(base, offset) = address else {
            return Ok(None);
        };
        let Value::Symbol(symbol, _) = **base else {
            return Ok(None);
        };
        if self.layout.location(symbol) != Some(VarLoc::Call) {
            return Ok(None);
        }
        let size = self.param_bytes(symbol);
        check_bounds(form, *offset, access, size)?;
        if offset % i64::from(access.bytes) != 0 {
            return Err(form.malformed("the offset in the parameter is not a multiple of the element size"));
        }
        Ok(Some(ParamLoc {
            words: self.param_vregs(symbol),
            first: *offset as u32,
            size,
        }))
    }

    /// Selects `st.param` to a call parameter.
    pub(super) fn store_param(&mut self, form: &Form<'t, 'a>, values: &[Value<'a>], access: MemAccess) -> Selected {
        let Some(location) = self.param_location(form, form.operand(0)?, access)? else {
            return Err(form.unsupported());
        };
        if access.bytes >= 4 {
            let value = self.gather(form, values, access)?;
            for n in 0..access.words() {
                let to = location.word(location.first + 4 * u32::from(n));
                self.emit(Op::machine(Opcode::Mov).dst(to).src(&[value.part(n)]));
            }
            return Ok(());
        }
        let mut pieces = Vec::new();
        for (at, value) in (location.first..).step_by(access.bytes.into()).zip(values) {
            pieces.push((at, self.arg(form, value, form.ty())?));
        }
        for pieces in pieces.chunk_by(|(one, _), (next, _)| one / 4 == next / 4) {
            self.store_pieces(form.ty(), &location, pieces);
        }
        Ok(())
    }

    /// Stores bytes or halves into one word. Each has its offset in the parameter.
    fn store_pieces(&mut self, ty: Type, location: &ParamLoc, pieces: &[(u32, Arg)]) {
        let (first_at, first) = pieces[0];
        // The last word of a parameter may have fewer bytes.
        let in_word = (location.size - first_at / 4 * 4).min(4);
        let to = location.word(first_at);
        let value = match pieces.len() as u32 * ty.bytes() == in_word {
            // The store covers the word, so its old value does not matter.
            true if pieces.len() == 1 => self.extended(first, ty),
            true => self.with_pieces(ty, first, &pieces[1..]),
            false => self.with_pieces(ty, Arg::vreg(to), pieces),
        };
        self.emit(Op::machine(Opcode::Mov).dst(to).src(&[value]));
    }

    /// Replaces bytes or halves of a word.
    fn with_pieces(&mut self, ty: Type, word: Arg, pieces: &[(u32, Arg)]) -> Arg {
        pieces.iter().fold(word, |word, &(at, piece)| {
            // PRMT: nibbles 0 to 3 keep bytes of the word, 4 and 5 are bytes of the piece.
            let selector = match (ty.bytes(), at % 4) {
                (1, 0) => 0x3214,
                (1, 1) => 0x3240,
                (1, 2) => 0x3410,
                (1, _) => 0x4210,
                (_, 0) => 0x3254,
                (_, _) => 0x5410,
            };
            self.compute(byte_permute(word, piece, selector))
        })
    }

    /// Selects `ld.param` of a function's parameter or of a call's result.
    pub(super) fn load_param(
        &mut self,
        form: &Form<'t, 'a>,
        targets: &[Value<'a>],
        access: MemAccess,
        location: &ParamLoc,
    ) -> Selected {
        let offsets = (location.first..).step_by(access.bytes.into());
        for (at, target) in offsets.zip(targets).filter(|(_, target)| **target != Value::Sink) {
            let result = self.dst_of(form, target, form.ty())?;
            let words = self.word_count(target);
            if access.bytes > 4 {
                let first = location.word(at);
                if words > access.bytes / 4 {
                    let pair = self.temp_pair();
                    self.move_words(pair, first, 2);
                    self.widen(result, words, Arg::vreg(pair), true, access.signed);
                } else {
                    self.move_words(result, first, access.bytes / 4);
                }
                continue;
            }
            let value = self.piece(Arg::vreg(location.word(at)), at % 4, form.ty());
            self.widen(result, words, value, false, access.signed);
        }
        Ok(())
    }

    /// Extracts a byte or half at byte `at` of a word and extends it. A whole word is unchanged.
    fn piece(&mut self, word: Arg, at: u32, ty: Type) -> Arg {
        if at == 0 || ty.bytes() == 4 {
            return self.extended(word, ty);
        }
        let at = u64::from(at);
        let last = at + u64::from(ty.bytes()) - 1;
        // PRMT: 8 + n repeats the sign of byte n, 4 is a zero byte.
        let above = if ty.is_signed() { 8 | last } else { 4 };
        let low = if last > at { last << 4 | at } else { above << 4 | at };
        self.compute(byte_permute(word, Arg::ZERO, above << 12 | above << 8 | low))
    }
}
