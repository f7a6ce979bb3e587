//! Iterates over bit masks: sets of up to 64 indices, for loops that run in every cycle. A larger set is a `bitvec`.

/// Iterates over the indices of the bits set in `mask`, lowest first.
///
/// ```
/// use warpwave_hw::bits::ones;
/// assert_eq!(ones(0b1010_0001u32).collect::<Vec<_>>(), [0, 5, 7]);
/// assert_eq!(ones(1u64 << 63).next(), Some(63));
/// assert_eq!(ones(0u64).count(), 0);
/// ```
#[inline]
pub fn ones(mask: impl Into<u64>) -> Ones {
    Ones(mask.into())
}

/// The iterator of [`ones`].
#[derive(Clone, Debug)]
pub struct Ones(u64);

impl Iterator for Ones {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        // Zero has 64 trailing zeros, which ends the iteration. `wrapping_sub`, because 0 - 1 underflows.
        let lowest = self.0.trailing_zeros();
        self.0 &= self.0.wrapping_sub(1);
        (lowest < u64::BITS).then_some(lowest as usize)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let n = self.0.count_ones() as usize;
        (n, Some(n))
    }
}

impl ExactSizeIterator for Ones {}
