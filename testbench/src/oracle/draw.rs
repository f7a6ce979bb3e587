//! Functions that draw values of derived inputs, for `#[arbitrary(with = ...)]`.

use std::ops::RangeInclusive;

use arbitrary::unstructured::Int;
use arbitrary::{Result, Unstructured};

/// Draws one of `options`: the first one if no bytes are left.
pub(super) fn one_of<T: Copy>(options: &[T]) -> impl Fn(&mut Unstructured<'_>) -> Result<T> {
    move |bytes| bytes.choose(options).copied()
}

/// Draws an integer in `range`: the least one if no bytes are left.
pub(super) fn within<T: Int>(range: RangeInclusive<T>) -> impl Fn(&mut Unstructured<'_>) -> Result<T> {
    move |bytes| bytes.int_in_range(range.clone())
}
