//! The register file of a sub-core: a row of 32 words for each warp register, and the predicates.
//!
//! A warp's rows begin at its slot times the registers of a warp of its grid, since one grid at a time runs on an SM.
//!
//! The host keeps a row that is [affine](Affine) as such, in an eighth of the memory: a full chip has 20 MB of rows, far more than the
//! processor's caches, and addresses, counters and what all lanes share are such rows. Who reads one is told which it is. Rows take
//! memory from the first warp on that has them: most kernels use a part of the file.
//!
//! # Invariant
//! - A row whose bit is set in `is_affine` is what `affine` says; any other is what `rows` says.

use warpwave_hw::prefetch::prefetch;
use warpwave_isa::affine::Affine;
use warpwave_isa::lane::{LaneMask, Lanes, WARP_SIZE};
use warpwave_isa::reg::{Pred, Reg};

use crate::grow::grow;

/// Rows to a word of bits.
const WORD: usize = u64::BITS as usize;

/// A register as it is kept.
#[derive(Clone, Copy, Debug)]
pub enum Row<'a> {
    /// By three words.
    Affine(Affine),
    /// Word by word.
    Lanes(&'a Lanes),
}

/// Registers and predicates of all warps of a sub-core.
#[derive(Clone, Debug)]
pub struct RegFile {
    /// Rows that the file holds.
    n_rows: usize,
    /// Those that a warp has had.
    rows: Vec<Lanes>,
    affine: Vec<Affine>,
    /// The rows that are affine, 64 to a word.
    is_affine: Vec<u64>,
    predicates: Vec<[LaneMask; Pred::COUNT]>,
    /// First row of each warp slot.
    base: Vec<usize>,
}

impl RegFile {
    /// A file of `rows` warp-wide registers for `warps` warp slots, all zero.
    pub fn new(rows: usize, warps: usize) -> Self {
        RegFile {
            n_rows: rows,
            rows: Vec::new(),
            affine: Vec::new(),
            is_affine: vec![0; rows.div_ceil(WORD)],
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
        let end = self.base[warp] + registers;
        assert!(
            end <= self.n_rows,
            "warp slot {warp} of {registers} registers is not in the file"
        );
        if self.rows.len() < end {
            grow(&mut self.rows, end, Lanes::ZERO);
            grow(&mut self.affine, end, Affine::default());
        }
    }

    #[inline]
    fn place(&self, warp: usize, reg: Reg) -> usize {
        self.base[warp] + reg.0 as usize
    }

    #[inline]
    fn is_affine(&self, place: usize) -> bool {
        self.is_affine[place / WORD] >> (place % WORD) & 1 == 1
    }

    /// One register of a warp, as it is kept.
    #[inline]
    pub fn read(&self, warp: usize, reg: Reg) -> Row<'_> {
        let place = self.place(warp, reg);
        if self.is_affine(place) {
            Row::Affine(self.affine[place])
        } else {
            Row::Lanes(&self.rows[place])
        }
    }

    /// Has the processor bring `words` registers of a warp from `first` on, which will be read or written: they are mostly of the kind
    /// that they were. Who only guesses may name some that no warp has had.
    #[inline]
    pub fn prefetch(&self, warp: usize, first: Reg, words: u8) {
        let first = self.place(warp, first);
        for place in first..first + words as usize {
            let Some(row) = self.rows.get(place) else { return };
            if self.is_affine(place) {
                prefetch(&self.affine[place]);
            } else {
                prefetch(&row.0[0]);
                prefetch(&row.0[WARP_SIZE / 2]);
            }
        }
    }

    /// Writes one register of a warp in some lanes.
    #[inline]
    pub fn write(&mut self, warp: usize, reg: Reg, value: &Lanes, lanes: LaneMask) {
        let place = self.place(warp, reg);
        let (word, bit) = (place / WORD, 1 << (place % WORD));
        if self.is_affine(place) {
            self.is_affine[word] &= !bit;
            if lanes != LaneMask::ALL {
                self.affine[place].unfold(&mut self.rows[place]);
            }
        }
        self.rows[place].merge(value, lanes);
    }

    /// The same of an affine row.
    #[inline]
    pub fn write_affine(&mut self, warp: usize, reg: Reg, value: Affine, lanes: LaneMask) {
        if lanes != LaneMask::ALL {
            return self.write(warp, reg, &value.row(), lanes);
        }
        let place = self.place(warp, reg);
        self.affine[place] = value;
        self.is_affine[place / WORD] |= 1 << (place % WORD);
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WARPS: usize = 3;
    const REGISTERS: usize = 30;

    #[test]
    fn rows_that_no_warp_has_had_are_zero_for_the_first_that_has_them() {
        let mut file = RegFile::new(WARPS * REGISTERS, WARPS);
        file.assign(0, 4);
        file.write(0, Reg(3), &Lanes([7; WARP_SIZE]), LaneMask::ALL);
        file.assign(1, REGISTERS);
        let last = file.read(1, Reg(REGISTERS as u8 - 1));
        assert!(matches!(last, Row::Lanes(&Lanes::ZERO)), "{last:?}");
        file.assign(0, REGISTERS);
        assert!(matches!(file.read(0, Reg(3)), Row::Lanes(row) if row.0 == [7; WARP_SIZE]));
    }

    #[test]
    fn rows_that_no_warp_has_had_may_be_asked_for() {
        let mut file = RegFile::new(WARPS * REGISTERS, WARPS);
        file.assign(0, 4);
        file.prefetch(0, Reg(3), 2);
        file.prefetch(0, Reg(254), 1);
        assert!(matches!(file.read(0, Reg(3)), Row::Lanes(&Lanes::ZERO)));
    }

    /// Which register of which warp, what is written if it is affine and if not, whether it is, and lanes, all of them or some.
    fn write() -> impl Strategy<Value = (usize, u8, (Affine, Lanes, bool), LaneMask)> {
        let affine = (any::<[u32; 2]>(), 0..5u32).prop_map(|(first, step)| Affine { first, step });
        let row = (affine, any::<[u32; WARP_SIZE]>().prop_map(Lanes), any::<bool>());
        let lanes = prop_oneof![Just(LaneMask::ALL), any::<u32>().prop_map(LaneMask)];
        (0..WARPS, 0..REGISTERS as u8, row, lanes)
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_read_as_from_plain_rows(
            writes in prop::collection::vec(write(), 1..100),
        ) {
            let mut file = RegFile::new(WARPS * REGISTERS, WARPS);
            let mut plain = vec![Lanes::ZERO; WARPS * REGISTERS];
            (0..WARPS).for_each(|warp| file.assign(warp, REGISTERS));
            for (warp, reg, (affine, row, is_affine), lanes) in writes {
                if is_affine {
                    file.write_affine(warp, Reg(reg), affine, lanes);
                } else {
                    file.write(warp, Reg(reg), &row, lanes);
                }
                let written = if is_affine { affine.row() } else { row };
                plain[warp * REGISTERS + reg as usize].merge(&written, lanes);
            }
            for (n, expected) in plain.iter().enumerate() {
                let (warp, reg) = (n / REGISTERS, Reg((n % REGISTERS) as u8));
                let read = match file.read(warp, reg) {
                    Row::Affine(affine) => affine.row(),
                    Row::Lanes(row) => *row,
                };
                prop_assert_eq!(&read, expected);
            }
        }
    }
}
