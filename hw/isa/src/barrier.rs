//! Block barriers (BAR): their numbers and thread counts.

use crate::lane::WARP_SIZE;

/// Barriers of a block (PTX ISA, `bar`).
pub const BARRIERS: usize = 16;

/// Whether a block has the barrier `number`, and the barrier takes the count `threads`. A count of 0 means the whole block. An arrival
/// that does not wait (`passes`) needs a count.
///
/// ```
/// use warpwave_isa::barrier::exists;
/// assert!(exists(15, 64, true) && exists(0, 0, false));
/// assert!(!exists(16, 64, false), "barriers 0 to 15");
/// assert!(!exists(0, 48, false), "whole warps");
/// assert!(!exists(0, 0, true), "an arrival names its count");
/// ```
pub fn exists(number: u32, threads: u32, passes: bool) -> bool {
    (number as usize) < BARRIERS && threads.is_multiple_of(WARP_SIZE as u32) && !(passes && threads == 0)
}
