//! A scattered interleave: as uneven as chance for few consecutive numbers, and even for many. Preset word `scatter`.
//!
//! Each aligned block of 4,096 numbers is permuted. The permutation differs from block to block. The polynomial hash maps the permuted number.
//!
//! ```text
//! x = block * 4096 + low        low -> xor key(block) -> multiply, xor-shift, three times -> hash
//! ```
//!
//! So a place gets 4,096 / n numbers of a block, and few consecutive numbers meet as at random. Every step is one to one.

use super::hash::Hash;

/// Bits of a number within its block.
const BITS: u32 = 12;
const MASK: u64 = (1 << BITS) - 1;

/// The scattered interleave over `n` places.
#[derive(Clone, Debug)]
pub struct Scatter(Hash);

impl Scatter {
    /// An interleave over `n` places, at least 1.
    pub fn new(n: u32) -> Self {
        Scatter(Hash::new(n))
    }

    /// Number of places.
    pub fn places(&self) -> u32 {
        self.0.places()
    }

    /// The number of the run of `x` after the permutation.
    #[inline]
    pub fn run(&self, x: u64) -> u64 {
        self.0.run(permute(x))
    }

    /// The place of `x`, and the number of its run.
    #[inline]
    pub fn map(&self, x: u64) -> (u32, u64) {
        self.0.map(permute(x))
    }
}

/// Permutes the numbers of each block.
#[inline]
fn permute(x: u64) -> u64 {
    let block = x >> BITS;
    // Fibonacci hashing: the upper bits of the product depend on all bits of the block.
    let key = (block + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS);
    let mut low = (x ^ key) & MASK;
    // Odd factors and xor-shifts are one to one on 12 bits.
    for (factor, shift) in [(0xb55, 5), (0x6d3, 7), (0x9a7, 6)] {
        low = low.wrapping_mul(factor) & MASK;
        low ^= low >> shift;
    }
    block << BITS | low
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers at the fullest of 80 places: the mean over 64 runs of `count` consecutive numbers.
    fn fullest(count: u64) -> f64 {
        let scatter = Scatter::new(80);
        let of_run = |run: u64| {
            let mut seen = [0u32; 80];
            (0..count).for_each(|x| seen[scatter.map(run * 4096 + x).0 as usize] += 1);
            f64::from(*seen.iter().max().unwrap())
        };
        (0..64).map(of_run).sum::<f64>() / 64.0
    }

    #[test]
    fn few_numbers_meet_as_by_chance() {
        // Numbers at the fullest of 80 places, thrown at random: means of a simulation apart from this code.
        for (count, chance) in [(7, 1.2), (27, 2.4), (54, 3.3), (108, 4.9), (216, 7.4), (432, 11.7)] {
            let found = fullest(count);
            assert!(
                (found / chance - 1.0).abs() < 0.15,
                "{count} numbers: {found}, by chance {chance}"
            );
        }
    }

    #[test]
    fn block_is_even() {
        // 4,096 / 80 is 51.2.
        assert_eq!(fullest(4096), 52.0);
    }

    #[test]
    fn permutation_stays_in_its_block_and_differs_from_the_next() {
        let block = |block: u64| (0..=MASK).map(move |x| permute(block << BITS | x) & MASK);
        let mut seen = vec![false; 1 << BITS];
        block(5).for_each(|low| seen[low as usize] = true);
        assert!(seen.iter().all(|&is_seen| is_seen));
        assert_eq!(permute(5 << BITS) >> BITS, 5);
        let equal = block(5).zip(block(6)).filter(|(a, b)| a == b).count();
        assert!(
            equal < 40,
            "{equal} of 4,096 numbers have the same place in both blocks"
        );
    }
}
