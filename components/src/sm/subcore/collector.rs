//! The operand collector: gathers what an instruction reads, and says how many cycles the register banks need for it.

use warpwave_isa::exec::special::Place;
use warpwave_isa::exec::{guard, predicate_sources};
use warpwave_isa::lane::{LaneMask, Lanes};
use warpwave_isa::program::{Decoded, RegSet, WordSource};

use crate::proto::warp::Flight;
use crate::sm::subcore::regfile::RegFile;

/// Reads the operands of `flight` and narrows its lanes from the running ones to those in which the guard holds.
#[inline]
pub fn gather(flight: &mut Flight, active: LaneMask, file: &RegFile, place: impl Fn() -> Place) {
    let warp = flight.warp as usize;
    let grid = &flight.grid;
    let inst = &grid.program.code()[flight.pc as usize];
    let decoded = &grid.program.decoded()[flight.pc as usize];
    let operands = &mut flight.operands;
    for (word, source) in operands
        .words
        .iter_mut()
        .zip(&decoded.sources[..decoded.words as usize])
    {
        match *source {
            WordSource::Reg(reg) => *word = *file.read(warp, reg),
            WordSource::Zero => *word = Lanes::ZERO,
            WordSource::Imm(bits) => *word = Lanes::splat(bits),
            WordSource::Const { bank, word: index } => *word = Lanes::splat(grid.constant(bank, index)),
            WordSource::Special(special) => *word = place().lanes(special),
        }
    }
    let predicates = file.predicates(warp);
    operands.file = *predicates;
    operands.preds = predicate_sources(inst, predicates);
    flight.lanes = guard(inst, predicates, active);
}

/// Cycles that the banks need to read an instruction's registers: the fullest bank decides. At least 1.
#[inline]
pub fn bank_cycles(decoded: &Decoded, banks: u32, ports: u32) -> u64 {
    let fullest = match banks {
        1 => decoded.uses.0.iter().map(|word| word.count_ones()).sum(),
        2 => count(&decoded.uses, 0x5555_5555_5555_5555).max(count(&decoded.uses, 0xaaaa_aaaa_aaaa_aaaa)),
        _ => (0..banks)
            .map(|bank| in_bank(&decoded.uses, bank, banks))
            .max()
            .unwrap_or(0),
    };
    u64::from(fullest.div_ceil(ports)).max(1)
}

#[inline]
fn count(set: &RegSet, mask: u64) -> u32 {
    set.0.iter().map(|word| (word & mask).count_ones()).sum()
}

fn in_bank(set: &RegSet, bank: u32, banks: u32) -> u32 {
    (0..256u32)
        .filter(|n| n % banks == bank && set.0[*n as usize / 64] >> (n % 64) & 1 == 1)
        .count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwave_isa::inst::{Inst, Operand};
    use warpwave_isa::opcode::Opcode;
    use warpwave_isa::reg::Reg;

    fn ffma(a: u8, b: u8, c: u8) -> Decoded {
        let mut inst = Inst::new(Opcode::Ffma);
        for (slot, reg) in [a, b, c].into_iter().enumerate() {
            inst.src[slot] = Operand::reg(Reg(reg));
        }
        Decoded::of(&inst)
    }

    #[test]
    fn two_banks_one_port_even_registers_take_a_cycle_each() {
        assert_eq!(bank_cycles(&ffma(0, 2, 4), 2, 1), 3);
        assert_eq!(bank_cycles(&ffma(0, 1, 4), 2, 1), 2);
        assert_eq!(bank_cycles(&ffma(0, 1, 4), 2, 2), 1);
        assert_eq!(bank_cycles(&ffma(0, 0, 0), 2, 1), 1);
        assert_eq!(bank_cycles(&ffma(0, 4, 8), 4, 1), 3);
    }
}
