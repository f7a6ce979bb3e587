//! The members of a set that is kept as a mask.

/// Indices of the set bits, lowest first.
#[inline]
pub(crate) fn bits(set: impl Into<u64>) -> impl Iterator<Item = usize> {
    let mut set = set.into();
    std::iter::from_fn(move || {
        let lowest = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(lowest)
    })
}
