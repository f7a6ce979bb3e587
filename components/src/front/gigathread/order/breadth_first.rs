//! Breadth first: the SM with the most free slots, so CTAs spread over all SMs. Preset word `breadth-first`.
//!
//! Source: Gilman et al. (2020), measured on Pascal, Volta and Turing.

use super::Candidate;

/// The candidate with the most free slots that can be sent a CTA now, the first among equals.
#[inline]
pub fn choose(candidates: impl Iterator<Item = Candidate>, can_send: impl Fn(usize) -> bool) -> Option<usize> {
    let (mut emptiest, mut most) = (None, 0);
    for Candidate { index, free_slots } in candidates {
        // `can_send` is tested last: it reads other host cache lines.
        if free_slots > most && can_send(index) {
            (emptiest, most) = (Some(index), free_slots);
        }
    }
    emptiest
}
