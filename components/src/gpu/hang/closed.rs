//! Loops that a polled value alone can end.
//!
//! A loop is closed if it has all of these properties:
//!
//! - Its instructions follow each other. Each branch leaves the loop, and the last one leads back to its begin.
//! - It computes with integers, sleeps, and loads words of global or shared memory past the L1. It does nothing else.
//! - Addresses of loads and predicates of branches follow from words that this turn loads, and from registers that the loop never writes.
//!
//! So all turns take the same branches as long as memory does not change. Once one turn has decided every branch for the loop, the warp
//! leaves it only after a change of memory. The loop may have other registers, such as a count of its turns.

use std::ops::RangeInclusive;

use warpwave_isa::exec::guard;
use warpwave_isa::inst::{CacheOp, Inst};
use warpwave_isa::opcode::Opcode;
use warpwave_isa::program::{Decoded, Program, WordSource};
use warpwave_isa::reg::{Guard, Pred, RegSet};
use warpwave_isa::space::Space;

use super::poll::loop_around;
use crate::sm::subcore::regfile::RegFile;
use crate::sm::subcore::warp::Warp;

/// Most instructions of a closed loop.
const REACH: usize = 64;

/// A warp in a turn of a closed loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::gpu) enum Turn {
    /// The turn has loaded nothing yet.
    Begins,
    /// The turn has decided each branch, and stays in the loop. It drops no more lines of the L1.
    Stays,
    /// Any other moment.
    Runs,
}

/// The turn of a warp that is in a closed loop.
pub(in crate::gpu) fn turn(slot: usize, warp: &Warp, file: &RegFile) -> Option<Turn> {
    let (active, pc) = (warp.flow.active(), warp.flow.pc() as usize);
    // Lanes that wait elsewhere may act later.
    if active.is_empty() || active != warp.flow.live() {
        return None;
    }
    let program = &warp.grid.program;
    let body = closed_loop(program, pc)?;
    let code = program.code();
    let is_load = |at: &usize| code[*at].op == Opcode::Ld;
    if body.clone().find(is_load).is_none_or(|first| pc <= first) {
        return Some(Turn::Begins);
    }
    let pending = warp.board.pending().1;
    let stays = |at: usize| {
        let inst = &code[at];
        let Some(Pred(number)) = predicate(inst) else {
            return true;
        };
        let mut definitions = (*body.start()..at).filter(|&n| program.decoded()[n].pred_defs >> number & 1 != 0);
        let is_known = definitions.next_back().is_none_or(|n| n < pc) && pending >> number & 1 == 0;
        let taken = guard(inst, file.predicates(slot), active);
        let repeats = if at == *body.end() { active } else { Default::default() };
        is_known && taken == repeats
    };
    // This turn has passed the branches before the program counter. A later drop of L1 lines may change what other warps read.
    let drops_lines = code[pc..=*body.end()].iter().any(|inst| inst.op == Opcode::CctlIvall);
    let mut branches = (pc..=*body.end()).filter(|&at| code[at].op == Opcode::Bra);
    let is_decided = !drops_lines && branches.all(stays);
    Some(if is_decided { Turn::Stays } else { Turn::Runs })
}

/// True if a program copies to shared memory without a sign of progress.
pub(in crate::gpu) fn copies_to_shared(program: &Program) -> bool {
    program.code().iter().any(|inst| inst.op == Opcode::Ldgsts)
}

/// The predicate of the guard. `None` for a branch that every turn decides alike.
fn predicate(inst: &Inst) -> Option<Pred> {
    (inst.guard != Guard::ALWAYS && inst.guard != Guard::NEVER).then_some(inst.guard.pred)
}

/// The closed loop around an instruction.
fn closed_loop(program: &Program, pc: usize) -> Option<RangeInclusive<usize>> {
    program.code().get(pc)?;
    let body = loop_around(program, pc, REACH)?;
    let (code, decoded) = (&program.code()[body.clone()], &program.decoded()[body.clone()]);
    // Registers and predicates that may hold values of an earlier turn. At first the loop's results are in the sets. Each result of this
    // turn leaves them.
    let mut registers = decoded
        .iter()
        .fold(RegSet::default(), |all, inst| all.union(&inst.defs));
    let mut predicates = decoded.iter().fold(0, |all, inst| all | inst.pred_defs);
    for (at, (inst, decoded)) in body.clone().zip(code.iter().zip(decoded)) {
        let is_fixed =
            !decoded.uses.intersects(&registers) && decoded.pred_uses & predicates == 0 && !reads_special(decoded);
        let is_ok = match inst.op {
            Opcode::Bra => is_fixed && is_simple_branch(inst, at, &body),
            Opcode::Ld => is_fixed && inst.guard == Guard::ALWAYS && loads_past_the_l1(inst),
            op => is_local(op),
        };
        if !is_ok {
            return None;
        }
        if is_fixed && inst.guard == Guard::ALWAYS {
            registers = registers.without(&decoded.defs);
            predicates &= !decoded.pred_defs;
        } else {
            registers = registers.union(&decoded.defs);
            predicates |= decoded.pred_defs;
        }
    }
    Some(body)
}

/// True for a branch out of the loop under a predicate, and for the one back to its begin.
fn is_simple_branch(inst: &Inst, at: usize, body: &RangeInclusive<usize>) -> bool {
    let target = inst.target as usize;
    if at == *body.end() {
        return target == *body.start() && inst.guard != Guard::NEVER;
    }
    inst.guard == Guard::NEVER || predicate(inst).is_some() && !body.contains(&target)
}

/// True for a load that finds the value of memory: no L1 keeps an older one.
fn loads_past_the_l1(inst: &Inst) -> bool {
    match inst.mods.space {
        Space::Shared => true,
        Space::Global | Space::Generic => matches!(inst.mods.cache, CacheOp::Volatile | CacheOp::Global),
        _ => false,
    }
}

/// True for an instruction that acts on registers of its lane alone, or that orders accesses.
fn is_local(op: Opcode) -> bool {
    use Opcode::{
        Bfe, Bfi, CctlIvall, Iadd3, Imad, ImadWide, Imnmx, Isetp, Lea, Lop3, Membar, Mov, Nanosleep, Plop3, Prmt, Sel,
        Shf,
    };
    matches!(
        op,
        Bfe | Bfi
            | CctlIvall
            | Iadd3
            | Imad
            | ImadWide
            | Imnmx
            | Isetp
            | Lea
            | Lop3
            | Membar
            | Mov
            | Nanosleep
            | Plop3
            | Prmt
            | Sel
            | Shf
    )
}

fn reads_special(inst: &Decoded) -> bool {
    let sources = &inst.sources[..usize::from(inst.source_words)];
    sources.iter().any(|source| matches!(source, WordSource::Special(_)))
}

#[cfg(test)]
mod tests {
    use warpwave_isa::program::Requirements;

    use super::*;

    /// True if the loop of the first instruction is closed.
    fn is_closed(text: &str) -> bool {
        let code = text.lines().map(|line| line.trim().parse().expect(line)).collect();
        closed_loop(&Program::new("k", code, Requirements::default()), 0).is_some()
    }

    #[test]
    fn poll_that_counts_its_turns_is_closed() {
        assert!(is_closed(
            "IADD3 R2, PT, R2, 0x1, RZ, PT
            LD.B32.CV R0, [R4]
            ISETP.EQ.AND.S32 P0, PT, R0, RZ, PT, PT
            @P0 BRA 0
            EXIT"
        ));
    }

    #[test]
    fn poll_that_ends_after_a_number_of_turns_is_open() {
        assert!(!is_closed(
            "IADD3 R2, PT, R2, 0x1, RZ, PT
            ISETP.EQ.AND.S32 P1, PT, R2, 0x64, PT, PT
            @P1 BRA 6
            LD.B32.CV R0, [R4]
            ISETP.EQ.AND.S32 P0, PT, R0, RZ, PT, PT
            @P0 BRA 0
            EXIT"
        ));
    }

    #[test]
    fn value_of_an_earlier_turn_makes_a_loop_open() {
        // Each turn compares what the turn before has loaded, then the sum of all that it has loaded.
        assert!(!is_closed(
            "ISETP.EQ.AND.S32 P0, PT, R0, RZ, PT, PT
            LD.B32.CV R0, [R4]
            @P0 BRA 0
            EXIT"
        ));
        assert!(!is_closed(
            "LD.B32.CV R0, [R4]
            IADD3 R1, PT, R1, R0, RZ, PT
            ISETP.LT.AND.S32 P0, PT, R1, 0x9, PT, PT
            @P0 BRA 0
            EXIT"
        ));
    }

    #[test]
    fn poll_of_another_address_in_each_turn_is_open() {
        assert!(!is_closed(
            "LD.B32.CV R0, [R4]
            IADD3 R4, PT, R4, 0x4, RZ, PT
            ISETP.EQ.AND.S32 P0, PT, R0, RZ, PT, PT
            @P0 BRA 0
            EXIT"
        ));
    }

    #[test]
    fn write_under_a_predicate_makes_a_loop_open() {
        // P1 may hold in some turns alone, and R0 then keeps the value before.
        assert!(!is_closed(
            "LD.B32.CV R0, [R4]
            ISETP.EQ.AND.S32 P1, PT, R3, RZ, PT, PT
            @P1 MOV R0, R3
            IADD3 R3, PT, R3, 0x1, RZ, PT
            ISETP.EQ.AND.S32 P0, PT, R0, RZ, PT, PT
            @P0 BRA 0
            EXIT"
        ));
    }

    #[test]
    fn loop_with_a_store_or_a_cached_load_is_open() {
        for inst in ["ST.B32 [R4], R0", "LD.B32 R1, [R4]", "BAR R1, R1"] {
            let text = format!("LD.B32.CV R0, [R4]\n{inst}\nISETP.EQ.AND.S32 P0, PT, R0, RZ, PT, PT\n@P0 BRA 0\nEXIT");
            assert!(!is_closed(&text), "{inst}");
        }
    }
}
