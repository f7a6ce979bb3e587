//! Floating point: 16, 32 and 64 bits.
//!
//! MUFU treats denormal inputs as zero. So an approximate function without `.ftz` is scaled before and after MUFU, as the
//! vendor's compiler does.

use super::compare::comparison_of;
use super::convert::{isa_type, rounding};
use super::integer::{blend, lop};
use super::qualifiers::COMPARISON_QUALIFIERS;
use super::value::float_imm;
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::diag::Diagnostic;
use crate::lower::code::{Arg, Op, VGuard, VReg};
use warpwave_isa::inst::{Cmp, Mufu, Ty};
use warpwave_isa::opcode::Opcode;

/// Smallest normal 32-bit float.
const MIN_NORMAL: f32 = f32::MIN_POSITIVE;
/// 2^24. It makes any denormal number normal.
const SCALE_UP: f32 = 16_777_216.0;

impl<'t, 'a> Selector<'_, 't, 'a> {
    pub(super) fn float(&mut self, form: &Form<'t, 'a>) -> Selected {
        if form.types == [Type::F32x2] {
            return self.float_pair(form);
        }
        if form.types.len() == 2 && matches!(form.opcode(), "add" | "sub" | "fma") {
            return self.mixed_sum(form);
        }
        if form.types.len() > 1 || isa_type(form.ty()).is_none() {
            return Err(form.unsupported());
        }
        match form.opcode() {
            "add" | "sub" | "mul" | "fma" | "mad" => self.multiply_add(form),
            "neg" | "abs" => self.sign_bit(form),
            "min" | "max" => self.float_extreme(form),
            "setp" => self.float_compare(form),
            "selp" => self.selp(form),
            "copysign" => self.copy_sign(form),
            "div" => self.float_divide(form),
            "rcp" | "sqrt" | "rsqrt" | "ex2" | "lg2" | "sin" | "cos" | "tanh" => self.function(form),
            _ => Err(form.unsupported()),
        }
    }

    pub(super) fn float_mods(&self, form: &Form<'t, 'a>, op: Op) -> Op {
        op.mods(|mods| {
            mods.ty = isa_type(form.ty()).unwrap_or_default();
            mods.round = rounding(form);
            mods.ftz = form.has(".ftz");
            mods.sat = form.has(".sat");
        })
    }

    /// Returns the sources of a sum, difference, product or multiply-add. A subtrahend is negated.
    pub(super) fn float_sources(&mut self, form: &Form<'t, 'a>) -> Result<[Arg; 3], Diagnostic> {
        let mut args = [Arg::ZERO; 3];
        for n in 1..form.operands().len() {
            args[n - 1] = self.src(form, n)?;
        }
        if form.opcode() == "sub" {
            args[1] = args[1].negated();
        }
        Ok(args)
    }

    /// Selects `add`, `sub`, `mul`, `fma` and `mad`.
    fn multiply_add(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".rn", ".rz", ".rm", ".rp", ".ftz", ".sat"])?;
        let result = self.dst(form, 0)?;
        let args = self.float_sources(form)?;
        let opcodes = match form.ty() {
            Type::F64 => [Opcode::Dadd, Opcode::Dmul, Opcode::Dfma],
            Type::F32 => [Opcode::Fadd, Opcode::Fmul, Opcode::Ffma],
            _ => [Opcode::Hadd2, Opcode::Hmul2, Opcode::Hfma2],
        };
        let opcode = match form.opcode() {
            "add" | "sub" => opcodes[0],
            "mul" => opcodes[1],
            _ => opcodes[2],
        };
        let mut op = self.float_mods(form, Op::machine(opcode).dst(result).src(&args));
        // Without a modifier, a product and a sum round to nearest, or fuse.
        let is_open = ![".rn", ".rz", ".rm", ".rp"].iter().any(|&modifier| form.has(modifier));
        op.contraction = is_open.then_some(self.region);
        self.emit(op);
        Ok(())
    }

    /// Selects `neg` and `abs`, which change the sign bit only.
    fn sign_bit(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".ftz"])?;
        let result = self.dst(form, 0)?;
        let source = self.src(form, 1)?;
        let signs = match form.ty() {
            Type::F16 | Type::Bf16 => 0x8000,
            Type::F16x2 | Type::Bf16x2 => 0x8000_8000,
            _ => 0x8000_0000,
        };
        // The sign is in the last word. An FADD would also change a NaN.
        let last = form.ty().bits().div_ceil(32) as u8 - 1;
        // Truth tables of LOP3 for a ^ b and a & b.
        let (lut, mask) = if form.opcode() == "neg" {
            (0x3c, signs)
        } else {
            (0xc0, !signs & 0xffff_ffff)
        };
        let mut op = lop(source.part(last), Arg::imm(mask), Arg::ZERO, lut).dst(result.offset(last));
        // The vendor's assembler negates a product through `neg`, not through `xor`.
        op.contraction = (form.opcode() == "neg").then_some(self.region);
        self.emit(op);
        if last == 1 {
            self.copy(result, source.part(0), Type::B32);
        }
        Ok(())
    }

    /// Selects `min` and `max` of two or three values.
    fn float_extreme(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".ftz", ".NaN"])?;
        let result = self.dst(form, 0)?;
        let opcode = match form.ty() {
            Type::F64 => Opcode::Dmnmx,
            Type::F32 => Opcode::Fmnmx,
            _ => Opcode::Hmnmx2,
        };
        // The instruction chooses by a predicate: PT gives the minimum.
        let select_min = if form.opcode() == "min" {
            VGuard::ALWAYS
        } else {
            VGuard::NEVER
        };
        let args = match form.operands().len() {
            4 => [self.extreme_of_three(form, opcode, select_min)?, self.src(form, 3)?],
            _ => [self.src(form, 1)?, self.src(form, 2)?],
        };
        let op = self.float_mods(form, Op::machine(opcode).dst(result).src(&args).psrc(select_min));
        self.emit(op.mods(|mods| mods.unordered = form.has(".NaN")));
        Ok(())
    }

    fn float_compare(&mut self, form: &Form<'t, 'a>) -> Selected {
        let (cmp, unordered) = comparison_of(form)?;
        form.only(COMPARISON_QUALIFIERS)?;
        let args = [self.src(form, 1)?, self.src(form, 2)?];
        let opcode = match form.ty() {
            Type::F64 => Opcode::Dsetp,
            Type::F32 => Opcode::Fsetp,
            _ => Opcode::Hsetp2,
        };
        let op = Op::machine(opcode).src(&args).mods(|mods| {
            mods.cmp = cmp;
            mods.unordered = unordered;
            mods.ty = isa_type(form.ty()).unwrap_or_default();
            mods.ftz = form.has(".ftz");
        });
        self.finish_compare(form, op)
    }

    /// Selects `copysign`: the sign of the first source, and the other bits of the second.
    fn copy_sign(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[])?;
        let last = form.ty().bits().div_ceil(32) as u8 - 1;
        let result = self.dst(form, 0)?;
        let (sign, value) = (self.src(form, 1)?, self.src(form, 2)?);
        // The sign bit of the last word, from the first source.
        let mask = Arg::imm(0x8000_0000);
        self.emit(blend(sign.part(last), mask, value.part(last)).dst(result.offset(last)));
        if last == 1 {
            self.copy(result, value.part(0), Type::B32);
        }
        Ok(())
    }

    /// Selects `div`: exact by a routine, otherwise a product with the reciprocal.
    fn float_divide(&mut self, form: &Form<'t, 'a>) -> Selected {
        let result = self.dst(form, 0)?;
        let (a, b) = (self.src(form, 1)?, self.src(form, 2)?);
        if is_exact(form) {
            form.only(&[".rn", ".rz", ".rm", ".rp", ".ftz"])?;
            return self.exact_float(form, rounding(form), result, &[a, b]);
        }
        form.only(&[".approx", ".full", ".ftz"])?;
        if form.ty() != Type::F32 {
            return Err(form.unsupported());
        }
        let (full, ftz) = (form.has(".full"), form.has(".ftz"));
        // `.full` keeps its accuracy for huge divisors too. Without `.ftz` denormal divisors count.
        let (a, b) = match (full, ftz) {
            (true, false) => self.scale_quotient(a, b),
            (true, true) => self.scale_down_quotient(a, b),
            (false, false) => self.scale_up_quotient(a, b),
            (false, true) => (a, b),
        };
        // The reciprocal of a divisor above 2^126 is denormal. `div.approx` treats it as zero (PTX ISA, `div`).
        let reciprocal = mufu(Mufu::Rcp, b).mods(|mods| mods.ftz = ftz || !full);
        let reciprocal = self.compute(reciprocal);
        let op = Op::machine(Opcode::Fmul).dst(result).src(&[a, reciprocal]);
        self.emit(op.mods(|mods| {
            mods.ty = Ty::F32;
            mods.ftz = ftz;
        }));
        Ok(())
    }

    /// Scales both operands if the divisor or its reciprocal is denormal.
    fn scale_quotient(&mut self, a: Arg, b: Arg) -> (Arg, Arg) {
        let choice = |x: f32, y: Arg, pred| Op::machine(Opcode::Sel).src(&[float_imm(x), y]).psrc(pred);
        let product = |x: Arg, y: Arg| Op::machine(Opcode::Fmul).src(&[x, y]).mods(|mods| mods.ty = Ty::F32);
        // MUFU.RCP reads a denormal divisor as zero.
        let tiny = self.magnitude_test(b, Cmp::Lt, MIN_NORMAL);
        let factor = self.compute(choice(SCALE_UP, float_imm(1.0), tiny));
        // Above 2^126 the reciprocal is denormal.
        let huge = self.magnitude_test(b, Cmp::Gt, f32::from_bits(0x7e80_0000));
        let factor = self.compute(choice(0.25, factor, huge));
        (self.compute(product(a, factor)), self.compute(product(b, factor)))
    }

    /// Multiplies both operands by 2^24 if the divisor is denormal.
    fn scale_up_quotient(&mut self, a: Arg, b: Arg) -> (Arg, Arg) {
        let tiny = self.magnitude_test(b, Cmp::Lt, MIN_NORMAL);
        (
            self.scaled_where(tiny, a, SCALE_UP),
            self.scaled_where(tiny, b, SCALE_UP),
        )
    }

    /// Divides both operands by 4 if the reciprocal of the divisor would be denormal.
    fn scale_down_quotient(&mut self, a: Arg, b: Arg) -> (Arg, Arg) {
        let huge = self.magnitude_test(b, Cmp::Gt, f32::from_bits(0x7e80_0000));
        (self.scaled_where(huge, a, 0.25), self.scaled_where(huge, b, 0.25))
    }

    /// Returns a predicate for |a| cmp limit.
    fn magnitude_test(&mut self, a: Arg, cmp: Cmp, limit: f32) -> VGuard {
        let magnitude = Arg {
            abs: true,
            neg: false,
            ..a
        };
        self.float_test(magnitude, cmp, limit)
    }

    fn float_test(&mut self, a: Arg, cmp: Cmp, limit: f32) -> VGuard {
        let pred = self.code.new_pred();
        let op = Op::machine(Opcode::Fsetp).src(&[a, float_imm(limit)]).pdst(pred);
        self.emit(op.mods(|mods| {
            mods.cmp = cmp;
            mods.ty = Ty::F32;
        }));
        VGuard::pred(pred)
    }

    /// Returns the value, multiplied by a factor where the predicate holds.
    fn scaled_where(&mut self, guard: VGuard, value: Arg, factor: f32) -> Arg {
        // A guarded product on a copy: other lanes keep the value as it is.
        let scaled = self.compute(Op::machine(Opcode::Mov).src(&[value]));
        self.overwrite_where(
            guard,
            scaled,
            Op::machine(Opcode::Fmul).src(&[scaled, float_imm(factor)]),
        );
        scaled
    }

    /// Overwrites a temporary where the predicate holds.
    fn overwrite_where(&mut self, guard: VGuard, value: Arg, op: Op) {
        let op = op.guard(guard).mods(|mods| mods.ty = Ty::F32);
        self.emit(Op {
            dst: value.as_vreg(),
            ..op
        });
    }

    /// Selects reciprocals, roots, `ex2`, `lg2` and the other functions of MUFU.
    fn function(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".approx", ".rn", ".rz", ".rm", ".rp", ".ftz"])?;
        let result = self.dst(form, 0)?;
        let a = self.src(form, 1)?;
        if is_exact(form) {
            return self.exact_float(form, rounding(form), result, &[a]);
        }
        // Without a rounding mode the function is approximate: MUFU itself.
        let function = match form.opcode() {
            "rcp" => Mufu::Rcp,
            "sqrt" => Mufu::Sqrt,
            "rsqrt" => Mufu::Rsq,
            "ex2" => Mufu::Ex2,
            "lg2" => Mufu::Lg2,
            "sin" => Mufu::Sin,
            "cos" => Mufu::Cos,
            _ => Mufu::Tanh,
        };
        match form.ty() {
            Type::F32 if form.has(".ftz") => {
                self.emit(mufu(function, a).dst(result).mods(|mods| mods.ftz = true));
                Ok(())
            }
            Type::F32 => self.scaled_function(function, result, a),
            Type::F64 => self.approximate_double(form, function, result, a),
            _ => {
                let op = self.float_mods(form, mufu(function, a).dst(result));
                self.emit(op);
                Ok(())
            }
        }
    }

    /// Selects an approximate function, scaled away from the denormal range and back.
    fn scaled_function(&mut self, function: Mufu, result: VReg, a: Arg) -> Selected {
        let multiply = |value: Arg, factor: f32| Op::machine(Opcode::Fmul).src(&[value, float_imm(factor)]);
        let value = match function {
            Mufu::Ex2 => {
                let small = self.float_test(a, Cmp::Lt, -126.0);
                // 2^x is the square of 2^(x/2), which is normal.
                let scaled = self.scaled_where(small, a, 0.5);
                let power = self.compute(mufu(function, scaled));
                self.overwrite_where(small, power, Op::machine(Opcode::Fmul).src(&[power, power]));
                power
            }
            Mufu::Lg2 | Mufu::Rsq | Mufu::Sqrt | Mufu::Rcp => {
                let tiny = self.magnitude_test(a, Cmp::Lt, MIN_NORMAL);
                let scaled = self.scaled_where(tiny, a, SCALE_UP);
                let value = self.compute(mufu(function, scaled));
                // Undoes the factor 2^24: its logarithm, its square root, or the factor itself.
                let back = match function {
                    Mufu::Lg2 => Op::machine(Opcode::Fadd).src(&[value, float_imm(-24.0)]),
                    Mufu::Rsq => multiply(value, 4096.0),
                    Mufu::Sqrt => multiply(value, 1.0 / 4096.0),
                    _ => multiply(value, SCALE_UP),
                };
                self.overwrite_where(tiny, value, back);
                value
            }
            _ => self.compute(mufu(function, a)),
        };
        self.copy(result, value, Type::F32);
        Ok(())
    }

    /// Selects `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64`: the high word from MUFU. `rsqrt` without `.ftz` is refined.
    fn approximate_double(&mut self, form: &Form<'t, 'a>, function: Mufu, result: VReg, a: Arg) -> Selected {
        match (function, form.has(".ftz")) {
            (Mufu::Rcp | Mufu::Rsq, true) => {
                let op = mufu(function, a.part(1)).dst(result.offset(1));
                self.emit(op.mods(|mods| mods.ty = Ty::F64));
                self.copy(result, Arg::ZERO, Type::B32);
            }
            (Mufu::Rsq, false) => self.double_rsqrt(result, a),
            _ => return Err(form.unsupported()),
        }
        Ok(())
    }
}

/// True if the instruction names a rounding mode, so its result is correctly rounded.
fn is_exact(form: &Form<'_, '_>) -> bool {
    [".rn", ".rz", ".rm", ".rp"].iter().any(|&round| form.has(round))
}

fn mufu(function: Mufu, a: Arg) -> Op {
    Op::machine(Opcode::Mufu).src(&[a]).mods(|mods| {
        mods.mufu = function;
        mods.ty = Ty::F32;
    })
}
