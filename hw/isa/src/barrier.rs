//! Block barriers (BAR): valid numbers and thread counts.

use crate::lane::WARP_SIZE;

/// Barriers of a block (PTX ISA, `bar`).
pub const BLOCK_BARRIERS: usize = 16;

/// True if a block has barrier `number` and it accepts the count `threads`.
///
/// A count of 0 means the whole block. An arrival without waiting (`arrive_only`) needs a count.
///
/// ```
/// use warpwave_isa::barrier::is_valid;
/// assert!(is_valid(15, 64, true) && is_valid(0, 0, false));
/// assert!(!is_valid(16, 64, false), "barriers 0 to 15");
/// assert!(!is_valid(0, 48, false), "whole warps");
/// assert!(!is_valid(0, 0, true), "an arrival names its count");
/// ```
pub fn is_valid(number: u32, threads: u32, arrive_only: bool) -> bool {
    (number as usize) < BLOCK_BARRIERS && threads.is_multiple_of(WARP_SIZE as u32) && !(arrive_only && threads == 0)
}
