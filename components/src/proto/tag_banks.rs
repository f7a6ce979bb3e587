//! The tag banks of the L1. Each bank looks up one line per cycle, so the L1 looks up several lines of a warp in parallel.
//!
//! An access takes max(passes of the data banks, lines on the fullest tag bank) cycles. The LSU sends the packets of a cycle together, and
//! the L1 looks them up together: both use [`Lookups`].
//!
//! The bank of a line is a hash of its number, folded into six bits: one parity per bit of the bank number. The first two masks fit the
//! strides that `gpubenches` measured on A100: median error 2 %, p95 13 %. Folded, they also fit rows 16 KB apart, which the search did
//! not use. The third mask is assumed.
//!
//! Sources: `gpubenches` for the rule; `khairy20` for the four banks of Volta.

use super::mem::LINE;

/// Maximum number of tag banks.
pub const MAX_TAG_BANKS: usize = 1 << MASKS.len();

/// Bits of the line number whose parity is a bit of the bank number, lowest bit first.
const MASKS: [u32; 3] = [folded(0x13), folded(0x2e), folded(0x34)];

/// A mask of six bits, repeated: the parity of a folded number under `mask` is that of the number under this one.
const fn folded(mask: u32) -> u32 {
    mask | mask << 6 | mask << 12 | mask << 18 | mask << 24 | mask << 30
}

/// The lookups of one cycle.
#[derive(Clone, Debug)]
pub struct Lookups {
    /// Number of bits of a bank number.
    bits: usize,
    /// The banks in use, bit i for bank i.
    used: u8,
    /// The line that each bank in use looks up.
    lines: [u64; MAX_TAG_BANKS],
}

impl Lookups {
    /// No lookup in any of `banks` banks, a power of two up to [`MAX_TAG_BANKS`].
    pub fn new(banks: u32) -> Self {
        Lookups {
            bits: banks.trailing_zeros() as usize,
            used: 0,
            lines: [0; MAX_TAG_BANKS],
        }
    }

    /// Begins a cycle: every bank is free.
    #[inline]
    pub fn clear(&mut self) {
        self.used = 0;
    }

    /// Looks up the line of an address, if its bank is free or looks up the same line already. Returns false if not.
    #[inline]
    pub fn admit(&mut self, line: u64) -> bool {
        let bank = self.bank(line);
        if self.used >> bank & 1 == 1 {
            // One lookup serves all packets of a line.
            return self.lines[bank] == line;
        }
        self.used |= 1 << bank;
        self.lines[bank] = line;
        true
    }

    #[inline]
    fn bank(&self, line: u64) -> usize {
        let number = (line / LINE as u64) as u32;
        let parity = |mask: u32| ((number & mask).count_ones() & 1) as usize;
        (0..self.bits).fold(0, |bank, bit| bank | parity(MASKS[bit]) << bit)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use warpwave_isa::lane::LaneMask;

    use super::*;
    use crate::proto::addresses::WarpAddresses;
    use crate::proto::data_banks::passes;

    /// Cycles until the banks have looked up all lines of `addresses`.
    fn lookup_cycles(banks: u32, addresses: impl Iterator<Item = u64>) -> u32 {
        let lines: BTreeSet<u64> = addresses.map(|address| address / 128 * 128).collect();
        let mut lookups = Lookups::new(banks);
        let mut waiting: Vec<u64> = lines.into_iter().collect();
        let mut cycles = 0;
        while !waiting.is_empty() {
            lookups.clear();
            waiting.retain(|&line| !lookups.admit(line));
            cycles += 1;
        }
        cycles
    }

    #[test]
    fn consecutive_lines_share_the_banks_evenly() {
        for banks in [1, 2, 4, 8] {
            assert_eq!(
                lookup_cycles(banks, (0..32).map(|n| n * 128)),
                32 / banks,
                "{banks} banks"
            );
        }
    }

    #[test]
    fn line_in_lookup_is_admitted_again_and_another_of_its_bank_is_not() {
        let mut lookups = Lookups::new(1);
        assert_eq!([128, 128, 256].map(|line| lookups.admit(line)), [true, true, false]);
        lookups.clear();
        assert!(lookups.admit(256));
    }

    /// Mean cycles of a 32-bit load of a warp, over loads at 8 offsets of 4 words.
    fn mean_cycles(word: impl Fn(u64) -> u64) -> f64 {
        let cycles = (0..8).map(|n| {
            let at = |lane: usize| (1 << 20) + 4 * (word(lane as u64) + 4 * n);
            let addresses = WarpAddresses::per_lane(std::array::from_fn(at));
            let lookups = lookup_cycles(4, (0..32).map(|lane| addresses.get(lane)));
            lookups.max(passes(&addresses, LaneMask::ALL, 4))
        });
        f64::from(cycles.sum::<u32>()) / 8.0
    }

    #[test]
    fn strided_words_and_distant_rows_take_the_cycles_measured_on_a100() {
        let near = |cycles: f64, silicon: f64| (cycles / silicon - 1.0).abs() < 0.14;
        // gpubenches, 32-bit loads of a warp: stride in words, cycles.
        for (stride, silicon) in [
            (1, 1.02),
            (2, 2.0),
            (5, 2.2),
            (8, 8.0),
            (9, 3.03),
            (13, 4.02),
            (16, 16.0),
        ] {
            let cycles = mean_cycles(|lane| stride * lane);
            assert!(
                near(cycles, silicon),
                "stride {stride}: {cycles} cycles, measured {silicon}"
            );
        }
        // Rows of 1 to 16 words, 4,098 words apart.
        for (width, silicon) in [(1, 9.2), (2, 5.1), (4, 3.13), (8, 4.0), (16, 2.0)] {
            let cycles = mean_cycles(|lane| lane % width + lane / width * 4098 + 4098);
            assert!(
                near(cycles, silicon),
                "width {width}: {cycles} cycles, measured {silicon}"
            );
        }
    }
}
