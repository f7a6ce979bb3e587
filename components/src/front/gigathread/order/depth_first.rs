//! Depth first: one SM is filled before the next, so a small grid uses few SMs. Preset word `depth-first`.
//!
//! The order is strict: while the first SM with a free slot cannot be sent a CTA, no other SM gets one.

use super::Candidate;

/// The first candidate with a free slot, if it can be sent a CTA now.
#[inline]
pub fn choose(mut candidates: impl Iterator<Item = Candidate>, can_send: impl Fn(usize) -> bool) -> Option<usize> {
    let first = candidates.next()?.index;
    can_send(first).then_some(first)
}
