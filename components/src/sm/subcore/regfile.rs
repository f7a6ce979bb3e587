//! The register file of a sub-core: one row of 32 words per register of each warp, and the predicates.
//!
//! The rows of slot i start at row i times the registers of a warp.
//!
//! Host memory for a row is allocated at its first use: most kernels use a part of the file.

use std::hash::{DefaultHasher, Hash, Hasher};

use warpwave_isa::lane::{LaneMask, Lanes};
use warpwave_isa::reg::{Pred, Reg};

use warpwave_hw::grow::grow;

/// Registers and predicates of all warps of a sub-core.
#[derive(Clone, Debug)]
pub struct RegFile {
    /// Capacity in rows.
    n_rows: usize,
    /// The allocated rows, from row 0 on.
    rows: Vec<Lanes>,
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
            predicates: vec![[LaneMask::NONE; Pred::COUNT]; warps],
            base: vec![0; warps],
        }
    }

    /// Assigns `registers` rows to a warp slot, the same number for every slot.
    ///
    /// # Panics
    /// If more warps were admitted than fit into the file.
    pub fn assign(&mut self, warp: usize, registers: usize) {
        // An SM runs one grid at a time, so all warps have the same number of registers.
        self.base[warp] = warp * registers;
        let end = self.base[warp] + registers;
        assert!(
            end <= self.n_rows,
            "warp slot {warp} with {registers} registers is beyond the register file"
        );
        // Rows are only added: a retired warp's rows serve the next warp in its slot.
        if self.rows.len() < end {
            grow(&mut self.rows, end, Lanes::ZERO);
        }
    }

    #[inline]
    fn row(&self, warp: usize, reg: Reg) -> usize {
        self.base[warp] + reg.0 as usize
    }

    /// One register of a warp.
    #[inline]
    pub fn read(&self, warp: usize, reg: Reg) -> &Lanes {
        &self.rows[self.row(warp, reg)]
    }

    /// Writes one register of a warp in some lanes.
    #[inline]
    pub fn write(&mut self, warp: usize, reg: Reg, value: &Lanes, lanes: LaneMask) {
        let row = self.row(warp, reg);
        self.rows[row].merge(value, lanes);
    }

    /// A hash of all registers and predicates of a warp with `registers` registers.
    pub fn hash(&self, warp: usize, registers: usize) -> u64 {
        let mut hasher = DefaultHasher::new();
        let first = self.base[warp];
        for row in &self.rows[first..first + registers] {
            row.0.hash(&mut hasher);
        }
        self.predicates[warp].map(|lanes| lanes.0).hash(&mut hasher);
        hasher.finish()
    }

    /// The predicates of a warp.
    #[inline]
    pub fn predicates(&self, warp: usize) -> &[LaneMask; Pred::COUNT] {
        &self.predicates[warp]
    }

    /// Writes one predicate of a warp in some lanes.
    #[inline]
    pub fn write_predicate(&mut self, warp: usize, pred: Pred, value: LaneMask, lanes: LaneMask) {
        // PT always reads as true, and a write to it is dropped.
        if !pred.is_true() {
            let old = &mut self.predicates[warp][pred.0 as usize];
            *old = (*old & !lanes) | (value & lanes);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use warpwave_isa::lane::WARP_SIZE;

    use super::*;

    const WARPS: usize = 3;
    const REGISTERS: usize = 30;

    #[test]
    fn row_is_zero_at_its_first_use_and_then_keeps_its_value() {
        let mut file = RegFile::new(WARPS * REGISTERS, WARPS);
        file.assign(0, 4);
        file.write(0, Reg(3), &Lanes([7; WARP_SIZE]), LaneMask::ALL);
        file.assign(1, REGISTERS);
        let last = file.read(1, Reg(REGISTERS as u8 - 1));
        assert!(*last == Lanes::ZERO, "{last:?}");
        file.assign(0, REGISTERS);
        assert_eq!(file.read(0, Reg(3)).0, [7; WARP_SIZE]);
    }

    #[test]
    fn predicate_keeps_the_lanes_that_are_not_written() {
        let mut file = RegFile::new(WARPS * REGISTERS, WARPS);
        let (upper, even) = (LaneMask(0xffff_0000), LaneMask(0x5555_5555));
        file.write_predicate(1, Pred(2), LaneMask::ALL, upper);
        assert_eq!(file.predicates(1)[2], upper);
        file.write_predicate(1, Pred(2), LaneMask(0x0000_ffff), even);
        // Of the even lanes the lower ones are set and the upper ones cleared. The odd ones keep their values.
        assert_eq!(file.predicates(1)[2], LaneMask(0xaaaa_5555));
        let others = (0..WARPS).flat_map(|warp| (0..Pred::COUNT).map(move |pred| (warp, pred)));
        for (warp, pred) in others.filter(|&other| other != (1, 2)) {
            assert_eq!(file.predicates(warp)[pred], LaneMask::NONE, "P{pred} of warp {warp}");
        }
    }

    /// A warp, a register, the values to write, and the lanes: all or some.
    fn write() -> impl Strategy<Value = (usize, u8, Lanes, LaneMask)> {
        let row = any::<[u32; WARP_SIZE]>().prop_map(Lanes);
        let lanes = prop_oneof![Just(LaneMask::ALL), any::<u32>().prop_map(LaneMask)];
        (0..WARPS, 0..REGISTERS as u8, row, lanes)
    }

    proptest! {
        #[test]
        fn written_registers_read_back_as_from_plain_rows(
            writes in prop::collection::vec(write(), 1..100),
        ) {
            let mut file = RegFile::new(WARPS * REGISTERS, WARPS);
            let mut plain = vec![Lanes::ZERO; WARPS * REGISTERS];
            (0..WARPS).for_each(|warp| file.assign(warp, REGISTERS));
            for (warp, reg, row, lanes) in writes {
                file.write(warp, Reg(reg), &row, lanes);
                plain[warp * REGISTERS + reg as usize].merge(&row, lanes);
            }
            for (n, expected) in plain.iter().enumerate() {
                let (warp, reg) = (n / REGISTERS, Reg((n % REGISTERS) as u8));
                prop_assert_eq!(file.read(warp, reg), expected);
            }
        }
    }
}
