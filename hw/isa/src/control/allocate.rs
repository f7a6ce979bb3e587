//! Allocation of dependency barriers, as the vendor's assembler does it.
//!
//! 1. A result shares the barrier of the results with the same first reader, which waits for all of them in any case.
//! 2. Otherwise it takes the lowest free barrier. Results from behind the L1 begin at barrier 2. The two below are left for short waits.
//! 3. Without a free barrier it shares the one taken last, so that older waits do not get longer.
//!
//! Source: code of ptxas 13.5 for sm_90. Twenty loads, each with a sum of its own, take barriers 2, 3, 4, 5, 5, 5. Eight loads that four
//! FFMA read take 2, 2, 3, 3, 4, 4, 5, 5.

use super::DEP_BARRIERS;

/// Lowest barrier of a result from behind the L1.
const FIRST_LONG: u8 = 2;

/// State of the allocation at one instruction, in text order.
pub(super) struct Allocator {
    /// Number of barriers.
    n: u8,
    /// The barrier taken last.
    last: u8,
    /// The first reader of all results that hold a barrier. `None` if they have several, or if a read holds it.
    readers: [Option<usize>; DEP_BARRIERS],
}

impl Allocator {
    pub fn new(barriers: usize) -> Self {
        Allocator {
            n: barriers as u8,
            last: 0,
            readers: [None; DEP_BARRIERS],
        }
    }

    /// Returns the barrier of a result. `held` are the barriers in use, `reader` is its first reader.
    pub fn of_result(&mut self, held: u8, is_long: bool, reader: Option<usize>) -> u8 {
        let is_shared = |&n: &u8| held >> n & 1 != 0 && self.readers[usize::from(n)] == reader;
        let shared = reader.and_then(|_| (0..self.n).find(is_shared));
        let first = if is_long { FIRST_LONG.min(self.n - 1) } else { 0 };
        let barrier = shared.unwrap_or_else(|| self.free(held, first));
        self.hold(barrier, held, reader)
    }

    /// Returns the barrier of a read.
    pub fn of_sources(&mut self, held: u8) -> u8 {
        self.hold(self.free(held, 0), held, None)
    }

    fn free(&self, held: u8, first: u8) -> u8 {
        (first..self.n).find(|&n| held >> n & 1 == 0).unwrap_or(self.last)
    }

    fn hold(&mut self, barrier: u8, held: u8, reader: Option<usize>) -> u8 {
        let readers = &mut self.readers[usize::from(barrier)];
        let is_alone = held >> barrier & 1 == 0 || *readers == reader;
        *readers = reader.filter(|_| is_alone);
        self.last = barrier;
        barrier
    }
}
