//! Integer arithmetic, logic and shifts.

use super::value::byte_permute;
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::check::Value;
use crate::diag::Diagnostic;
use crate::lower::code::{Arg, Op, VGuard, VReg, Wide};
use warpwave_isa::inst::{Cmp, Ty};
use warpwave_isa::opcode::Opcode;

/// Truth table columns of LOP3's inputs a, b and c.
const A: u8 = 0xf0;
const B: u8 = 0xcc;
const C: u8 = 0xaa;

impl<'t, 'a> Selector<'_, 't, 'a> {
    pub(super) fn integer(&mut self, form: &Form<'t, 'a>) -> Selected {
        match (form.opcode(), form.ty()) {
            (_, Type::Pred) => self.predicate_logic(form),
            ("setp", _) => self.compare(form),
            ("selp", _) => self.selp(form),
            ("add" | "sub" | "neg", _) => self.sum(form),
            ("mul" | "mad" | "mul24" | "mad24", _) => self.product(form),
            ("and" | "or" | "xor" | "not", _) => self.logic(form),
            ("cnot", _) => self.zero_test(form),
            ("shl" | "shr", _) => self.shift(form),
            ("shf", _) => self.funnel(form),
            ("min" | "max", _) => self.extreme(form),
            ("abs", _) => self.absolute(form),
            ("div" | "rem", _) => self.divide(form),
            ("bfe" | "bfi" | "lop3" | "prmt" | "dp4a", _) => self.bit_fields(form),
            ("sad", _) => self.absolute_difference(form),
            ("bmsk", _) => self.bit_mask(form),
            ("popc" | "clz" | "bfind" | "brev", _) => self.bit_counts(form),
            _ => Err(form.unsupported()),
        }
    }

    /// Extends an 8- or 16-bit source to its whole register.
    pub(super) fn extended(&mut self, source: Arg, ty: Type) -> Arg {
        if source.known().is_some() {
            return source;
        }
        // Nibbles of PRMT: 8 + n copies the sign of byte n, 4 is a zero byte of the second source.
        let selector = match ty {
            Type::S16 => 0x9910,
            Type::U16 | Type::B16 => 0x4410,
            Type::S8 => 0x8880,
            Type::U8 | Type::B8 => 0x4440,
            _ => return source,
        };
        self.compute(byte_permute(source, Arg::ZERO, selector))
    }

    pub(super) fn extended_src(&mut self, form: &Form<'t, 'a>, n: usize) -> Result<Arg, Diagnostic> {
        let source = self.src(form, n)?;
        Ok(self.extended(source, form.ty()))
    }

    /// Selects `add`, `sub` and `neg`.
    fn sum(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[])?;
        let result = self.dst(form, 0)?;
        let first = self.src(form, 1)?;
        let (first, second) = match form.opcode() {
            "neg" => (Arg::ZERO, first),
            _ => (first, self.src(form, 2)?),
        };
        let subtracts = form.opcode() != "add";
        let op = match (form.ty().bits(), subtracts) {
            (64, false) => Op::wide(Wide::Add).src(&[first, second]),
            (64, true) => Op::wide(Wide::Sub).src(&[first, second]),
            (_, false) => Op::machine(Opcode::Iadd3).src(&[first, second]),
            (_, true) => Op::machine(Opcode::Iadd3).src(&[first, negated_integer(second)]),
        };
        self.emit(op.dst(result));
        Ok(())
    }

    /// Selects `mul` and `mad`.
    fn product(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".lo", ".hi", ".wide"])?;
        let ty = form.ty();
        let wide = form.has(".wide");
        // Valid forms of `mul24` come from the library. No product has 128 bits.
        if form.opcode().ends_with("24") || (wide && ty.bits() == 64) {
            return Err(form.unsupported());
        }
        let result = if wide && ty.bits() == 32 {
            self.dst_of(form, form.operand(0)?, Type::B64)?
        } else {
            self.dst(form, 0)?
        };
        let a = self.src(form, 1)?;
        let b = self.src(form, 2)?;
        // A literal addend of a wide product has twice the bits too.
        let sum_type = match (wide, ty.bits()) {
            (true, 32) => Type::B64,
            (true, 16) => Type::B32,
            _ => ty,
        };
        let c = match form.operands().get(3) {
            Some(value) => self.arg(form, value, sum_type)?,
            None => Arg::ZERO,
        };
        match (ty.bits(), wide, form.has(".hi")) {
            (16, true, _) => {
                // A product of two 16-bit values fits in a word.
                let (a, b) = (self.extended(a, ty), self.extended(b, ty));
                self.emit(multiply_add(ty, a, b, c).dst(result));
            }
            (16, _, true) => self.high_half(ty, result, [a, b, c]),
            (32, true, _) => {
                self.emit(
                    Op::machine(Opcode::ImadWide)
                        .dst(result)
                        .src(&[a, b, c])
                        .mods(|mods| mods.ty = sign(ty)),
                );
            }
            (32, _, true) => {
                self.emit(multiply_add(ty, a, b, c).dst(result).mods(|mods| mods.high = true));
            }
            (64, _, true) => self.high_64(form, result, [a, b, c])?,
            (64, ..) => self.emit(Op::wide(Wide::Mad).dst(result).src(&[a, b, c])),
            _ => self.emit(multiply_add(ty, a, b, c).dst(result)),
        }
        Ok(())
    }

    /// Computes the upper half of a 16-bit product, plus `c`.
    fn high_half(&mut self, ty: Type, result: VReg, [a, b, c]: [Arg; 3]) {
        let (a, b) = (self.extended(a, ty), self.extended(b, ty));
        let product = self.compute(multiply_add(ty, a, b, Arg::ZERO));
        // PRMT: the upper half of the product, as the low half of a word.
        let high = self.compute(byte_permute(product, Arg::ZERO, 0x4432));
        self.emit(Op::machine(Opcode::Iadd3).dst(result).src(&[high, c]));
    }

    /// Computes the high 64 of 128 product bits: four products, with the middle ones added with carry.
    pub(super) fn high_64(&mut self, form: &Form<'t, 'a>, result: VReg, [a, b, c]: [Arg; 3]) -> Selected {
        let wide = |a: Arg, b: Arg, c: Arg| Op::machine(Opcode::ImadWide).src(&[a, b, c]);
        let low = multiply_add(Type::U32, a.part(0), b.part(0), Arg::ZERO);
        let low = self.compute(low.mods(|mods| mods.high = true));
        let carried = self.zero_extended(low);
        // This sum cannot overflow: a product of words plus a word is below 2^64.
        let middle = self.compute(wide(a.part(1), b.part(0), carried));
        let other = self.compute(wide(a.part(0), b.part(1), Arg::ZERO));
        let [below, above] = [(); 2].map(|()| self.code.new_pred());
        let sum = |n: u8| Op::machine(Opcode::Iadd3).src(&[middle.part(n), other.part(n)]);
        self.compute(sum(0).pdst(below));
        let carried = self.temp_pair();
        let with_carry = |op: Op, pred| op.psrc(VGuard::pred(pred)).mods(|mods| mods.extended = true);
        self.emit(with_carry(sum(1).pdst(above), below).dst(carried));
        self.emit(with_carry(Op::machine(Opcode::Iadd3), above).dst(carried.offset(1)));
        let mut value = self.compute(wide(a.part(1), b.part(1), Arg::vreg(carried)));
        if form.ty().is_signed() {
            for (number, other) in [(a, b), (b, a)] {
                value = self.minus_where_negative(value, number, other);
            }
        }
        self.emit(Op::wide(Wide::Add).dst(result).src(&[value, c]));
        Ok(())
    }

    /// Corrects an unsigned product for a negative factor: `value - (number < 0 ? other : 0)`.
    fn minus_where_negative(&mut self, value: Arg, number: Arg, other: Arg) -> Arg {
        // Read as unsigned, a negative factor is 2^64 too large, so the upper half is `other` too large.
        let mask = self.compute(shift_right_signed(number.part(1), 31));
        let pair = self.temp_pair();
        for n in 0..2 {
            self.emit(lop(other.part(n), mask, Arg::ZERO, A & B).dst(pair.offset(n)));
        }
        self.compute(Op::wide(Wide::Sub).src(&[value, Arg::vreg(pair)]))
    }

    fn zero_extended(&mut self, low: Arg) -> Arg {
        let pair = self.temp_pair();
        self.emit(Op::machine(Opcode::Mov).dst(pair).src(&[low]));
        self.emit(Op::machine(Opcode::Mov).dst(pair.offset(1)));
        Arg::vreg(pair)
    }

    fn logic(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[])?;
        let result = self.dst(form, 0)?;
        let a = self.src(form, 1)?;
        let (b, lut) = match form.opcode() {
            "not" => (Arg::ZERO, !A),
            "and" => (self.src(form, 2)?, A & B),
            "or" => (self.src(form, 2)?, A | B),
            _ => (self.src(form, 2)?, A ^ B),
        };
        let op = match form.ty().bits() {
            64 => Op::wide(Wide::Lop).src(&[a, b]).mods(|mods| mods.lut = lut),
            _ => lop(a, b, Arg::ZERO, lut),
        };
        self.emit(op.dst(result));
        Ok(())
    }

    /// Selects `cnot`: 1 for zero, and 0 for any other value.
    fn zero_test(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[])?;
        let result = self.dst(form, 0)?;
        let source = self.extended_src(form, 1)?;
        let pred = self.code.new_pred();
        let ty = form.ty();
        self.emit(self.comparison(ty, Cmp::Eq, source, Arg::ZERO).pdst(pred));
        let op = self
            .selection(ty)
            .src(&[Arg::imm(1), Arg::ZERO])
            .psrc(VGuard::pred(pred));
        self.emit(op.dst(result));
        Ok(())
    }

    fn shift(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[])?;
        let ty = form.ty();
        let result = self.dst(form, 0)?;
        let right = form.opcode() == "shr";
        // Bits above a narrow value would be shifted in from the left.
        let value = if right {
            self.extended_src(form, 1)?
        } else {
            self.src(form, 1)?
        };
        let count = self.src32(form, 2)?;
        let op = match (ty.bits(), right) {
            (64, true) => Op::wide(Wide::Shr).src(&[value, count]).mods(|mods| mods.ty = sign(ty)),
            (64, false) => Op::wide(Wide::Shl).src(&[value, count]),
            (_, true) => shift_right(sign(ty), value, count),
            (_, false) => Op::machine(Opcode::Shf).src(&[value, count, Arg::ZERO]),
        };
        self.emit(op.dst(result));
        Ok(())
    }

    /// Selects `min` and `max`.
    fn extreme(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[])?;
        let ty = form.ty();
        let result = self.dst(form, 0)?;
        let a = self.extended_src(form, 1)?;
        let b = self.extended_src(form, 2)?;
        let is_min = form.opcode() == "min";
        if ty.bits() != 64 {
            // IMNMX chooses by a predicate: PT gives the minimum.
            let select_min = if is_min { VGuard::ALWAYS } else { VGuard::NEVER };
            let op = Op::machine(Opcode::Imnmx)
                .src(&[a, b])
                .psrc(select_min)
                .mods(|mods| mods.ty = sign(ty));
            self.emit(op.dst(result));
            return Ok(());
        }
        let pred = self.code.new_pred();
        // There is no 64-bit IMNMX: a comparison and a selection.
        let cmp = if is_min { Cmp::Lt } else { Cmp::Gt };
        self.emit(self.comparison(ty, cmp, a, b).pdst(pred));
        self.emit(self.selection(ty).dst(result).src(&[a, b]).psrc(VGuard::pred(pred)));
        Ok(())
    }

    fn absolute(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[])?;
        let ty = form.ty();
        let result = self.dst(form, 0)?;
        let a = self.extended_src(form, 1)?;
        if ty.bits() != 64 {
            self.emit(Op::machine(Opcode::Iabs).dst(result).src(&[a]));
            return Ok(());
        }
        let pred = self.code.new_pred();
        self.emit(self.comparison(ty, Cmp::Lt, a, Arg::ZERO).pdst(pred));
        let negated = self.compute(Op::wide(Wide::Sub).src(&[Arg::ZERO, a]));
        self.emit(
            self.selection(ty)
                .dst(result)
                .src(&[negated, a])
                .psrc(VGuard::pred(pred)),
        );
        Ok(())
    }

    /// Selects `sad`: c + |a - b|, computed as maximum minus minimum.
    fn absolute_difference(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[])?;
        if form.ty().bits() == 64 {
            return Err(form.unsupported());
        }
        let result = self.dst(form, 0)?;
        let args = [self.extended_src(form, 1)?, self.extended_src(form, 2)?];
        let addend = self.src(form, 3)?;
        let [greater, lesser] = [VGuard::NEVER, VGuard::ALWAYS].map(|select_min| {
            let op = Op::machine(Opcode::Imnmx).src(&args).psrc(select_min);
            self.compute(op.mods(|mods| mods.ty = sign(form.ty())))
        });
        self.emit(
            Op::machine(Opcode::Iadd3)
                .dst(result)
                .src(&[greater, lesser.negated(), addend]),
        );
        Ok(())
    }

    fn divide(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[])?;
        let result = self.dst(form, 0)?;
        let a = self.extended_src(form, 1)?;
        let b = self.extended_src(form, 2)?;
        self.integer_division(form, result, [a, b]);
        Ok(())
    }
}

/// Creates a LOP3 with the truth table `lut`. 0xc0 is a & b, 0xfc is a | b, 0x3c is a ^ b.
pub(super) fn lop(a: Arg, b: Arg, c: Arg, lut: u8) -> Op {
    Op::machine(Opcode::Lop3).src(&[a, b, c]).mods(|mods| mods.lut = lut)
}

/// Selects bits of a where the mask is one, and bits of b elsewhere.
pub(super) fn blend(a: Arg, mask: Arg, b: Arg) -> Op {
    lop(a, mask, b, (A & B) | (C & !B))
}

/// Shifts right by a funnel shift with the value as its high word.
pub(super) fn shift_right(ty: Ty, value: Arg, count: Arg) -> Op {
    Op::machine(Opcode::Shf).src(&[Arg::ZERO, count, value]).mods(|mods| {
        mods.ty = ty;
        mods.right = true;
        mods.high = true;
    })
}

pub(super) fn shift_right_signed(value: Arg, count: u64) -> Op {
    shift_right(Ty::S32, value, Arg::imm(count))
}

fn multiply_add(ty: Type, a: Arg, b: Arg, c: Arg) -> Op {
    Op::machine(Opcode::Imad)
        .src(&[a, b, c])
        .mods(|mods| mods.ty = sign(ty))
}

/// Negates an integer: a literal by value, a register by its operand modifier.
pub(super) fn negated_integer(arg: Arg) -> Arg {
    match arg.known() {
        // Then the literal is plain, and later passes can add it to a displacement.
        Some(value) => Arg::imm(u64::from((value as u32).wrapping_neg())),
        None => arg.negated(),
    }
}

/// Returns the signed or unsigned machine type of 32 or 64 bits.
pub(super) fn sign(ty: Type) -> Ty {
    match (ty.bits(), ty.is_signed()) {
        (64, true) => Ty::S64,
        (64, false) => Ty::U64,
        (_, true) => Ty::S32,
        (_, false) => Ty::U32,
    }
}

/// Returns the elements of a vector operand, or the single operand.
pub(super) fn parts<'v, 'a>(value: &'v Value<'a>) -> &'v [Value<'a>] {
    match value {
        Value::Vector(parts) => parts,
        single => std::slice::from_ref(single),
    }
}
