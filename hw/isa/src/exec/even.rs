//! The same meaning for rows that are known as [`Affine`]: sums and products of such rows are such rows, and are had from three words
//! each instead of from 32.
//!
//! What cannot be said so, or would take as long, is left to [`execute`](super::execute), lane by lane. Both agree on every bit.

use super::int::{completions, flip};
use super::modifier::is_plain;
use super::shift::shifted;
use crate::affine::{Affine, HALF};
use crate::inst::{Inst, Operand};
use crate::lane::LaneMask;
use crate::opcode::Opcode;

/// Operand words that may come as affine rows.
pub const EVEN_WORDS: usize = 4;

/// Lanes behind the first of a half.
const REST: i64 = HALF as i64 - 1;

/// What an instruction writes: two words and a predicate at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EvenResults {
    /// Result words.
    pub words: [Affine; 2],
    /// The first result predicate.
    pub pred: LaneMask,
}

/// Whether an instruction may be had from affine rows; it has [`EVEN_WORDS`] words then at most.
pub fn is_even(inst: &Inst) -> bool {
    match inst.op {
        // Negations are part of their sums.
        Opcode::Iadd3 => true,
        Opcode::Lea => !inst.mods.high && !inst.mods.extended && inst.pdst[0].is_true(),
        Opcode::Mov | Opcode::S2r | Opcode::ImadWide => is_plain(inst),
        Opcode::Imad => is_plain(inst) && !inst.mods.high,
        Opcode::Shf => is_plain(inst),
        _ => false,
    }
}

/// Computes what the instruction writes, if that is as even as its operands; `carry` is the first predicate source.
///
/// ```
/// use warpwave_isa::affine::Affine;
/// use warpwave_isa::exec::execute_even;
/// use warpwave_isa::inst::{Inst, Operand};
/// use warpwave_isa::lane::LaneMask;
/// use warpwave_isa::opcode::Opcode;
/// use warpwave_isa::reg::Reg;
/// let mut add = Inst::new(Opcode::Iadd3);
/// add.src[0] = Operand::reg(Reg(0));
/// add.src[1] = Operand::imm(2);
/// let counted = Affine { first: [0, 16], step: 1 };
/// let sum = execute_even(&add, &[counted, Affine::splat(2), Affine::splat(0)], LaneMask::ALL).expect("a sum is even");
/// assert_eq!(sum.words[0], Affine { first: [2, 18], step: 1 });
/// ```
pub fn execute_even(inst: &Inst, words: &[Affine], carry: LaneMask) -> Option<EvenResults> {
    match (inst.op, words) {
        (Opcode::Mov | Opcode::S2r, [a, ..]) => Some(one(*a)),
        (Opcode::Iadd3, &[a, b, c, ..]) => sum(inst, [a, b, c], carry),
        (Opcode::Imad, &[a, b, c, ..]) => {
            let (row, factor) = factor(a, b)?;
            Some(one(row.times(factor).plus(c)))
        }
        (Opcode::Lea, &[a, b, ..]) => {
            let a = a.times(1 << (inst.mods.lut & 31));
            let sum = signed(a, inst.src[0]).plus(signed(b, inst.src[1]));
            Some(one(sum.plus(Affine::splat(completions(&inst.src[..2])))))
        }
        (Opcode::Shf, &[a, b, c]) => shift(inst, a, b.only()?, c),
        (Opcode::ImadWide, &[a, b, low, high]) => wide_product(inst.mods.ty.is_signed(), [a, b], [low, high]),
        _ => None,
    }
}

fn one(word: Affine) -> EvenResults {
    EvenResults {
        words: [word, Affine::default()],
        pred: LaneMask::NONE,
    }
}

/// Which of two rows has the same word in every lane, and the other.
fn factor(a: Affine, b: Affine) -> Option<(Affine, u32)> {
    match (a.only(), b.only()) {
        (_, Some(factor)) => Some((a, factor)),
        (Some(factor), None) => Some((b, factor)),
        (None, None) => None,
    }
}

/// An addend with its sign, but for the one that completes a negation.
fn signed(addend: Affine, operand: Operand) -> Affine {
    match flip(operand) {
        0 => addend,
        _ => addend.inverted(),
    }
}

/// The low word of a shift to the left is multiplied; any other shift is had where all lanes do the same.
fn shift(inst: &Inst, a: Affine, count: u32, c: Affine) -> Option<EvenResults> {
    let shifted = |a, c| shifted(&inst.mods, [a, count, c]);
    if !inst.mods.right && !inst.mods.high {
        return Some(one(a.times(shifted(1, 0))));
    }
    Some(one(Affine::splat(shifted(a.only()?, c.only()?))))
}

/// A carry is the same in all lanes of a half, or the lanes have to be looked at.
fn sum(inst: &Inst, addends: [Affine; 3], carry: LaneMask) -> Option<EvenResults> {
    let [a, b, c] = std::array::from_fn(|n| signed(addends[n], inst.src[n]));
    let extra = completions(&inst.src[..3]);
    if !inst.mods.extended && inst.pdst[0].is_true() {
        return Some(one(a.plus(b).plus(c).plus(Affine::splat(extra))));
    }
    let carry = if inst.mods.extended { carry } else { LaneMask::NONE };
    // The third addend has a carry of its own.
    if c != Affine::splat(0) {
        return None;
    }
    let (mut sums, mut pred) = ([0; 2], 0);
    for (half, sum) in sums.iter_mut().enumerate() {
        let lanes = LaneMask::first(HALF as u32).0 << (HALF * half);
        let carry = match carry.0 & lanes {
            0 => 0,
            all if all == lanes => 1,
            _ => return None,
        };
        let (a, b) = (Rise::of(a, half, false)?, Rise::of(b, half, false)?);
        let [begin, end] = [0, REST].map(|lane| a.at(lane) + b.at(lane) + i64::from(extra) + carry);
        if begin >> 32 != end >> 32 {
            return None;
        }
        *sum = begin as u32;
        pred |= if begin >> 32 == 0 { 0 } else { lanes };
    }
    let step = a.step.wrapping_add(b.step);
    Some(EvenResults {
        words: [Affine { first: sums, step }, Affine::default()],
        pred: LaneMask(pred),
    })
}

/// The product of two words, onto a number of two: its upper word is the same in all lanes of a half, or the lanes have to be looked at.
fn wide_product(is_signed: bool, [a, b]: [Affine; 2], [low, high]: [Affine; 2]) -> Option<EvenResults> {
    let (row, factor) = factor(a, b)?;
    if high.step != 0 {
        return None;
    }
    let times = i128::from(if is_signed {
        i64::from(factor as i32)
    } else {
        i64::from(factor)
    });
    let (mut lows, mut highs) = ([0; 2], [0; 2]);
    for half in 0..2 {
        let (row, low) = (Rise::of(row, half, is_signed)?, Rise::of(low, half, false)?);
        let upper = i128::from(high.first[half]) << 32;
        let [begin, end] = [0, REST].map(|lane| i128::from(row.at(lane)) * times + i128::from(low.at(lane)) + upper);
        if begin >> 32 != end >> 32 {
            return None;
        }
        (lows[half], highs[half]) = (begin as u32, (begin >> 32) as u32);
    }
    let step = row.step.wrapping_mul(factor).wrapping_add(low.step);
    let words = [Affine { first: lows, step }, Affine { first: highs, step: 0 }];
    Some(EvenResults {
        words,
        pred: LaneMask::NONE,
    })
}

/// The words of a half as numbers, which rise or fall without beginning anew.
#[derive(Clone, Copy)]
struct Rise {
    first: i64,
    step: i64,
}

impl Rise {
    #[inline]
    fn of(row: Affine, half: usize, is_signed: bool) -> Option<Self> {
        let (first, step) = (row.first[half], i64::from(row.step as i32));
        let (first, numbers) = match is_signed {
            true => (i64::from(first as i32), i64::from(i32::MIN)..=i64::from(i32::MAX)),
            false => (i64::from(first), 0..=i64::from(u32::MAX)),
        };
        let rise = Rise { first, step };
        numbers.contains(&rise.at(REST)).then_some(rise)
    }

    #[inline]
    fn at(self, lane: i64) -> i64 {
        self.first + lane * self.step
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::exec::{Operands, Results, execute};
    use crate::inst::Ty;
    use crate::program::Decoded;
    use crate::reg::{Pred, Reg};

    /// Small and large, where words begin anew and where they do not.
    fn word() -> impl Strategy<Value = u32> {
        prop_oneof![
            0..100u32,
            any::<u32>(),
            (0..100u32).prop_map(|below| below.wrapping_neg()),
            (0..100u32).prop_map(|off| 0x7fff_ffc0 + off)
        ]
    }

    fn row() -> impl Strategy<Value = Affine> {
        let step = prop_oneof![Just(0), Just(0), 0..9u32, word()];
        let other = (word(), word(), step).prop_map(|(first, second, step)| Affine {
            first: [first, second],
            step,
        });
        prop_oneof![word().prop_map(Affine::splat), other]
    }

    fn inst() -> impl Strategy<Value = Inst> {
        let op = prop::sample::select(&[
            Opcode::Mov,
            Opcode::Iadd3,
            Opcode::Lea,
            Opcode::Imad,
            Opcode::ImadWide,
            Opcode::Shf,
        ]);
        let ty = prop::sample::select(&[Ty::S32, Ty::U32]);
        let flags = (any::<[bool; 3]>(), 0..40u8);
        (op, ty, any::<[(bool, bool); 3]>(), flags).prop_map(|(op, ty, signs, ([extended, carries, wrap], lut))| {
            let mut inst = Inst::new(op);
            let is_sum = matches!(op, Opcode::Iadd3 | Opcode::Lea);
            inst.dst = Reg(9);
            inst.mods.ty = match (op, wrap) {
                (Opcode::Shf, true) if carries => Ty::U64,
                _ => ty,
            };
            (inst.mods.wrap, inst.mods.lut) = (wrap, lut);
            if op == Opcode::Shf {
                (inst.mods.right, inst.mods.high) = (extended, lut % 2 == 0);
            }
            for (n, (neg, not)) in signs.into_iter().enumerate().take(op.row().src.len()) {
                inst.src[n] = Operand::reg(Reg(n as u8));
                (inst.src[n].neg, inst.src[n].not) = (neg && is_sum, not && is_sum);
            }
            inst.mods.extended = extended && op == Opcode::Iadd3;
            if carries && op == Opcode::Iadd3 {
                inst.pdst[0] = Pred(1);
            }
            inst
        })
    }

    proptest! {
        #[test]
        fn even_results_are_those_of_the_lanes(
            inst in inst(),
            words in prop::array::uniform4(row()),
            third_is_zero: bool,
            carry in prop::sample::select(&[0, u32::MAX, 0xffff, 0xffff_0000, 5]),
        ) {
            let (mut inst, mut words) = (inst, words);
            if third_is_zero && inst.op == Opcode::Iadd3 {
                words[2] = Affine::splat(0);
                (inst.src[2].neg, inst.src[2].not) = (false, false);
            }
            let decoded = Decoded::of(&inst);
            prop_assert!(is_even(&inst) && decoded.words as usize <= EVEN_WORDS);
            let mut operands = Operands::default();
            words.iter().zip(&mut operands.words).for_each(|(word, row)| word.unfold(row));
            operands.preds[0] = LaneMask(carry);
            let mut results = Results::default();
            execute(&inst, &decoded, LaneMask::ALL, &operands, &mut results);
            if let Some(even) = execute_even(&inst, &words[..decoded.words as usize], LaneMask(carry)) {
                for n in 0..decoded.result_words as usize {
                    prop_assert_eq!(even.words[n].row(), results.words[n]);
                }
                if decoded.pred_defs != 0 {
                    prop_assert_eq!(even.pred, results.preds[0]);
                }
            }
        }
    }

    /// The address of element `first` of either half on, of four bytes each, in an array.
    fn address(signed: bool, first: [u32; 2], step: u32, low: u32) -> Option<EvenResults> {
        let mut inst = Inst::new(Opcode::ImadWide);
        inst.mods.ty = if signed { Ty::S32 } else { Ty::U32 };
        let words = [
            Affine { first, step },
            Affine::splat(4),
            Affine::splat(low),
            Affine::splat(7),
        ];
        execute_even(&inst, &words, LaneMask::NONE)
    }

    #[test]
    fn addresses_of_a_row_of_elements_are_even_unless_a_word_begins_anew() {
        let even = address(true, [100, 116], 1, 0x1000).expect("no word begins anew");
        assert_eq!(
            even.words[0],
            Affine {
                first: [0x1000 + 400, 0x1000 + 464],
                step: 4
            }
        );
        assert_eq!(even.words[1], Affine::splat(7));
        let below = address(true, [5u32.wrapping_neg(), 1], u32::MAX, 0x1000).expect("numbers below zero are numbers");
        assert_eq!(below.words[0].first[0], 0x1000 - 20);
        assert_eq!(
            address(true, [0, 16], 1, u32::MAX - 70),
            None,
            "the low word begins anew in the second half"
        );
        assert_eq!(address(false, [u32::MAX, 0], 1, 0), None, "the number does");
    }

    #[test]
    fn products_shifts_and_sums_of_rows_are_known_by_three_words() {
        let (row, four) = (
            Affine {
                first: [1, 101],
                step: 2,
            },
            Affine::splat(4),
        );
        let word = |op, change: fn(&mut Inst), words: &[Affine]| {
            let mut inst = Inst::new(op);
            change(&mut inst);
            execute_even(&inst, words, LaneMask::NONE).map(|results| results.words[0])
        };
        let known = |first, step| Some(Affine { first, step });
        assert_eq!(word(Opcode::Mov, |_| (), &[row]), Some(row));
        assert_eq!(word(Opcode::Imad, |_| (), &[row, four, row]), known([5, 505], 10));
        assert_eq!(word(Opcode::Imad, |_| (), &[row, row, four]), None, "squares");
        assert_eq!(
            word(Opcode::Lea, |inst| inst.mods.lut = 3, &[row, four, four]),
            known([12, 812], 16)
        );
        assert_eq!(word(Opcode::Shf, |_| (), &[row, four, four]), known([16, 1616], 32));
        let right = |inst: &mut Inst| (inst.mods.right, inst.mods.high) = (true, true);
        let zero = Affine::splat(0);
        assert_eq!(
            word(Opcode::Shf, right, &[zero, Affine::splat(1), four]),
            known([2; 2], 0)
        );
        assert_eq!(
            word(Opcode::Shf, right, &[zero, Affine::splat(1), row]),
            None,
            "odd numbers halved"
        );
    }

    #[test]
    fn sum_carries_where_all_lanes_of_a_half_do() {
        let mut inst = Inst::new(Opcode::Iadd3);
        inst.pdst[0] = Pred(0);
        let row = Affine {
            first: [0, u32::MAX - 15],
            step: 1,
        };
        let sum = |by| execute_even(&inst, &[row, Affine::splat(by), Affine::splat(0)], LaneMask::NONE);
        assert_eq!(sum(16).expect("no lane or all carry").pred, LaneMask(0xffff_0000));
        assert_eq!(sum(3), None, "some lanes carry");
    }
}
