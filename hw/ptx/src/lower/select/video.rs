//! Packed bytes and halves (`vadd4`, `vmax2`, `dp2a`): unpacked, computed part by part, and packed again.
//!
//! The absolute difference of four bytes has its own instruction. GPUs since sm_50 have none for the other packed operations.

use super::integer::{negated_integer, sign};
use super::value::byte_permute;
use super::{Form, Selected, Selector};
use crate::ast::Type;
use crate::check::Value;
use crate::lower::code::{Arg, Op, VGuard};
use warpwave_isa::inst::Ty;
use warpwave_isa::opcode::Opcode;

const KNOWN: &[&str] = &[".sat", ".add"];

impl<'t, 'a> Selector<'_, 't, 'a> {
    /// Selects video instructions and `dp2a`.
    pub(super) fn packed_integers(&mut self, form: &Form<'t, 'a>) -> Selected {
        if form.opcode() == "dp2a" {
            return self.half_products(form);
        }
        let parts = match form.opcode().chars().last() {
            Some('4') => 4,
            Some('2') => 2,
            _ => return self.scalar_video(form),
        };
        let selects = form.operands().iter().any(|value| matches!(value, Value::Part(..)));
        if selects || form.opcode().starts_with("vset") {
            return self.selected_video(form, parts);
        }
        form.only(KNOWN)?;
        let &[of_result, of_a, of_b] = form.types.as_slice() else {
            return Err(form.unsupported());
        };
        let result = self.dst_of(form, form.operand(0)?, Type::B32)?;
        let (a, b) = (self.src32(form, 1)?, self.src32(form, 2)?);
        // `.add` sums all parts and a third source in one word.
        let sums = form.has(".add");
        let start = if sums { self.src32(form, 3)? } else { Arg::ZERO };
        if form.opcode() == "vabsdiff4" && !form.has(".sat") {
            let op = Op::machine(Opcode::Vabsdiff4).dst(result).src(&[a, b, start]);
            self.emit(op.mods(|mods| {
                (mods.from, mods.ty) = (sign(of_a), sign(of_b));
                mods.count = u8::from(sums);
            }));
            return Ok(());
        }
        let mut results = Vec::new();
        for n in 0..parts {
            let (a, b) = (
                self.extract_part(a, of_a, n, parts),
                self.extract_part(b, of_b, n, parts),
            );
            let value = self.part_result(form, a, b)?;
            results.push(match form.has(".sat") {
                true => self.clamped(value, of_result, 32 / parts),
                false => value,
            });
        }
        if sums {
            let sum = |start: Arg, value: &Arg| self.compute(Op::machine(Opcode::Iadd3).src(&[start, *value]));
            let total = results.iter().fold(start, sum);
            self.copy(result, total, Type::B32);
            return Ok(());
        }
        let op = match results[..] {
            // The low halves of both parts.
            [low, high] => byte_permute(low, high, 0x5410),
            _ => {
                // Byte 0 of each part.
                let low = self.compute(byte_permute(results[0], results[1], 0x0040));
                let high = self.compute(byte_permute(results[2], results[3], 0x0040));
                byte_permute(low, high, 0x5410)
            }
        };
        self.emit(op.dst(result));
        Ok(())
    }

    /// Extracts byte or half `n`, extended by its type.
    fn extract_part(&mut self, word: Arg, ty: Type, n: u32, parts: u32) -> Arg {
        let bytes = 4 / parts;
        let last = n * bytes + bytes - 1;
        // Byte 4 is the first byte of the zero operand. Adding 8 to a byte number repeats its sign.
        let beyond = if ty.is_signed() { last | 8 } else { 4 };
        let selector = (0..4).fold(0, |selector, at| {
            let byte = if at < bytes { n * bytes + at } else { beyond };
            selector | byte << (4 * at)
        });
        self.compute(byte_permute(word, Arg::ZERO, selector.into()))
    }

    /// Computes one byte or half of a packed result.
    fn part_result(&mut self, form: &Form<'t, 'a>, a: Arg, b: Arg) -> Result<Arg, crate::diag::Diagnostic> {
        let add = |a: Arg, b: Arg, c: Arg| Op::machine(Opcode::Iadd3).src(&[a, b, c]);
        let operation = form.opcode().trim_end_matches(['2', '4']);
        Ok(match operation {
            // Parts have at most 16 bits, so a word holds every sum and difference.
            "vadd" => self.compute(add(a, b, Arg::ZERO)),
            "vsub" => self.compute(add(a, negated_integer(b), Arg::ZERO)),
            "vabsdiff" => {
                let difference = self.compute(add(a, negated_integer(b), Arg::ZERO));
                self.compute(Op::machine(Opcode::Iabs).src(&[difference]))
            }
            // The sum rounds up if it is zero or more, and down if negative.
            "vavrg" => {
                let sum = self.compute(add(a, b, Arg::ZERO));
                let negative = self.compute(super::integer::shift_right_signed(sum, 31));
                let rounded = self.compute(add(sum, negative, Arg::imm(1)));
                self.compute(super::integer::shift_right_signed(rounded, 1))
            }
            "vmin" | "vmax" => {
                let min = if operation == "vmin" {
                    VGuard::ALWAYS
                } else {
                    VGuard::NEVER
                };
                self.compute(extreme(a, b, min))
            }
            _ => return Err(form.unsupported()),
        })
    }

    /// Clamps a value to the range of `bits` bits.
    fn clamped(&mut self, value: Arg, ty: Type, bits: u32) -> Arg {
        let (min, max) = match ty.is_signed() {
            true => (-(1i32 << (bits - 1)), (1i32 << (bits - 1)) - 1),
            false => (0, (1i64 << bits) as i32 - 1),
        };
        // Signed extremes will do, because every part fits in a signed word.
        let from_below = self.compute(extreme(value, Arg::imm(u64::from(min as u32)), VGuard::NEVER));
        self.compute(extreme(from_below, Arg::imm(u64::from(max as u32)), VGuard::ALWAYS))
    }

    /// Selects `dp2a`: two halves of a times the low or high two bytes of b.
    fn half_products(&mut self, form: &Form<'t, 'a>) -> Selected {
        form.only(&[".lo", ".hi"])?;
        let &[of_a, of_b] = form.types.as_slice() else {
            return Err(form.unsupported());
        };
        let result = self.dst_of(form, form.operand(0)?, Type::B32)?;
        let (a, b) = (self.src32(form, 1)?, self.src32(form, 2)?);
        let mut sum = self.src32(form, 3)?;
        let first = if form.has(".hi") { 2 } else { 0 };
        for n in 0..2 {
            let (x, y) = (
                self.extract_part(a, of_a, n, 2),
                self.extract_part(b, of_b, first + n, 4),
            );
            sum = self.compute(Op::machine(Opcode::Imad).src(&[x, y, sum]));
        }
        self.copy(result, sum, Type::B32);
        Ok(())
    }
}

fn extreme(a: Arg, b: Arg, min: VGuard) -> Op {
    let op = Op::machine(Opcode::Imnmx).src(&[a, b]).psrc(min);
    op.mods(|mods| mods.ty = Ty::S32)
}
