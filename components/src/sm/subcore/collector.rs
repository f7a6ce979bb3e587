//! The operand collector: gathers what an instruction reads.

use warpwave_isa::affine::Affine;
use warpwave_isa::exec::special::Place;
use warpwave_isa::exec::{EVEN_WORDS, guard, predicate_sources};
use warpwave_isa::inst::Inst;
use warpwave_isa::lane::LaneMask;
use warpwave_isa::program::{Decoded, WordSource};
use warpwave_isa::reg::Special;

use crate::proto::launch::Route;
use crate::proto::warp::Flight;
use crate::sm::subcore::regfile::{RegFile, Row};

/// Asks for the registers that an instruction of a warp will read ([`warpwave_hw::prefetch`]).
#[inline]
pub fn prefetch(decoded: &Decoded, warp: usize, file: &RegFile) {
    for source in &decoded.sources[..decoded.words as usize] {
        if let WordSource::Reg(reg) = *source {
            file.prefetch(warp, reg, 1);
        }
    }
}

/// How many of an instruction's first words its unit takes as affine rows: those of an address, or all that it computes with.
#[inline]
fn foldable(decoded: &Decoded, route: Route) -> usize {
    match route {
        Route::Device => 2,
        Route::Shared => 1,
        _ if decoded.even => EVEN_WORDS,
        _ => 0,
    }
}

/// What a special register holds, if that is an affine row; else it is put where operand word `n` belongs.
#[inline(never)]
fn read_special(flight: &mut Flight, n: usize, special: Special, place: &Place) -> Option<Affine> {
    let row = place.even(special);
    if row.is_none() {
        flight.operands.words[n] = place.lanes(special);
    }
    row
}

/// Reads the operands of `flight`, whose instruction and facts these are, and narrows its lanes from the running ones to those in
/// which the guard holds. Predicates are left as they were in the box where the instruction looks at none.
#[inline(never)]
pub fn gather(
    flight: &mut Flight,
    (inst, decoded): (&Inst, &Decoded),
    active: LaneMask,
    file: &RegFile,
    place: impl Fn() -> Place,
) {
    let warp = flight.warp as usize;
    let mut foldable = foldable(decoded, flight.brief.route);
    flight.folded = 0;
    for (n, source) in decoded.sources[..decoded.words as usize].iter().enumerate() {
        let row = match *source {
            WordSource::Reg(reg) => match file.read(warp, reg) {
                Row::Affine(row) => Some(row),
                Row::Lanes(row) => {
                    flight.operands.words[n] = *row;
                    None
                }
            },
            WordSource::Zero => Some(Affine::splat(0)),
            WordSource::Imm(bits) => Some(Affine::splat(bits)),
            WordSource::Const { bank, word } => Some(Affine::splat(flight.grid.constant(bank, word))),
            WordSource::Special(special) => read_special(flight, n, special, &place()),
        };
        match row {
            Some(row) if n < foldable => {
                flight.even[n] = row;
                flight.folded |= 1 << n;
            }
            Some(row) => row.unfold(&mut flight.operands.words[n]),
            // All that may be is folded, or nothing: with one row of lanes the rest is worked out lane by lane too.
            None if n < foldable => {
                foldable = 0;
                flight.unfold();
            }
            None => {}
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
