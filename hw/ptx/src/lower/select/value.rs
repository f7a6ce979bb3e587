//! PTX operands as sources and results of machine operations.

use super::integer::parts;
use super::{Form, Selected, Selector, VLoc};
use crate::ast::{Float, Type};
use crate::check::{RegId, Sum, SymbolId, Value};
use crate::diag::Diagnostic;
use crate::lower::callgraph;
use crate::lower::code::{Arg, Bits, Op, VGuard, VPred, VReg, Wide};
use crate::lower::layout::{ADDRESS_BANK, VarLoc};
use warpwave_isa::opcode::Opcode;

impl<'t, 'a> Selector<'_, 't, 'a> {
    pub(super) fn pred_of(&self, reg: RegId) -> Option<VPred> {
        match self.frame().locations[reg.0 as usize] {
            VLoc::VPred(pred) => Some(pred),
            VLoc::VReg(_) => None,
        }
    }

    fn vreg_of(&self, reg: RegId) -> Option<VReg> {
        match self.frame().locations[reg.0 as usize] {
            VLoc::VReg(word) => Some(word),
            VLoc::VPred(_) => None,
        }
    }

    /// Returns the number of 32-bit registers of an operand.
    pub(super) fn word_count(&self, value: &Value<'_>) -> u8 {
        match value {
            Value::Register(reg) => self.register_type(*reg).bits().div_ceil(32) as u8,
            _ => 1,
        }
    }

    /// True if a register is narrower than a type.
    fn is_narrower(&self, value: &Value<'_>, ty: Type) -> bool {
        u32::from(self.word_count(value)) < ty.bits().div_ceil(32)
    }

    /// Computes `register+offset` into its own register.
    pub(super) fn sum_register(&mut self, sum: &Sum) {
        let (Some(result), Some(base)) = (self.vreg_of(sum.result), self.vreg_of(sum.base)) else {
            return;
        };
        let offset = Arg::imm(sum.offset as u64);
        let op = match self.register_type(sum.base).bits() {
            64 => Op::wide(Wide::Add).src(&[Arg::vreg(base), offset]),
            _ => Op::machine(Opcode::Iadd3).src(&[Arg::vreg(base), offset.part(0)]),
        };
        self.emit(op.dst(result));
    }

    /// Returns a source of one or two registers for type `ty`. Bits above an 8- or 16-bit value are undefined.
    pub(super) fn arg(&mut self, form: &Form<'t, 'a>, value: &Value<'a>, ty: Type) -> Result<Arg, Diagnostic> {
        let wide = ty.bits() == 64;
        if ty.bits() > 64 && !matches!(value, Value::Register(_)) {
            return Err(form.malformed("a 128-bit operand must be a register"));
        }
        Ok(match value {
            Value::Register(reg) => match self.vreg_of(*reg) {
                Some(_) if self.is_narrower(value, ty) => return Err(too_narrow(form)),
                Some(word) => Arg::vreg(word),
                None => return Err(form.malformed("expected a number, found a predicate")),
            },
            Value::Int(number) => Arg::imm(literal(*number, ty)),
            Value::Float(float) => Arg::imm(float.bits_as(ty)),
            Value::Special(name, component) => self.special(form, name, component, wide)?,
            Value::Symbol(symbol, offset) => self.address_of(form, *symbol, *offset)?,
            Value::Sink => return Err(form.malformed("`_` cannot be a source")),
            Value::Function(name) => match callgraph::address(self.checked, name) {
                Some(address) => Arg::imm(address),
                None => return Err(self.undefined_function(name)),
            },
            _ => return Err(form.malformed("this form of operand is not allowed here")),
        })
    }

    /// Returns operand `n` as a source of the instruction's type.
    pub(super) fn src(&mut self, form: &Form<'t, 'a>, n: usize) -> Result<Arg, Diagnostic> {
        self.arg(form, form.operand(n)?, form.ty())
    }

    /// Returns operand `n` as a 32-bit source.
    pub(super) fn src32(&mut self, form: &Form<'t, 'a>, n: usize) -> Result<Arg, Diagnostic> {
        self.arg(form, form.operand(n)?, Type::U32)
    }

    /// Returns the result register of operand `n`; a new unread register for `_`.
    pub(super) fn dst(&mut self, form: &Form<'t, 'a>, n: usize) -> Result<VReg, Diagnostic> {
        self.dst_of(form, form.operand(n)?, form.ty())
    }

    /// Returns the register of a result operand.
    pub(super) fn dst_of(&mut self, form: &Form<'t, 'a>, value: &Value<'a>, ty: Type) -> Result<VReg, Diagnostic> {
        match value {
            Value::Register(_) if self.is_narrower(value, ty) => Err(too_narrow(form)),
            Value::Register(reg) => self
                .vreg_of(*reg)
                .ok_or_else(|| form.malformed("the result must be a number, not a predicate")),
            Value::Sink => Ok(self.code.new_group(ty.bits().div_ceil(32) as u8)),
            // The second part of `d|p` is a predicate.
            Value::Pair(first, _) => self.dst_of(form, first, ty),
            _ => Err(form.malformed("the result must be a register")),
        }
    }

    /// Returns a predicate source.
    pub(super) fn src_pred(&self, form: &Form<'t, 'a>, value: &Value<'a>) -> Result<VGuard, Diagnostic> {
        match value {
            Value::Register(reg) => match self.pred_of(*reg) {
                Some(pred) => Ok(VGuard::pred(pred)),
                None => Err(form.malformed("expected a predicate, found a number")),
            },
            Value::Not(inner) => Ok(self.src_pred(form, inner)?.negated()),
            Value::Int(0) => Ok(VGuard::NEVER),
            Value::Int(_) => Ok(VGuard::ALWAYS),
            _ => Err(form.malformed("this form of operand is not allowed here")),
        }
    }

    /// Returns a result predicate; `None` for `_`.
    pub(super) fn dst_pred(&self, form: &Form<'t, 'a>, value: &Value<'a>) -> Result<Option<VPred>, Diagnostic> {
        match value {
            Value::Sink => Ok(None),
            Value::Register(reg) => match self.pred_of(*reg) {
                Some(pred) => Ok(Some(pred)),
                None => Err(form.malformed("the result must be a predicate")),
            },
            _ => Err(form.malformed("the result must be a predicate")),
        }
    }

    /// Returns the two result predicates of `p|q`.
    pub(super) fn dst_preds(&self, form: &Form<'t, 'a>, value: &Value<'a>) -> Result<[Option<VPred>; 2], Diagnostic> {
        match value {
            Value::Pair(first, second) => Ok([self.dst_pred(form, first)?, self.dst_pred(form, second)?]),
            single => Ok([self.dst_pred(form, single)?, None]),
        }
    }

    /// Returns the address of a variable in its own space, 64 bits wide.
    pub(super) fn address_of(&mut self, form: &Form<'t, 'a>, symbol: SymbolId, offset: i64) -> Result<Arg, Diagnostic> {
        let span = form.op.instruction.span;
        if let Some((base, at)) = self.stack_location(symbol) {
            let pair = self.temp_pair();
            // A local address has 32 bits, and the upper word is zero.
            let at = Arg::imm(i64::from(at).wrapping_add(offset) as u64 & 0xffff_ffff);
            self.emit(Op::machine(Opcode::Iadd3).dst(pair).src(&[Arg::vreg(base), at]));
            self.emit(Op::machine(Opcode::Mov).dst(pair.offset(1)));
            return Ok(Arg::vreg(pair));
        }
        match self.layout.location(symbol) {
            Some(VarLoc::Shared(at) | VarLoc::Local(at) | VarLoc::Const(at) | VarLoc::Param(at)) => {
                Ok(Arg::imm(i64::from(at).wrapping_add(offset) as u64))
            }
            // The host writes the address into the bank, so it is an operand and no load.
            Some(VarLoc::Global(index)) => {
                let address = Arg::of(Bits::Const {
                    bank: ADDRESS_BANK,
                    offset: (8 * index) as u16,
                });
                if offset == 0 {
                    return Ok(address);
                }
                Ok(self.compute(Op::wide(Wide::Add).src(&[address, Arg::imm(offset as u64)])))
            }
            Some(VarLoc::Call) => Err(Diagnostic::unsupported(span, "the address of a call parameter")),
            Some(VarLoc::Handle(index)) if offset == 0 => Ok(Arg::of(Bits::Const {
                bank: ADDRESS_BANK,
                offset: self.layout.handle_offset(index),
            })),
            Some(VarLoc::Sampler(sampler)) if offset == 0 => Ok(Arg::imm(sampler.word().into())),
            Some(VarLoc::Handle(_) | VarLoc::Sampler(_)) | None => {
                Err(Diagnostic::unsupported(span, "an address beside a texture reference"))
            }
        }
    }

    /// Copies a source of type `ty` into a result.
    pub(super) fn copy(&mut self, to: VReg, from: Arg, ty: Type) {
        let op = if ty.bits() == 64 {
            Op::wide(Wide::Mov)
        } else {
            Op::machine(Opcode::Mov)
        };
        self.emit(op.dst(to).src(&[from]));
    }

    /// Selects all forms of `mov`, and `cvta`.
    pub(super) fn mov(&mut self, form: &Form<'t, 'a>) -> Selected {
        if form.opcode() == "cvta" {
            return self.address_conversion(form);
        }
        if form.has(".v2") || form.has(".v4") {
            return self.move_vector(form);
        }
        form.only(&[])?;
        match (form.operand(0)?, form.operand(1)?, form.ty()) {
            (Value::Vector(parts), source, ty) => {
                let source = self.arg(form, source, ty)?;
                self.unpack(form, parts, source, ty)
            }
            (result, Value::Vector(parts), ty) => {
                let result = self.dst_of(form, result, ty)?;
                self.pack(form, result, parts, ty)
            }
            (result, source, Type::Pred) => {
                let source = match source {
                    Value::Special(name, component) => self.special_pred(form, name, component)?,
                    source => self.src_pred(form, source)?,
                };
                let result = self.dst_pred(form, result)?;
                self.copy_pred(result, source);
                Ok(())
            }
            (result, Value::Register(source), Type::B128) => {
                let result = self.dst_of(form, result, Type::B128)?;
                match self.vreg_of(*source) {
                    Some(source) => self.move_words(result, source, 4),
                    None => return Err(form.malformed("expected a number, found a predicate")),
                }
                Ok(())
            }
            (result, source, ty) => {
                let result = self.dst_of(form, result, ty)?;
                let source = self.arg(form, source, ty)?;
                self.copy(result, source, ty);
                Ok(())
            }
        }
    }

    /// Selects `mov.v2.u32 {%r1, %r2}, {%r2, %r1}`.
    fn move_vector(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".v2", ".v4"])?;
        let (targets, sources) = (parts(form.operand(0)?), parts(form.operand(1)?));
        let mut values = Vec::new();
        for source in sources {
            let source = self.arg(form, source, form.ty())?;
            // Temporaries keep sources that are also results.
            let value = self.code.new_group(form.ty().bits().div_ceil(32) as u8);
            self.copy(value, source, form.ty());
            values.push(Arg::vreg(value));
        }
        for (target, value) in targets.iter().zip(values).filter(|(target, _)| **target != Value::Sink) {
            let result = self.dst_of(form, target, form.ty())?;
            self.copy(result, value, form.ty());
        }
        Ok(())
    }

    /// Copies a predicate with a PLOP3.
    pub(super) fn copy_pred(&mut self, to: Option<VPred>, from: VGuard) {
        // 0b1100 is the truth table of the first input.
        let mut op = Op::machine(Opcode::Plop3).psrc(from).mods(|mods| mods.lut = 0b1100);
        op.pdst[0] = to;
        self.emit(op);
    }

    /// Selects `mov.b64 {%lo, %hi}, %rd`.
    fn unpack(&mut self, form: &Form<'t, 'a>, parts: &[Value<'a>], source: Arg, ty: Type) -> Selected {
        let each = ty.bits() / parts.len().max(1) as u32;
        for (n, part) in (0u32..).zip(parts).filter(|(_, part)| **part != Value::Sink) {
            let result = self.dst_of(form, part, Type::B32)?;
            let bit = n * each;
            let word = source.part((bit / 32) as u8);
            match each {
                32 => self.copy(result, word, Type::B32),
                64 => self.copy(result, word, Type::B64),
                // Bits above a 16-bit value are undefined, so the whole word serves.
                16 if bit.is_multiple_of(32) => self.copy(result, word, Type::B32),
                // PRMT: bytes 2 and 3, then zeros from the second source.
                16 => self.emit(byte_permute(word, Arg::ZERO, 0x4432).dst(result)),
                8 => {
                    let selector = 0x4440 | u64::from(bit % 32 / 8);
                    self.emit(byte_permute(word, Arg::ZERO, selector).dst(result));
                }
                _ => return Err(form.unsupported()),
            }
        }
        Ok(())
    }

    /// Selects `mov.b64 %rd, {%lo, %hi}`.
    fn pack(&mut self, form: &Form<'t, 'a>, result: VReg, parts: &[Value<'a>], ty: Type) -> Selected {
        let each = ty.bits() / parts.len().max(1) as u32;
        // A literal of 64 bits fills both words of its part.
        let part_type = if each == 64 { Type::B64 } else { Type::B32 };
        let mut words = Vec::new();
        for part in parts {
            words.push(self.arg(form, part, part_type)?);
        }
        match each {
            64 => {
                let halves: Vec<Arg> = words.iter().flat_map(|word| [word.part(0), word.part(1)]).collect();
                self.pack_words(result, &halves);
            }
            32 => self.pack_words(result, &words),
            16 => {
                let halves: Vec<Arg> = words
                    .chunks(2)
                    // The low halves of both words.
                    .map(|pair| self.compute(byte_permute(pair[0], pair[1], 0x5410)))
                    .collect();
                self.pack_words(result, &halves);
            }
            // Byte 0 of both words. The upper half of a 16-bit value is undefined.
            8 if parts.len() == 2 => self.emit(byte_permute(words[0], words[1], 0x5540).dst(result)),
            8 if parts.len() == 4 => {
                // Two pairs of bytes, and then both pairs.
                let low = self.compute(byte_permute(words[0], words[1], 0x5540));
                let high = self.compute(byte_permute(words[2], words[3], 0x5540));
                self.emit(byte_permute(low, high, 0x5410).dst(result));
            }
            _ => return Err(form.unsupported()),
        }
        Ok(())
    }

    /// Copies words into consecutive registers.
    fn pack_words(&mut self, result: VReg, words: &[Arg]) {
        let [first, rest @ ..] = words else { return };
        // Temporaries keep sources that are also results.
        let rest: Vec<Arg> = rest
            .iter()
            .map(|&word| self.compute(Op::machine(Opcode::Mov).src(&[word])))
            .collect();
        self.copy(result, *first, Type::B32);
        for (n, &word) in (1..).zip(&rest) {
            self.copy(result.offset(n), word, Type::B32);
        }
    }
}

fn too_narrow(form: &Form<'_, '_>) -> Diagnostic {
    form.malformed("a register is narrower than the instruction's type")
}

/// Selects bytes of (b:a). Nibble n of the selector names byte n of the result: 0 to 3 in a, 4 to 7 in b.
///
/// A nibble of 8 + m repeats the sign of byte m.
pub(super) fn byte_permute(a: Arg, b: Arg, selector: u64) -> Op {
    Op::machine(Opcode::Prmt).src(&[a, b, Arg::imm(selector)])
}

/// Returns the register bits of an integer literal of type `ty`.
fn literal(number: i128, ty: Type) -> u64 {
    let bits = number as u64;
    match ty {
        // Extended here, so that an instruction needs no extension of a literal.
        Type::S8 => bits as i8 as u32 as u64,
        Type::S16 => bits as i16 as u32 as u64,
        _ => match ty.bits() {
            8 => bits & 0xff,
            16 => bits & 0xffff,
            64 => bits,
            _ => bits & 0xffff_ffff,
        },
    }
}

/// Returns the bits of a 32-bit float constant, such as 0.5, for expansions.
pub(super) fn float_imm(value: f32) -> Arg {
    Arg::imm(Float::Single(value.to_bits()).bits_as(Type::F32))
}
