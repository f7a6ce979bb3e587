//! The barrier object in shared memory that threads and asynchronous copies arrive at (PTX ISA, mbarrier).
//!
//! PTX leaves the layout of its 64 bits open. Here:
//!
//! | bits | field |
//! |---|---|
//! | 0-19 | arrivals that the running phase still waits for |
//! | 20-39 | arrivals that every further phase waits for |
//! | 40-61 | bytes that the running phase still waits for, in two's complement |
//! | 63 | parity of the running phase, 0 at first |
//!
//! A phase is over when it waits for no arrival and no byte; the next one then begins with the full count. What an arrival finds is
//! the state that PTX calls a token: its parity names the phase that the arrival belonged to.

/// Bits of a count.
const COUNT_BITS: u32 = 20;
/// The bits of a count.
const COUNT: u64 = (1 << COUNT_BITS) - 1;
/// The first bit of the bytes, and how many they have.
const BYTES_AT: u32 = 2 * COUNT_BITS;
const BYTES_BITS: u32 = 22;

/// A barrier whose phases wait for `count` arrivals (1 to 2^20 - 1).
pub fn init(count: u32) -> u64 {
    let count = u64::from(count) & COUNT;
    count | count << COUNT_BITS
}

/// The barrier after arrivals: as many as the lower word of `operand` says, with so many more bytes to wait for as its upper word
/// says (negative: bytes that have come). `drop`: further phases wait for as many arrivals less.
///
/// ```
/// use warpwave_isa::exec::mbarrier::{arrive, init, is_over};
/// let one = arrive(init(2), 1, false);
/// assert!(!is_over(one, 0));
/// let both = arrive(one, 1, false);
/// assert!(is_over(both, 0) && !is_over(both, 1));
/// ```
pub fn arrive(state: u64, operand: u64, drop: bool) -> u64 {
    let (arrivals, more) = (operand & COUNT, (operand >> 32) as u32 as i32);
    let field = |at: u32| state >> at & COUNT;
    let every = if drop {
        field(COUNT_BITS).wrapping_sub(arrivals) & COUNT
    } else {
        field(COUNT_BITS)
    };
    let pending = field(0).wrapping_sub(arrivals) & COUNT;
    let bytes = bytes(state).wrapping_add(i64::from(more)) as u64 & ((1 << BYTES_BITS) - 1);
    let parity = state >> 63;
    if pending == 0 && bytes == 0 {
        return every | every << COUNT_BITS | (parity ^ 1) << 63;
    }
    pending | every << COUNT_BITS | bytes << BYTES_AT | parity << 63
}

/// Whether the phase of a parity is over: the running one has the other parity.
pub fn is_over(state: u64, parity: u32) -> bool {
    state >> 63 != u64::from(parity & 1)
}

/// Bytes that the running phase still waits for.
pub fn bytes(state: u64) -> i64 {
    let spare = 64 - BYTES_AT - BYTES_BITS;
    ((state << spare) as i64) >> (64 - BYTES_BITS)
}

/// Arrivals that the running phase still waits for (`mbarrier.pending_count` of a token).
pub fn pending(state: u64) -> u32 {
    (state & COUNT) as u32
}
