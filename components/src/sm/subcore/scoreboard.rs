//! Pending writes of one warp: which registers and predicates are not there yet, and what kind of wait that is.
//!
//! A bit is set at issue and cleared when the result is stored. Reading or writing a pending register waits, so a register has
//! at most one write in flight. Sources are read in order of issue, so writes after reads need no bit.

use warpwave_isa::reg::RegSet;

use crate::proto::launch::ResultWait;
use crate::proto::predecoded::Predecoded;
use crate::sm::subcore::stall::State;

/// Registers and predicates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Pending {
    registers: RegSet,
    predicates: u8,
}

/// Words of a [`RegSet`], less one: a mask of an index into it.
const WORDS: usize = 3;

impl Pending {
    #[inline]
    fn add(&mut self, inst: &Predecoded) {
        let word = inst.defs_word as usize;
        self.registers.0[word & WORDS] |= inst.defs;
        self.registers.0[(word + 1) & WORDS] |= u64::from(inst.defs_beyond);
        self.predicates |= inst.pred_defs;
    }

    #[inline]
    fn remove(&mut self, inst: &Predecoded) {
        let word = inst.defs_word as usize;
        self.registers.0[word & WORDS] &= !inst.defs;
        self.registers.0[(word + 1) & WORDS] &= !u64::from(inst.defs_beyond);
        self.predicates &= !inst.pred_defs;
    }

    #[inline]
    fn concerns(&self, inst: &Predecoded) -> bool {
        self.registers.meets(&inst.touches) || self.predicates & inst.pred_touches != 0
    }
}

/// The scoreboard of one warp: all that is pending, and what of it comes from beyond the L1 or from behind a queue. The rest, which
/// is most of it, comes after a fixed time and is marked once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[repr(C, align(64))]
pub struct Scoreboard {
    all: Pending,
    long: Pending,
    short: Pending,
}

impl Scoreboard {
    /// Marks the results of an instruction as pending.
    #[inline]
    pub fn issue(&mut self, inst: &Predecoded) {
        self.all.add(inst);
        match inst.result {
            ResultWait::Fixed => {}
            ResultWait::Long => self.long.add(inst),
            ResultWait::Short => self.short.add(inst),
        }
    }

    /// The results of an instruction are stored.
    #[inline]
    pub fn release(&mut self, inst: &Predecoded) {
        self.all.remove(inst);
        match inst.result {
            ResultWait::Fixed => {}
            ResultWait::Long => self.long.remove(inst),
            ResultWait::Short => self.short.remove(inst),
        }
    }

    /// What an instruction has to wait for, the slowest first; nothing if it may issue.
    #[inline]
    pub fn wait(&self, inst: &Predecoded) -> Option<State> {
        self.all.concerns(inst).then(|| self.slowest(inst))
    }

    /// Of an instruction that waits for something.
    fn slowest(&self, inst: &Predecoded) -> State {
        if self.long.concerns(inst) {
            State::LongScoreboard
        } else if self.short.concerns(inst) {
            State::ShortScoreboard
        } else {
            State::Wait
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::launch::{Route, Timing};
    use warpwave_isa::inst::{Inst, Operand};
    use warpwave_isa::opcode::Opcode;
    use warpwave_isa::program::Decoded;
    use warpwave_isa::reg::{Pred, Reg};

    fn add(dst: u8, a: u8) -> Inst {
        let mut inst = Inst::new(Opcode::Fadd);
        inst.dst = Reg(dst);
        inst.src[0] = Operand::reg(Reg(a));
        inst
    }

    /// The instruction, one whose result is waited for like this.
    fn known(inst: &Inst, result: ResultWait) -> Predecoded {
        let timing = Timing {
            latency: 4,
            interval: 1,
            operand_cycles: 1,
            result,
            is_posted: false,
            is_local_or_global: false,
            route: Route::Other,
        };
        Predecoded::of(inst, &Decoded::of(inst), &timing)
    }

    fn fixed(inst: &Inst) -> Predecoded {
        known(inst, ResultWait::Fixed)
    }

    #[test]
    fn result_pending_reader_and_writer_wait_until_it_is_stored() {
        let mut board = Scoreboard::default();
        let producer = add(4, 1);
        board.issue(&fixed(&producer));
        assert_eq!(board.wait(&fixed(&add(5, 4))), Some(State::Wait));
        assert_eq!(board.wait(&fixed(&add(4, 1))), Some(State::Wait));
        assert_eq!(board.wait(&fixed(&add(5, 6))), None);
        board.release(&fixed(&producer));
        assert_eq!(board.wait(&fixed(&add(5, 4))), None);
    }

    #[test]
    fn load_pending_reader_waits_on_the_long_scoreboard() {
        let mut load = Inst::new(Opcode::Ld);
        load.dst = Reg(8);
        load.mods.access = warpwave_isa::space::Access {
            bytes: 4,
            count: 2,
            signed: false,
        };
        let mut board = Scoreboard::default();
        board.issue(&known(&load, ResultWait::Long));
        assert_eq!(board.wait(&fixed(&add(0, 9))), Some(State::LongScoreboard));
        assert_eq!(board.wait(&fixed(&add(0, 10))), None);
    }

    #[test]
    fn predicate_pending_guarded_instruction_waits() {
        let mut compare = Inst::new(Opcode::Isetp);
        compare.pdst[0] = Pred(2);
        let mut board = Scoreboard::default();
        board.issue(&fixed(&compare));
        let mut guarded = add(0, 1);
        guarded.guard = warpwave_isa::reg::Guard::unless(Pred(2));
        assert_eq!(board.wait(&fixed(&guarded)), Some(State::Wait));
    }

    #[test]
    fn results_on_either_side_of_a_word_of_the_set_are_both_pending() {
        let mut load = Inst::new(Opcode::Ld);
        load.dst = Reg(62);
        load.mods.access = warpwave_isa::space::Access {
            bytes: 4,
            count: 4,
            signed: false,
        };
        let mut board = Scoreboard::default();
        board.issue(&known(&load, ResultWait::Short));
        let waits = |board: &Scoreboard| [61, 62, 63, 64, 65, 66].map(|reg| board.wait(&fixed(&add(0, reg))).is_some());
        assert_eq!(waits(&board), [false, true, true, true, true, false]);
        assert_eq!(board.wait(&fixed(&add(0, 65))), Some(State::ShortScoreboard));
        board.release(&known(&load, ResultWait::Short));
        assert_eq!(waits(&board), [false; 6]);
    }
}
