//! The register file of a sub-core: a row of 32 words for each warp register, and the predicates.
//!
//! A warp's rows begin at its slot times the registers of a warp of its grid, since one grid at a time runs on an SM.

use warpwave_hw::prefetch::prefetch;
use warpwave_isa::lane::{LaneMask, Lanes, WARP_SIZE};
use warpwave_isa::reg::{Pred, Reg};

/// Registers and predicates of all warps of a sub-core.
#[derive(Clone, Debug)]
pub struct RegFile {
    rows: Vec<Lanes>,
    predicates: Vec<[LaneMask; Pred::COUNT]>,
    /// First row of each warp slot.
    base: Vec<usize>,
}

impl RegFile {
    /// A file of `rows` warp-wide registers for `warps` warp slots, all zero.
    pub fn new(rows: usize, warps: usize) -> Self {
        RegFile {
            rows: vec![Lanes::ZERO; rows],
            predicates: vec![[LaneMask::NONE; Pred::COUNT]; warps],
            base: vec![0; warps],
        }
    }

    /// Gives a warp slot its rows: as many for every slot.
    ///
    /// # Panics
    /// If they lie beyond the file: then more warps were admitted than fit.
    pub fn assign(&mut self, warp: usize, registers: usize) {
        self.base[warp] = warp * registers;
        assert!(
            (warp + 1) * registers <= self.rows.len(),
            "warp slot {warp} of {registers} registers is not in the file"
        );
    }

    /// One register of a warp.
    #[inline]
    pub fn read(&self, warp: usize, reg: Reg) -> &Lanes {
        &self.rows[self.base[warp] + reg.0 as usize]
    }

    /// Has the processor bring `words` registers of a warp from `first` on, which will be written.
    #[inline]
    pub fn prefetch(&self, warp: usize, first: Reg, words: u8) {
        for n in 0..words {
            let row = self.read(warp, first.offset(n));
            prefetch(&row.0[0]);
            prefetch(&row.0[WARP_SIZE / 2]);
        }
    }

    /// Writes one register of a warp in some lanes.
    #[inline]
    pub fn write(&mut self, warp: usize, reg: Reg, value: &Lanes, lanes: LaneMask) {
        self.rows[self.base[warp] + reg.0 as usize].merge(value, lanes);
    }

    /// The predicates of a warp.
    #[inline]
    pub fn predicates(&self, warp: usize) -> &[LaneMask; Pred::COUNT] {
        &self.predicates[warp]
    }

    /// Writes one predicate of a warp in some lanes.
    #[inline]
    pub fn write_predicate(&mut self, warp: usize, pred: Pred, value: LaneMask, lanes: LaneMask) {
        if !pred.is_true() {
            let old = &mut self.predicates[warp][pred.0 as usize];
            *old = (*old & !lanes) | (value & lanes);
        }
    }
}
