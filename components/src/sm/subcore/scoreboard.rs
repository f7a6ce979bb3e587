//! Pending writes of one warp: which registers and predicates are not there yet, and what kind of wait that is.
//!
//! A bit is set at issue and cleared when the result is stored. Reading or writing a pending register waits, so a register has
//! at most one write in flight. Sources are read in order of issue, so writes after reads need no bit.

use warpwave_isa::program::{Decoded, RegSet};

use crate::proto::launch::ResultWait;
use crate::sm::subcore::stall::State;

/// What is waited for, slowest first, in the order of [`ResultWait`].
const WAITS: [State; 3] = [State::LongScoreboard, State::ShortScoreboard, State::Wait];

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Pending {
    registers: RegSet,
    predicates: u8,
}

impl Pending {
    #[inline]
    fn add(&mut self, decoded: &Decoded) {
        self.registers = self.registers.union(&decoded.defs);
        self.predicates |= decoded.pred_defs;
    }

    #[inline]
    fn remove(&mut self, decoded: &Decoded) {
        self.registers = self.registers.without(&decoded.defs);
        self.predicates &= !decoded.pred_defs;
    }

    #[inline]
    fn concerns(&self, decoded: &Decoded) -> bool {
        self.registers.meets(&decoded.touches) || self.predicates & decoded.pred_touches != 0
    }
}

/// The scoreboard of one warp: all that is pending, which mostly concerns nobody, and the same by what is waited for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Scoreboard {
    all: Pending,
    by_wait: [Pending; 3],
}

impl Scoreboard {
    /// Marks the results of an instruction as pending.
    #[inline]
    pub fn issue(&mut self, decoded: &Decoded, result: ResultWait) {
        self.all.add(decoded);
        self.by_wait[result as usize].add(decoded);
    }

    /// The results of an instruction are stored.
    #[inline]
    pub fn release(&mut self, decoded: &Decoded, result: ResultWait) {
        self.all.remove(decoded);
        self.by_wait[result as usize].remove(decoded);
    }

    /// What an instruction has to wait for, the slowest first; nothing if it may issue.
    #[inline]
    pub fn wait(&self, decoded: &Decoded) -> Option<State> {
        if !self.all.concerns(decoded) {
            return None;
        }
        let mut waits = self.by_wait.iter().zip(WAITS);
        waits
            .find(|(pending, _)| pending.concerns(decoded))
            .map(|(_, state)| state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwave_isa::inst::{Inst, Operand};
    use warpwave_isa::opcode::Opcode;
    use warpwave_isa::reg::{Pred, Reg};

    fn add(dst: u8, a: u8) -> Inst {
        let mut inst = Inst::new(Opcode::Fadd);
        inst.dst = Reg(dst);
        inst.src[0] = Operand::reg(Reg(a));
        inst
    }

    #[test]
    fn result_pending_reader_and_writer_wait_until_it_is_stored() {
        let mut board = Scoreboard::default();
        let producer = add(4, 1);
        board.issue(&Decoded::of(&producer), ResultWait::Fixed);
        assert_eq!(board.wait(&Decoded::of(&add(5, 4))), Some(State::Wait));
        assert_eq!(board.wait(&Decoded::of(&add(4, 1))), Some(State::Wait));
        assert_eq!(board.wait(&Decoded::of(&add(5, 6))), None);
        board.release(&Decoded::of(&producer), ResultWait::Fixed);
        assert_eq!(board.wait(&Decoded::of(&add(5, 4))), None);
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
        board.issue(&Decoded::of(&load), ResultWait::Long);
        assert_eq!(board.wait(&Decoded::of(&add(0, 9))), Some(State::LongScoreboard));
        assert_eq!(board.wait(&Decoded::of(&add(0, 10))), None);
    }

    #[test]
    fn predicate_pending_guarded_instruction_waits() {
        let mut compare = Inst::new(Opcode::Isetp);
        compare.pdst[0] = Pred(2);
        let mut board = Scoreboard::default();
        board.issue(&Decoded::of(&compare), ResultWait::Fixed);
        let mut guarded = add(0, 1);
        guarded.guard = warpwave_isa::reg::Guard::unless(Pred(2));
        assert_eq!(board.wait(&Decoded::of(&guarded)), Some(State::Wait));
    }
}
