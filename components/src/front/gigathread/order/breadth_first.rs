//! Breadth first: the place with the most free slots, so CTAs spread over all SMs. Preset word `breadth-first`.
//!
//! Source: Gilman et al. (2020), measured on Pascal, Volta and Turing.

use super::Place;

/// The place with the most free slots that can take a CTA now, the first among equals.
#[inline]
pub fn choose(places: impl Iterator<Item = Place>, can_take: impl Fn(usize) -> bool) -> Option<usize> {
    let (mut emptiest, mut most) = (None, 0);
    for Place { number, free } in places {
        // `can_take` is tested last: it reads other host cache lines.
        if free > most && can_take(number) {
            (emptiest, most) = (Some(number), free);
        }
    }
    emptiest
}
