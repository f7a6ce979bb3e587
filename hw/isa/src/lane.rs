//! The 32 lanes of a warp: a mask of lanes, and one word per lane.
//!
//! [`LaneMask`] is a set of lanes, with bit *i* for lane *i*. [`Lanes`] is one 32-bit word per lane. Register file, operand
//! collector and pipes move data as [`Lanes`].

use std::fmt;
use std::ops::{BitAnd, BitAndAssign, BitOr, BitOrAssign, Not};

/// Lanes in a warp.
pub const WARP_SIZE: usize = 32;

/// A set of lanes of one warp.
///
/// ```
/// use warpwave_isa::lane::LaneMask;
/// let mask = LaneMask::first(3);
/// assert_eq!(mask.iter().collect::<Vec<_>>(), [0, 1, 2]);
/// assert_eq!((!mask).count(), 29);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LaneMask(pub u32);

impl LaneMask {
    /// The empty mask.
    pub const NONE: LaneMask = LaneMask(0);
    /// All 32 lanes.
    pub const ALL: LaneMask = LaneMask(u32::MAX);

    /// Returns the `n` lowest lanes, or all for 32 and more.
    pub const fn first(n: u32) -> Self {
        if n >= 32 { Self::ALL } else { LaneMask((1 << n) - 1) }
    }

    /// Returns the mask of one lane, which must be below 32.
    pub const fn lane(lane: usize) -> Self {
        LaneMask(1 << lane)
    }

    /// True if the lane is in the mask.
    pub const fn contains(self, lane: usize) -> bool {
        self.0 >> lane & 1 == 1
    }

    /// Returns the number of lanes in the mask.
    #[inline]
    pub const fn count(self) -> u32 {
        // Full masks are common, and hosts without a popcount instruction need a dozen operations for the count.
        if self.0 == u32::MAX { 32 } else { self.0.count_ones() }
    }

    /// True if the mask is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the lowest lane of the mask.
    pub const fn lowest(self) -> Option<usize> {
        if self.0 == 0 {
            None
        } else {
            Some(self.0.trailing_zeros() as usize)
        }
    }

    /// Returns the lane of a mask with exactly one lane.
    ///
    /// ```
    /// use warpwave_isa::lane::LaneMask;
    /// assert_eq!([0b1000, 0b1010, 0].map(|lanes| LaneMask(lanes).as_single()), [Some(3), None, None]);
    /// ```
    pub const fn as_single(self) -> Option<usize> {
        if self.0.is_power_of_two() { self.lowest() } else { None }
    }

    /// Returns the lanes of the mask for which `holds` is true.
    ///
    /// ```
    /// use warpwave_isa::lane::LaneMask;
    /// assert_eq!(LaneMask(0b1110).filter(|lane| lane % 2 == 1), LaneMask(0b1010));
    /// ```
    pub fn filter(self, mut holds: impl FnMut(usize) -> bool) -> Self {
        self.iter().fold(LaneMask::NONE, |kept, lane| {
            LaneMask(kept.0 | u32::from(holds(lane)) << lane)
        })
    }

    /// Iterates over the lanes, lowest first.
    pub fn iter(self) -> LaneIter {
        LaneIter(self.0)
    }
}

/// Iterator over the lanes of a mask, lowest first.
#[derive(Clone, Debug)]
pub struct LaneIter(u32);

impl Iterator for LaneIter {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let lane = LaneMask(self.0).lowest()?;
        // Clears the lowest set bit. The word is not 0 here.
        self.0 &= self.0 - 1;
        Some(lane)
    }

    /// Visits all lanes, without a search for set bits if the mask is full.
    #[inline]
    fn fold<B, F: FnMut(B, usize) -> B>(self, first: B, mut f: F) -> B {
        if self.0 == u32::MAX {
            return (0..WARP_SIZE).fold(first, f);
        }
        let mut result = first;
        for lane in self {
            result = f(result, lane);
        }
        result
    }
}

impl BitAnd for LaneMask {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        LaneMask(self.0 & other.0)
    }
}

impl BitOr for LaneMask {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        LaneMask(self.0 | other.0)
    }
}

impl BitAndAssign for LaneMask {
    fn bitand_assign(&mut self, other: Self) {
        self.0 &= other.0;
    }
}

impl BitOrAssign for LaneMask {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl Not for LaneMask {
    type Output = Self;
    fn not(self) -> Self {
        LaneMask(!self.0)
    }
}

impl fmt::Debug for LaneMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

/// One 32-bit word for each lane of a warp, such as a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(align(64))]
pub struct Lanes(pub [u32; WARP_SIZE]);

impl Lanes {
    /// Zero in every lane.
    pub const ZERO: Lanes = Lanes([0; WARP_SIZE]);

    /// Returns the same word in every lane.
    pub const fn splat(word: u32) -> Self {
        Lanes([word; WARP_SIZE])
    }

    /// Copies the words of `from` in the lanes of `mask`. Other lanes keep their word.
    #[inline]
    pub fn merge(&mut self, from: &Lanes, mask: LaneMask) {
        if mask == LaneMask::ALL {
            *self = *from;
            return;
        }
        for lane in 0..WARP_SIZE {
            // 0 in the lanes of the mask, else all ones. A select by masks has no branch, so the loop becomes vector code.
            let keep = (mask.0 >> lane & 1).wrapping_sub(1);
            self.0[lane] = (self.0[lane] & keep) | (from.0[lane] & !keep);
        }
    }
}

impl Default for Lanes {
    fn default() -> Self {
        Self::ZERO
    }
}
