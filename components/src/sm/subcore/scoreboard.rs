//! The scoreboard of one warp: its pending register and predicate writes, and the stall reason of an instruction that touches one.
//!
//! A bit is set at issue and cleared when the result is written. Reading or writing a pending register waits, so a register has
//! at most one write in flight. Sources are read in order of issue, so writes after reads need no bit.

use warpwave_isa::reg::RegSet;

use crate::proto::launch::ResultWait;
use crate::proto::predecoded::Predecoded;
use crate::sm::subcore::stall::WarpState;

/// Registers and predicates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Pending {
    registers: RegSet,
    predicates: u8,
}

/// Mask of an index into the four words of a [`RegSet`].
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
        self.registers.intersects(&inst.touches) || self.predicates & inst.pred_touches != 0
    }
}

/// The scoreboard of one warp. Most results have a fixed latency and are marked in `all` only.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[repr(C, align(64))]
pub struct Scoreboard {
    /// Every pending write.
    all: Pending,
    /// Pending results from beyond the L1: long scoreboard.
    long: Pending,
    /// Pending results from behind a queue of the SM: short scoreboard.
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

    /// Clears the results of an instruction.
    #[inline]
    pub fn release(&mut self, inst: &Predecoded) {
        self.all.remove(inst);
        match inst.result {
            ResultWait::Fixed => {}
            ResultWait::Long => self.long.remove(inst),
            ResultWait::Short => self.short.remove(inst),
        }
    }

    /// Stall reason of an instruction, the slowest kind of result first. `None` if no pending write concerns it.
    #[inline]
    pub fn wait(&self, inst: &Predecoded) -> Option<WarpState> {
        self.all.concerns(inst).then(|| self.slowest(inst))
    }

    fn slowest(&self, inst: &Predecoded) -> WarpState {
        if self.long.concerns(inst) {
            WarpState::LongScoreboard
        } else if self.short.concerns(inst) {
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

    /// The instruction, with a result of this kind.
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
        assert_eq!(board.wait(&fixed(&add(5, 4))), Some(WarpState::Wait));
        assert_eq!(board.wait(&fixed(&add(4, 1))), Some(WarpState::Wait));
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
        assert_eq!(board.wait(&fixed(&add(0, 9))), Some(WarpState::LongScoreboard));
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
        assert_eq!(board.wait(&fixed(&guarded)), Some(WarpState::Wait));
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
        assert_eq!(board.wait(&fixed(&add(0, 65))), Some(WarpState::ShortScoreboard));
        board.release(&known(&load, ResultWait::Short));
        assert_eq!(waits(&board), [false; 6]);
    }
}
