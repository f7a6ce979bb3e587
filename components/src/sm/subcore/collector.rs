//! The operand collector: gathers what an instruction reads.

use warpwave_isa::exec::special::Place;
use warpwave_isa::exec::{guard, predicate_sources};
use warpwave_isa::inst::Inst;
use warpwave_isa::lane::{LaneMask, Lanes};
use warpwave_isa::program::{Decoded, WordSource};

use crate::proto::warp::Flight;
use crate::sm::subcore::regfile::RegFile;

/// Asks for the registers that an instruction of a warp will read ([`warpwave_hw::prefetch`]).
#[inline]
pub fn prefetch(decoded: &Decoded, warp: usize, file: &RegFile) {
    for source in &decoded.sources[..decoded.words as usize] {
        if let WordSource::Reg(reg) = *source {
            file.prefetch(warp, reg, 1);
        }
    }
}

/// Reads the operands of `flight`, whose instruction and facts these are, and narrows its lanes from the running ones to those in
/// which the guard holds. Predicates are left as they were in the box where the instruction looks at none.
#[inline]
pub fn gather(
    flight: &mut Flight,
    (inst, decoded): (&Inst, &Decoded),
    active: LaneMask,
    file: &RegFile,
    place: impl Fn() -> Place,
) {
    let warp = flight.warp as usize;
    let sources = &decoded.sources[..decoded.words as usize];
    for (word, source) in flight.operands.words.iter_mut().zip(sources) {
        match *source {
            WordSource::Reg(reg) => *word = *file.read(warp, reg),
            WordSource::Zero => *word = Lanes::ZERO,
            WordSource::Imm(bits) => *word = Lanes::splat(bits),
            WordSource::Const { bank, word: index } => *word = Lanes::splat(flight.grid.constant(bank, index)),
            WordSource::Special(special) => *word = place().lanes(special),
        }
    }
    flight.lanes = active;
    if decoded.predicated {
        let predicates = file.predicates(warp);
        flight.operands.file = *predicates;
        flight.operands.preds = predicate_sources(inst, predicates);
        flight.lanes = guard(inst, predicates, active);
    }
}
