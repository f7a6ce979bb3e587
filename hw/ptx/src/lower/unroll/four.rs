//! Four copies of a loop with an unknown number of iterations, and the test that four iterations are left.

use super::copy::{Copier, Start, added, comparison};
use super::loops::{Counter, Loop, Test, inverse};
use super::{last_line, unsigned};
use crate::lower::code::{Arg, Op, VGuard, VPred, VReg, Wide};
use warpwave_isa::inst::Cmp;
use warpwave_isa::opcode::Opcode;

/// Copies in the loop.
const COPIES: u64 = 4;
/// Limit of the distance that four iterations go. Then the bound of the copies is a number of the type, or the first test finds that it is
/// none.
const MAX_REACH: u64 = 1 << 30;

/// Adds a loop of four copies in front of the original loop. Returns the blocks that begin loops; `None` for a test that cannot look ahead.
pub(super) fn add(copier: &mut Copier<'_>, shape: &Loop) -> Option<Vec<usize>> {
    let line = last_line(copier, shape);
    let mut ahead = Ahead::of(shape)?;
    let copies = COPIES as usize * shape.blocks().count();
    // The block with the first test, the copies, and a test behind a loop that tests at its end.
    let rest = 1 + copies + usize::from(shape.tests_at_end());
    copier.start_block();
    let goes_in = ahead.first_test(copier, line);
    copier.push_branch(copier.label(rest), VGuard::pred(goes_in).negated(), line);
    for k in 0..COPIES {
        copier.copy(Start::Registers { k }, false);
    }
    copier.finish(true, line);
    let goes_on = ahead.test_in_loop(copier, line, VGuard::ALWAYS);
    copier.push_branch(copier.label(1), VGuard::pred(goes_on), line);
    if shape.tests_at_end() {
        copier.start_block();
        let ended = ahead.has_ended(copier, line);
        copier.push_branch(shape.latch + 1, VGuard::pred(ended), line);
    }
    copier.copy_loop();
    Some(vec![1, rest])
}

/// The test that four iterations are left.
struct Ahead {
    counter: Counter,
    test: Test,
    /// Distance of the value in the first of four tests from the counter in front of them.
    first: i64,
    /// Growth from the first to the last test.
    growth: i64,
    /// Distance of the value in the last test from the counter.
    reach: i64,
    /// The bound minus the reach.
    limit: Option<VReg>,
}

impl Ahead {
    fn of(shape: &Loop) -> Option<Ahead> {
        let test = shape.test?;
        let counter = shape.counters[test.counter];
        let step = counter.signed_step();
        let offset = if counter.words == 1 {
            i64::from(test.offset as u32 as i32)
        } else {
            test.offset as i64
        };
        // A loop that tests at its end has not tested the last of its iterations so far.
        let first = if shape.tests_at_end() {
            offset.checked_sub(step)?
        } else {
            offset
        };
        let growth = step.checked_mul(COPIES as i64 - 1)?;
        let reach = growth.checked_add(first)?;
        let goes_ahead = first == 0 || first.signum() == step.signum();
        let approaches = match test.cmp {
            Cmp::Lt | Cmp::Le => step > 0 && goes_ahead,
            Cmp::Gt | Cmp::Ge => step < 0 && goes_ahead,
            Cmp::Ne => true,
            _ => false,
        };
        let is_near = reach.unsigned_abs() < MAX_REACH && growth.unsigned_abs() < MAX_REACH;
        (approaches && is_near).then_some(Ahead {
            counter,
            test,
            first,
            growth,
            reach,
            limit: None,
        })
    }

    /// Adds the test in front of the loop: four iterations are left, and the limit does not wrap around.
    fn first_test(&mut self, copier: &mut Copier<'_>, line: u32) -> VPred {
        if self.test.cmp == Cmp::Ne {
            return self.test_in_loop(copier, line, VGuard::ALWAYS);
        }
        let words = self.counter.words;
        let limit = copier.code.new_group(words);
        self.limit = Some(limit);
        let back = added(
            words,
            self.test.bound,
            self.counter.cut(self.reach.wrapping_neg() as u64),
        );
        copier.push(Op {
            line,
            ..back.dst(limit)
        });
        let (lowest, highest) = match (self.test.ty.is_signed(), words) {
            (false, _) => (0, u64::MAX),
            (true, 1) => (1 << 31, (1 << 31) - 1),
            (true, _) => (1 << 63, (1 << 63) - 1),
        };
        let (cmp, farthest) = if self.reach >= 0 {
            (Cmp::Ge, lowest)
        } else {
            (Cmp::Le, highest)
        };
        let nearest: u64 = self.counter.cut(u64::wrapping_add_signed(farthest, self.reach));
        let fits = copier.code.new_pred();
        let test = comparison(words).src(&[self.test.bound, Arg::imm(nearest)]).pdst(fits);
        copier.push(self.typed(test, cmp, line));
        self.test_in_loop(copier, line, VGuard::pred(fits))
    }

    /// Adds the test that four more iterations are left, and that `also` holds.
    fn test_in_loop(&self, copier: &mut Copier<'_>, line: u32, also: VGuard) -> VPred {
        let counter = Arg::vreg(self.counter.vreg);
        let holds = copier.code.new_pred();
        let test = comparison(self.counter.words).pdst(holds).psrc(also);
        let test = match self.limit {
            Some(limit) => self.typed(test.src(&[counter, Arg::vreg(limit)]), self.test.cmp, line),
            None => {
                let left = self.distance(copier, line);
                // None of the tests finds the counter at the bound.
                let test = test.src(&[Arg::vreg(left), Arg::imm(self.growth.unsigned_abs())]);
                let words = self.counter.words;
                Op { line, ..test }.mods(|mods| {
                    mods.cmp = Cmp::Gt;
                    mods.ty = unsigned(words);
                })
            }
        };
        copier.push(test);
        holds
    }

    /// Adds the distance of the first tested value from the bound, in the direction of the steps.
    fn distance(&self, copier: &mut Copier<'_>, line: u32) -> VReg {
        let words = self.counter.words;
        let (counter, bound) = (Arg::vreg(self.counter.vreg), self.test.bound);
        let (to, from, more) = match self.growth > 0 {
            true => (bound, counter, -self.first),
            false => (counter, bound, self.first),
        };
        let cut = |value: u64| self.counter.cut(value);
        let left = copier.code.new_group(words);
        let distance = match (to.known(), from.known()) {
            // A loop down to zero.
            (None, Some(0)) if more == 0 => return self.counter.vreg,
            (_, Some(from)) => added(words, to, cut((more as u64).wrapping_sub(from))),
            (Some(to), _) if words == 1 => {
                Op::machine(Opcode::Iadd3).src(&[from.negated(), Arg::imm(cut((more as u64).wrapping_add(to)))])
            }
            _ if words == 1 => Op::machine(Opcode::Iadd3).src(&[to, from.negated(), Arg::imm(cut(more as u64))]),
            _ => {
                let part = copier.code.new_group(2);
                copier.push(Op {
                    line,
                    ..Op::wide(Wide::Sub).src(&[to, from]).dst(part)
                });
                added(words, Arg::vreg(part), more as u64)
            }
        };
        copier.push(Op {
            line,
            ..distance.dst(left)
        });
        left
    }

    /// Adds the test behind the copies that no iteration is left.
    fn has_ended(&self, copier: &mut Copier<'_>, line: u32) -> VPred {
        let (words, counter) = (self.counter.words, Arg::vreg(self.counter.vreg));
        // The counter has taken the step that follows the last test.
        let more = self.counter.cut(self.test.offset.wrapping_sub(self.counter.step));
        let mut tested = counter;
        if more != 0 {
            let vreg = copier.code.new_group(words);
            copier.push(Op {
                line,
                ..added(words, counter, more).dst(vreg)
            });
            tested = Arg::vreg(vreg);
        }
        let ended = copier.code.new_pred();
        let test = comparison(words).src(&[tested, self.test.bound]).pdst(ended);
        copier.push(self.typed(test, inverse(self.test.cmp), line));
        ended
    }

    fn typed(&self, test: Op, cmp: Cmp, line: u32) -> Op {
        let ty = self.test.ty;
        Op { line, ..test }.mods(|mods| {
            mods.cmp = cmp;
            mods.ty = ty;
        })
    }
}
