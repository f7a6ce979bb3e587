//! Rows whose words rise evenly in either half of the warp: most addresses and counters, and whatever all lanes share.
//!
//! Such a row is known by three words. Who keeps it so moves 12 bytes instead of 128, and sees without looking at the lanes what
//! their addresses have in common (Collange, Defour and Zhang, "Dynamic detection of uniform and affine vectors in GPGPU
//! computations", 2009). The halves begin apart, since the threads of a warp are often two rows of a tile sixteen wide.

use crate::lane::{Lanes, WARP_SIZE};

/// Lanes of a half.
pub const HALF: usize = WARP_SIZE / 2;

/// Lanes that are written together.
const QUAD: usize = 4;

/// A row by three words: lane `l` of half `h` has `first[h] + l * step`, modulo 2^32.
///
/// ```
/// use warpwave_isa::affine::Affine;
/// let row = Affine { first: [100, 7], step: 4 }.row();
/// assert_eq!((row.0[0], row.0[15], row.0[16], row.0[31]), (100, 160, 7, 67));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(align(16))]
pub struct Affine {
    /// The words of the first lane of each half.
    pub first: [u32; 2],
    /// How much more each lane has than the one before.
    pub step: u32,
}

impl Affine {
    /// The same word in every lane.
    #[inline]
    pub const fn splat(word: u32) -> Self {
        Affine {
            first: [word; 2],
            step: 0,
        }
    }

    /// The word that every lane has, if that is one.
    #[inline]
    pub fn only(self) -> Option<u32> {
        (self.step == 0 && self.first[0] == self.first[1]).then_some(self.first[0])
    }

    /// The words' sums.
    #[inline]
    pub fn plus(self, other: Affine) -> Self {
        Affine {
            first: [0, 1].map(|half| self.first[half].wrapping_add(other.first[half])),
            step: self.step.wrapping_add(other.step),
        }
    }

    /// Every word times the same.
    #[inline]
    pub fn times(self, factor: u32) -> Self {
        Affine {
            first: self.first.map(|word| word.wrapping_mul(factor)),
            step: self.step.wrapping_mul(factor),
        }
    }

    /// Every bit the other way.
    #[inline]
    pub fn inverted(self) -> Self {
        Affine {
            first: self.first.map(|word| !word),
            step: self.step.wrapping_neg(),
        }
    }

    /// The row.
    pub fn row(self) -> Lanes {
        let mut row = Lanes::ZERO;
        self.unfold(&mut row);
        row
    }

    /// Writes the row.
    #[inline]
    pub fn unfold(self, row: &mut Lanes) {
        if let Some(word) = self.only() {
            *row = Lanes::splat(word);
            return;
        }
        let rise: [u32; QUAD] = std::array::from_fn(|lane| self.step.wrapping_mul(lane as u32));
        let next = self.step.wrapping_mul(QUAD as u32);
        for (first, words) in self.first.iter().zip(row.0.as_chunks_mut::<HALF>().0) {
            let mut quad = rise.map(|rise| rise.wrapping_add(*first));
            for words in words.as_chunks_mut().0 {
                *words = quad;
                quad = quad.map(|word| word.wrapping_add(next));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn row_has_the_words_that_define_it(first: [u32; 2], step in prop_oneof![0..20u32, any::<u32>()]) {
            let expected = std::array::from_fn(|lane| first[lane / 16].wrapping_add(step.wrapping_mul(lane as u32 % 16)));
            prop_assert_eq!(Affine { first, step }.row(), Lanes(expected));
            let is_one = expected.iter().all(|&word| word == expected[0]);
            prop_assert_eq!(Affine { first, step }.only(), is_one.then_some(expected[0]));
        }

        #[test]
        fn sum_product_and_inverse_are_those_of_the_words(
            first: [[u32; 2]; 2],
            step: [u32; 2],
            factor: u32,
        ) {
            let [a, b] = [0, 1].map(|n| Affine { first: first[n], step: step[n] });
            let (sum, product, inverse) = (a.plus(b).row(), a.times(factor).row(), a.inverted().row());
            for lane in 0..WARP_SIZE {
                let (a, b) = (a.row().0[lane], b.row().0[lane]);
                let expected = (a.wrapping_add(b), a.wrapping_mul(factor), !a);
                prop_assert_eq!((sum.0[lane], product.0[lane], inverse.0[lane]), expected);
            }
        }
    }

    #[test]
    fn step_downwards_wraps() {
        let row = Affine {
            first: [3, u32::MAX],
            step: u32::MAX,
        }
        .row();
        assert_eq!(
            (row.0[2], row.0[4], row.0[16], row.0[31]),
            (1, u32::MAX, u32::MAX, u32::MAX - 15)
        );
    }
}
