//! The operand collector: reads the operands of an issued instruction.

use warpwave_isa::exec::special::WarpContext;
use warpwave_isa::exec::{guard, predicate_sources};
use warpwave_isa::inst::Inst;
use warpwave_isa::lane::{LaneMask, Lanes};
use warpwave_isa::program::{Decoded, WordSource};

use crate::proto::warp::WarpInst;
use crate::sm::subcore::regfile::RegFile;

/// Reads the operands of `warp_inst`, and sets its lanes to the `active` lanes whose guard holds. `special` computes the special registers.
/// An instruction without predicates leaves the predicates of the box unchanged.
#[inline(never)]
pub fn read_operands(
    warp_inst: &mut WarpInst,
    (inst, decoded): (&Inst, &Decoded),
    active: LaneMask,
    file: &RegFile,
    special: impl Fn() -> WarpContext,
) {
    let warp = warp_inst.warp as usize;
    for (n, source) in decoded.sources[..decoded.source_words as usize].iter().enumerate() {
        warp_inst.operands.words[n] = match *source {
            WordSource::Reg(reg) => *file.read(warp, reg),
            WordSource::Zero => Lanes::ZERO,
            WordSource::Imm(bits) => Lanes::splat(bits),
            // The scheduler has found the line in the immediate constant cache, on a part that has one.
            WordSource::Const { bank, word } => Lanes::splat(warp_inst.grid.constant(bank, word)),
            // A closure: few instructions read a special register, and the values depend on the cycle.
            WordSource::Special(register) => special().lanes(register),
        };
    }
    warp_inst.lanes = active;
    // Most instructions read no predicate. Then the copies are skipped.
    if decoded.reads_preds {
        let predicates = file.predicates(warp);
        warp_inst.operands.file = *predicates;
        warp_inst.operands.preds = predicate_sources(inst, predicates);
        warp_inst.lanes = guard(inst, predicates, active);
    }
}

#[cfg(test)]
mod tests {
    use warpwave_isa::reg::Reg;

    use super::*;
    use crate::test_ports::grid;

    #[test]
    fn register_immediate_and_zero_operands_are_read_for_all_lanes() {
        let grid = grid("IADD3 R4, PT, R2, 0x7, RZ, PT", 1);
        let squares = Lanes(std::array::from_fn(|lane| (lane * lane) as u32));
        let mut file = RegFile::new(8, 1);
        file.assign(0, 8);
        file.write(0, Reg(2), &squares, LaneMask::ALL);
        let mut warp_inst = WarpInst::blank(0, grid.clone());
        let (inst, decoded) = (&grid.program.code()[0], &grid.program.decoded()[0]);
        read_operands(
            &mut warp_inst,
            (inst, decoded),
            LaneMask(0xff),
            &file,
            WarpContext::default,
        );
        assert_eq!(warp_inst.operands.words[..3], [squares, Lanes::splat(7), Lanes::ZERO]);
        assert_eq!(warp_inst.lanes, LaneMask(0xff));
    }
}
