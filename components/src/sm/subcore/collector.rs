//! The operand collector: gathers what an instruction reads.
//!
//! Rows that the register file keeps as affine go on as such to units that take them so; for any other their lanes are written out.

use warpwave_isa::affine::Affine;
use warpwave_isa::exec::special::Place;
use warpwave_isa::exec::{EVEN_WORDS, guard, predicate_sources};
use warpwave_isa::inst::Inst;
use warpwave_isa::lane::LaneMask;
use warpwave_isa::program::{Decoded, WordSource};
use warpwave_isa::reg::Special;

use crate::proto::launch::Route;
use crate::proto::warp::{Flight, WarpStart};
use crate::sm::subcore::regfile::{RegFile, Row};

/// Asks for the registers that a warp which began so will read with the instruction at a program counter, if there is one
/// ([`warpwave_hw::prefetch`]).
#[inline]
pub fn prefetch_at(pc: u32, start: &WarpStart, file: &RegFile) {
    let Some(decoded) = start.grid.program.decoded().get(pc as usize) else {
        return;
    };
    for source in &decoded.sources[..decoded.words as usize] {
        if let WordSource::Reg(reg) = *source {
            file.prefetch(start.warp.into(), reg, 1);
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

#[cfg(test)]
mod tests {
    use warpwave_isa::lane::Lanes;
    use warpwave_isa::reg::Reg;

    use super::*;
    use crate::dialogue::grid;
    use crate::proto::warp::Brief;

    const COUNTED: Affine = Affine {
        first: [3, 19],
        step: 1,
    };

    /// The instruction with its operands from a file whose R0 and R1 are affine rows and whose R2 is none.
    fn gathered(text: &str, route: Route) -> Flight {
        let grid = grid(text, 1);
        let mut file = RegFile::new(8, 1);
        file.assign(0, 8);
        file.write_affine(0, Reg(0), COUNTED, LaneMask::ALL);
        file.write_affine(0, Reg(1), Affine::splat(5), LaneMask::ALL);
        file.write(0, Reg(2), &squares(), LaneMask::ALL);
        let mut flight = Flight::blank(0, grid.clone());
        let (inst, decoded) = (&grid.program.code()[0], &grid.program.decoded()[0]);
        flight.brief = Brief {
            route,
            ..Brief::of(inst, decoded, &grid.timing[0])
        };
        gather(&mut flight, (inst, decoded), LaneMask::ALL, &file, Place::default);
        flight
    }

    fn squares() -> Lanes {
        Lanes(std::array::from_fn(|lane| (lane * lane) as u32))
    }

    #[test]
    fn sum_of_affine_rows_comes_folded_and_one_row_of_lanes_unfolds_all() {
        let even = gathered("IADD3 R4, PT, R0, R1, 0x7, PT", Route::Other);
        assert_eq!(
            (even.folded, &even.even[..2]),
            (0b111, &[COUNTED, Affine::splat(5)][..])
        );
        assert_eq!(even.even[2], Affine::splat(7));
        let mixed = gathered("IADD3 R4, PT, R0, R2, 0x7, PT", Route::Other);
        assert_eq!(mixed.folded, 0);
        assert_eq!(mixed.operands.words[..3], [COUNTED.row(), squares(), Lanes::splat(7)]);
    }

    #[test]
    fn address_is_folded_whatever_is_stored_and_no_operand_of_a_product_of_floats_is() {
        let store = gathered("ST.B32 [R0], R2", Route::Device);
        assert_eq!(
            (store.folded, &store.even[..2]),
            (0b11, &[COUNTED, Affine::splat(5)][..])
        );
        assert_eq!(store.operands.words[2], squares());
        let product = gathered("FMUL R4, R0, R1", Route::Other);
        assert_eq!(product.folded, 0);
        assert_eq!(product.operands.words[..2], [COUNTED.row(), Lanes::splat(5)]);
    }
}
