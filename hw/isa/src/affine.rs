//! Rows whose words rise evenly in either half of the warp: most addresses and counters, and whatever all lanes share.
//!
//! Such a row is known by three words. Who keeps it so moves 12 bytes instead of 128, and sees without looking at the lanes what
//! their addresses have in common (Collange, Defour and Zhang, "Dynamic detection of uniform and affine vectors in GPGPU
//! computations", 2009). The halves begin apart, since the threads of a warp are often two rows of a tile sixteen wide.

use crate::lane::{Lanes, WARP_SIZE};

/// Lanes of a half.
const HALF: usize = WARP_SIZE / 2;

/// Lanes that are looked at together.
const QUAD: usize = 4;

/// A row by three words: lane `l` of half `h` has `first[h] + l * step`, modulo 2^32.
///
/// ```
/// use warpwave_isa::affine::Affine;
/// use warpwave_isa::lane::Lanes;
/// let row = Affine { first: [100, 7], step: 4 }.row();
/// assert_eq!((row.0[0], row.0[15], row.0[16], row.0[31]), (100, 160, 7, 67));
/// assert_eq!(Affine::of(&row), Some(Affine { first: [100, 7], step: 4 }));
/// assert_eq!(Affine::of(&Lanes(std::array::from_fn(|lane| (lane * lane) as u32))), None);
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

    /// What a row is, if it is of this kind.
    #[inline]
    pub fn of(row: &Lanes) -> Option<Self> {
        let word = |lane: usize| row.0[lane];
        let step = word(1).wrapping_sub(word(0));
        // Most other rows are told by two lanes.
        if word(HALF + 1).wrapping_sub(word(HALF)) != step || word(3).wrapping_sub(word(2)) != step {
            return None;
        }
        let expected = Affine {
            first: [word(0), word(HALF)],
            step,
        };
        let mut differ = [0; QUAD];
        expected.each_quad(|n, quad| {
            let words = &row.0.as_chunks::<QUAD>().0[n];
            for lane in 0..QUAD {
                differ[lane] |= words[lane] ^ quad[lane];
            }
        });
        (differ == [0; QUAD]).then_some(expected)
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
        let quads = row.0.as_chunks_mut::<QUAD>().0;
        self.each_quad(|n, quad| quads[n] = quad);
    }

    /// The words of four lanes after the other.
    #[inline]
    fn each_quad(self, mut take: impl FnMut(usize, [u32; QUAD])) {
        let rise: [u32; QUAD] = std::array::from_fn(|lane| self.step.wrapping_mul(lane as u32));
        let next = self.step.wrapping_mul(QUAD as u32);
        for (half, first) in self.first.into_iter().enumerate() {
            let mut quad = rise.map(|rise| rise.wrapping_add(first));
            for n in 0..HALF / QUAD {
                take(half * HALF / QUAD + n, quad);
                quad = quad.map(|word| word.wrapping_add(next));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lane by lane, as it is defined.
    fn words(first: [u32; 2], step: u32) -> Lanes {
        Lanes(std::array::from_fn(|lane| {
            first[lane / HALF].wrapping_add(step.wrapping_mul((lane % HALF) as u32))
        }))
    }

    proptest! {
        #[test]
        fn affine_row_is_known_and_is_the_same_again(first: [u32; 2], step in prop_oneof![0..20u32, any::<u32>()]) {
            let row = words(first, step);
            prop_assert_eq!(Affine::of(&row), Some(Affine { first, step }));
            prop_assert_eq!(Affine { first, step }.row(), row);
        }

        #[test]
        fn row_that_is_off_in_one_lane_is_not_affine(first: [u32; 2], step: u32, lane in 0..WARP_SIZE, off in 1..=u32::MAX) {
            let mut row = Affine { first, step }.row();
            row.0[lane] = row.0[lane].wrapping_add(off);
            prop_assert_eq!(Affine::of(&row), None);
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
