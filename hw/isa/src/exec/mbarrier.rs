//! Mbarriers: barrier objects in shared memory, where threads and asynchronous copies arrive (PTX ISA, mbarrier).
//!
//! PTX does not define the layout of the 64 bits. Layout here:
//!
//! | bits | field |
//! |---|---|
//! | 0-19 | arrivals that the current phase still waits for |
//! | 20-39 | arrivals of each later phase |
//! | 40-61 | bytes that the current phase still waits for, in two's complement |
//! | 63 | parity of the current phase, initially 0 |
//!
//! A phase ends when no arrival and no byte is missing, and the next one starts with the full count. An arrival returns the old
//! state, which PTX calls a token. The parity in the token names the phase of the arrival.
//!
//! PTX does not define an arrival that exceeds the pending arrivals, or a byte count outside its range. [`fault`] finds both.

use std::fmt;

use crate::inst::AtomOp;

/// Width of an arrival count, in bits.
const COUNT_BITS: u32 = 20;
/// Mask of an arrival count.
const COUNT: u64 = (1 << COUNT_BITS) - 1;
/// Position and width of the byte count, in bits.
const BYTES_AT: u32 = 2 * COUNT_BITS;
const BYTES_BITS: u32 = 22;
/// Largest amount of missing bytes, and of bytes that arrive before they are announced (PTX ISA, mbarrier: range of the tx-count).
const MOST_BYTES: i64 = (1 << 20) - 1;

/// An arrival that PTX does not define.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// More arrivals than the phase waits for.
    Arrivals {
        /// Arrivals of the instruction in this lane.
        arrivals: u32,
        /// Arrivals that the phase still waits for.
        pending: u32,
        /// Arrivals of each later phase.
        count: u32,
    },
    /// The byte count leaves its range.
    Bytes {
        /// The byte count after the arrival.
        bytes: i64,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Arrivals {
                arrivals,
                pending,
                count,
            } => {
                let plural = if *arrivals == 1 { "" } else { "s" };
                write!(
                    f,
                    "{arrivals} arrival{plural} at an mbarrier that waits for {pending} of {count}"
                )
            }
            Fault::Bytes { bytes } => {
                write!(
                    f,
                    "byte count {bytes} of an mbarrier, outside -{MOST_BYTES} to {MOST_BYTES}"
                )
            }
        }
    }
}

/// Returns an mbarrier with phases of `count` arrivals (1 to 2^20 - 1).
pub fn init(count: u32) -> u64 {
    let count = u64::from(count) & COUNT;
    count | count << COUNT_BITS
}

/// Finds what PTX does not define in an atomic on a word: an arrival that exceeds the counts of the mbarrier. Other atomics have no fault.
///
/// ```
/// use warpwave_isa::exec::mbarrier::{Fault, fault, init};
/// use warpwave_isa::inst::AtomOp;
/// assert_eq!(fault(AtomOp::Arrive, init(2), 2), None);
/// let more = Fault::Arrivals { arrivals: 3, pending: 2, count: 2 };
/// assert_eq!(fault(AtomOp::Arrive, init(2), 3), Some(more));
/// ```
pub fn fault(op: AtomOp, state: u64, operand: u64) -> Option<Fault> {
    if !op.is_arrival() {
        return None;
    }
    let (arrivals, more) = (operand as u32, (operand >> 32) as u32 as i32);
    let bytes = bytes(state) + i64::from(more);
    // A later phase waits for no fewer arrivals than this one, so an arrival that drops out has no range of its own.
    if arrivals > pending(state) {
        return Some(Fault::Arrivals {
            arrivals,
            pending: pending(state),
            count: count(state),
        });
    }
    (bytes.abs() > MOST_BYTES).then_some(Fault::Bytes { bytes })
}

/// Returns the mbarrier after arrivals, which have no [`fault`].
///
/// The lower word of `operand` is the number of arrivals. The upper word adds to the missing bytes; it is negative for bytes that
/// have arrived. With `drop`, later phases wait for the same number of arrivals less.
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
    // The phase ends: the next one waits for the full count, and its parity is the other one.
    if pending == 0 && bytes == 0 {
        return every | every << COUNT_BITS | (parity ^ 1) << 63;
    }
    pending | every << COUNT_BITS | bytes << BYTES_AT | parity << 63
}

/// True if the phase with this parity has ended, so that the current phase has the other parity.
pub fn is_over(state: u64, parity: u32) -> bool {
    state >> 63 != u64::from(parity & 1)
}

/// Returns the bytes that the current phase still waits for.
pub fn bytes(state: u64) -> i64 {
    // In two's complement: bytes may arrive before they are announced.
    let spare = 64 - BYTES_AT - BYTES_BITS;
    ((state << spare) as i64) >> (64 - BYTES_BITS)
}

/// Returns the arrivals of each later phase. It is the count of the current phase too, unless a thread has dropped out.
pub fn count(state: u64) -> u32 {
    (state >> COUNT_BITS & COUNT) as u32
}

/// Returns the arrivals that the current phase still waits for (`mbarrier.pending_count` of a token).
pub fn pending(state: u64) -> u32 {
    (state & COUNT) as u32
}
