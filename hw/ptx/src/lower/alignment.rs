//! Alignment: the low four bits of registers, where every definition gives them the same value.
//!
//! An address is a multiple of 16 if its low four bits are known to be 0. The analysis starts without values and meets all
//! definitions of a register, until nothing changes. So a loop variable with a step of 16 keeps its alignment.

use super::code::{Arg, Bits, Code, Op, OpKind, VReg};
use warpwave_isa::opcode::Opcode;

/// Number of low bits that the analysis follows: the widest access has 16 bytes.
const WIDTH: u32 = 4;
/// Rounds over the code until the analysis gives up. Each nested loop needs about one.
const MAX_ROUNDS: usize = 32;

/// The low bits of a value, from bit 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct LowBits {
    /// Number of known bits, at most [`WIDTH`].
    known: u32,
    /// The known bits. All others are 0.
    bits: u32,
}

impl LowBits {
    const UNKNOWN: LowBits = LowBits { known: 0, bits: 0 };

    /// Keeps the lowest `known` bits of a value.
    fn of(bits: u32, known: u32) -> LowBits {
        let known = known.min(WIDTH);
        LowBits {
            known,
            bits: bits & ((1 << known) - 1),
        }
    }

    fn constant(value: u32) -> LowBits {
        LowBits::of(value, WIDTH)
    }

    /// Returns the bits that are known and equal in both.
    fn meet(self, other: LowBits) -> LowBits {
        let same = (self.bits ^ other.bits).trailing_zeros();
        LowBits::of(self.bits, self.known.min(other.known).min(same))
    }

    fn sum(self, other: LowBits) -> LowBits {
        LowBits::of(self.bits.wrapping_add(other.bits), self.known.min(other.known))
    }

    /// Each unknown part is a multiple of 2^known. A factor of zeros makes it a larger one.
    fn product(self, other: LowBits) -> LowBits {
        let zeros = |factor: LowBits| match factor.bits {
            0 => factor.known,
            bits => bits.trailing_zeros(),
        };
        let known = (self.known + zeros(other)).min(other.known + zeros(self));
        LowBits::of(self.bits.wrapping_mul(other.bits), known)
    }

    fn shifted_left(self, count: u32) -> LowBits {
        LowBits::of(self.bits << count.min(WIDTH), self.known + count)
    }

    /// Returns the alignment of the value: a power of two, at most 16.
    fn alignment(self) -> u32 {
        1 << self.bits.trailing_zeros().min(self.known)
    }
}

/// Low bits of every register.
pub(super) struct Alignments {
    /// `None` before the first definition. A register without a definition may hold anything.
    registers: Vec<Option<LowBits>>,
}

impl Alignments {
    /// Analyses a kernel. Returns no knowledge at all if the analysis does not settle.
    pub fn of(code: &Code) -> Alignments {
        let mut alignments = Alignments {
            registers: vec![Some(LowBits::UNKNOWN); code.groups.len()],
        };
        for VReg(number) in code.ops().flat_map(Op::defs) {
            alignments.registers[number as usize] = None;
        }
        for _ in 0..MAX_ROUNDS {
            if !alignments.meet_definitions(code) {
                return alignments;
            }
        }
        // The analysis is optimistic: before it settles, its values are not facts.
        alignments.registers.fill(Some(LowBits::UNKNOWN));
        alignments
    }

    /// Returns the alignment of `base + offset` in bytes: a power of two, at most 16.
    pub fn of_address(&self, base: Arg, offset: i32) -> u32 {
        let base = self.low_bits(base).unwrap_or(LowBits::UNKNOWN);
        base.sum(LowBits::constant(offset as u32)).alignment()
    }

    /// Meets each register with all its definitions. Returns true if a register changed.
    fn meet_definitions(&mut self, code: &Code) -> bool {
        let mut changed = false;
        for op in code.ops() {
            let Some(first) = op.dst else { continue };
            for VReg(number) in op.defs() {
                // The upper words of a result are no addresses.
                let result = if number == first.0 {
                    self.result(op)
                } else {
                    Some(LowBits::UNKNOWN)
                };
                let register = &mut self.registers[number as usize];
                // A guarded write meets the other definitions too, since either value may be read.
                let met = match (*register, result) {
                    (Some(old), Some(new)) => Some(old.meet(new)),
                    (old, new) => old.or(new),
                };
                changed |= met != *register;
                *register = met;
            }
        }
        changed
    }

    /// Returns the low bits of an operation's first result; `None` if a source has no value yet.
    fn result(&self, op: &Op) -> Option<LowBits> {
        let source = |slot: usize| self.low_bits(op.src[slot]);
        let OpKind::Machine(opcode) = op.kind else {
            return Some(LowBits::UNKNOWN);
        };
        let mods = &op.mods;
        let result = match opcode {
            Opcode::Mov => source(0)?,
            Opcode::Iadd3 if !mods.extended => source(0)?.sum(source(1)?).sum(source(2)?),
            Opcode::Imad if !mods.high => source(0)?.product(source(1)?).sum(source(2)?),
            Opcode::ImadWide => source(0)?.product(source(1)?).sum(source(2)?),
            Opcode::Lea if !mods.high && !mods.extended => source(0)?.shifted_left(mods.lut.into()).sum(source(1)?),
            Opcode::Shf if !mods.high && !mods.right => match op.src[1].known() {
                Some(count @ 0..32) => source(0)?.shifted_left(count as u32),
                _ => LowBits::UNKNOWN,
            },
            Opcode::Lop3 => logic(mods.lut, [source(0)?, source(1)?, source(2)?]),
            // The result is one of the two sources.
            Opcode::Sel | Opcode::Imnmx => source(0)?.meet(source(1)?),
            _ => LowBits::UNKNOWN,
        };
        Some(result)
    }

    fn low_bits(&self, arg: Arg) -> Option<LowBits> {
        let plain = match arg.bits {
            Bits::Zero => LowBits::constant(0),
            Bits::Imm(value) => LowBits::constant(value as u32),
            Bits::VReg(vreg) => self.registers[vreg.0 as usize]?,
            Bits::Const { .. } | Bits::Special(_) => LowBits::UNKNOWN,
        };
        Some(match (arg.neg, arg.not, arg.abs) {
            (false, false, false) => plain,
            (true, false, false) => LowBits::of(plain.bits.wrapping_neg(), plain.known),
            (false, true, false) => LowBits::of(!plain.bits, plain.known),
            _ => LowBits::UNKNOWN,
        })
    }
}

/// Returns the low bits of a truth table. A bit is known if no unknown input changes it.
fn logic(lut: u8, sources: [LowBits; 3]) -> LowBits {
    let mut bits = 0;
    for bit in 0..WIDTH {
        let may_be = |source: LowBits, value: u32| bit >= source.known || source.bits >> bit & 1 == value;
        let is_possible = |index: &u32| {
            // The index in the table is 4a + 2b + c.
            let inputs = [index >> 2, index >> 1 & 1, index & 1];
            sources.iter().zip(inputs).all(|(&source, value)| may_be(source, value))
        };
        let ones = (0..8).filter(is_possible).filter(|index| lut >> index & 1 == 1).count();
        if ones != 0 && ones != (0..8).filter(is_possible).count() {
            // This bit may be 0 or 1, and no bit above an unknown one counts.
            return LowBits::of(bits, bit);
        }
        bits |= u32::from(ones != 0) << bit;
    }
    LowBits::constant(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns every value of a byte with the low bits.
    fn values(low: LowBits) -> impl Iterator<Item = u32> {
        (0..256).filter(move |value| value & ((1 << low.known) - 1) == low.bits)
    }

    fn all() -> impl Iterator<Item = LowBits> {
        (0..=WIDTH).flat_map(|known| (0..1 << known).map(move |bits| LowBits { known, bits }))
    }

    /// Asserts that `low` holds all common low bits of the values, and no other bit.
    fn assert_exact(low: LowBits, mut values: impl Iterator<Item = u32>, context: &str) {
        let first = values.next().unwrap();
        let differ = values.fold(0, |differ, value| differ | value ^ first);
        assert_eq!(low, LowBits::of(first, differ.trailing_zeros()), "{context}");
    }

    #[test]
    fn arithmetic_on_low_bits_agrees_with_arithmetic_on_all_values() {
        for a in all() {
            for count in 0..6 {
                let shifted = values(a).map(|a| a << count);
                assert_exact(a.shifted_left(count), shifted, &format!("{a:?} << {count}"));
            }
            for b in all() {
                let pairs = || values(a).flat_map(|a| values(b).map(move |b| (a, b)));
                let context = format!("{a:?}, {b:?}");
                assert_exact(a.sum(b), pairs().map(|(a, b)| a + b), &context);
                assert_exact(a.product(b), pairs().map(|(a, b)| a * b), &context);
                assert_exact(a.meet(b), values(a).chain(values(b)), &context);
                // The tables of a & b and of a ^ b.
                let and = logic(0xc0, [a, b, LowBits::UNKNOWN]);
                assert_exact(and, pairs().map(|(a, b)| a & b), &context);
                let xor = logic(0x3c, [a, b, LowBits::UNKNOWN]);
                assert_exact(xor, pairs().map(|(a, b)| a ^ b), &context);
            }
        }
    }

    /// Returns the alignment of a register that starts as a multiple of 16 and grows by `step` in a loop.
    fn in_loop(step: u64) -> u32 {
        use crate::lower::code::Block;
        let mut code = Code::default();
        (0..2).for_each(|_| _ = code.new_group(1));
        let [variable, other] = [VReg(0), VReg(1)];
        let start = Op::machine(Opcode::Shf)
            .dst(variable)
            .src(&[Arg::vreg(other), Arg::imm(4)]);
        let next = Op::machine(Opcode::Iadd3)
            .dst(variable)
            .src(&[Arg::vreg(variable), Arg::imm(step)]);
        code.blocks = vec![Block { ops: vec![start] }, Block { ops: vec![next] }];
        Alignments::of(&code).of_address(Arg::vreg(variable), 32)
    }

    #[test]
    fn loop_variable_has_the_alignment_of_its_start_and_step() {
        assert_eq!([16, 48, 8, 12, 1].map(in_loop), [16, 16, 8, 4, 1]);
    }

    #[test]
    fn alignment_is_the_largest_proven_power_of_two() {
        for (low, alignment) in [
            (LowBits::UNKNOWN, 1),
            (LowBits { known: 3, bits: 0 }, 8),
            (LowBits { known: 3, bits: 4 }, 4),
            (LowBits::constant(32), 16),
            (LowBits::constant(6), 2),
        ] {
            assert_eq!(low.alignment(), alignment, "{low:?}");
        }
    }
}
