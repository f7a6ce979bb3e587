//! Depth first: one SM is filled before the next, so a small grid uses few SMs. Preset word `depth-first`.
//!
//! The order is strict: while the SM whose turn it is cannot take a CTA yet, no other SM gets one.

use super::Place;

/// The first place with a free slot, if it can take a CTA now.
#[inline]
pub fn choose(mut places: impl Iterator<Item = Place>, can_take: impl Fn(usize) -> bool) -> Option<usize> {
    let first = places.next()?;
    can_take(first.number).then_some(first.number)
}
