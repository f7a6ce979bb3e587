//! The scoreboard of one warp: its pending register and predicate writes, and the stall reason of an instruction that needs one.
//!
//! A bit is set at issue and cleared when the result is written. An instruction that reads or writes a pending register stalls, so a
//! register has at most one write in flight. Operands are read in order of issue, so write-after-read hazards need no bit.
//!
//! A guard is read earlier in the pipeline than data. A predicate with a fixed latency is therefore visible to guards from a later cycle:
//! a constant number of cycles after the writer's issue. A later write sets a later cycle, and need not wait for it.
//!
//! | Reader of a predicate with a fixed latency | Cycles after the writer's issue |
//! |---|---|
//! | as data: SEL, PLOP3, VOTE, a carry | the latency of the writer's pipe |
//! | as guard, also of a branch | `guard_latency`, or the writer's latency if that is longer |
//!
//! The compiler covers other predicates (SHFL, SYNCS) by a dependency barrier. Guards see them at release.
//!
//! With dependency barriers, an instruction also waits for the barriers that its control word names. So a reader waits for every result that
//! shares the barrier of its own ([`barriers`]).

mod barriers;

use warpwave_hw::bits::ones;
use warpwave_hw::invariant::Invariants;
use warpwave_hw::time::Cycle;
use warpwave_isa::reg::{Pred, RegSet};

use barriers::Barriers;

use crate::proto::launch::ResultWait;
use crate::proto::predecoded::Predecoded;
use crate::sm::subcore::stall::WarpState;

/// A set of pending registers and predicates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Pending {
    registers: RegSet,
    predicates: u8,
}

/// Mask for an index into the four words of a [`RegSet`].
const WORD_MASK: usize = 3;

impl Pending {
    #[inline]
    fn add(&mut self, inst: &Predecoded) {
        let word = usize::from(inst.defs_word);
        // The mask drops a bounds check: a register number has 8 bits, so its word is 0 to 3.
        self.registers.0[word & WORD_MASK] |= inst.defs;
        // A result of several registers may reach into the next word.
        self.registers.0[(word + 1) & WORD_MASK] |= u64::from(inst.defs_beyond);
        self.predicates |= inst.pred_defs;
    }

    #[inline]
    fn remove(&mut self, inst: &Predecoded) {
        let word = usize::from(inst.defs_word);
        self.registers.0[word & WORD_MASK] &= !inst.defs;
        self.registers.0[(word + 1) & WORD_MASK] &= !u64::from(inst.defs_beyond);
        self.predicates &= !inst.pred_defs;
    }

    /// Number of writes that are pending in both.
    fn n_shared(&self, other: &Pending) -> u64 {
        let both = self.words().zip(other.words());
        both.map(|(own, other)| u64::from((own & other).count_ones())).sum()
    }

    /// The registers in four words, then the predicates.
    fn words(&self) -> impl Iterator<Item = u64> {
        self.registers.0.into_iter().chain([u64::from(self.predicates)])
    }

    #[inline]
    fn conflicts_with(&self, inst: &Predecoded) -> bool {
        self.registers.intersects(&inst.touches) || self.predicates & inst.pred_touches != 0
    }
}

/// The scoreboard of one warp. Most results have a fixed latency and are marked in `all` only.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[repr(C, align(64))]
pub struct Scoreboard {
    /// Every pending write.
    all: Pending,
    /// Pending results from behind the L1: long scoreboard.
    long: Pending,
    /// Pending results from units of the SM with a queue: short scoreboard.
    short: Pending,
    /// Results in flight of each dependency barrier.
    barriers: Barriers,
    /// First cycle in which each predicate is visible to guards.
    guards_from: [Cycle; Pred::COUNT],
}

impl Scoreboard {
    /// Marks the results of an instruction as pending. Guards see its predicates from cycle `guards_from` on.
    #[inline]
    pub fn issue(&mut self, inst: &Predecoded, guards_from: Cycle) {
        self.all.add(inst);
        match inst.result {
            ResultWait::Fixed => ones(inst.pred_defs).for_each(|pred| self.guards_from[pred] = guards_from),
            ResultWait::Long => {
                self.long.add(inst);
                self.barriers.take(inst, true);
            }
            ResultWait::Short => {
                self.short.add(inst);
                self.barriers.take(inst, false);
            }
        }
    }

    /// The pending writes: a bit for each register, in four words, and for each predicate.
    pub fn pending(&self) -> ([u64; 4], u8) {
        (self.all.registers.0, self.all.predicates)
    }

    /// Checks that the pending writes are those of `owners`, the instructions in flight, and that each has one owner. Dependency barriers
    /// may have several.
    pub fn check_owners<'a>(&self, slot: usize, owners: impl Iterator<Item = &'a Predecoded>, check: &mut Invariants) {
        let mut owned = Scoreboard::default();
        for inst in owners {
            let mut writes = Pending::default();
            writes.add(inst);
            let shared = writes.n_shared(&owned.all);
            check.equal(format_args!("writes of slot {slot} with two owners"), shared, 0);
            owned.issue(inst, Cycle::ZERO);
        }
        let sets = [
            ("pending", &self.all, &owned.all),
            ("long", &self.long, &owned.long),
            ("short", &self.short, &owned.short),
        ];
        for (name, found, expected) in sets {
            for (found, expected) in found.words().zip(expected.words()) {
                check.equal(format_args!("{name} writes of slot {slot}"), found, expected);
            }
        }
        self.barriers.check_owners(slot, &owned.barriers, check);
    }

    /// Clears the results of an instruction.
    #[inline]
    pub fn release(&mut self, inst: &Predecoded) {
        self.all.remove(inst);
        match inst.result {
            ResultWait::Fixed => {}
            ResultWait::Long => {
                self.long.remove(inst);
                self.barriers.free(inst);
            }
            ResultWait::Short => {
                self.short.remove(inst);
                self.barriers.free(inst);
            }
        }
    }

    /// Stall reason of an instruction: the slowest kind of result that it needs. `None` without a conflict.
    #[inline]
    pub fn stall_reason(&self, inst: &Predecoded) -> Option<WarpState> {
        // One test in the common case of no conflict. The kind matters only for the stall reason.
        (self.all.conflicts_with(inst) || self.barriers.stall(inst)).then(|| self.slowest(inst))
    }

    /// First cycle in which an instruction's guard is visible to it. [`Cycle::ZERO`] without a guard.
    #[inline]
    pub fn guard_from(&self, inst: &Predecoded) -> Cycle {
        // The index of PT is beyond the array.
        self.guards_from
            .get(usize::from(inst.guard))
            .copied()
            .unwrap_or(Cycle::ZERO)
    }

    fn slowest(&self, inst: &Predecoded) -> WarpState {
        // Profilers blame the slowest result when an instruction needs several.
        if self.long.conflicts_with(inst) || self.barriers.stall_long(inst) {
            WarpState::LongScoreboard
        } else if self.short.conflicts_with(inst) || self.barriers.stall(inst) {
            WarpState::ShortScoreboard
        } else {
            WarpState::Wait
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::launch::{Route, Timing};
    use warpwave_isa::control::ResultBarriers;
    use warpwave_isa::inst::{Inst, Operand};
    use warpwave_isa::opcode::{Opcode, Pipe};
    use warpwave_isa::program::Decoded;
    use warpwave_isa::reg::{Pred, Reg};

    fn add(dst: u8, a: u8) -> Inst {
        let mut inst = Inst::new(Opcode::Fadd);
        inst.dst = Reg(dst);
        inst.src[0] = Operand::reg(Reg(a));
        inst
    }

    /// The predecoded instruction, with a result of this kind.
    fn predecoded(inst: &Inst, result: ResultWait) -> Predecoded {
        with_barriers(inst, result, ResultBarriers::default())
    }

    fn with_barriers(inst: &Inst, result: ResultWait, barriers: ResultBarriers) -> Predecoded {
        let timing = Timing {
            latency: 4,
            interval: 1,
            operand_cycles: 1,
            pipe: Pipe::Fp32,
            result,
            is_posted: false,
            is_local_or_global: false,
            route: Route::Other,
            barriers,
        };
        Predecoded::of(inst, &Decoded::of(inst), &timing)
    }

    fn fixed(inst: &Inst) -> Predecoded {
        predecoded(inst, ResultWait::Fixed)
    }

    #[test]
    fn reader_and_writer_of_a_pending_register_stall_until_its_release() {
        let mut board = Scoreboard::default();
        let producer = add(4, 1);
        board.issue(&fixed(&producer), Cycle::ZERO);
        assert_eq!(board.stall_reason(&fixed(&add(5, 4))), Some(WarpState::Wait));
        assert_eq!(board.stall_reason(&fixed(&add(4, 1))), Some(WarpState::Wait));
        assert_eq!(board.stall_reason(&fixed(&add(5, 6))), None);
        board.release(&fixed(&producer));
        assert_eq!(board.stall_reason(&fixed(&add(5, 4))), None);
    }

    #[test]
    fn reader_of_a_pending_load_stalls_on_the_long_scoreboard() {
        let mut load = Inst::new(Opcode::Ld);
        load.dst = Reg(8);
        load.mods.access = warpwave_isa::space::Access {
            bytes: 4,
            count: 2,
            signed: false,
        };
        let mut board = Scoreboard::default();
        board.issue(&predecoded(&load, ResultWait::Long), Cycle::ZERO);
        assert_eq!(board.stall_reason(&fixed(&add(0, 9))), Some(WarpState::LongScoreboard));
        assert_eq!(board.stall_reason(&fixed(&add(0, 10))), None);
    }

    #[test]
    fn instruction_guarded_by_a_pending_predicate_stalls() {
        let mut compare = Inst::new(Opcode::Isetp);
        compare.pdst[0] = Pred(2);
        let mut board = Scoreboard::default();
        board.issue(&fixed(&compare), Cycle::ZERO);
        let mut guarded = add(0, 1);
        guarded.guard = warpwave_isa::reg::Guard::unless(Pred(2));
        assert_eq!(board.stall_reason(&fixed(&guarded)), Some(WarpState::Wait));
    }

    #[test]
    fn registers_on_both_sides_of_a_word_boundary_are_pending() {
        let mut load = Inst::new(Opcode::Ld);
        load.dst = Reg(62);
        load.mods.access = warpwave_isa::space::Access {
            bytes: 4,
            count: 4,
            signed: false,
        };
        let mut board = Scoreboard::default();
        board.issue(&predecoded(&load, ResultWait::Short), Cycle::ZERO);
        let waits =
            |board: &Scoreboard| [61, 62, 63, 64, 65, 66].map(|reg| board.stall_reason(&fixed(&add(0, reg))).is_some());
        assert_eq!(waits(&board), [false, true, true, true, true, false]);
        // R62 and R63 in the first word, R64 and R65 in the second.
        assert_eq!(board.pending(), ([3 << 62, 0b11, 0, 0], 0));
        assert_eq!(
            board.stall_reason(&fixed(&add(0, 65))),
            Some(WarpState::ShortScoreboard)
        );
        board.release(&predecoded(&load, ResultWait::Short));
        assert_eq!(waits(&board), [false; 6]);
    }

    fn compare(pred: u8) -> Inst {
        let mut inst = Inst::new(Opcode::Isetp);
        inst.pdst[0] = Pred(pred);
        inst
    }

    fn guarded(pred: u8) -> Inst {
        let mut inst = add(0, 1);
        inst.guard = warpwave_isa::reg::Guard::unless(Pred(pred));
        inst
    }

    #[test]
    fn guard_sees_a_predicate_later_than_a_data_reader() {
        let mut select = Inst::new(Opcode::Sel);
        select.psrc[0] = warpwave_isa::reg::Guard::unless(Pred(2));
        let mut board = Scoreboard::default();
        board.issue(&fixed(&compare(2)), Cycle(23));
        assert_eq!(board.stall_reason(&fixed(&select)), Some(WarpState::Wait));
        board.release(&fixed(&compare(2)));
        assert_eq!(board.stall_reason(&fixed(&select)), None);
        let guards = [guarded(2), guarded(3), select].map(|inst| board.guard_from(&fixed(&inst)));
        assert_eq!(guards, [Cycle(23), Cycle::ZERO, Cycle::ZERO]);
    }

    #[test]
    fn second_write_of_a_predicate_waits_for_the_release_and_delays_its_guards() {
        let mut board = Scoreboard::default();
        let writer = fixed(&compare(2));
        board.issue(&writer, Cycle(23));
        assert_eq!(board.pending(), ([0; 4], 1 << 2));
        assert_eq!(board.stall_reason(&writer), Some(WarpState::Wait));
        board.release(&writer);
        assert_eq!(board.stall_reason(&writer), None);
        board.issue(&writer, Cycle(27));
        assert_eq!(board.guard_from(&fixed(&guarded(2))), Cycle(27));
    }

    #[test]
    fn guard_sees_a_predicate_behind_a_queue_at_its_release() {
        let mut board = Scoreboard::default();
        let writer = predecoded(&compare(2), ResultWait::Short);
        board.issue(&writer, Cycle(23));
        assert_eq!(
            board.stall_reason(&fixed(&guarded(2))),
            Some(WarpState::ShortScoreboard)
        );
        assert_eq!(board.guard_from(&fixed(&guarded(2))), Cycle::ZERO);
    }

    #[test]
    fn reader_waits_for_every_result_that_shares_its_barrier() {
        let load = |dst: u8, result| {
            let mut inst = Inst::new(Opcode::Ld);
            inst.dst = Reg(dst);
            let barriers = ResultBarriers {
                write: Some(2),
                wait: 0,
            };
            with_barriers(&inst, result, barriers)
        };
        let loads = [load(8, ResultWait::Long), load(9, ResultWait::Short)];
        let wait = ResultBarriers {
            write: None,
            wait: 1 << 2,
        };
        let reader = with_barriers(&add(0, 8), ResultWait::Fixed, wait);
        let other = fixed(&add(0, 7));
        let mut board = Scoreboard::default();
        loads.iter().for_each(|load| board.issue(load, Cycle::ZERO));
        assert_eq!(board.stall_reason(&other), None);
        board.release(&loads[0]);
        // R8 is there, but R9 holds the barrier.
        assert_eq!(board.stall_reason(&reader), Some(WarpState::LongScoreboard));
        assert_eq!(board.stall_reason(&fixed(&add(0, 8))), None);
        board.release(&loads[1]);
        assert_eq!(board, Scoreboard::default());
        assert_eq!(board.stall_reason(&reader), None);
        // A barrier without a result from behind the L1 is a short wait.
        board.issue(&loads[1], Cycle::ZERO);
        assert_eq!(board.stall_reason(&reader), Some(WarpState::ShortScoreboard));
    }

    /// What the board says of its owners.
    fn broken(board: &Scoreboard, owners: &[Predecoded]) -> Vec<String> {
        Invariants::broken(|check| board.check_owners(3, owners.iter(), check))
    }

    #[test]
    fn pending_write_has_exactly_one_owner() {
        let (first, second) = (fixed(&add(4, 1)), fixed(&add(5, 1)));
        let mut board = Scoreboard::default();
        board.issue(&first, Cycle::ZERO);
        board.issue(&second, Cycle::ZERO);
        assert_eq!(broken(&board, &[first, second]), [""; 0]);
        // R4 and R5 are bits 4 and 5.
        assert_eq!(broken(&board, &[second]), ["pending writes of slot 3: 48, not 32"]);
        let found = broken(&board, &[first, second, first]);
        assert_eq!(found, ["writes of slot 3 with two owners: 1, not 0"]);
        board.release(&first);
        assert_eq!(
            broken(&board, &[first, second]),
            ["pending writes of slot 3: 32, not 48"]
        );
    }

    #[test]
    fn kind_of_a_pending_write_is_that_of_its_owner() {
        let short = predecoded(&compare(2), ResultWait::Short);
        let mut board = Scoreboard::default();
        board.issue(&short, Cycle::ZERO);
        assert_eq!(broken(&board, &[short]), [""; 0]);
        let found = broken(&board, &[predecoded(&compare(2), ResultWait::Long)]);
        let expected = ["long writes of slot 3: 0, not 4", "short writes of slot 3: 4, not 0"];
        assert_eq!(found, expected);
    }

    #[test]
    fn dependency_barrier_counts_its_owners() {
        let barriers = ResultBarriers {
            write: Some(2),
            wait: 0,
        };
        let loads = [8, 9].map(|dst| with_barriers(&add(dst, 1), ResultWait::Long, barriers));
        let mut board = Scoreboard::default();
        loads.iter().for_each(|load| board.issue(load, Cycle::ZERO));
        assert_eq!(broken(&board, &loads), [""; 0]);
        board.barriers.free(&loads[0]);
        assert_eq!(
            broken(&board, &loads),
            ["results with dependency barrier 2 of slot 3: 1, not 2"]
        );
        board.barriers.free(&loads[0]);
        let found = broken(&board, &loads);
        assert!(
            found.contains(&"held dependency barriers of slot 3: 0, not 4".to_owned()),
            "{found:?}"
        );
    }
}
