//! Draws values of derived inputs, for `#[arbitrary(with = ...)]`.

use std::ops::RangeInclusive;

use arbitrary::unstructured::Int;
use arbitrary::{Arbitrary, Result, Unstructured};
use warpwave_hw::time::Cycle;

/// Draws one of `options`: the first one if no bytes are left.
pub fn one_of<T: Copy>(options: &[T]) -> impl Fn(&mut Unstructured<'_>) -> Result<T> {
    move |bytes| bytes.choose(options).copied()
}

/// Draws an integer in `range`: the least one if no bytes are left.
pub fn within<T: Int>(range: RangeInclusive<T>) -> impl Fn(&mut Unstructured<'_>) -> Result<T> {
    move |bytes| bytes.int_in_range(range.clone())
}

/// Draws a list of at most `most` elements.
pub fn up_to<T: for<'a> Arbitrary<'a>>(most: usize) -> impl Fn(&mut Unstructured<'_>) -> Result<Vec<T>> {
    move |bytes| {
        let mut list = Vec::new();
        // The bytes decide the length, so a shorter input has a shorter list.
        while list.len() < most && !bytes.is_empty() {
            list.push(T::arbitrary(bytes)?);
        }
        Ok(list)
    }
}

/// The cycles in which a port of the world acts: bit n stands for the cycles n modulo 64. At least one bit is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace(u64);

impl Pace {
    /// Every cycle.
    pub const ALWAYS: Pace = Pace(u64::MAX);

    /// True if the port acts in this cycle.
    pub fn acts(self, now: Cycle) -> bool {
        self.0 >> (now.0 % 64) & 1 == 1
    }
}

impl<'a> Arbitrary<'a> for Pace {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        // Mostly one of a few rhythms, each from one byte.
        Ok(Pace(match bytes.int_in_range(0..=7u8)? {
            0..=2 => u64::MAX,
            3 => 0x5555_5555_5555_5555,
            4 => 0x0101_0101_0101_0101,
            5 => 0xffff_ffff,
            6 => 1,
            // The extra bit keeps a port from being stuck for ever.
            _ => u64::arbitrary(bytes)? | 1 << 17,
        }))
    }
}
