//! Conversions: `cvt`.

use super::integer::{shift_right_signed, sign};
use super::value::byte_permute;
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::diag::Diagnostic;
use crate::lower::code::{Arg, Op, VReg};
use warpwave_isa::inst::{Round, Ty};
use warpwave_isa::opcode::Opcode;

impl<'t, 'a> Selector<'_, 't, 'a> {
    /// Selects `cvt`. A result narrower than its register is extended.
    pub(super) fn convert(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[
            ".rn",
            ".rz",
            ".rm",
            ".rp",
            ".rni",
            ".rzi",
            ".rmi",
            ".rpi",
            ".ftz",
            ".sat",
            ".satfinite",
        ])?;
        let &[to, from] = form.types.as_slice() else {
            return Err(form.unsupported());
        };
        // 8-bit floats always saturate. No other supported type takes `.satfinite`.
        if form.has(".satfinite") != is_byte_pair(to) {
            return Err(form.unsupported());
        }
        if !has_pair_form(to, from) {
            return Err(form.unsupported());
        }
        let target = form.operand(0)?;
        let result = self.dst_of(form, target, to)?;
        let is_plain = !to.is_float() && !from.is_float() && !form.has(".sat");
        let (own, words) = (to.bits().div_ceil(32) as u8, self.word_count(target));
        if is_plain {
            return self.integer_to_integer(form, result, to, from);
        }
        if words <= own {
            return self.converted(form, result, to, from);
        }
        // A result narrower than its register is extended to it.
        let narrow = self.code.new_group(own);
        self.converted(form, narrow, to, from)?;
        self.widen(result, words, Arg::vreg(narrow), own == 2, to.is_signed());
        Ok(())
    }

    /// Selects a conversion with a result of exactly its type's registers.
    fn converted(&mut self, form: &Form<'t, 'a>, result: VReg, to: Type, from: Type) -> Selected {
        match (to.is_float(), from.is_float()) {
            (false, false) => self.saturated(form, result, to, from),
            (true, false) => self.integer_to_float(form, result, to, from),
            (false, true) => self.float_to_integer(form, result, to, from),
            (true, true) => self.float_to_float(form, result, to, from),
        }
    }

    /// Selects an integer conversion with `.sat`: one I2I, which clamps.
    fn saturated(&mut self, form: &Form<'t, 'a>, result: VReg, to: Type, from: Type) -> Selected {
        let source = self.arg(form, form.operand(1)?, from)?;
        let value = self.extended(source, from);
        let op = Op::machine(Opcode::I2i).src(&[value]).mods(|mods| {
            mods.from = sign(from);
            mods.ty = isa_type(to).unwrap_or_default();
            mods.sat = true;
        });
        self.emit(op.dst(result));
        Ok(())
    }

    /// Selects an integer conversion without `.sat`: a truncation or an extension.
    fn integer_to_integer(&mut self, form: &Form<'t, 'a>, result: VReg, to: Type, from: Type) -> Selected {
        let words = self.word_count(form.operand(0)?);
        let source = self.arg(form, form.operand(1)?, from)?;
        // A result narrower than its register is extended to it. Bits above the value of a 16-bit register are undefined.
        let narrows = to.bits() < from.bits() || (to.bits() == from.bits() && to.bits() < 32);
        let free = to.bits() == 16 && self.is_half_register(form);
        let value = match (narrows, free) {
            (_, true) if to.bits() <= from.bits() => source.part(0),
            (true, false) => self.extended(source.part(0), to),
            // The bits of a negative value end at the width of the unsigned result, and zeros fill the register.
            (false, false) if to.bits() < 32 && from.is_signed() && !to.is_signed() => {
                let value = self.extended(source, from);
                match value.known() {
                    Some(known) => Arg::imm(known & ((1 << to.bits()) - 1)),
                    None => self.extended(value, to),
                }
            }
            _ => self.extended(source, from),
        };
        // A 64-bit result is an extended source. A narrower one in a wider register is extended by its own type.
        let own = if to.bits() == 64 { from } else { to };
        let is_pair = from.bits() == 64 && to.bits() == 64;
        self.widen(result, words, value, is_pair, own.is_signed());
        Ok(())
    }

    fn is_half_register(&self, form: &Form<'t, 'a>) -> bool {
        match form.operands().first() {
            Some(crate::check::Value::Register(reg)) => self.register_type(*reg).bits() == 16,
            _ => false,
        }
    }

    /// Writes a value of one word, or of two if `whole`, to a register of one, two or four words.
    pub(super) fn widen(&mut self, result: VReg, words: u8, value: Arg, whole: bool, signed: bool) {
        // One word: bits above a narrower value are undefined, or extended by the caller.
        if words == 1 {
            self.copy(result, value.part(0), Type::B32);
            return;
        }
        if whole && words == 2 {
            self.copy(result, value, Type::B64);
            return;
        }
        let (ty, filled) = if whole { (Type::B64, 2) } else { (Type::B32, 1) };
        // The upper words come first: the value may be in the low words of the result.
        let top = value.part(filled - 1);
        let upper = match top.known() {
            Some(known) if signed => Arg::imm(u64::from((known as i32 >> 31) as u32)),
            Some(_) => Arg::ZERO,
            None if signed => self.compute(shift_right_signed(top, 31)),
            None => Arg::ZERO,
        };
        self.copy(result, value, ty);
        for n in filled..words {
            self.copy(result.offset(n), upper, Type::B32);
        }
    }

    fn integer_to_float(&mut self, form: &Form<'t, 'a>, result: VReg, to: Type, from: Type) -> Selected {
        let ty = isa_type(to).ok_or_else(|| form.unsupported())?;
        let source = self.arg(form, form.operand(1)?, from)?;
        let value = self.extended(source, from);
        let op = Op::machine(Opcode::I2f).dst(result).src(&[value]).mods(|mods| {
            mods.ty = ty;
            mods.from = sign(from);
            mods.round = rounding(form);
            mods.sat = form.has(".sat");
        });
        self.emit(op);
        Ok(())
    }

    fn float_to_integer(&mut self, form: &Form<'t, 'a>, result: VReg, to: Type, from: Type) -> Selected {
        let (ty, from_ty) = both(form, to, from)?;
        let source = self.arg(form, form.operand(1)?, from)?;
        let op = Op::machine(Opcode::F2i).dst(result).src(&[source]).mods(|mods| {
            mods.ty = ty;
            mods.from = from_ty;
            mods.round = rounding(form);
            mods.ftz = form.has(".ftz");
        });
        self.emit(op);
        Ok(())
    }

    /// Selects a conversion between floats, of one value or of a pair.
    fn float_to_float(&mut self, form: &Form<'t, 'a>, result: VReg, to: Type, from: Type) -> Selected {
        let (ty, from_ty) = both(form, to, from)?;
        let source = self.arg(form, form.operand(1)?, from)?;
        let integral = [".rni", ".rzi", ".rmi", ".rpi"].iter().any(|&round| form.has(round));
        let op = match (ty, from_ty) {
            (Ty::F16x2 | Ty::Bf16x2 | Ty::E4m3x2 | Ty::E5m2x2, Ty::F32) if form.operands().len() == 3 => {
                let low = self.arg(form, form.operand(2)?, from)?;
                Op::machine(Opcode::F2fp).src(&[source, low])
            }
            // F2FP takes only f32. Widening a half is exact.
            (pair, Ty::F16x2) if is_byte_pair(to) => {
                let halves = [0x4432, 0x4410].map(|half| byte_permute(source, Arg::ZERO, half));
                let [high, low] = halves.map(|half| {
                    let half = self.compute(half);
                    self.compute(Op::machine(Opcode::F2f).src(&[half]).mods(|mods| {
                        mods.ty = Ty::F32;
                        mods.from = Ty::F16;
                    }))
                });
                Op::machine(Opcode::F2fp).src(&[high, low]).mods(|mods| mods.ty = pair)
            }
            // A bf16 is the upper half of an f32. PRMT cannot flush or saturate.
            (Ty::F32, Ty::Bf16) if !form.has(".ftz") && !form.has(".sat") => byte_permute(source, Arg::ZERO, 0x1044),
            // Adding -0 changes no value, and applies `.ftz` and `.sat`.
            (Ty::F32, Ty::F32) if !integral => Op::machine(Opcode::Fadd).src(&[source, Arg::ZERO.negated()]),
            _ => Op::machine(Opcode::F2f).src(&[source]),
        };
        let op = op.dst(result).mods(|mods| {
            mods.ty = ty;
            mods.from = from_ty;
            mods.round = rounding(form);
            mods.integral = integral;
            mods.ftz = form.has(".ftz");
            mods.sat = form.has(".sat");
        });
        self.emit(op);
        Ok(())
    }
}

fn both(form: &Form<'_, '_>, to: Type, from: Type) -> Result<(Ty, Ty), Diagnostic> {
    let types = isa_type(to).zip(isa_type(from));
    types.ok_or_else(|| form.unsupported())
}

/// Returns the rounding mode of the qualifiers; round-to-nearest by default.
pub(super) fn rounding(form: &Form<'_, '_>) -> Round {
    let has = |names: [&str; 2]| names.iter().any(|&name| form.has(name));
    match () {
        () if has([".rz", ".rzi"]) => Round::Zero,
        () if has([".rm", ".rmi"]) => Round::Down,
        () if has([".rp", ".rpi"]) => Round::Up,
        () => Round::Nearest,
    }
}

/// True for a pair of 8-bit floats.
fn is_byte_pair(ty: Type) -> bool {
    matches!(ty, Type::E4m3x2 | Type::E5m2x2)
}

/// True if neither type is a pair, or if the pairs have a conversion: between f16 and bytes, or from two f32.
fn has_pair_form(to: Type, from: Type) -> bool {
    let is_pair = |ty| is_byte_pair(ty) || matches!(ty, Type::F16x2 | Type::Bf16x2);
    match (is_pair(to), is_pair(from)) {
        (false, false) => true,
        (true, false) => from == Type::F32,
        (false, true) => false,
        (true, true) => is_byte_pair(to) != is_byte_pair(from) && (to == Type::F16x2 || from == Type::F16x2),
    }
}

/// Returns the machine type for a PTX type, if there is one.
pub(super) fn isa_type(ty: Type) -> Option<Ty> {
    Some(match ty {
        Type::B8 | Type::U8 => Ty::U8,
        Type::S8 => Ty::S8,
        Type::B16 | Type::U16 => Ty::U16,
        Type::S16 => Ty::S16,
        Type::B32 | Type::U32 => Ty::U32,
        Type::S32 => Ty::S32,
        Type::B64 | Type::U64 => Ty::U64,
        Type::S64 => Ty::S64,
        Type::F16 => Ty::F16,
        Type::Bf16 => Ty::Bf16,
        Type::F16x2 => Ty::F16x2,
        Type::Bf16x2 => Ty::Bf16x2,
        Type::E4m3x2 => Ty::E4m3x2,
        Type::E5m2x2 => Ty::E5m2x2,
        Type::F32 => Ty::F32,
        Type::F64 => Ty::F64,
        _ => return None,
    })
}
