//! The operand collector: gathers what an instruction reads.

use warpwave_isa::exec::special::Place;
use warpwave_isa::exec::{guard, predicate_sources};
use warpwave_isa::lane::{LaneMask, Lanes};
use warpwave_isa::program::WordSource;

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
