//! Draws for derived inputs: functions for `#[arbitrary(with = ...)]`.

use std::ops::RangeInclusive;

use arbitrary::unstructured::Int;
use arbitrary::{Result, Unstructured};

/// Draws one of `options`. Without bytes it is the first.
pub(super) fn one_of<T: Copy>(options: &[T]) -> impl Fn(&mut Unstructured<'_>) -> Result<T> {
    move |bytes| bytes.choose(options).copied()
}

/// Draws an integer of `range`. Without bytes it is the least.
pub(super) fn within<T: Int>(range: RangeInclusive<T>) -> impl Fn(&mut Unstructured<'_>) -> Result<T> {
    move |bytes| bytes.int_in_range(range.clone())
}
