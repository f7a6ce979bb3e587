//! Pending writes of one warp: which registers and predicates are not there yet, and what kind of wait that is.
//!
//! A bit is set at issue and cleared when the result is stored. Reading or writing a pending register waits, so a register has
//! at most one write in flight. Sources are read in order of issue, so writes after reads need no bit.

use warpwave_isa::inst::Inst;
use warpwave_isa::program::{Decoded, RegSet};

use crate::sm::subcore::stall::State;
use crate::sm::timing;

/// Kinds of wait, slowest first: the profiler's long scoreboard, short scoreboard, and fixed latency.
const WAITS: [State; 3] = [State::LongScoreboard, State::ShortScoreboard, State::Wait];

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Pending {
    registers: RegSet,
    predicates: u8,
}

/// The scoreboard of one warp.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Scoreboard([Pending; 3]);

impl Scoreboard {
    /// Marks the results of an instruction as pending.
    #[inline]
    pub fn issue(&mut self, inst: &Inst, decoded: &Decoded) {
        let pending = &mut self.0[kind(inst)];
        for (mine, new) in pending.registers.0.iter_mut().zip(decoded.defs.0) {
            *mine |= new;
        }
        pending.predicates |= decoded.pred_defs;
    }

    /// The results of an instruction are stored.
    #[inline]
    pub fn release(&mut self, inst: &Inst, decoded: &Decoded) {
        let pending = &mut self.0[kind(inst)];
        for (mine, done) in pending.registers.0.iter_mut().zip(decoded.defs.0) {
            *mine &= !done;
        }
        pending.predicates &= !decoded.pred_defs;
    }

    /// What an instruction has to wait for, the slowest first; nothing if it may issue.
    #[inline]
    pub fn wait(&self, decoded: &Decoded) -> Option<State> {
        let predicates = decoded.pred_uses | decoded.pred_defs;
        for (pending, state) in self.0.iter().zip(WAITS) {
            let registers = pending.registers.meets(&decoded.uses) || pending.registers.meets(&decoded.defs);
            if registers || pending.predicates & predicates != 0 {
                return Some(state);
            }
        }
        None
    }
}

#[inline]
fn kind(inst: &Inst) -> usize {
    if timing::is_long(inst) {
        0
    } else if timing::is_short(inst) {
        1
    } else {
        2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwave_isa::inst::Operand;
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
        board.issue(&producer, &Decoded::of(&producer));
        assert_eq!(board.wait(&Decoded::of(&add(5, 4))), Some(State::Wait));
        assert_eq!(board.wait(&Decoded::of(&add(4, 1))), Some(State::Wait));
        assert_eq!(board.wait(&Decoded::of(&add(5, 6))), None);
        board.release(&producer, &Decoded::of(&producer));
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
        board.issue(&load, &Decoded::of(&load));
        assert_eq!(board.wait(&Decoded::of(&add(0, 9))), Some(State::LongScoreboard));
        assert_eq!(board.wait(&Decoded::of(&add(0, 10))), None);
    }

    #[test]
    fn predicate_pending_guarded_instruction_waits() {
        let mut compare = Inst::new(Opcode::Isetp);
        compare.pdst[0] = Pred(2);
        let mut board = Scoreboard::default();
        board.issue(&compare, &Decoded::of(&compare));
        let mut guarded = add(0, 1);
        guarded.guard = warpwave_isa::reg::Guard::unless(Pred(2));
        assert_eq!(board.wait(&Decoded::of(&guarded)), Some(State::Wait));
    }
}
